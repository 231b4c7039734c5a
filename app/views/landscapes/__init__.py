"""Landscapes: see what a loss does before training with it."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

import workbench as wb
from controls import knobs
from drawing.loss_figures import Along, Setting, figure, prepare, recipe, shown
from session import messages
from session.address import bound, one_of, some_of, switch
from views.landscapes.weight_space import weight_space
from workbench.catalogue import LOSSES
from workbench.figures.base import round_range
from workbench.figures.of_losses.evaluation import fitting_three_classes
from workbench.knobs import Knob
from workbench.knobs import shown as in_words

STAND_INS, GALLERY, LEVELS, RISK, LINES = "Stand-ins", "Gallery", "Level sets", "Conditional risk", "Along a line"
MOAT = "The moat"
WEIGHTS = "Weight space"
PARTS = {
    STAND_INS: "The error is flat: it says that a classifier is wrong, but not where to go. So one trains with a stand-in, "
    "a *loss*, that is high where the error is and slopes downhill. For two classes it is a line.",
    GALLERY: "With three classes a loss is a landscape over a triangle: pale is low, and the red corner is the label. Click "
    "a triangle to open it.",
    LEVELS: "The scores of three classes, all that sum to 2. Move a knob and watch what the loss asks for.",
    RISK: "Now the label is random, with probabilities π. A loss is *calibrated* when the scores of lowest risk (★) rank the "
    "K likeliest classes first, whatever π is. On the left, click a π; the colour is the price of leaving its best set.",
    LINES: "The label's score climbs past the others, and the noise ε decides how many classes share the gradient.",
    MOAT: "K classes sit at the top, often the commonest ones, and a label waits below a gap. A noised loss pushes only the "
    "class at place K + 1: with little noise that is the label itself, so nothing moves, and the network answers the same for "
    "every image. More noise reaches across; so `epsilon=anneal(3, 0.2)` begins with much and ends with little.",
    WEIGHTS: "So far the scores moved. Now the weights of the chosen run do, away from where training left them (✕), along "
    "two random directions as long as the weights themselves; the threshold is fitted anew at every point. A wide pale "
    "valley forgives small changes.",
}
NONE = "nothing"
SIZES, LABELS, REGIONS = (1, 2), (0, 1, 2), ("–", "1", "2")  # what can be chosen of three classes
# Two fixed rows that share the batch of every point, for losses in which rows see each other.
BACKGROUND = ([[2.0, 1.0, 0.0], [0.0, 0.5, 1.5]], [0, 2])
Ends = tuple[float, float]  # of an axis or of colours
LEADS = [0.25, 0.5, 1.0, 2.0, 4.0]
CROSSING = (1.0, 3.0)  # values of ε that reach across
MOAT_CLASSES = 60  # as many as the garden has
PI_STEPS = [round(step / 40, 3) for step in range(41)]


def page() -> None:
    """The view."""
    st.title("Landscapes", anchor=False)
    body(st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(dark: bool) -> None:
    """All of the page: a fragment, so that moving a knob runs nothing else."""
    for name, value in st.session_state.pop("landscapes next", {}).items():
        st.session_state[name] = value  # what a click asked for, before its widgets are made
    part = st.segmented_control(
        "Part of the story", list(PARTS), default=GALLERY, required=True, **bound("part", one_of(PARTS))
    )
    st.markdown(PARTS[part])
    views = {
        STAND_INS: stand_ins, GALLERY: gallery, LEVELS: levels, RISK: risk, LINES: lines, MOAT: moat, WEIGHTS: weight_space
    }  # fmt: skip
    if part == WEIGHTS or not messages.torch_is_missing():
        views[part](dark)


def stand_ins(dark: bool) -> None:
    """Binary surrogates: the first page of the story."""
    shown("surrogates", recipe("binary_surrogates"), dark)
    prepare(lambda: [recipe("gallery", label=2, K=2)], dark)  # the next page of the story, while this one is read


def gallery(dark: bool) -> None:
    """All losses at once; a click opens one."""
    with st.container(key="knobs"):
        K = st.segmented_control("Sets of", SIZES, default=2, required=True, **bound("gallery_K", one_of(SIZES)))
        label = label_choice()
    with st.spinner("Drawing every loss…"):
        clicked = shown("gallery", recipe("gallery", label=label, K=K), dark, clickable=True)
    if clicked is not None:
        opened = list(LOSSES.values())[clicked.point]
        st.session_state["landscapes next"] = {"part": LEVELS, "loss": opened.name, "beside": NONE}
        with contextlib.suppress(StreamlitAPIException):  # a widget that is there already writes the address itself
            st.query_params["loss"] = opened.title
        st.rerun(scope="fragment")


def levels(dark: bool) -> None:
    """One loss, or two side by side with linked sliders and one colour scale."""
    with st.container(key="knobs"):
        chosen = loss_choice("Loss", "loss")
        beside = loss_choice("Beside", "beside", (NONE, *titles()))
    chosen_losses = list(dict.fromkeys([chosen, beside] if beside != NONE else [chosen]))
    drawing = drawing_options(two=beside != NONE)
    with st.container(horizontal=True, gap="medium"):
        own_options = {name: of_loss(name) for name in chosen_losses}
    apart = own_knobs(chosen, beside) if beside != NONE else []
    with st.container(key="stays"):
        settings = [knobs_of(chosen, own_options[chosen], apart=apart)]
        if beside != NONE:
            settings.append(knobs_of(beside, own_options[beside], apart=apart, linked=settings[0]))

    def recipes(settings: list[Setting], seen: Ends | None) -> tuple[list[str], Ends | None]:
        made = [partial(recipe, "level_sets", setting, **drawing, **own_options[setting.loss]) for setting in settings]
        if drawing["rescale"]:
            return [each() for each in made], seen
        ends = wide_enough([each() for each in made], seen)
        return [each(value_range=ends) for each in made], ends

    pictures, ends = recipes(settings, ends_seen("levels", settings))
    keep_ends("levels", settings, ends)
    before = st.session_state.get("levels seen", [])
    st.session_state["levels seen"] = settings
    same = [setting.loss for setting in before] == [setting.loss for setting in settings]
    alone = len(settings) == 1 and drawing["rescale"]  # one picture, whose colours stand for the same at every place
    along = every_picture(before[0] if same else None, settings[0], drawing | own_options[chosen]) if alone else None
    with st.container(key="pair" if len(settings) == 2 else "single"):
        for place, each in enumerate(pictures):
            shown(f"levels-{place}", each, dark, along=along)
    for name in chosen_losses:
        about(name)
    if same and along is None:
        further = [one_step_further(*moved) for moved in zip(before, settings, strict=True)]
        prepare(lambda: recipes(further, ends)[0], dark)


def every_picture(before: Setting | None, now: Setting, options: dict[str, Any]) -> Along | None:
    """The pictures along the knob that was moved last, at first along one of real numbers; None for a loss without one."""
    limited = {name: knob for name, (knob, _) in knobs_on_triangle(now.loss).items() if knob.numeric}
    if not options.get("sampled"):
        limited.pop("n_samples", None)
    moved = [name for name in limited if before is not None and before.knobs[name] != now.knobs[name]]
    last = st.session_state.get(f"{now.loss} leads")
    at_first = sorted(limited, key=lambda name: limited[name].kind != "real")
    leader = next(iter([*moved, *(name for name in limited if name == last), *at_first]), None)
    if leader is None:
        return None
    st.session_state[f"{now.loss} leads"] = leader
    key = f"{now.loss}_{leader}"
    values = knobs.options_of(limited[leader], knobs_on_triangle(now.loss)[leader][1], key=key)
    settings = [Setting(now.loss, {**now.knobs, leader: value}) for value in values]
    return Along(key, tuple(map(in_words, values)), tuple(recipe("level_sets", each, **options) for each in settings))


def risk(dark: bool) -> None:
    """Conditional risk for a π that is moved on its own triangle."""
    chosen = loss_choice("Loss", "loss")
    with st.container(key="stays"):
        first = st.select_slider("π₀: probability of class 0", PI_STEPS, 0.5, **bound("pi0", one_of(PI_STEPS)))
        second = st.select_slider("π₁: probability of class 1", PI_STEPS, 0.3, **bound("pi1", one_of(PI_STEPS)))
        setting = knobs_of(chosen)
        K = setting.knobs.get("K")
        if K not in (1, 2) or not isinstance(K, int):
            K = st.segmented_control("Sets of", SIZES, default=1, required=True, **bound("risk_K", one_of(SIZES)))
    if second > (left := round(1 - first, 3)):
        st.caption(f"π₀ leaves {left:g} for π₁, which is what is drawn.")
        second = left
    law = (first, second, round(1 - first - second, 3) + 0.0)  # never −0
    with st.container(key="pair"):
        laws = recipe("calibration_map", setting, K=K, probabilities=law)
        clicked = shown("map", laws, dark, clickable=True)
        shown("risk", recipe("conditional_risk", setting, probabilities=law, K=K), dark)
    if clicked is not None and clicked.data is not None:
        shares = figure(laws).hovered().iloc[clicked.point, :2]  # type: ignore[attr-defined]
        snapped = [min(PI_STEPS, key=lambda step: abs(step - share)) for share in shares]
        st.session_state["landscapes next"] = {"pi0": snapped[0], "pi1": snapped[1]}
        st.rerun(scope="fragment")
    about(chosen)


def lines(dark: bool) -> None:
    """The loss along a line, and how sparse its gradient is."""
    with st.container(key="knobs"):
        chosen = loss_choice("Loss", "loss")
        run = st.session_state.get("run")
        of_run = run is not None and st.toggle("Sparsity on the test rows of the run", False, **bound("of_run", switch))
    with st.container(key="stays"):
        setting = knobs_of(chosen, {"sampled": True})  # gradients are those of training
    K = setting.knobs.get("K", 1)
    K = K if isinstance(K, int) else 1
    reference = Setting("CrossEntropy", {})
    profile = [setting] if chosen == "CrossEntropy" else [setting, reference]
    noised = setting if "epsilon" in setting.knobs else Setting("NoisedTopK", {"K": K})
    exact, hinge = Setting("ExactNoisedTopK", {"K": K}), Setting("CalibratedTopKHinge", {"K": K})
    compared = {each.loss: each for each in (hinge, reference, exact, setting, noised)}
    ends = wide_enough([recipe("line_profile", *profile)], ends_seen("profile", profile))
    keep_ends("profile", profile, ends)
    with st.container(key="figures"):
        shown("profile", recipe("line_profile", *profile, value_range=ends), dark)
        shown("sparsity", recipe("gradient_sparsity", *reversed(compared.values()), run=run if of_run else None), dark)
        shown("bounds", recipe("smoothing_bounds", K=K + 1 if K < 3 else K), dark)
    about(chosen)


def moat(dark: bool) -> None:
    """What pulls a label across the gap below the K best classes, for an ε of one's own beside two that cross."""
    declared = LOSSES["ExactNoisedTopK"].knobs
    with st.container(key="stays"):
        K = knobs.widget("K", declared["K"], declared["K"].default, key="moat_K")
        epsilon = knobs.widget("epsilon", declared["epsilon"], declared["epsilon"].default, key="moat_epsilon")
        lead = st.select_slider("How far the label is above the rest", LEADS, 1.0, **bound("lead", one_of(LEADS)))
    epsilons = sorted({epsilon, *CROSSING})
    shown("moat", recipe("moat", epsilons=epsilons, K=K, n_classes=MOAT_CLASSES, lead=lead), dark)


def titles() -> dict[str, str]:
    """Name → title of every loss of the catalogue."""
    return {name: loss.title for name, loss in LOSSES.items()}


def loss_choice(label: str, key: str, options: tuple[str, ...] = ()) -> str:
    """A loss by its title."""
    options = options or tuple(titles())
    first = options.index("NoisedTopK") if NONE not in options else 0
    named = {name: titles().get(name, name) for name in options}
    readable = bound(key, one_of(named.values()))
    return st.selectbox(label, options, first, format_func=named.__getitem__, **readable)


def label_choice() -> int:
    """Which class is the label."""
    return st.segmented_control("Label", LABELS, default=2, required=True, **bound("label", one_of(LABELS)))


def knobs_on_triangle(name: str) -> dict[str, tuple[Knob, Any]]:
    """Knob → (the knob as three classes allow it, where it stands at first)."""
    declared, found = LOSSES[name].knobs, {}
    settings = LOSSES[name].spec(**fitting_three_classes(declared))["knobs"]
    for knob_name, knob in declared.items():
        limited = dataclasses.replace(knob, low=1, high=2) if knob_name == "K" else knob
        value = settings[knob_name]
        found[knob_name] = (limited, limited.snapped(value) if knob.numeric else value)
    return found


def own_knobs(left: str, right: str) -> list[str]:
    """Knobs that both losses have and that a person wants to move apart."""
    both = [name for name in knobs_on_triangle(left) if linkable(left, right, name) and name != "n_samples"]
    if not both:
        return []
    default = [both[min(1, len(both) - 1)]] if left == right else []
    readable = bound(f"apart_{left}_{right}", some_of(both))
    return st.pills("Moved apart", both, selection_mode="multi", default=default, **readable)


def linkable(left: str, right: str, name: str) -> bool:
    """Whether one slider can move the knob of both losses."""
    mine, others = knobs_on_triangle(left), knobs_on_triangle(right)
    return name in mine and name in others and mine[name][0].kind == others[name][0].kind


def knobs_of(
    name: str, options: dict[str, Any] | None = None, *, apart: Sequence[str] = (), linked: Setting | None = None
) -> Setting:
    """Every knob of a loss as a widget. Beside another loss, a knob that is `linked` to it follows unless moved apart.

    The number of noise draws is a knob only where noise is drawn.
    """
    side, prefix = ("left", "") if linked is None else ("right", "right_")
    chosen = {}
    for knob_name, (knob, value) in knobs_on_triangle(name).items():
        if knob_name == "n_samples" and not (options or {}).get("sampled"):
            chosen[knob_name] = value
        elif linked is not None and linkable(linked.loss, name, knob_name) and knob_name not in apart:
            chosen[knob_name] = linked.knobs[knob_name]
        else:
            key = f"{prefix}{name}_{knob_name}"
            chosen[knob_name] = knobs.widget(knob_name, knob, value, key=key, side=side if knob_name in apart else "")
            if knob.kind == "weights":
                st.caption(
                    f"Of three classes sets have one or two: two weights here, {len(knob.default)} at first in training."
                )
    return Setting(name, chosen)


def drawing_options(*, two: bool) -> dict[str, Any]:
    """What can be said about every triangle. Two of them have one colour scale unless each shall be rescaled."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        label = label_choice()
        gradients = st.toggle("Gradients", **bound("gradients", switch))
        regions = st.segmented_control(
            "Outline sets of", REGIONS, default="–", required=True, **bound("regions", one_of(REGIONS))
        )
        if two:
            rescale = st.toggle(
                "Rescale each", help="otherwise both have one colour scale", **bound("rescale_each", switch)
            )
        else:
            rescale = not st.toggle(
                "Values as they are", help="otherwise rescaled to run from 0 to 1", **bound("absolute", switch)
            )
        options: dict[str, Any] = {"label": label, "rescale": rescale}
        options |= {"gradients": True} if gradients else {}
        return options | ({"regions": int(regions)} if regions != "–" else {})


def of_loss(name: str) -> dict[str, Any]:
    """What can be said about some losses only: how noise is treated, which head moves, what shares the batch."""
    loss = LOSSES[name]
    options: dict[str, Any] = {}
    if loss.random and st.toggle(
        "Draw the noise", help="as in training; otherwise smoothed exactly", **bound(f"{name}_sampled", switch)
    ):
        options["sampled"] = True
    if loss.heads == 2:
        heads = ["both", "predicting", "candidate"]
        options["head"] = st.segmented_control(
            "Head that moves", heads, default="both", required=True, **bound("head", one_of(heads))
        )
    if loss.couples_batch and st.toggle(
        "Beside two fixed rows", help=f"scores and labels {BACKGROUND}", **bound(f"{name}_background", switch)
    ):
        options["background"] = BACKGROUND
    return options


def one_step_further(before: Setting, now: Setting) -> Setting:
    """Where a slider that has just moved goes if it moves once more; the setting itself if none has."""
    further = dict(now.knobs)
    for name, (knob, _) in knobs_on_triangle(now.loss).items():
        if knob.numeric and before.knobs[name] != now.knobs[name]:
            upwards, values = now.knobs[name] > before.knobs[name], knob.values()
            rest = values[values > now.knobs[name]] if upwards else values[values < now.knobs[name]][::-1]
            further[name] = next(iter(rest.tolist()), now.knobs[name])
    return Setting(now.loss, further)


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


def about(name: str) -> None:
    """What the loss says about itself: its picture has loaded it."""
    with st.expander(f"About: {LOSSES[name].title}", icon=":material/menu_book:"):
        st.markdown(in_markdown(inspect.getdoc(wb.losses.class_named(name)) or ""))


def in_markdown(doc: str) -> str:
    """A docstring without its examples, and with each displayed formula between lines of their own: a formula that spans
    lines is one for Streamlit only then.
    """
    without_examples = re.sub(r"^>>>.*?(?:\n\n|\Z)", "", doc, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\$\$(.*?)\$\$", r"$$\n\1\n$$", without_examples, flags=re.DOTALL)
