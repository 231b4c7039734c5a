"""Landscapes: see what a loss does before training with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from controls import knobs
from controls.bar import bar, introduce, tools
from drawing.loss_figures import Setting, draw_recipe, figure, prepare, recipe
from session import messages
from session.address import bound, one_of, switch
from views.landscapes.loss_controls import (
    NONE,
    about,
    ends_seen,
    keep_ends,
    knobs_of,
    loss_choice,
    wide_enough,
    with_formulas,
)
from views.landscapes.studio import levels
from views.landscapes.weight_space import weight_space
from workbench.losses import by_name, class_named

STAND_INS, GALLERY, LEVELS, RISK, LINES = "Surrogates", "Gallery", "Level sets", "Conditional risk", "Along a line"
MOAT = "Why small ε stalls"
WEIGHTS = "Weight space"
PARTS = {
    STAND_INS: "The error is flat: it says that a classifier is wrong, but not where to go. So one trains with a stand-in, "
    "a *loss*, that is high where the error is and slopes downhill. For two classes it is a line.",
    GALLERY: "With three classes a loss is a landscape over a triangle: pale is low, and the red corner is the label. Click "
    "a triangle to open it.",
    LEVELS: "The scores of three classes, all that sum to 2. Move a knob and watch what the loss asks for. "
    "Click a point: the probe shows its scores, the loss and its gradient.",
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
SIZES, LABELS = (1, 2), (0, 1, 2)  # what can be chosen of three classes
LEADS = [0.25, 0.5, 1.0, 2.0, 4.0]
CROSSING = (1.0, 3.0)  # values of ε that reach across
MOAT_CLASSES = 60  # as many as the garden has
PI_STEPS = [round(step / 40, 3) for step in range(41)]


def page() -> None:
    """The view."""
    introduce("Landscapes", "\n\n".join(f"*{name}*: {text}" for name, text in PARTS.items()))
    body(st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(dark: bool) -> None:
    """All of the page: a fragment, so that moving a knob runs nothing else."""
    for name, value in st.session_state.pop("landscapes next", {}).items():
        st.session_state[name] = value  # what a click asked for, before its widgets are made
    with bar():
        part = st.selectbox("View", list(PARTS), list(PARTS).index(GALLERY), width=190, **bound("part", one_of(PARTS)))
        # In one place for both parts: a widget that moved would stop writing the address.
        label = label_choice() if part in (GALLERY, LEVELS) else LABELS[-1]
        choices = st.container(key="choices", horizontal=True, vertical_alignment="center", gap="medium")
    views: dict[str, Callable[[bool], None]] = {
        STAND_INS: stand_ins,
        GALLERY: partial(gallery, choices, label),
        LEVELS: partial(levels, choices, label),
        RISK: partial(risk, choices),
        LINES: partial(lines, choices),
        MOAT: partial(moat, choices),
        WEIGHTS: weight_space,
    }
    if part == WEIGHTS or not messages.torch_is_missing():
        views[part](dark)


def stand_ins(dark: bool) -> None:
    """Binary surrogates: the first page of the story."""
    draw_recipe("surrogates", recipe("binary_surrogates"), dark)
    prepare(lambda: [recipe("gallery", label=2, K=2)], dark)  # the next page of the story, while this one is read


def gallery(choices: DeltaGenerator, label: int, dark: bool) -> None:
    """All losses at once; a click opens one."""
    with choices:
        K = st.segmented_control("Sets of", SIZES, default=2, required=True, **bound("gallery_K", one_of(SIZES)))
    with st.spinner("Drawing every loss…"):
        clicked = draw_recipe("gallery", recipe("gallery", label=label, K=K), dark, clickable=True)
    if clicked is not None:
        opened = list(by_name().values())[clicked.point]
        st.session_state["landscapes next"] = {"part": LEVELS, "loss": opened.__name__, "beside": NONE}
        with contextlib.suppress(StreamlitAPIException):  # a widget that is there already writes the address itself
            st.query_params["loss"] = opened.title
        st.rerun(scope="fragment")


def risk(choices: DeltaGenerator, dark: bool) -> None:
    """Conditional risk for a π that is moved on its own triangle."""
    with choices:
        chosen = loss_choice("Loss", "loss")
    (chosen,) = with_formulas(loss=chosen)
    with tools():
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
        clicked = draw_recipe("map", laws, dark, clickable=True)
        draw_recipe("risk", recipe("conditional_risk", setting, probabilities=law, K=K), dark)
    if clicked is not None and clicked.data is not None:
        shares = figure(laws).hovered().iloc[clicked.point, :2]  # type: ignore[attr-defined]
        snapped = [min(PI_STEPS, key=lambda step: abs(step - share)) for share in shares]
        st.session_state["landscapes next"] = {"pi0": snapped[0], "pi1": snapped[1]}
        st.rerun(scope="fragment")
    about(chosen)


def lines(choices: DeltaGenerator, dark: bool) -> None:
    """The loss along a line, and how sparse its gradient is."""
    with choices:
        chosen = loss_choice("Loss", "loss")
        run = st.session_state.get("run")
        of_run = run is not None and st.toggle("Sparsity on the test rows of the run", False, **bound("of_run", switch))
    (chosen,) = with_formulas(loss=chosen)
    with tools():
        setting = knobs_of(chosen, {"sampled": True})  # gradients are those of training
    K = setting.knobs.get("K", 1)
    K = K if isinstance(K, int) else 1
    reference = Setting("CrossEntropy", {})
    profile = [setting] if chosen.loss == "CrossEntropy" else [setting, reference]
    noised = setting if "epsilon" in setting.knobs else Setting("NoisedTopK", {"K": K})
    exact, hinge = Setting("ExactNoisedTopK", {"K": K}), Setting("CalibratedTopKHinge", {"K": K})
    compared = {each.loss: each for each in (hinge, reference, exact, setting, noised)}
    ends = wide_enough([recipe("line_profile", *profile)], ends_seen("profile", profile))
    keep_ends("profile", profile, ends)
    with st.container(key="figures"):
        draw_recipe("profile", recipe("line_profile", *profile, value_range=ends), dark)
        draw_recipe(
            "sparsity", recipe("gradient_sparsity", *reversed(compared.values()), run=run if of_run else None), dark
        )
        draw_recipe("bounds", recipe("smoothing_bounds", K=K + 1 if K < 3 else K), dark)
    about(chosen)


def moat(choices: DeltaGenerator, dark: bool) -> None:
    """The gradient that pulls a label across the gap below the K best classes, for a chosen ε beside two that cross."""
    declared = class_named("ExactNoisedTopK").knobs()
    with choices:
        K = knobs.widget("K", declared["K"], declared["K"].default, key="moat_K")
        epsilon = knobs.widget("epsilon", declared["epsilon"], declared["epsilon"].default, key="moat_epsilon")
        lead = st.select_slider("Label above the rest", LEADS, 1.0, **bound("lead", one_of(LEADS)))
    epsilons = sorted({epsilon, *CROSSING})
    draw_recipe("moat", recipe("moat", epsilons=epsilons, K=K, n_classes=MOAT_CLASSES, lead=lead), dark)


def label_choice() -> int:
    """Which class is the label."""
    return st.segmented_control("Label", LABELS, default=2, required=True, **bound("label", one_of(LABELS)))
