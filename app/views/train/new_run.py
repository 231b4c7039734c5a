"""A new run: choose data, model, loss and settings, and watch it learn.

It is trained by another process, one run at a time for the whole server, and goes on when the page is closed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import live
import views.train.recipes as recipes
import workbench as wb
from controls import knobs
from controls.bar import bar
from drawing.figures import browser_content
from drawing.handout import handout
from session import cached_data, messages, training_requests
from session.address import any_text, bound, one_of, some_of
from session.navigation import open_elsewhere
from views.train.live_heads import TALL, flag_collapse, knobs_of, moved, stage, with_training
from views.train.plan_pictures import pictures_of
from workbench import display_names
from workbench.datasets import (
    DATASETS,
    DatasetSpec,
    HorizontalFlip,
    ImageTransform,
    PaddedCrop,
    recipe_class,
    transforms,
)
from workbench.knobs import format_value
from workbench.losses import CrossEntropy, Loss, by_name, class_named
from workbench.runs.recipes import RECIPES
from workbench.schedules import Schedule
from workbench.store import StoredRun
from workbench.trusted_imports import allowed_modules
from workbench.workers.client import CANCELLED, FAILED, FINISHED, Progress, head_of

POLL = 1.0  # seconds between two looks at a run that learns
OF_RUN, PATH = "those of the chosen run", "a path on this machine"
NOTHING = "nothing"
OFTEN = ("epochs", "batch_size", "learning_rate")  # settings that are not folded
WHOLE, HEAD = "The whole network", "Only a head"


@st.fragment
@messages.friendly
def body(key: str | None, dark: bool) -> None:
    """The form, and beside it the run that is being trained or was trained last, and pictures of what the form describes."""
    start_place = bar()
    with st.container(key="planning"):
        with st.container(key="form"):
            run = chosen_run(key)
        with st.container(key="planned"):
            progress = training_requests.long_worker().progress
            with start_place:
                start = start_button("Train", progress.working, disabled=run is None)
                if run is not None:
                    show_code(training_requests.code(run))
            if start and run is not None:
                training_requests.long_worker().train([run], keep=True)
                st.rerun(scope="fragment")
            if len(progress.runs) == 1:
                with st.container(key="watched"):
                    st.fragment(watch, run_every=POLL if progress.working else None)(dark)
            if run is not None:
                pictures_of(run, dark)


def start_button(label: str, busy: bool, *, disabled: bool = False) -> bool:
    """The button that starts a run or a sweep, in the bar."""
    return st.button(
        label, icon=":material/play_arrow:", type="primary", disabled=disabled or busy,
        help="one run or one sweep at a time: wait, or cancel it" if busy else None,
    )  # fmt: skip


def show_code(code: str) -> None:
    """The code that trains what the form describes, behind a button."""
    with st.popover("Show the code", icon=":material/code:", type="tertiary"):
        st.code(code, language="python")


def chosen_run(key: str | None, settings: Sequence[str] = training_requests.SETTINGS) -> wb.Run | None:
    """The run that the controls describe, with these settings among them; None as long as there is no path to the data."""
    parts = [WHOLE, HEAD] if key is not None and has_head(key) else [WHOLE]
    part = st.segmented_control(
        "What learns", parts, default=WHOLE, required=True,
        help="a head learns on the features of the chosen run, whose network stays as it is", **bound("what", one_of(parts)),
    )  # fmt: skip
    return head(key, settings) if part == HEAD and key is not None else whole(key, settings)


def has_head(key: str) -> bool:
    """Whether a head can be trained on the features of a run."""
    try:
        head_of(cached_data.run(key), CrossEntropy())
    except ValueError:
        return False
    return True


def head(key: str, settings: Sequence[str] = training_requests.SETTINGS) -> wb.Run:
    """A new head for a stored run, as the controls describe it."""
    with group("Loss", "settings"):
        start = recipes.chosen(recipes.OF_HEADS, "head_recipe")
        fields = {"loss": chosen_loss(start), **start.uncontrolled}
    fields |= training_settings(start, settings)
    recipes.describe(start, fields)
    return head_of(cached_data.run(key), **fields)


def whole(key: str | None, settings: Sequence[str] = training_requests.SETTINGS) -> wb.Run | None:
    """A network with its data, as the controls describe them; None as long as there is no path to the data."""
    stored = None if key is None else cached_data.run(key)
    own = None if stored is None else data_of(stored)
    with group("Data", "settings"):
        data = chosen_data(own)
        of_data = st.expander("Augmentation", icon=":material/tune:")
    with group("Network and loss", "more-settings-network"):
        start = recipes.chosen(recipes.OF_NETWORKS, "recipe")
        model = chosen_model(start)
        loss = chosen_loss(start)
    with of_data:
        changes = chosen_augmentations(images_of(stored) if stored is not None and data == own else (), start)
    chosen = training_settings(start, settings)
    fields = {"model": model, "loss": loss, "transforms": changes, **chosen, **start.uncontrolled}
    recipes.describe(start, fields)
    if data is None:
        return None
    return wb.Run(dataclasses.replace(data, transforms=(*data.transforms, *start.of_data)), **fields)


def group(title: str, key: str) -> DeltaGenerator:
    """A part of the form under its title."""
    st.markdown(f"**{title}**")
    return st.container(key=key)


def training_settings(start: recipes.Start, settings: Sequence[str]) -> dict[str, Any]:
    """The settings of the training; those that are seldom changed are folded."""
    places = {True: group("Training", "more-settings-training")}
    with st.expander("More settings", icon=":material/tune:"):
        places[False] = st.container(key="more-settings-folded")
    chosen = {}
    for each in settings:
        with places[each in OFTEN]:
            chosen[each] = setting(each, start.fields.get(each), key=start.key)
    return chosen


def data_of(run: StoredRun) -> DatasetSpec | None:
    """The data of a stored run; None if they were given as arrays or are no longer there."""
    try:
        return None if run.dataset_spec is None else DatasetSpec.from_json(run.dataset_spec, allowed=allowed_modules())
    except ValueError:
        return None


def images_of(run: StoredRun) -> list[ImageTransform]:
    """The transforms of a stored run that change training images."""
    specs = run.record.run.get("transforms", ())
    made = [transforms.from_spec(spec, allowed=allowed_modules()) for spec in specs]
    return [each for each in made if isinstance(each, ImageTransform)]


def chosen_model(start: recipes.Start) -> str:
    """One of the networks that recipes name; at first that of the recipe, or the first that it searched."""
    own = [each["model"] for each in (start.fields, *RECIPES[start.name].grid) if "model" in each]
    others = [each.settings["model"] for each in RECIPES.values() if "model" in each.settings]
    models = list(dict.fromkeys([*others, *own]))
    model: str = st.selectbox(
        "Model", models, models.index([*own, *models][0]), format_func=display_names.of_model,
        **bound(f"model_{start.key}", one_of(map(display_names.of_model, models))),
        help="one of your own is trained in a notebook or a terminal, by module:factory",
    )  # fmt: skip
    return model


def chosen_augmentations(of_run: Iterable[ImageTransform], start: recipes.Start) -> tuple[ImageTransform, ...]:
    """Transforms of training images: at first those of the recipe, and of the run with these data."""
    chosen = {in_words(each): each for each in (*of_run, *start.of_images)}
    known = {in_words(each): each for each in (HorizontalFlip(), PaddedCrop())} | chosen
    name = f"augmentation_{start.key}" if start.of_images else "augmentation_of_run" if chosen else "augmentation"
    names = st.multiselect(
        "Augmentation", list(known), list(chosen), **bound(name, some_of(known)),
        help="changes of training images, drawn anew in every epoch; for images only",
    )  # fmt: skip
    return tuple(known[each] for each in names)


def in_words(change: ImageTransform) -> str:
    """The title of a transform, with its knobs if they differ from their defaults: there is little room."""
    return display_names.title_of(type(change)) if change == type(change)() else display_names.of_thing(change)


def chosen_loss(start: recipes.Start) -> Loss:
    """A loss with its knobs: at first that of the recipe, if it has one."""
    titles = {name: loss.title for name, loss in by_name().items() if loss.trains}
    own: Loss = start.fields.get("loss", CrossEntropy())
    apart = f"_{start.key}" if "loss" in start.fields else ""  # otherwise the choice outlives a change of the recipe
    name = st.selectbox(
        "Loss", list(titles), list(titles).index(type(own).__name__), format_func=titles.__getitem__,
        **bound(f"new_loss{apart}", one_of(titles.values())),
    )  # fmt: skip
    given = own.settings() if name == type(own).__name__ and "loss" in start.fields else {}
    chosen = knobs_of(name, prefix=f"new{apart}", start=given)
    schedules = annealed(name, chosen, key=f"{apart}_{name}", of_paper=bool(given))
    return class_named(name)(**{**given, **chosen, **schedules})


def annealed(name: str, chosen: dict[str, Any], *, key: str, of_paper: bool) -> dict[str, Schedule]:
    """The knob of a loss that changes while the network learns, from a start to where its own slider stands; or none.

    At first that is the one whose default is a schedule, unless a recipe sets the knobs.
    """
    declared = {knob: moved(class_named(name))[knob] for knob in chosen if class_named(name).knobs()[knob].numeric}
    if not declared:
        return {}
    labels = {NOTHING: NOTHING} | {knob: display_names.of_knob(knob, each) for knob, each in declared.items()}
    first = next((knob for knob, each in declared.items() if each.schedule is not None and not of_paper), NOTHING)
    knob = st.selectbox(
        "What changes while it learns", list(labels), list(labels).index(first), format_func=labels.__getitem__,
        help="a knob may begin elsewhere and come to its value over the first three quarters of the training",
        **bound(f"changes{key}", one_of(labels.values())),
    )  # fmt: skip
    if knob == NOTHING:
        return {}
    start = declared[knob].ends()[-1] if knob != first else declared[knob].schedule.start
    begin = knobs.widget(knob, declared[knob], start, key=f"begin{key}_{knob}", side="at the beginning")
    end = chosen[knob]
    course = "geometric" if min(begin, end) > 0 else "linear"
    st.caption(
        f"{labels[knob]} goes from {format_value(begin)} to {format_value(end)} over three quarters of the training "
        "and stays there" + (", by equal factors in equal times." if course == "geometric" else ", evenly.")
    )
    return {knob: Schedule(begin, end, course=course)}


def setting(name: str, start: Any, *, key: str) -> Any:
    """A setting of the run as a widget that stands at `start` at first, or at its default."""
    knob = wb.Run.knobs()[name]
    return knobs.widget(name, knob, knob.default if start is None else start, key=f"{name}_{key}")


def chosen_data(of_run: DatasetSpec | None) -> DatasetSpec | None:
    """A dataset by its name or its path with its knobs, or that of the chosen run; None without a path."""
    names = [*[OF_RUN] * (of_run is not None), *DATASETS, PATH]  # at first rows on which the two can be compared
    name = st.selectbox("Dataset", names, **bound("data", one_of(names)))
    if name == OF_RUN:
        return of_run
    if name == PATH:
        name = st.text_input("Path", help="a folder of images, or files of a dataset", **bound("path", any_text))
    if not name:
        return None
    with st.popover("Knobs of the data", icon=":material/tune:", width="stretch"):
        chosen = {
            knob_name: knobs.widget(knob_name, knob, knob.default, key=f"data_{knob_name}")
            for knob_name, knob in recipe_class(name).knobs().items()
        }
    return DatasetSpec(name, chosen)


@messages.friendly
def watch(dark: bool) -> None:
    """The run that is being trained, or was trained last; when it ends, the page is drawn again."""
    worker = training_requests.long_worker()
    progress = worker.progress
    if len(progress.runs) != 1:
        st.rerun()
    was_working, st.session_state["long working"] = st.session_state.get("long working", False), progress.working
    if was_working and not progress.working:
        st.rerun()
    st.subheader(messages.plain(training_requests.title(progress.runs[0])), anchor=False)
    if progress.working:
        st.progress(min(progress.done, 1.0), stage(progress))
        st.button("Cancel", icon=":material/stop:", on_click=worker.cancel)
    elif progress.state == FAILED:
        st.error(messages.plain(messages.without_places(progress.message)), icon=":material/error:")
    elif progress.state == CANCELLED:
        st.info(
            "Cancelled. Asked for again, a run goes on from its last checkpoint; one is written every few seconds.",
            icon=":material/stop_circle:",
        )
    elif progress.state == FINISHED and progress.key is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.badge("Trained and kept", icon=":material/check:", color="green")
            open_elsewhere(progress.key)
        flag_collapse(cached_data.run(progress.key))
    curves(progress, dark)


@messages.friendly
def curves(progress: Progress, dark: bool) -> None:
    """How it learns, epoch by epoch."""
    if not progress.history:
        return
    K = None if progress.state != FINISHED or progress.key is None else cached_data.run(progress.key).record.K
    (run,) = progress.runs
    made = wb.figures.learning_curves(pd.DataFrame(progress.history), epochs=run.epochs, K=K)
    made = dataclasses.replace(made, code=with_training(run, made))
    with st.container(key="figure-learning"):
        live.prepared_drawing(browser_content(made, dark, height=TALL), key="drawing learning")
        handout("learning", None, lambda: made, dark)
