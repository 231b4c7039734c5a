"""Lessons: four stories for a lecture, each with one slider, its pictures, a question and the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls import knobs
from controls.headline import moved, numbers
from controls.places import Position, compact, places
from controls.rules import ChosenRule
from drawing import photos
from drawing.figures import drawn
from drawing.handout import handout
from drawing.loss_figures import Setting, recipe, shown
from session import messages, reading
from session.address import bound, came_back, drop, number_asked, one_of, switch
from views.samples import open_samples
from views.sets import picture, sizes_following
from views.train import open_live_training
from workbench.catalogue import LOSSES
from workbench.figures import Code, Figure
from workbench.lessons import LESSONS, Lesson
from workbench.store import DEMO, Store

CSS = Path(__file__).parents[1] / "lessons.css"
ALONE_ON_THE_WALL = "[data-testid=stSidebar] { display: none; }"  # embedded in a slide or a page of one's own
ALONE = ("flower", "leaf", "fruit", "bark")  # photographs of one organ
FLOWERS = 6  # photographs on the slide
LAW = (0.45, 0.3, 0.25)  # of the label, in the third lesson
HELD = "A slider that is held keeps its keys: click beside it first."
IN_SIGHT = ("Mean size", "Accuracy")
TRAINED_ELSEWHERE = (
    "α changes the loss at once. What it does to the sets must be learnt: the button takes this α to *Train*, where a new "
    "head learns with it in a second or two (the first one takes longer), and where α can be moved on."
)
START = {"K": 3.0, "epsilon": 0.3, "alpha": 1.0}


def page() -> None:
    """The view."""
    st.html(f"<style>{CSS.read_text(encoding='utf-8')}{ALONE_ON_THE_WALL if st.context.is_embedded else ''}</style>")
    body(st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(dark: bool) -> None:
    """One lesson, and the way to its neighbours."""
    number = chosen()
    lesson = LESSONS[number - 1]
    keys = {run.title: run.key[: reading.SHORT] for run in Store(DEMO).runs()}
    missing = [title for title in lesson.runs if title not in keys]
    with st.container(key="lesson"):
        st.header(f"{number} · {lesson.title}", anchor=False)
        turn(number)
        if missing:
            messages.no_runs()
            return
        words, pictures = st.columns([2, 3], gap="large")
        with words:
            tell(lesson, tuple(keys[title] for title in lesson.runs))
        with pictures, st.container(key="pictures"):
            pictures_of(number)(*(keys[title] for title in lesson.runs), dark)


def pictures_of(number: int) -> Callable[..., None]:
    """What draws the pictures of a lesson, given the keys of its runs and whether it is night."""
    return (flowers, averages, smoothing, pseudo_labels)[number - 1]


def chosen() -> int:
    """The number of the lesson, in the address as `lesson`."""
    if "lesson" not in st.session_state or came_back():
        asked = st.query_params.get_all("lesson")
        readable = one_of(range(1, len(LESSONS) + 1))(asked)
        if asked and not readable:
            drop("lesson")
        st.session_state["lesson"] = int(asked[0]) if readable else 1
    st.query_params["lesson"] = str(st.session_state["lesson"])
    return st.session_state["lesson"]


def turn(number: int) -> None:
    """To the lesson before and after, also by the keys a presenter has."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Previous", shortcut="PageUp", help=HELD, disabled=number == 1, on_click=go_to, args=(number - 1,))
        st.caption(f"{number} of {len(LESSONS)}", width="content")
        st.button(
            "Next", shortcut="PageDown", help=HELD, disabled=number == len(LESSONS), on_click=go_to, args=(number + 1,)
        )


def go_to(number: int) -> None:
    """Another lesson starts where its author left it, its answer hidden."""
    st.session_state["lesson"] = number
    st.session_state["answer"] = False
    if "K" in st.query_params:
        del st.query_params["K"]


def tell(lesson: Lesson, keys: tuple[str, ...]) -> None:
    """The sentences, the question, and the answer once it is asked for."""
    for sentence in lesson.sentences:
        st.markdown(sentence[0].upper() + sentence[1:])
    with st.container(key="question"):
        st.markdown(lesson.question[0].upper() + lesson.question[1:])
    if st.toggle("Show the answer", **bound("answer", switch)):
        with st.container(key="answer-in-words"):
            st.markdown(messages.plain(answer(LESSONS.index(lesson), keys)))


@st.cache_data(show_spinner="Computing the answer…")
def answer(place: int, keys: tuple[str, ...]) -> str:
    """What the library answers."""
    return LESSONS[place].answer(*(reading.run(key).tables for key in keys))


def K_slider(number: int, key: str) -> Position:
    """One slider, K, with the two numbers it is about; in the address as `K`. Returns where it was released last."""

    def start() -> Position:
        asked = number_asked("K")
        return at.nearest("K", START["K"] if asked is None else asked)

    at = places(key)
    said = [
        each for each in numbers(reading.index(key, "test").table, at, compact(key, None)) if each.label in IN_SIGHT
    ]
    position = moved(key, at, at.sliders()[:1], said, start=start, mount=f"K of lesson {number}")
    st.query_params["K"] = f"{position.value:g}"
    return position


def flowers(key: str, dark: bool) -> None:
    """Photographs of a flower alone with their sets, and the sizes of the sets by what a photograph shows."""
    position = K_slider(1, key)
    chosen_rule = ChosenRule(key, position.rule, position.place)
    alone = one_organ(key)
    rows = alone[organs(key)[alone] == "flower"][:FLOWERS]
    opened = photos.on_cards(chosen_rule, rows, dark, key="flowers")
    if opened is not None:
        open_samples(key, row=opened, of_sliders=True)
    with st.container(key="figure-organs"):
        live.figure(key, **sizes_by_organ(key, dark), key="sizes by organ")
        handout("organs", None, lambda: of_organs(key, position.value), dark)


def organs(key: str) -> np.ndarray:
    """What the photograph of every test row shows."""
    return (reading.run(key).tables["test"].attributes or {})["organs"]


def one_organ(key: str) -> np.ndarray:
    """The test rows that show one organ."""
    return np.flatnonzero(np.isin(organs(key), ALONE))


def sets_of_one_organ(key: str, K: float) -> wb.PredictionSets:
    """The average-K sets of photographs of one organ; K is fitted on all validation rows."""
    tables = reading.run(key).tables
    return wb.AverageK(K).fit(tables["val"]).sets(tables["test"].rows(one_organ(key)))


def of_organs(key: str, K: float) -> Figure:
    """The sizes of the sets of photographs of one organ."""
    made = wb.figures.set_sizes(sets_of_one_organ(key, K), by="organs")
    alone = f'test = test.rows(np.isin(test.attributes["organs"], {ALONE}))'
    of_these = Code(setup=[alone], imports=["import numpy as np"])
    return replace(made, code=reading.code(key, replace(made, code=made.code.after(of_these))))


@st.cache_resource(show_spinner="Counting sizes by organ…", max_entries=4)
def sizes_by_organ(key: str, dark: bool) -> dict[str, Any]:
    """The sizes of the sets of photographs of one organ, at every place of the slider."""
    index = wb.SetIndex(reading.run(key).tables["test"].rows(one_organ(key)))
    figure = wb.figures.set_sizes(sets_of_one_organ(key, START["K"]), by="organs")
    return sizes_following(figure, index.compact(places(key).thresholds, by="organs"), dark)


def averages(key: str, dark: bool) -> None:
    """Accuracy against size, with the point of the slider; below, how unequal the sets are."""
    position = K_slider(2, key)
    chosen_rule, index = ChosenRule(key, position.rule, position.place), reading.index(key, "test")
    picture("curve", chosen_rule, None, None, lambda: wb.figures.accuracy_against_size(index, chosen_rule.sets), dark)
    picture("sizes", chosen_rule, None, None, lambda: wb.figures.set_sizes(chosen_rule.sets), dark)


def smoothing(dark: bool) -> None:
    """The level sets of the noised loss, and its risk when the label is random."""
    if messages.torch_is_missing():
        return
    knob = LOSSES["ExactNoisedTopK"].knobs["epsilon"]
    epsilon = knobs.widget("epsilon", knob, knob.snapped(START["epsilon"]), key="epsilon")
    setting = Setting("ExactNoisedTopK", {"K": 2, "epsilon": epsilon})
    with st.container(key="single"), st.spinner("Drawing the landscapes…"):
        shown("levels", recipe("level_sets", setting, regions=2), dark)
        shown("risk", recipe("conditional_risk", setting, probabilities=LAW, K=2), dark)


def pseudo_labels(cross_entropy: str, two_heads: str, dark: bool) -> None:
    """What α does to the loss, and which classes gain and lose from cross-entropy to two heads."""
    if not messages.torch_is_missing():
        moved_alpha(cross_entropy, dark)
    before, after = (reading.sets(key, "K", START["K"]) for key in (cross_entropy, two_heads))
    trained_with = reading.run(two_heads).record.loss_knobs["alpha"]
    drawn(
        "improved",
        two_heads,
        lambda: wb.figures.most_improved(before, after),
        dark,
        title=f"From cross-entropy to two heads with α = {trained_with:g}: which classes gain, which lose",
        height=600,
        other=cross_entropy,
        clickable=False,
    )


def moved_alpha(cross_entropy: str, dark: bool) -> None:
    """The two-head loss at any α, and a way to train a head with it."""
    knob = LOSSES["AverageKTwoHead"].knobs["alpha"]
    alpha = knobs.widget("alpha", knob, knob.snapped(START["alpha"]), key="alpha")
    with st.container(key="single"), st.spinner("Drawing the landscape…"):
        shown("levels", recipe("level_sets", Setting("AverageKTwoHead", {"K": 2, "alpha": alpha})), dark)
    st.markdown(TRAINED_ELSEWHERE)
    if st.button(f"Train a head with α = {alpha:g}", icon=":material/model_training:"):
        open_live_training(cross_entropy, "AverageKTwoHead", K=START["K"], alpha=alpha)
