"""A run of one's own: choose data, model, loss and settings, and watch it learn.

It is trained by another process, one run at a time for the whole server, and goes on when the page is closed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

import live
import views.train.recipes as recipes
import workbench as wb
from controls import knobs
from drawing.figures import sent
from drawing.handout import handout
from session import messages, reading, training_requests
from session.address import any_text, bound, one_of, some_of
from session.navigation import open_elsewhere
from views.train.live_heads import TALL, knobs_of, moved, time_left, with_training
from workbench import schedules, words
from workbench.catalogue import LOSSES, RECIPES, SETTINGS
from workbench.datasets import DATASETS, HorizontalFlip, ImageTransform, PaddedCrop, recipe_class
from workbench.knobs import shown
from workbench.schedules import Schedule
from workbench.workers.heads import CANCELLED, FAILED, FINISHED, IDLE, Progress, head_of

POLL = 1.0  # seconds between two looks at a run that learns
OF_RUN, PATH = "those of the chosen run", "a path on this machine"
NOTHING = "nothing"
WHOLE, HEAD = "The whole network", "Only a head, on the features of the chosen run"


@st.fragment
@messages.friendly
def body(key: str | None, dark: bool) -> None:
    """The form, and below it the run that is being trained or was trained last."""
    run, progress, busy = described(key), training_requests.long_worker().progress, training_requests.busy()
    with st.container(horizontal=True):
        start = st.button(
            "Train", icon=":material/play_arrow:", type="primary", disabled=run is None or busy,
            help="one run or one sweep at a time: wait, or cancel it" if busy else None,
        )  # fmt: skip
        if run is not None:
            with st.popover("Show the code", icon=":material/code:", type="tertiary"):
                st.code(training_requests.code(run), language="python")
    if start and run is not None:
        training_requests.long_worker().ask(run, keep=True)
        st.rerun(scope="fragment")
    if progress.state != IDLE:
        st.fragment(watch, run_every=POLL if progress.working else None)(dark)


def described(key: str | None, settings: Sequence[str] = training_requests.SETTINGS) -> dict[str, Any] | None:
    """A run as the controls describe it, with these settings among them; None as long as there is no path to the data."""
    parts = [WHOLE, HEAD] if key is not None and has_head(key) else [WHOLE]
    part = st.segmented_control("What learns", parts, default=WHOLE, required=True, **bound("what", one_of(parts)))
    return head(key, settings) if part == HEAD and key is not None else whole(key, settings)


def has_head(key: str) -> bool:
    """Whether a head can be trained on the features of a run."""
    try:
        head_of(reading.run(key), {})
    except ValueError:
        return False
    return True


def head(key: str, settings: Sequence[str] = training_requests.SETTINGS) -> dict[str, Any]:
    """A new head for a stored run, as the controls describe it."""
    with st.container(key="settings"):
        start = recipes.chosen(recipes.OF_HEADS, "head_recipe")
        described = head_of(reading.run(key), chosen_loss(start), **start.uncontrolled)
        described |= {each: setting(each, start.fields.get(each), key=start.key) for each in settings}
    recipes.tell(start, described)
    return described


def whole(key: str | None, settings: Sequence[str] = training_requests.SETTINGS) -> dict[str, Any] | None:
    """A network with its data, as the controls describe them; None as long as there is no path to the data."""
    with st.container(key="settings"):
        of_run = None if key is None else reading.run(key)
        spec = None if of_run is None else of_run.dataset_spec
        data = chosen_data(spec)
        kept = of_run.record.transforms if of_run is not None and data == spec else None
        start = recipes.chosen(recipes.OF_NETWORKS, "recipe")
        model = chosen_model(start)
        loss = chosen_loss(start)
        changes = chosen_augmentations(kept or (), start)
    with st.container(key="more-settings"):
        chosen = {each: setting(each, start.fields.get(each), key=start.key) for each in settings}
    described = {"model": model, "loss": loss, "transforms": changes, **chosen, **start.uncontrolled}
    recipes.tell(start, described)
    if data is None:
        return None
    if of_data := start.of_data():
        data = data | {"transforms": [*data.get("transforms", ()), *of_data]}
    return {"dataset": data, **described}


def chosen_model(start: recipes.Start) -> str:
    """One of the networks that recipes name; at first that of the recipe, or the first that it searched."""
    own = [each["model"] for each in (start.fields, *RECIPES[start.name].grid) if "model" in each]
    others = [each.settings["model"] for each in RECIPES.values() if "model" in each.settings]
    models = list(dict.fromkeys([*others, *own]))
    model: str = st.selectbox(
        "Model", models, models.index([*own, *models][0]), format_func=words.of_model,
        **bound(f"model_{start.key}", one_of(map(words.of_model, models))),
        help="one of your own is trained in a notebook or a terminal, by module:factory",
    )  # fmt: skip
    return model


def chosen_augmentations(of_run: Iterable[Mapping[str, Any]], start: recipes.Start) -> list[dict[str, Any]]:
    """What happens to images on their way into the network: at first what the recipe says, and what the run had whose data
    these are.
    """
    of_recipe = training_requests.of_images(start.fields.get("transforms", ()))
    chosen = {in_words(each): each.spec() for each in (*training_requests.of_images(of_run), *of_recipe)}
    known = {in_words(each): each.spec() for each in (HorizontalFlip(), PaddedCrop())} | chosen
    name = f"augmentation_{start.key}" if of_recipe else "augmentation_of_run" if chosen else "augmentation"
    asked = st.multiselect(
        "Augmentation", list(known), list(chosen), **bound(name, some_of(known)),
        help="changes of training images, drawn anew in every epoch; for images only",
    )  # fmt: skip
    return [known[each] for each in asked]


def in_words(change: ImageTransform) -> str:
    """The title of a transform, with its knobs where somebody has turned them: there is little room."""
    return words.title_of(type(change)) if change == type(change)() else words.of_thing(change)


def chosen_loss(start: recipes.Start) -> dict[str, Any]:
    """A loss with its knobs, as `run.json` has it: at first that of the recipe, if it says one."""
    titles = {name: loss.title for name, loss in LOSSES.items() if loss.trains}
    own = start.fields.get("loss", {"loss": "CrossEntropy", "knobs": {}})
    apart = f"_{start.key}" if "loss" in start.fields else ""  # otherwise the choice outlives a change of the recipe
    name = st.selectbox(
        "Loss", list(titles), list(titles).index(own["loss"]), format_func=titles.__getitem__,
        **bound(f"new_loss{apart}", one_of(titles.values())),
    )  # fmt: skip
    told = own["knobs"] if name == own["loss"] else {}
    chosen = knobs_of(name, prefix=f"new{apart}", start=told)
    return LOSSES[name].spec(**{**told, **chosen, **annealed(name, chosen, key=f"{apart}_{name}", of_paper=bool(told))})


def annealed(name: str, chosen: dict[str, Any], *, key: str, of_paper: bool) -> dict[str, Schedule]:
    """The knob of a loss that changes while the network learns, from a start to where its own slider stands; or none.

    At first that is the one with which new runs of the loss begin, unless a recipe says the knobs.
    """
    declared = {knob: moved(LOSSES[name])[knob] for knob in chosen if LOSSES[name].knobs[knob].numeric}
    if not declared:
        return {}
    labels = {NOTHING: NOTHING} | {knob: words.of_knob(knob, each) for knob, each in declared.items()}
    first = next((knob for knob, each in declared.items() if each.new_runs and not of_paper), NOTHING)
    knob = st.selectbox(
        "What changes while it learns", list(labels), list(labels).index(first), format_func=labels.__getitem__,
        help="a knob may begin elsewhere and come to its value over the first three quarters of the training",
        **bound(f"changes{key}", one_of(labels.values())),
    )  # fmt: skip
    if knob == NOTHING:
        return {}
    start = declared[knob].ends()[-1] if knob != first else schedules.of_new_runs(declared[knob]).start
    begin = knobs.widget(knob, declared[knob], start, key=f"begin{key}_{knob}", side="at the beginning")
    end = chosen[knob]
    course = "geometric" if min(begin, end) > 0 else "linear"
    st.caption(
        f"{labels[knob]} goes from {shown(begin)} to {shown(end)} over three quarters of the training and stays there"
        + (", by equal factors in equal times." if course == "geometric" else ", evenly.")
    )
    return {knob: Schedule(begin, end, course=course)}


def setting(name: str, start: Any, *, key: str) -> Any:
    """A setting of the run as a widget that stands at `start` at first, or at its default."""
    knob = SETTINGS[name]
    return knobs.widget(name, knob, knob.default if start is None else start, key=f"{name}_{key}")


def chosen_data(of_run: dict[str, Any] | None) -> dict[str, Any] | None:
    """The spec of a dataset: by its name or its path with its knobs, or that of the chosen run; None without a path."""
    names = [*DATASETS, *[OF_RUN] * (of_run is not None), PATH]
    name = st.selectbox("Data", names, **bound("data", one_of(names)))
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
    return {"name": name, "knobs": chosen}


@messages.friendly
def watch(dark: bool) -> None:
    """The run that is being trained, or was trained last; when it ends, the page is drawn anew."""
    worker = training_requests.long_worker()
    progress = worker.progress
    was_working, st.session_state["long working"] = st.session_state.get("long working", False), progress.working
    if was_working and not progress.working:
        st.rerun()
    st.subheader(messages.plain(training_requests.title(progress.described)), anchor=False)
    if progress.working:
        done = progress.epochs_done
        said = f"Epoch {done} of {progress.epochs}{time_left(progress)}" if done else "Preparing the data…"
        st.progress(done / max(progress.epochs, 1), said)
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
        if warned := reading.run(progress.key).record.warned:
            st.warning(messages.plain(warned), icon=":material/warning:")
    curves(progress, dark)


@messages.friendly
def curves(progress: Progress, dark: bool) -> None:
    """How it learns, epoch by epoch."""
    if not progress.history:
        return
    K = None if progress.state != FINISHED or progress.key is None else reading.run(progress.key).record.K
    made = wb.figures.learning_curves(pd.DataFrame(progress.history), epochs=progress.epochs, K=K)
    made = dataclasses.replace(made, code=with_training(progress.described, made))
    with st.container(key="figure-learning"):
        live.prepared_drawing(sent(made, dark, height=TALL), key="drawing learning")
        handout("learning", None, lambda: made, dark)
