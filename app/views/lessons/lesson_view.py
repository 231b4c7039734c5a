"""Lessons: ten stories of two minutes, each with a question to answer first, a quiz, and which rule and loss to choose.

What is told and drawn comes from `workbench.teaching`, which also hands it out as pages of their own: the same script
shows it here and there.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from controls.bar import bar, introduce
from drawing.pad import drawing_pad
from session import messages
from session.address import bound, came_back, drop, one_of, switch
from session.serving import plotly_address
from workbench.figures.style import theme
from workbench.teaching import choosing
from workbench.teaching import page as pages
from workbench.teaching import quiz as bank
from workbench.teaching.lessons import LESSONS
from workbench.teaching.quiz_formats import markdown, moodle

LESSON, QUIZ, CHOICE = "Lessons", "Quiz", "Which one?"
PARTS = (LESSON, QUIZ, CHOICE)
CSS = Path(__file__).parents[2] / "lessons.css"
# On a wall, or embedded in a slide: the lesson alone.
ALONE = """:root { --rail: 0px; } :root body .stMain:has(.st-key-parts) { --left: 1rem; }
:root body :is([data-testid=stSidebar], .st-key-parts, .st-key-bar-about) { display: none; }"""
KEYS = "Keys: Page Down and Page Up turn the page, R shows the answer."


def page() -> None:
    """The view."""
    introduce("Lessons", "Ten short lessons and a quiz. Each asks a question, you guess, then move a slider and see.")
    with st.container(key="parts"):
        part = st.segmented_control(
            "What to look at", PARTS, default=LESSON, required=True, label_visibility="collapsed",
            **bound("lessons", one_of(PARTS)),
        )  # fmt: skip
    dark = st.context.theme.type == "dark"
    {LESSON: body, QUIZ: quiz, CHOICE: choice}[part](dark)


@st.fragment
@messages.friendly
def body(dark: bool) -> None:
    """One lesson, and the way to its neighbours."""
    number = chosen()
    lesson = LESSONS[number - 1]
    with st.container(key="lesson"):
        with bar():
            st.header(f"{number} · {lesson.title}", anchor=False)
            present = turn(number)
        dress(dark, alone=present or bool(st.context.is_embedded))
        if lesson.needs_torch and messages.torch_is_missing():
            return
        show({**lesson_content(number, dark), "present": present}, key=f"lesson {number}")
        if lesson.drawing_pad:
            drawing_pad(key="pad of a lesson")
        handed_out(
            "Handout (HTML)",
            lambda: pages.page(
                f"{number} · {lesson.title}", lesson_content(number, dark), theme(dark), drawing_pad=lesson.drawing_pad
            ),
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
        show(quiz_content(dark), key="quiz")
        with st.container(horizontal=True):
            handed_out(
                "Page (HTML)",
                lambda: pages.page("Quiz", quiz_content(dark), theme(dark)),
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


@messages.friendly
def choice(dark: bool) -> None:
    """Which rule and which loss, with the numbers behind each."""
    with st.container(key="lesson"):
        st.header(choosing.TITLE, anchor=False)
        dress(dark, alone=bool(st.context.is_embedded))
        st.html(trees())


@st.cache_resource(show_spinner="Computing the numbers…")
def trees() -> str:
    """The decision trees as HTML."""
    return choosing.page()


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
    """To the lesson before and after, also by the keys a presenter has. Returns whether presenting is on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Previous", shortcut="PageUp", disabled=number == 1, on_click=go_to, args=(number - 1,))
        st.caption(f"{number} of {len(LESSONS)}", width="content")
        st.button("Next", shortcut="PageDown", disabled=number == len(LESSONS), on_click=go_to, args=(number + 1,))
        return st.toggle("Present", help=f"Large type, one column. {KEYS}", **bound("present", switch))


def go_to(number: int) -> None:
    """Another lesson."""
    st.session_state["lesson"] = number


@st.cache_resource(show_spinner="Computing the lesson…", max_entries=2 * len(LESSONS))
def lesson_content(number: int, dark: bool) -> dict[str, Any]:
    """The text of a lesson."""
    return pages.lesson_content(LESSONS[number - 1], theme(dark))


@st.cache_resource(show_spinner="Preparing the questions…", max_entries=2)
def quiz_content(dark: bool) -> dict[str, Any]:
    """All questions of the quiz."""
    return pages.quizzed(bank.questions(theme(dark)))


def show(parts: dict[str, Any], key: str) -> None:
    """Draw a lesson or a quiz."""
    _element()(data={**parts, "plotly": plotly_address()}, key=key)


@st.cache_resource(show_spinner=False)
def _element() -> Any:
    """The component."""
    return st.components.v2.component("lesson", js=pages.script(), isolate_styles=False)
