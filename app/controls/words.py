"""The words of a view, explained where they are read."""

from __future__ import annotations

import streamlit as st

from workbench import glossary

# Of every view of sets.
WORDS_OF_SETS = (
    *("predicted set", "set size", "threshold", "confidence"),
    *("accuracy", "macro accuracy", "few, medium, many"),
)


def explained(*words: str) -> None:
    """A quiet button that explains these words of the glossary."""
    with st.popover("What the words mean", icon=":material/dictionary:", type="tertiary"):
        for term in glossary.explained(*words):
            symbol = f" ({term.symbol})" if term.symbol else ""
            st.markdown(f"**{term.word}**{symbol}: {term.meaning}")
