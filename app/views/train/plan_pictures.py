"""Pictures of a run before it is trained: what its loss rewards, what changes while it learns, how unequal its classes are."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import streamlit as st

import live
import workbench as wb
from drawing.figures import browser_content
from drawing.handout import handout
from drawing.loss_figures import Setting, draw_recipe, figure, recipe
from session import cached_data, messages, training_requests
from session.serving import AHEAD
from workbench.datasets import DATASETS, DatasetSpec
from workbench.figures import Code, Figure
from workbench.figures.losses.evaluation import fitting_three_classes
from workbench.losses import Loss
from workbench.runs.plan import planned

LABEL = 2  # the corner of the triangle that is the label
HIGH, HIGH_CLASSES = 220, 470  # pixels of the pictures below the triangle and beside it
POLL = 1.0  # seconds between two looks at data that are loaded


def pictures_of(run: wb.Run, dark: bool) -> None:
    """The pictures of a run."""
    with st.container(key="plan-pictures"):
        rewards = recipe("level_sets", on_triangle(run.loss), label=LABEL)
        with st.container(key="plan-levels"):
            awaited(
                landscapes_ready(),
                lambda: draw_recipe("rewards", rewards, dark),
                "Getting ready to draw what the loss rewards…",
            )
        if isinstance(run.dataset, DatasetSpec) and (counts := class_counts(run.dataset)) is not None:
            with st.container(key="plan-classes"):
                awaited(
                    counts,
                    lambda: draw("classes-of-data", wb.figures.lorenz(counts.result()), dark, height=HIGH_CLASSES),
                    f"Counting the classes of {run.dataset.name}…",
                )
        course(run, dark)


def awaited(made: Future[Any], drawing: Callable[[], Any], meanwhile: str) -> None:
    """What is drawn as soon as something is made in the background; there is room for it before."""
    waits = not made.done()
    st.fragment(_look, run_every=POLL if waits else None)(made, drawing, meanwhile, waits)


@messages.friendly
def _look(made: Future[Any], drawing: Callable[[], Any], meanwhile: str, waited: bool) -> None:
    if not made.done():
        st.caption(meanwhile)
        st.html('<i aria-busy="true"></i>')  # whoever waits for the page waits for this too
    elif waited:
        st.rerun()  # and nothing is asked again
    else:
        drawing()


@st.cache_resource(show_spinner=False)
def landscapes_ready() -> Future[Any]:
    """Done when a landscape is drawn in no time: the first one loads torch, and nobody waits for that."""
    return AHEAD.submit(figure, recipe("level_sets", Setting("CrossEntropy", {}), label=LABEL))


def on_triangle(loss: Loss) -> Setting:
    """The loss with its own knobs, as far as three classes allow: K is at most 2."""
    knobs = loss.at(1).settings()
    fitting = fitting_three_classes(knobs)
    if "K" in fitting and knobs["K"] <= fitting["K"]:
        del fitting["K"]
    return Setting(type(loss).__name__, knobs | fitting)


@messages.friendly
def course(run: wb.Run, dark: bool) -> None:
    """The learning rate over the epochs, and the knobs that follow a schedule."""
    made, code = wb.figures.learning_curves(planned(run)), training_requests.run_code(run)
    lines = [*code.setup, "", "history = planned(run)"]
    imports = [*code.imports, "from workbench.runs.plan import planned"]
    draw("course", dataclasses.replace(made, code=made.code.after(Code(setup=lines, imports=imports))), dark)


def class_counts(data: DatasetSpec) -> Future[np.ndarray] | None:
    """Training images of each class: of a stored run with these data, or of the data themselves, loaded in the background.

    Only those of the workbench are, as long as nobody moves their knobs; None for others.
    """
    spec = json.dumps(data.to_json(), sort_keys=True)
    for run in cached_data.runs():
        if run.dataset_spec is not None and json.dumps(run.dataset_spec, sort_keys=True) == spec:
            counts = cached_data.run(run.short).tables["test"].class_counts
            if counts is not None:
                known: Future[np.ndarray] = Future()
                known.set_result(counts)
                return known
    return _counting(data.name) if data.name in DATASETS and data == DatasetSpec(data.name) else None


@st.cache_resource(show_spinner=False)
def _counting(name: str) -> Future[np.ndarray]:
    return AHEAD.submit(lambda: np.asarray(wb.load_dataset(name).class_counts))


def draw(name: str, made: Figure, dark: bool, *, height: int = HIGH) -> None:
    """A picture with its code and downloads."""
    with st.container(key=f"figure-{name}"):
        live.prepared_drawing(browser_content(made, dark, height=height), key=f"drawing {name}")
        handout(name, None, lambda: made, dark)
