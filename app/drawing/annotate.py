"""Label test rows as sets: one row after the other, by keyboard, by several people; each answer is on disk at once."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

import workbench as wb
from drawing import photos
from session import cached_data
from session.messages import friendly, plain
from workbench.metrics.people import figure_frame, labels_by_vote, people_against_model
from workbench.store import Store
from workbench.store.set_answers import SetAnswers

ROWS = 50  # test rows to label, the same for everyone
PERSON, CHOSEN = "person who labels", "chosen classes of a person"  # of a session


@st.fragment
@friendly
def annotate(key: str, dark: bool) -> None:
    """One row to label, and what people and model make of the rows that are labelled."""
    answers = SetAnswers.of_run(Store(), cached_data.run(key).key)
    test = cached_data.run(key).tables["test"]
    person = st.text_input(
        "Your name", key=PERSON, help="Answers are kept under it; come back under the same name to go on."
    )
    if person.strip():
        _one_row(key, test, answers, person.strip())
    _results(test, answers, dark)


def rows_in_address(n: int) -> list[int]:
    """The rows to label: a random part of the test rows, the same for everyone."""
    return np.random.default_rng(0).permutation(n)[:ROWS].tolist()


def _one_row(key: str, test: wb.LogitTable, answers: SetAnswers, person: str) -> None:
    rows, done = rows_in_address(test.n), answers.rows_of(person)
    left = [row for row in rows if row not in done]
    st.progress(
        1 - len(left) / len(rows), text=f"{len(rows) - len(left)} of {len(rows)} rows answered by {plain(person)}"
    )
    if not left:
        st.success("All rows are answered. Thank you.", icon=":material/check_circle:")
        return
    row = left[0]
    if (picture := photos.photo(key, row)) is not None:
        st.image(picture, caption=f"test row {row}", width=240)
    for text in cached_data.row_texts(key, np.array([row])):
        st.markdown(f"**{plain(text)}**")
    widget = f"{CHOSEN} {row}"
    chosen = st.multiselect(
        "It may be",
        test.named_classes(),
        key=widget,
        placeholder="type to find classes",
        select_all=False,  # it would stand first, where Enter chooses
        help="Every class that it may be.",
    )
    st.button(
        "Save and next", type="primary", shortcut="Ctrl+S", disabled=not chosen, on_click=_save,
        args=(answers, person, row, widget),
    )  # fmt: skip


def _save(answers: SetAnswers, person: str, row: int, widget: str) -> None:
    answers.add(person, row, st.session_state[widget])


def _results(test: wb.LogitTable, answers: SetAnswers, dark: bool) -> None:
    frame = answers.frame()
    with st.container(horizontal=True):
        st.download_button(
            "Answers (CSV)", answers.to_csv, "answers.csv", "text/csv", disabled=frame.empty, on_click="ignore"
        )
        file = st.file_uploader("Import answers", type=["csv"], key="answers file")
    if file is not None and st.button("Add these answers"):
        st.success(f"{answers.add_frame(pd.read_csv(io.BytesIO(file.getvalue())))} answers were added.")
        frame = answers.frame()
    if frame.empty or test.labels is None or test.many_labels:
        return
    compared = people_against_model(frame, test)
    figure: Any = wb.figures.with_intervals(figure_frame(compared), y="error rate", title="People beside the model")
    st.plotly_chart(figure.plot(dark), key="people", alt=figure.text)
    st.dataframe(compared, hide_index=True)
    voted = labels_by_vote(frame).labels if any(len(classes) == 1 for classes in frame["classes"]) else pd.DataFrame()
    if not voted.empty:
        st.caption("Labels by the weighted majority vote, from answers of one class:")
        st.dataframe(voted, hide_index=True)
