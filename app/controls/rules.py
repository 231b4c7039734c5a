"""Which rule makes the sets of a page: one threshold, moved in the browser, or any other rule of the library."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import streamlit as st

import live
import workbench as wb
from controls import knobs
from controls.headline import numbers_along, numbers_of, strip
from controls.places import CONFIDENCES, along
from session import messages, reading
from session.address import KEPT, bound, in_address, one_of
from workbench.knobs import shown
from workbench.sets import RULES, ConformalRule, Rule
from workbench.store.cache import content_key

STEPS = {"confidence": CONFIDENCES}
FEW_SCORES = 3_000_000  # of a table whose sets are formed ahead at every place of a slider
ONE_THRESHOLD = "one threshold"
OTHERS = {rule.title: rule for rule in RULES if rule not in reading.SLIDERS.values()}
FORMERLY = {rule.__name__: title for title, rule in OTHERS.items()}  # what earlier links call a rule


@dataclass(frozen=True)
class ChosenRule:
    """How the sets of a page are made: by a rule, and where the sliders stand if they chose it (None: another rule).

    `along` is another rule, as Python prints it, at every place of the slider that leads it; None where its sets are not
    known ahead. `channel` is where the moving parts of the page listen.
    """

    key: str
    rule: Rule
    place: int | None
    along: tuple[str, ...] | None = None

    @property
    def channel(self) -> str:
        if self.place is not None:
            return self.key
        return f"{self.key} {content_key(self.along or repr(self.rule))[:12]}"

    @property
    def moves(self) -> bool:
        """Whether pictures follow its slider in the browser."""
        return self.place is not None or self.along is not None

    @property
    def sets(self) -> wb.PredictionSets:
        """The sets of the test rows."""
        return self.of(self.key)

    def of(self, key: str) -> wb.PredictionSets:
        """The sets that the rule, fitted on the validation rows of a run, gives its test rows."""
        return reading.sets_by(key, repr(self.rule))


def kept() -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The rule that was chosen last, as state of its widgets and as it stands in the address; None: one threshold.

    None also where the address names a rule itself.
    """
    kept = st.session_state.get(KEPT)
    return None if kept is None or "rule" in st.query_params else (kept, changed(kept))


def changed(kept: dict[str, Any]) -> dict[str, Any]:
    """Of a rule that was kept, what stands in the address: its name, and the knobs that are not at their default."""
    knobs = OTHERS[kept["rule"]].knobs()
    moved = {name: kept[f"rule_{name}"] for name, knob in knobs.items() if kept[f"rule_{name}"] != knob.default}
    return {"rule": kept["rule"], **{f"rule_{name}": shown(value).lower() for name, value in moved.items()}}


def choose(view: str, key: str) -> ChosenRule:
    """The chooser of rules, the controls of the chosen one, and the headline numbers, which stay in sight."""
    in_address(key)
    labelled = reading.run(key).tables["val"].labels is not None
    names = [name for name, rule in OTHERS.items() if labelled or not issubclass(rule, ConformalRule)]
    names = [ONE_THRESHOLD, *names]
    name = st.segmented_control("Rule", names, default=ONE_THRESHOLD, required=True, **bound("rule", one_of(names)))
    if name == ONE_THRESHOLD:
        st.session_state[KEPT] = None
        with st.container(key="headline"):
            position = strip(view, key)
        if reading.run(key).tables["val"].chose_model:
            st.caption("The validation rows also chose the weights that were kept, so nothing can be promised.")
        return ChosenRule(key, position.rule, position.place)
    chosen = OTHERS[name]
    st.caption(inspect.getdoc(chosen).splitlines()[0])  # type: ignore[union-attr]
    with st.container(key="headline"):
        with st.container(key="knobs"):
            values = {
                name: knobs.widget(name, knob, knob.default, key=f"rule_{name}", steps=STEPS.get(name, 101))
                for name, knob in chosen.knobs().items()
            }
        st.session_state[KEPT] = {"rule": name, **{f"rule_{knob}": value for knob, value in values.items()}}
        leader = leads(chosen, key)
        known_ahead = None if leader is None else every_place(chosen, values, leader)
        made = ChosenRule(key, chosen(**values), None, known_ahead)
        numbers_in_sight(view, made, leader)
    for warning in reading.warnings_of(key, repr(made.rule)):
        st.warning(messages.plain(warning), icon=":material/warning:")
    return made


def leads(rule: type[Rule], key: str) -> str | None:
    """The knob of a rule that pictures follow in the browser: its first; None where that would take too long.

    On a card a set is the first of the classes, as they fall in probability; one of a threshold for every class is not.
    """
    test = reading.run(key).tables["test"]
    if getattr(rule, "per_class", False) or test.n * test.n_classes > FEW_SCORES:
        return None
    return next((name for name, knob in rule.knobs().items() if knob.numeric), None)


def every_place(rule: type[Rule], values: dict[str, Any], leader: str) -> tuple[str, ...]:
    """The rule at every value of the knob that leads."""
    return tuple(repr(rule(**{**values, leader: value})) for value in options(rule, leader))


def options(rule: type[Rule], name: str) -> list[float]:
    """What can be chosen of a knob of a rule."""
    knob = rule.knobs()[name]
    return knobs.options_of(knob, knob.default, key=f"rule_{name}", steps=STEPS.get(name, 101))


def numbers_in_sight(view: str, made: ChosenRule, leader: str | None) -> None:
    """The headline numbers of another rule, which follow its slider if they are known ahead."""
    if made.along is None or leader is None:
        live.sliders(made.channel, [], numbers_of(made.sets), held="", place=0, key=f"numbers of {view}")
        return
    said = numbers_along(made.sets.table, made.along, along(made.key, made.along, None))
    follows = live.Followed(f"rule_{leader}", [shown(value) for value in options(type(made.rule), leader)])
    live.sliders(made.channel, [], said, held="", place=0, key=f"numbers of {view}", follows=follows)
