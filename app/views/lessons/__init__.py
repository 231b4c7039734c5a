"""Lessons: ten stories of two minutes, each with a question to answer first, and a quiz.

What is told and drawn comes from `workbench.teaching`, which also hands it out as pages of their own: the same script
shows it here and there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from session import messages
from session.address import bound, came_back, drop, one_of, switch
from session.serving import plotly_address
from workbench.figures.style import theme
from workbench.teaching import page as pages
from workbench.teaching.lessons import LESSONS

CSS = Path(__file__).parents[2] / "lessons.css"
# On a wall, or embedded in a slide: the lesson alone.
ALONE = """[data-testid=stSidebar], [data-testid=stHeader], .stMain h1 { display: none; }
.stMainBlockContainer { padding-top: 1rem; }"""
KEYS = "Keys: Page Down and Page Up turn the page, R shows the answer."


def page() -> None:
    """The view."""
    st.title("Lessons", anchor=False)
    body(st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(dark: bool) -> None:
    """One lesson, and the way to its neighbours."""
    number = chosen()
    lesson = LESSONS[number - 1]
    with st.container(key="lesson"):
        st.header(f"{number} · {lesson.title}", anchor=False)
        present = turn(number)
        alone = ALONE if present or st.context.is_embedded else ""
        st.html(f"<style>{CSS.read_text(encoding='utf-8')}{pages.style(theme(dark))}{alone}</style>")
        if lesson.needs_torch and messages.torch_is_missing():
            return
        show({**told(number, dark), "present": present}, key=f"lesson {number}")
        st.download_button(
            "Handout (HTML)",
            lambda: pages.page(f"{number} · {lesson.title}", told(number, dark), theme(dark)),
            f"lesson_{number}_{lesson.name}.html",
            "text/html",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
            help="This lesson as one page with its slider; it needs no server and no network.",
        )


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


def turn(number: int) -> bool:
    """To the lesson before and after, also by the keys a presenter has. Returns whether somebody presents."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Previous", shortcut="PageUp", disabled=number == 1, on_click=go_to, args=(number - 1,))
        st.caption(f"{number} of {len(LESSONS)}", width="content")
        st.button("Next", shortcut="PageDown", disabled=number == len(LESSONS), on_click=go_to, args=(number + 1,))
        return st.toggle("Present", help=f"Large type, one column. {KEYS}", **bound("present", switch))


def go_to(number: int) -> None:
    """Another lesson."""
    st.session_state["lesson"] = number


@st.cache_resource(show_spinner="Computing the lesson…", max_entries=2 * len(LESSONS))
def told(number: int, dark: bool) -> dict[str, Any]:
    """What a lesson tells."""
    return pages.told(LESSONS[number - 1], theme(dark))


def show(parts: dict[str, Any], key: str) -> None:
    """Draw a lesson or a quiz."""
    _element()(data={**parts, "plotly": plotly_address()}, key=key)


@st.cache_resource(show_spinner=False)
def _element() -> Any:
    """The component."""
    return st.components.v2.component("lesson", js=pages.SCRIPT.read_text(encoding="utf-8"), isolate_styles=False)
