"""One test row in full: what was suggested for it, what is known of it, and the training pictures it resembles."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import streamlit as st

import live
from controls.rules import Answer
from drawing import photos
from drawing.messages import friendly
from session import reading
from workbench.figures import Code
from workbench.figures.of_data.sprites import data_url, sprite_sheet
from workbench.figures.style import theme
from workbench.metrics.rows import suggestions
from workbench.workers.similar import most_similar

MOST = 5  # similar pictures of a class
COLUMNS = 10  # of the sheet that holds them
BARS = {"probability": "network", "posterior": "exact probability", "votes": "share of votes"}


class Similar(NamedTuple):
    """The most similar training rows of each class, and their pictures on one sheet, in the order of the frame."""

    frame: pd.DataFrame
    sheet: str


def show(answer: Answer, row: int, dark: bool) -> None:
    """Open a row in a dialog; closing it takes the row out of the address."""
    st.dialog(f"Test row {row}", width="large", on_dismiss=_forget)(_body)(answer, row, dark)


def _forget() -> None:
    if "row" in st.query_params:
        del st.query_params["row"]


@friendly
def _body(answer: Answer, row: int, dark: bool) -> None:
    frame = suggestions(answer.sets, row)
    _draw(answer, row, frame, similar_pictures(answer, row, frame), dark)
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.popover("Show the code", icon=":material/code:", type="tertiary"):
            st.code(_code(answer, row), language="python", wrap_lines=True)
        st.download_button(
            "Data (CSV)", frame.to_csv(index=False), f"row-{row}.csv", "text/csv", type="tertiary", on_click="ignore"
        )
    if reading.features_missing(answer.key):
        reading.training_features(answer.key)
        st.rerun()


def similar_pictures(answer: Answer, row: int, frame: pd.DataFrame) -> Similar | None:
    """The training pictures of the suggested classes that are nearest to the row; None where they are not known (yet)."""
    if reading.features_missing(answer.key) or (training := reading.training_features(answer.key)) is None:
        return None
    data, features = reading.dataset(answer.key), answer.sets.table.features
    if data is None or features is None or data.train.inputs.ndim != 4:
        return None
    found = most_similar(features[row], training, data.train.labels, frame["class"].tolist(), MOST)
    if found.empty:
        return None
    return Similar(found, data_url(sprite_sheet(data.train.inputs[found["row"].to_numpy()], COLUMNS)))


def _draw(answer: Answer, row: int, frame: pd.DataFrame, similar: Similar | None, dark: bool) -> None:
    bars = [name for name in BARS if name in frame]
    lines = []
    for line in frame.to_dict("records"):
        near = pd.DataFrame() if similar is None else similar.frame[similar.frame["class"] == line["class"]]
        lines.append(
            live.AnswerLine(
                name=line["name"],
                in_set=line["in_set"],
                right=line["is_label"],
                shares=[float(line[bar]) for bar in bars],
                texts=[photos.percent(float(line[bar])) for bar in bars],
                pictures=near.index.tolist(),
                captions=[f"{line['name']}, at distance {distance:.3g}" for distance in near.get("distance", ())],
            )
        )
    here = answer.sets.table.rows([row])
    facts = [photos.truth(here, 0), *photos.facts(here, 0)]
    n_more = int(answer.sets.sizes[row]) - sum(line.in_set for line in lines)
    if n_more > 0:
        facts.append(f"{n_more} less probable classes of its set are not listed")
    if answer.sets.sizes[row] == 0:
        facts.append("its set is empty")
    live.answer(
        f"test row {row}",
        [BARS[name] for name in bars],
        lines,
        photo=photos.photo(answer.key, row),
        facts=facts,
        sheet=None if similar is None else similar.sheet,
        columns=COLUMNS,
        colours={"hit": theme(dark).hit, "miss": theme(dark).miss},
        key=f"answer {row}",
    )


def _code(answer: Answer, row: int) -> Code:
    imports = ["from workbench.metrics.rows import suggestions", "from workbench.store import Store"]
    lines = [
        f"run = Store().open({answer.key!r})",
        'val, test = run.tables["val"], run.tables["test"]',
        f"sets = wb.{answer.rule!r}.fit(val)(test)",
        f"suggested = suggestions(sets, {row})",
    ]
    if not reading.features_missing(answer.key) and reading.training_features(answer.key) is not None:
        imports.append("from workbench.datasets import load_spec")
        imports.append("from workbench.workers.similar import most_similar, training_features")
        lines += [
            "train = load_spec(run.dataset_spec).train",
            'classes = suggested["class"]',
            f"most_similar(test.features[{row}], training_features(run), train.labels, classes, most={MOST})",
        ]
    return Code(setup=lines, imports=imports)
