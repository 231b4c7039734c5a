"""One test row in full: what was suggested for it, what is known of it, and the training pictures it resembles."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import streamlit as st

import live
from controls.rules import ChosenRule
from drawing import photos
from session import reading
from session.messages import friendly
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


def show(chosen_rule: ChosenRule, row: int, dark: bool) -> None:
    """Open a row in a dialog; closing it takes the row out of the address."""
    st.dialog(f"Test row {row}", width="large", on_dismiss=_forget)(_body)(chosen_rule, row, dark)


def _forget() -> None:
    if "row" in st.query_params:
        del st.query_params["row"]


@friendly
def _body(chosen_rule: ChosenRule, row: int, dark: bool) -> None:
    frame = suggestions(chosen_rule.sets, row)
    _draw(chosen_rule, row, frame, similar_pictures(chosen_rule, row, frame), dark)
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.popover("Show the code", icon=":material/code:", type="tertiary"):
            st.code(_code(chosen_rule, row), language="python", wrap_lines=True)
        st.download_button(
            "Data (CSV)", frame.to_csv(index=False), f"row-{row}.csv", "text/csv", type="tertiary", on_click="ignore"
        )
    if reading.features_missing(chosen_rule.key):
        reading.training_features(chosen_rule.key)
        st.rerun()


def similar_pictures(chosen_rule: ChosenRule, row: int, frame: pd.DataFrame) -> Similar | None:
    """The training pictures of the suggested classes that are nearest to the row; None where they are not known (yet)."""
    if reading.features_missing(chosen_rule.key) or (training := reading.training_features(chosen_rule.key)) is None:
        return None
    data, features = reading.dataset(chosen_rule.key), chosen_rule.sets.table.features
    if data is None or features is None or data.train.inputs.ndim != 4:
        return None
    found = most_similar(features[row], training, data.train.labels, frame["class"].tolist(), MOST)
    if found.empty:
        return None
    return Similar(found, data_url(sprite_sheet(data.train.inputs[found["row"].to_numpy()], COLUMNS)))


def _draw(chosen_rule: ChosenRule, row: int, frame: pd.DataFrame, similar: Similar | None, dark: bool) -> None:
    bars = [name for name in BARS if name in frame]
    lines = []
    for line in frame.to_dict("records"):
        near = pd.DataFrame() if similar is None else similar.frame[similar.frame["class"] == line["class"]]
        lines.append(
            live.SuggestedClass(
                name=line["name"],
                in_set=line["in_set"],
                right=line["is_label"],
                shares=[float(line[bar]) for bar in bars],
                texts=[photos.percent(float(line[bar])) for bar in bars],
                pictures=near.index.tolist(),
                captions=[f"{line['name']}, at distance {distance:.3g}" for distance in near.get("distance", ())],
            )
        )
    here = chosen_rule.sets.table.rows([row])
    facts = [photos.truth(here, 0), *photos.facts(here, 0)]
    n_more = int(chosen_rule.sets.sizes[row]) - sum(line.in_set for line in lines)
    if n_more > 0:
        facts.append(f"{n_more} less probable classes of its set are not listed")
    if chosen_rule.sets.sizes[row] == 0:
        facts.append("its set is empty")
    live.suggestions(
        f"test row {row}",
        [BARS[name] for name in bars],
        lines,
        photo=photos.photo(chosen_rule.key, row),
        facts=facts,
        sheet=None if similar is None else similar.sheet,
        columns=COLUMNS,
        colours={"hit": theme(dark).hit, "miss": theme(dark).miss},
        key=f"suggestions {row}",
    )


def _code(chosen_rule: ChosenRule, row: int) -> Code:
    imports = ["from workbench.metrics.rows import suggestions", "from workbench.store import Store"]
    lines = [
        f"run = Store().open({chosen_rule.key!r})",
        'val, test = run.tables["val"], run.tables["test"]',
        f"sets = wb.{chosen_rule.rule!r}.fit(val)(test)",
        f"suggested = suggestions(sets, {row})",
    ]
    if not reading.features_missing(chosen_rule.key) and reading.training_features(chosen_rule.key) is not None:
        imports.append("from workbench.datasets import load_spec")
        imports.append("from workbench.workers.similar import most_similar, training_features")
        lines += [
            "train = load_spec(run.dataset_spec).train",
            'classes = suggested["class"]',
            f"most_similar(test.features[{row}], training_features(run), train.labels, classes, most={MOST})",
        ]
    return Code(setup=lines, imports=imports)
