"""Start: what this is, in one screen, and three doors."""

from __future__ import annotations

import streamlit as st

from controls.bringing import open_file
from session import reading
from session.messages import plain
from session.navigation import go_to
from workbench.teaching.lessons import LESSONS

WHAT = (
    "A classifier that must name one class is often wrong where the input is ambiguous. A **set-valued** classifier answers "
    "with a set: small when the input is clear, larger when it is not. Here you see what K, the threshold and the loss do to "
    "these sets, to every class and to every row."
)


def page() -> None:
    """The view."""
    st.title("The workbench", anchor=False)
    st.markdown(WHAT)
    with st.container(key="doors"):
        with st.container(border=True, key="door-explore"):
            st.subheader("Explore my logits", anchor=False)
            st.markdown(
                "Scores and labels of a model of yours, in a file. How large must sets be, and which classes pay?"
            )
            open_file()
            explore()
        with st.container(border=True, key="door-teach"):
            st.subheader("Teach", anchor=False)
            st.markdown(
                f"{len(LESSONS)} stories for a lecture: one control, its pictures, a question, and its answer when you ask."
            )
            if st.button("Open the lessons", icon=":material/school:", type="primary"):
                go_to("lessons", {}, {})
        with st.container(border=True, key="door-losses"):
            st.subheader("Look at losses", anchor=False)
            st.markdown(
                "What a loss for sets wants, and whether it leads there: every loss as a landscape, with its knobs."
            )
            if st.button("Open the gallery", icon=":material/landscape:", type="primary"):
                go_to("landscapes", {}, {})


def explore() -> None:
    """The way in without a file: the run that opens first."""
    for key in reading.at_first()[:1]:
        name = reading.named(reading.runs())[key]
        if st.button(f"Or begin with {plain(name)}", icon=":material/stacks:", type="primary"):
            go_to("sets", {"run": key}, {"run": key})
