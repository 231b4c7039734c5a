"""Controls that the parts of Landscapes share: the loss, its knobs on three classes, ends of axes that only grow."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from controls import knobs
from drawing.loss_figures import Setting, figure
from session import messages
from session.address import bound, one_of
from workbench import display_names
from workbench.figures.base import round_range
from workbench.figures.losses.evaluation import fitting_three_classes
from workbench.knobs import Knob
from workbench.losses import Formula, Loss, by_name, class_named, of_modules
from workbench.losses.formula import ALLOWED, EXAMPLES, LONGEST
from workbench.trusted_imports import allowed_modules

NONE = "none"
Ends = tuple[float, float]  # of an axis or of colours


def titles() -> dict[str, str]:
    """Name → title of every loss of the catalogue, of a formula, and of the losses in modules that the server allows."""
    known: dict[str, type[Loss]] = {**by_name(), Formula.__name__: Formula}
    titled = {name: loss.title for name, loss in known.items()}
    own = {name: display_names.title_of(loss) for name, loss in of_modules(allowed_modules()).items()}
    return titled | {name: name if title in titled.values() else title for name, title in own.items()}


def class_of(loss: Setting) -> type[Loss]:
    """The class of a chosen loss."""
    return class_named(loss.loss, allowed=allowed_modules())


def loss_choice(label: str, key: str, options: tuple[str, ...] = ()) -> Setting:
    """A loss by its title; its knobs are chosen elsewhere."""
    options = options or tuple(titles())
    first = options.index("NoisedTopK") if NONE not in options else 0
    named = {name: titles().get(name, name) for name in options}
    readable = bound(key, one_of(named.values()))
    return Setting(st.selectbox(label, options, first, format_func=named.__getitem__, **readable), {})


def with_formulas(**chosen: Setting) -> list[Setting]:
    """The chosen losses; a formula with its text, typed on a line of its own below the bar. Names are those of the controls."""
    if all(loss.loss != Formula.__name__ for loss in chosen.values()):
        return list(chosen.values())
    with st.container(key="formulas", horizontal=True, gap="medium"):
        return [formula_choice(key) if loss.loss == Formula.__name__ else loss for key, loss in chosen.items()]


def formula_choice(choice: str) -> Setting:
    """A formula; while its text cannot be read, the last one that could, and what is wrong."""
    key = f"{choice}_formula"
    examples = "".join(f"\n- `{example}`" for example in EXAMPLES)
    about = f"Enter draws it. Examples: {examples}\n\nAllowed: {messages.plain(ALLOWED)}."
    readable = bound(
        key, lambda asked: key in st.session_state or (len(asked) == 1 and what_is_wrong(asked[0]) is None)
    )
    with st.container():
        text = st.text_input("Formula ℓ(s, y) of one row", EXAMPLES[0], max_chars=LONGEST, help=about, **readable)
        if (wrong := what_is_wrong(text)) is None:
            st.session_state[f"{key} drawn"] = text
        else:
            st.error(messages.plain(wrong), icon=":material/function:")
    return Setting(Formula.__name__, {"expression": st.session_state.get(f"{key} drawn", EXAMPLES[0])})


def what_is_wrong(expression: str) -> str | None:
    """Why a text is not a formula; None if it is one."""
    try:
        Formula(expression)
    except ValueError as error:
        return str(error)
    return None


def knobs_on_triangle(loss: Setting) -> dict[str, tuple[Knob, Any]]:
    """Knob → (the knob as three classes allow it, where it stands at first); of a formula, those that it reads."""
    kind, found = class_of(loss), {}
    written = {name: value for name, value in loss.knobs.items() if name == "expression"}
    settings = kind(**fitting_three_classes(kind.knobs()), **written).at(1).settings()
    for name, value in settings.items():
        knob = kind.knobs()[name]
        limited = dataclasses.replace(knob, low=1, high=2) if name == "K" else knob
        found[name] = (limited, limited.snapped(value) if knob.numeric else value)
    return found


def linkable(left: Setting, right: Setting, name: str) -> bool:
    """Whether one slider can move the knob of both losses."""
    mine, others = knobs_on_triangle(left), knobs_on_triangle(right)
    return name != "expression" and name in mine and name in others and mine[name][0].kind == others[name][0].kind


def knobs_of(
    loss: Setting, options: dict[str, Any] | None = None, *, apart: Sequence[str] = (), linked: Setting | None = None
) -> Setting:
    """Every knob of a loss as a widget. Beside another loss, a knob that is `linked` to it follows unless moved apart.

    The number of noise draws is a knob only where noise is drawn.
    """
    side, prefix = ("left", "") if linked is None else ("right", "right_")
    chosen = {}
    for name, (knob, value) in knobs_on_triangle(loss).items():
        if name in loss.knobs or (name == "n_samples" and not (options or {}).get("sampled")):
            chosen[name] = value
        elif linked is not None and linkable(linked, loss, name) and name not in apart:
            chosen[name] = linked.knobs[name]
        else:
            key = f"{prefix}{loss.loss}_{name}"
            chosen[name] = knobs.widget(name, knob, value, key=key, side=side if name in apart else "")
            if knob.kind == "weights":
                st.caption(
                    f"Of three classes sets have one or two: two weights here, {len(knob.default)} at first in training."
                )
    return Setting(loss.loss, chosen)


def wide_enough(recipes: list[str], seen: Ends | None) -> Ends:
    """Round ends that hold all that these pictures show, and what was seen before: they only grow, so nothing jumps."""
    shown_ends: list[Any] = [figure(each).value_range for each in recipes]  # type: ignore[attr-defined]
    lows, highs = zip(*shown_ends, strict=True)
    low, high = round_range(min(lows), max(highs))
    return (low, high) if seen is None else (min(low, seen[0]), max(high, seen[1]))


def ends_seen(name: str, settings: list[Setting]) -> Ends | None:
    """The ends that a picture of these losses had before their knobs moved; None for other losses."""
    losses, ends = st.session_state.get(f"{name} ends", ((), None))
    return ends if losses == [setting.loss for setting in settings] else None


def keep_ends(name: str, settings: list[Setting], ends: Ends | None) -> None:
    """Remember the ends for the next time."""
    st.session_state[f"{name} ends"] = [setting.loss for setting in settings], ends


def about(loss: Setting) -> None:
    """The facts that the loss declares; its picture has loaded it."""
    with st.expander(f"About: {display_names.title_of(class_of(loss))}", icon=":material/menu_book:"):
        st.markdown(in_markdown(inspect.getdoc(class_of(loss)) or ""))


def in_markdown(doc: str) -> str:
    """A docstring without its examples, and with each displayed formula between lines of their own: a formula that spans
    lines is one for Streamlit only then.
    """
    without_examples = re.sub(r"^>>>.*?(?:\n\n|\Z)", "", doc, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\$\$(.*?)\$\$", r"$$\n\1\n$$", without_examples, flags=re.DOTALL)
