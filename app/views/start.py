"""Start: one photograph, its classes and the set of them, a slider, and three doors."""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import live
import workbench as wb
from controls.bar import bar, introduce
from controls.headline import strip
from controls.positions import places
from drawing import photos
from drawing.pad import drawing_pad
from drawing.upload import open_file
from session import cached_data
from session.messages import friendly, plain
from session.navigation import go_to
from workbench.figures.base import counted
from workbench.figures.style import theme
from workbench.store import DEMO
from workbench.teaching.lessons import LESSONS

ABOUT = (
    "A classifier that must name one class is often wrong where the input is ambiguous. A set-valued classifier answers with a "
    "set: small when the input is clear, larger when it is not."
)
ROWS = 16  # on the strip
NAMES = 9  # classes of the large row


def page() -> None:
    """The view."""
    introduce("The workbench", ABOUT)
    keys = cached_data.at_first()
    with st.container(key="first"):
        body(keys[0] if keys else None, st.context.theme.type == "dark")
        with st.container(key="drawn", border=True):
            st.subheader("Draw a symbol, see its set", anchor=False)
            drawing_pad(key="pad")
    doors(keys[0] if keys else None)


@st.fragment
@friendly
def body(key: str | None, dark: bool) -> None:
    """One row of the run that opens first, and the slider that makes its set larger and smaller."""
    if key is None:
        return
    with bar(), st.container(key="headline"):
        strip("start", key)
    table = cached_data.run(key).tables["test"]
    rows = spread_rows(key)
    images = photos.sheet(key, rows)
    cards = photos.with_texts(key, rows, photos.cards(table, rows, places(key), names=NAMES))
    colours = {"hit": theme(dark).hit, "miss": theme(dark).miss}
    columns = min(photos.COLUMNS, len(rows))
    invitation = (
        f"{counted(len(rows))} of {counted(table.n, 'row')}, clear ones first, with the number of classes in the set of each. "
        "Click one, or move K."
    )
    live.explorable(
        key, cards, invitation=invitation, sheet=images, columns=columns, colours=colours, key=f"explorable {key}"
    )


@st.cache_resource(show_spinner=False, max_entries=4)
def spread_rows(key: str) -> np.ndarray:
    """Test rows whose sets, of the usual size, go from the smallest to the largest in equal steps."""
    sizes = cached_data.sets_by(key, repr(wb.AverageK())).sizes
    order = np.argsort(sizes, kind="stable")
    return order[np.linspace(0, len(order) - 1, min(ROWS, len(order))).round().astype(int)]


def doors(key: str | None) -> None:
    """Three ways on, each with a picture."""
    with st.container(key="doors"):
        with door("See the demo", "How large must the answer be? Which classes are missed most?"):
            if key is not None and st.button(invitation(key), type="primary", width="stretch"):
                go_to("sets", {"run": key}, {"run": key})
        with door("Bring your scores", "Explore your own model: a file of its scores and labels."):
            open_file()
        with door(
            "Teach", f"{len(LESSONS)} short lessons. Each asks a question, you guess, then move a slider and see."
        ):
            if st.button("Open the lessons", type="primary", width="stretch"):
                go_to("lessons", {}, {})
            if st.button("What each loss rewards", width="stretch"):
                go_to("landscapes", {}, {})


def invitation(key: str) -> str:
    """The words on the button to a run: the demo, or a run that was pinned."""
    run = cached_data.run(key)
    if run.path.parent == DEMO and run.record.data_name in ("garden", "meadow"):
        return f"Try the demo: {counted(run.tables['test'].n)} plant pictures"
    return f"Open {plain(cached_data.named(cached_data.runs())[key])}"


def door(title: str, text: str) -> DeltaGenerator:
    """A box with a picture, a title and a sentence."""
    name = title.split()[0].lower()
    box = st.container(border=True, key=f"door-{name}")
    box.html(f'<div class="wb-door wb-door-{name}"></div>')
    box.subheader(title, anchor=False)
    box.markdown(text)
    return box
