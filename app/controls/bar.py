"""The bar above every view: run, controls and headline numbers on one line, and the introduction behind ⓘ."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import streamlit as st

from workbench import glossary

# Words that every view of sets explains.
WORDS_OF_SETS = (
    *("predicted set", "set size", "threshold", "confidence"),
    *("accuracy", "macro accuracy", "few, medium, many"),
)


def introduce(title: str, text: str, *words: str) -> None:
    """The title of a view, for screen readers, and its introduction with these words of the glossary behind ⓘ."""
    st.title(title, anchor=False)
    with st.container(key="bar-about"), st.popover("About this view", icon=":material/info:", type="tertiary"):
        st.markdown(f"**{title}.** {text}")
        for term in glossary.explained(*words):
            symbol = f" ({term.symbol})" if term.symbol else ""
            st.markdown(f"**{term.word}**{symbol}: {term.meaning}")


def bar() -> AbstractContextManager[Any]:
    """The controls of a view that stay in sight, beside the run."""
    return st.container(key="bar", horizontal=True, vertical_alignment="center", gap="small")


def tools() -> AbstractContextManager[Any]:
    """One line of further controls below the bar, each with its name beside it."""
    return st.container(key="tools", horizontal=True, vertical_alignment="center", gap="medium")
