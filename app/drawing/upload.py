"""Upload of a file of scores: it becomes a run; open questions about the file are shown."""

from __future__ import annotations

from pathlib import PurePath

import streamlit as st

from drawing import uploaded_data
from session import cached_data
from session.messages import friendly, plain
from session.navigation import choose_run, show_run
from workbench.tables.formats import SUFFIXES, AmbiguousScores
from workbench.tables.links import LINKS

TAKEN = f"{', '.join(SUFFIXES)}: one row per image, one column per class, and a column or array of labels"


def open_file() -> None:
    """An uploader of scores: a file becomes a run like any other, and is kept on request."""
    file = st.file_uploader("Scores and labels", help=cached_data.FILE_HELP, key="file")
    if file is None:
        return
    if PurePath(file.name).suffix.lower() not in SUFFIXES:
        st.error(plain(f"{file.name} is not a file of scores. Give one of {TAKEN}."), icon=":material/error:")
        return
    _import(file.file_id, file.name, file.getvalue(), **_contents())


def offer_to_keep(key: str) -> None:
    """A button that keeps an uploaded run; without it, the upload is forgotten."""
    if cached_data.is_upload(key):
        st.button(
            "Keep this run", icon=":material/bookmark:", on_click=cached_data.keep, args=(key,), width="stretch",
            help="It is a file you brought: it stays among the runs of this machine only if you keep it.",
        )  # fmt: skip


def _contents() -> dict[str, str | None]:
    """Names of the arrays and the link, where the user gives them; None where the file says so itself."""
    with st.popover("Say what it holds", icon=":material/help:", width="stretch"):
        scores = st.text_input(
            "Scores are called", key="file_scores", help="An array, a part of one (logits[0]), or p_*"
        )
        truth = st.text_input("Labels are called", key="file_labels", help="An array or a column")
        link = st.selectbox("Link", list(LINKS), index=None, key="file_link", placeholder="as the numbers call for")
    return {"scores": scores or None, "labels": truth or None, "link": link}


@friendly
def _import(file_id: str, name: str, content: bytes, **given: str | None) -> None:
    try:
        upload = cached_data.bring(file_id, name, content, **given)
    except AmbiguousScores as error:
        if not error.arrays:  # nothing to choose from: the message says what to write under "Say what it holds"
            raise
        array = st.selectbox(
            f"{name} has several arrays. Which holds the scores?", error.arrays, index=None, key="file_array",
            placeholder="choose an array",
        )  # fmt: skip
        if array is None:
            return
        upload = cached_data.bring(file_id, name, content, **given | {"scores": array})
    st.success(plain(upload.understood), icon=":material/check_circle:")
    if isinstance(upload, cached_data.OtherData):
        if st.button("Show it", type="primary", width="stretch"):
            run = st.session_state.get("run") or next(iter(cached_data.at_first()), None)
            uploaded_data.show(upload.data, name, run, st.context.theme.type == "dark")
        return
    cached_data.take_up(upload.key)
    if st.button("Show it", on_click=choose_run, args=(upload.key,), type="primary", width="stretch"):
        show_run(upload.key)
