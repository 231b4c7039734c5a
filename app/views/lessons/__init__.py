"""Lessons: ten stories of two minutes, each with a question to answer first, and a quiz.

What is told and drawn comes from `workbench.teaching`, which also hands it out as pages of their own: the same script
shows it here and there.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from session import messages
from session.address import bound, came_back, drop, one_of, switch
from session.serving import plotly_address
from workbench.figures.style import theme
from workbench.teaching import page as pages
from workbench.teaching import quiz as bank
from workbench.teaching.lessons import LESSONS
from workbench.teaching.quiz_formats import markdown, moodle

LESSON, QUIZ = "Lessons", "Quiz"
PARTS = (LESSON, QUIZ)
CSS = Path(__file__).parents[2] / "lessons.css"
# On a wall, or embedded in a slide: the lesson alone.
ALONE = """[data-testid=stSidebar], [data-testid=stHeader], .st-key-lesson-parts, .stMain h1 { display: none; }
.stMainBlockContainer { padding-top: 1rem; }"""
KEYS = "Keys: Page Down and Page Up turn the page, R shows the answer."


def page() -> None:
    """The view."""
    st.title("Lessons", anchor=False)
    with st.container(key="lesson-parts"):
        part = st.segmented_control(
            "What to look at", PARTS, default=LESSON, required=True, **bound("lessons", one_of(PARTS))
        )
    dark = st.context.theme.type == "dark"
    (body if part == LESSON else quiz)(dark)


@st.fragment
@messages.friendly
def body(dark: bool) -> None:
    """One lesson, and the way to its neighbours."""
    number = chosen()
    lesson = LESSONS[number - 1]
    with st.container(key="lesson"):
        st.header(f"{number} · {lesson.title}", anchor=False)
        present = turn(number)
        dress(dark, alone=present or bool(st.context.is_embedded))
        if lesson.needs_torch and messages.torch_is_missing():
            return
        show({**told(number, dark), "present": present}, key=f"lesson {number}")
        handed_out(
            "Handout (HTML)",
            lambda: pages.page(f"{number} · {lesson.title}", told(number, dark), theme(dark)),
            f"lesson_{number}_{lesson.name}.html",
            "This lesson as one page with its slider; it needs no server and no network.",
        )


@st.fragment
@messages.friendly
def quiz(dark: bool) -> None:
    """Twenty questions; what was answered stays with the page."""
    with st.container(key="lesson"):
        st.header("Quiz", anchor=False)
        st.markdown(
            "Half of the questions are answered by a click, half by moving something. Every answer is explained."
        )
        dress(dark, alone=bool(st.context.is_embedded))
        show(asked(dark), key="quiz")
        with st.container(horizontal=True):
            handed_out(
                "Page (HTML)",
                lambda: pages.page("Quiz", asked(dark), theme(dark)),
                "quiz.html",
                "The quiz as one page that keeps the score; it needs no server and no network.",
            )
            questions = bank.questions(theme(dark))
            handed_out(
                "For paper (Markdown)", lambda: markdown(questions), "quiz.md", "All questions, then all answers."
            )
            handed_out(
                "For Moodle (XML)", lambda: moodle(questions), "quiz.xml", "Moodle imports it as a question bank."
            )


def dress(dark: bool, *, alone: bool) -> None:
    """The style of lessons; alone, with nothing of the app around them."""
    css = CSS.read_text(encoding="utf-8")
    st.html(f"<style>{css}{pages.style(theme(dark))}{ALONE if alone else ''}</style>")


def handed_out(label: str, content: Callable[[], str], file_name: str, about: str) -> None:
    """A quiet button that gives a file away, which is written when it is pressed."""
    kind = mimetypes.guess_type(file_name)[0] or "text/plain"
    st.download_button(
        label, content, file_name, kind, icon=":material/download:", type="tertiary", on_click="ignore", help=about
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


@st.cache_resource(show_spinner="Preparing the questions…", max_entries=2)
def asked(dark: bool) -> dict[str, Any]:
    """All questions of the quiz."""
    return pages.quizzed(bank.questions(theme(dark)))


def show(parts: dict[str, Any], key: str) -> None:
    """Draw a lesson or a quiz."""
    _element()(data={**parts, "plotly": plotly_address()}, key=key)


@st.cache_resource(show_spinner=False)
def _element() -> Any:
    """The component."""
    return st.components.v2.component("lesson", js=pages.script(), isolate_styles=False)
