"""A file of logits that somebody brings: what it holds is asked where the file leaves it open."""

from __future__ import annotations

import streamlit as st

from session import reading
from session.messages import friendly, plain
from session.navigation import choose_run, show_run
from workbench.tables.links import LINKS


def open_file() -> None:
    """Bring a file of logits: it becomes a run like any other, and is kept when that is asked for."""
    file = st.file_uploader("Scores and labels", type=list(reading.FILE_TYPES), help=reading.FILE_HELP, key="file")
    if file is not None:
        _bring(file.file_id, file.name, file.getvalue(), **_what_it_holds())


def offer_to_keep(key: str) -> None:
    """A button for a run that is a file somebody brought: without it, the file is forgotten."""
    if reading.is_brought(key):
        st.button(
            "Keep this run", icon=":material/bookmark:", on_click=reading.keep, args=(key,), width="stretch",
            help="It is a file you brought: it stays among the runs of this machine only if you keep it.",
        )  # fmt: skip


def _what_it_holds() -> dict[str, str | None]:
    """What a file leaves open, in the words of its owner; None where it says so itself."""
    with st.popover("Say what it holds", icon=":material/help:", width="stretch"):
        scores = st.text_input(
            "Scores are called", key="file_scores", help="An array, a part of one (logits[0]), or p_*"
        )
        truth = st.text_input("Labels are called", key="file_labels", help="An array or a column")
        link = st.selectbox("Link", list(LINKS), index=None, key="file_link", placeholder="as the numbers call for")
    return {"scores": scores or None, "labels": truth or None, "link": link}


@friendly
def _bring(file_id: str, name: str, content: bytes, **said: str | None) -> None:
    brought = reading.bring(file_id, name, content, **said)
    reading.take_up(brought.key)
    st.success(plain(brought.understood), icon=":material/check_circle:")
    if st.button("Show it", on_click=choose_run, args=(brought.key,), type="primary", width="stretch"):
        show_run(brought.key)
