"""One test row in full: what was suggested for it, what is known of it, and the training pictures it resembles."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

import live
from controls.rules import ChosenRule
from drawing import photos
from session import cached_data
from session.address import drop, one_of
from session.messages import friendly, plain, without_places
from workbench.figures import Code
from workbench.figures.base import counted
from workbench.figures.data.sprites import data_url, sprite_sheet
from workbench.figures.style import theme
from workbench.knobs import format_value
from workbench.metrics.rows import suggestions
from workbench.sets import RULES, Rule
from workbench.workers.nearest_neighbours import most_similar

MOST = 5  # similar pictures of a class
COLUMNS = 10  # of the sheet that holds them
ROW = "row in the dialog"  # of a session
NOTHING = "none"
POLL = 1.0  # seconds between two looks whether they are there
BARS = {"probability": "network", "posterior": "exact probability", "votes": "share of votes"}


class Similar(NamedTuple):
    """The most similar training rows of each class, and their pictures on one sheet, in the order of the frame."""

    frame: pd.DataFrame
    sheet: str


def open_from_address(chosen_rule: ChosenRule, clicked: int | None, rows: np.ndarray, dark: bool) -> None:
    """Open, over the page one is on, the row that was clicked just now or that the address asks for as `row`.

    `rows` are those that previous and next go through. Closing it takes the row out of the address and leaves the page.
    """
    if clicked is not None:
        st.query_params["row"] = str(clicked)
    numbers = st.query_params.get_all("row")
    if one_of(range(chosen_rule.sets.table.n))(numbers):
        st.session_state[ROW] = int(numbers[0])
        st.dialog("One row", width="large", on_dismiss=_forget)(_body)(chosen_rule, rows.tolist(), dark)
    elif numbers:
        drop("row")
        del st.query_params["row"]


def _forget() -> None:
    if "row" in st.query_params:
        del st.query_params["row"]


def _turn_to(row: int) -> None:
    """Another row in the same dialog."""
    st.session_state[ROW] = row
    st.query_params["row"] = str(row)


@friendly
def _body(chosen_rule: ChosenRule, rows: list[int], dark: bool) -> None:
    row = st.session_state[ROW]
    _neighbours(row, rows, chosen_rule.sets.table.row_ids[row])
    frame = suggestions(chosen_rule.sets, row)
    _draw(chosen_rule, row, frame, dark)
    _beside(chosen_rule, row, dark)
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.popover("Show the code", icon=":material/code:", type="tertiary"):
            st.code(_code(chosen_rule, row), language="python", wrap_lines=True)
        st.download_button(
            "Data (CSV)", frame.to_csv(index=False), f"row-{row}.csv", "text/csv", type="tertiary", on_click="ignore"
        )


def _draw(chosen_rule: ChosenRule, row: int, frame: pd.DataFrame, dark: bool) -> None:
    """The row at once; where its similar pictures are still looked for, they come later, in places that are kept free."""
    try:
        awaited = cached_data.awaits_features(chosen_rule.key)
    except OSError as error:
        st.caption(plain(f"The most similar training pictures are not shown: {without_places(str(error))}"))
        _table(chosen_rule, row, frame, None, dark)
        return
    if not awaited:
        _table(chosen_rule, row, frame, similar_pictures(chosen_rule, row, frame), dark)
        return

    @st.fragment(run_every=POLL)
    def watched() -> None:
        if not cached_data.awaits_features(chosen_rule.key):
            st.rerun()
        _table(chosen_rule, row, frame, None, dark, awaited=MOST)

    watched()


def _neighbours(row: int, rows: list[int], called: object) -> None:
    """The way to the rows before and after it among those of the page."""
    at = rows.index(row) if row in rows else None
    previous, following = (
        (None, None) if at is None else (rows[at - 1] if at else None, next(iter(rows[at + 1 :]), None))
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, icon, to in (("Previous", "arrow_back", previous), ("Next", "arrow_forward", following)):
            st.button(label, icon=f":material/{icon}:", disabled=to is None, on_click=_turn_to, args=(to,))
        place = "" if at is None else f", {at + 1} of {counted(len(rows), 'row')} here"
        st.markdown(f"**Test row {plain(str(called))}**{place}", width="content")


def _beside(chosen_rule: ChosenRule, row: int, dark: bool) -> None:
    """The set of the row beside the one that another rule makes, or another run."""
    others = {**_other_rules(chosen_rule), **_other_runs(chosen_rule.key)}
    chosen = st.selectbox("Compare this set with", [NOTHING, *others], key="row beside")
    if chosen == NOTHING:
        return
    key, rule = others[chosen]
    cards = [
        dataclasses.replace(photos.cards_of(sets, np.array([row]))[0], head=head)
        for head, sets in (
            ("this set", chosen_rule.sets),
            (chosen, ChosenRule(key, rule or chosen_rule.rule, None).sets),
        )
    ]
    colours = {"hit": theme(dark).hit, "miss": theme(dark).miss}
    live.side_by_side(cards, colours=colours, key=f"beside {row} {chosen}")


def _other_rules(chosen_rule: ChosenRule) -> dict[str, tuple[str, Rule | None]]:
    """In words → the run and each further rule, where it can be asked for the same size, or the same promise."""
    size = max(1, round(float(chosen_rule.sets.sizes.mean())))
    confidence = getattr(chosen_rule.rule, "confidence", 0.9)
    val = cached_data.run(chosen_rule.key).tables["val"]
    found: dict[str, tuple[str, Rule | None]] = {}
    for kind in RULES:
        knobs = (
            {"K": size} if "K" in kind.knobs() else {"confidence": confidence} if "confidence" in kind.knobs() else None
        )
        if knobs is None or kind(**knobs).missing(val):
            continue
        rule = kind(**knobs)
        if rule != chosen_rule.rule:
            (name, value), *_ = knobs.items()
            found[f"{kind.title}, {kind.knobs()[name].symbol} = {format_value(value)}"] = chosen_rule.key, rule
    return found


def _other_runs(key: str) -> dict[str, tuple[str, Rule | None]]:
    """Title → the other runs on the same rows, under the same rule."""
    return {title: (other, None) for other, title in cached_data.comparable(key).items()}


def similar_pictures(chosen_rule: ChosenRule, row: int, frame: pd.DataFrame) -> Similar | None:
    """The training pictures of the suggested classes that are nearest to the row; None where they are not known (yet)."""
    if (training := cached_data.training_features(chosen_rule.key)) is None:
        return None
    data, features = cached_data.dataset(chosen_rule.key), chosen_rule.sets.table.features
    if data is None or features is None or data.train.inputs.ndim != 4:
        return None
    found = most_similar(features[row], training, data.train.labels, frame["class"].tolist(), MOST)
    if found.empty:
        return None
    return Similar(found, data_url(sprite_sheet(data.train.inputs[found["row"].to_numpy()], COLUMNS)))


def _table(
    chosen_rule: ChosenRule, row: int, frame: pd.DataFrame, similar: Similar | None, dark: bool, *, awaited: int = 0
) -> None:
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
                glyph=photos.glyph(chosen_rule.sets.table, line["name"]),
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
        f"test row {here.row_ids[0]}",
        [BARS[name] for name in bars],
        lines,
        photo=photos.photo(chosen_rule.key, row),
        text=next(iter(cached_data.row_texts(chosen_rule.key, np.array([row]))), ""),
        sound=photos.sound(chosen_rule.key, row),
        facts=facts,
        sheet=None if similar is None else similar.sheet,
        columns=COLUMNS,
        awaited=awaited,
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
    if cached_data.training_features(chosen_rule.key) is not None:
        imports.append("from workbench.datasets import load_spec")
        imports.append("from workbench.workers.nearest_neighbours import most_similar, training_features")
        lines += [
            "train = load_spec(run.dataset_spec).train",
            'classes = suggested["class"]',
            f"most_similar(test.features[{row}], training_features(run), train.labels, classes, most={MOST})",
        ]
    return Code(setup=lines, imports=imports)
