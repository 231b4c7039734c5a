"""Any runs on the same rows, side by side."""

from __future__ import annotations

import html
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

import live
import workbench as wb
from controls import rules
from controls.places import along as places_along
from controls.places import places
from controls.runs import chosen_runs, code_opening, looks, titles
from controls.words import WORDS_OF_SETS, explained
from drawing.figures import following, sent
from drawing.handout import handout
from session import messages, reading
from session.address import bound, one_of
from session.serving import AHEAD
from workbench.figures import Code, Figure
from workbench.figures.looks import Look
from workbench.figures.of_runs.comparisons import better, in_words, is_share, names_of_metrics, without_K
from workbench.sets import Rule, rule_from_text
from workbench.store.cache import content_key

TALL = 520
RESAMPLES = 400
OF_SETS = (
    *("accuracy", "macro_accuracy", "shot_accuracy", "group_accuracy"),
    *("mean_size", "empty_share", "micro_f1", "macro_f1"),
)
TOP = "top_k_accuracy"
OF_TABLES = ("expected_calibration_error", "brier_score", "negative_log_likelihood")
# Of many groups there are too many lines.
DRAWN_OF_SETS = tuple(name for name in OF_SETS if name != "group_accuracy")
DRAWN = (*DRAWN_OF_SETS, TOP, *OF_TABLES)
FEW_SCORES = 1_500_000  # of all runs together that are compared ahead at every place of a slider
IN_UNIT = "in % where the metric says so"
IN_POINTS = "in percentage points where the metric is in %"
COLUMNS = {
    "metric": st.column_config.TextColumn("Metric"),
    "run": st.column_config.TextColumn("Run"),
    "value": st.column_config.NumberColumn("Value", format="%.3f", help=IN_UNIT),
    "low": st.column_config.NumberColumn("from", format="%.3f", help="lower end of the 95 % interval of the value"),
    "high": st.column_config.NumberColumn("to", format="%.3f", help="upper end of the 95 % interval of the value"),
    "difference": st.column_config.NumberColumn(
        "Difference", format="%+.3f", help=f"from the first run to this one, {IN_POINTS}"
    ),
    "difference_low": st.column_config.NumberColumn(
        "from ", format="%+.3f", help="paired: both runs saw the same rows"
    ),
    "difference_high": st.column_config.NumberColumn("to ", format="%+.3f", help="paired: both runs saw the same rows"),
    "verdict": st.column_config.TextColumn(
        "Verdict", help="where the interval of the difference does not hold 0; of an error or a size, less is better"
    ),
}
NUMBERS = ["value", "low", "high", "difference", "difference_low", "difference_high"]
VERDICTS = {"yes": "▲ better", "no": "▼ worse", "open": ""}


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the controls."""
    others = reading.comparable(key)
    if not others:
        st.info(
            "No other run was measured on these test rows, with labels. Train a second run on the same data, or open "
            "another file of scores of the same rows.",
            icon=":material/compare_arrows:",
        )
        return
    explained(*WORDS_OF_SETS, "expected calibration error")
    chosen_rule = rules.choose("compare", key)
    chosen = chosen_runs("Compared with", key, others)
    if not chosen:
        st.info("Choose at least one run to compare with.", icon=":material/compare_arrows:")
        return
    keys = (key, *chosen)
    rule, K = chosen_rule.rule, whole(chosen_rule)
    comparison, code = compared(keys, rule, K), code_of(keys, rule, K)
    with st.container(key="figures"):
        differences(code, comparison, chosen_rule, keys, dark)
        scatter(code, comparison, chosen_rule, keys, dark)
    table(comparison)


def whole(chosen_rule: rules.ChosenRule) -> int:
    """The whole number of classes nearest to the mean size of the sets: top-K sets of that size stand beside them."""
    size = (
        wb.metrics.mean_size(chosen_rule.sets)
        if chosen_rule.place is None
        else places(chosen_rule.key).K[chosen_rule.place]
    )
    return whole_size(chosen_rule.key, float(size))


def whole_size(key: str, size: float) -> int:
    """A number of classes that a set can have."""
    return min(max(round(size), 1), reading.run(key).tables["test"].n_classes)


def compared(keys: tuple[str, ...], rule: Rule, K: int) -> pd.DataFrame:
    """`wb.comparison.compare` of the sets of the runs, and of their tables, which the rule does not change."""
    of_sets, top, of_tables = (
        measured(keys, repr(each), names, K)
        for each, names, K in ((rule, OF_SETS, None), (wb.TopK(1), (TOP,), K), (wb.TopK(1), OF_TABLES, None))
    )
    return pd.concat([of_sets, top, of_tables], ignore_index=True)


@st.cache_data(show_spinner="Comparing on resampled rows…", max_entries=64)
def measured(keys: tuple[str, ...], rule: str, names: tuple[str, ...], K: int | None) -> pd.DataFrame:
    """`wb.comparison.compare` of the runs on some metrics, by a rule as Python prints it; K is that of the metrics, if any."""
    return _measured(titles(keys), rule, names, K)


def _measured(titled: dict[str, str], rule: str, names: tuple[str, ...], K: int | None = None) -> pd.DataFrame:
    tables, val = (
        {title: reading.run(key).tables[split] for key, title in titled.items()} for split in ("test", "val")
    )
    metrics = [getattr(wb.metrics, name) for name in names]
    metrics = [metric if K is None else metric.at(K=K) for metric in metrics]
    return wb.comparison.compare(tables, rule_from_text(rule), metrics, val=val, resamples=RESAMPLES)


def at_every_place(
    chosen_rule: rules.ChosenRule, keys: tuple[str, ...], axes: tuple[str, str] | None, dark: bool
) -> dict[str, Any] | None:
    """A picture of the comparison with all its moves, once it is there: the differences, or the runs on two metrics.

    It takes seconds: it is made while nobody waits, and until then Python draws each move.
    """
    tables = [reading.run(key).tables["test"] for key in keys]
    if not chosen_rule.moves or sum(table.n * table.n_classes for table in tables) > FEW_SCORES:
        return None
    film = _drawn_ahead(keys, chosen_rule.along, axes, dark, titles(keys), looks(keys[0]))
    return film.result() if film.done() else None


@st.cache_resource(show_spinner=False, max_entries=32)
def _drawn_ahead(
    keys: tuple[str, ...],
    along: tuple[str, ...] | None,
    axes: tuple[str, str] | None,
    dark: bool,
    titled: dict[str, str],
    _looks: dict[str, Look],
) -> Future[dict[str, Any]]:
    comparisons = _compared_ahead(keys, along, titled)

    def drawn() -> dict[str, Any]:
        found = comparisons.result()  # there already: one thing is made after the other
        return following(figure_of(found[0], axes, _looks), {"comparisons": found}, dark, height=TALL)

    return AHEAD.submit(drawn)


@st.cache_resource(show_spinner=False, max_entries=8)
def _compared_ahead(
    keys: tuple[str, ...], along: tuple[str, ...] | None, titled: dict[str, str]
) -> Future[list[pd.DataFrame]]:
    return AHEAD.submit(_compared_along, keys[0], along, titled)


def _compared_along(key: str, along: tuple[str, ...] | None, titled: dict[str, str]) -> list[pd.DataFrame]:
    """What is drawn of `compared` at every place of the sliders, or along that of a rule."""
    if along is None:
        along, sizes = tuple(repr(position.rule) for position in places(key).positions()), places(key).K
    else:
        sizes = places_along(key, along, None)["mean_size"]
    of_K = [whole_size(key, float(size)) for size in sizes]
    top = {K: _measured(titled, repr(wb.TopK(1)), (TOP,), K) for K in {*of_K}}
    of_tables = _measured(titled, repr(wb.TopK(1)), OF_TABLES)
    of_sets = (_unheard(titled, rule) for rule in along)
    return [pd.concat([each, top[K], of_tables], ignore_index=True) for each, K in zip(of_sets, of_K, strict=True)]


def _unheard(titled: dict[str, str], rule: str) -> pd.DataFrame:
    """What is drawn of the sets by a rule that nobody has chosen yet."""
    with reading.unheard():
        return _measured(titled, rule, DRAWN_OF_SETS)


def code_of(keys: tuple[str, ...], rule: Rule, K: int) -> Code:
    """The code that makes the comparison, from opening the runs on."""
    return code_opening(
        titles(keys),
        'test = {name: run.tables["test"] for name, run in runs.items()}',
        'val = {name: run.tables["val"] for name, run in runs.items()}',
        f"metrics = (*wb.metrics.METRICS, wb.metrics.top_k_accuracy.at(K={K}))",
        f"comparison = wb.comparison.compare(test, wb.{rule!r}, metrics, val=val, resamples={RESAMPLES})",
    )


@messages.friendly
def differences(
    code: Code, comparison: pd.DataFrame, chosen_rule: rules.ChosenRule, keys: tuple[str, ...], dark: bool
) -> None:
    """How far every run lies from the first, with intervals."""
    picture("differences", code, comparison, chosen_rule, keys, None, dark)


@messages.friendly
def scatter(
    code: Code, comparison: pd.DataFrame, chosen_rule: rules.ChosenRule, keys: tuple[str, ...], dark: bool
) -> None:
    """The runs on any two metrics, in the address as `x` and `y`."""
    names = list(dict.fromkeys(names_of_metrics(comparison.dropna(subset=["value"])).map(without_K)))
    with st.container(key="scatter"):
        with st.container(horizontal=True):
            x, y = (
                st.selectbox(label, names, first, format_func=in_words, **bound(axis, one_of(map(in_words, names))))
                for label, axis, first in (("To the right", "x", 0), ("Upwards", "y", min(1, len(names) - 1)))
            )
        picture("scatter", code, comparison, chosen_rule, keys, (x, y), dark)


def picture(
    name: str,
    code: Code,
    comparison: pd.DataFrame,
    chosen_rule: rules.ChosenRule,
    keys: tuple[str, ...],
    axes: tuple[str, str] | None,
    dark: bool,
) -> None:
    """A figure of the comparison, which follows the sliders once it is known at every place of them."""
    made = figure_of(comparison, axes, looks(keys[0]))
    of_groups = axes is not None and any(each.startswith("group_accuracy") for each in axes)
    film = None if of_groups else at_every_place(chosen_rule, keys, axes, dark)
    with st.container(key=f"figure-{name}"):
        if film is None:
            live.prepared_drawing(sent(made, dark, height=TALL), key=f"drawing {name}")
        else:
            channel = chosen_rule.channel
            live.figure(channel, **film, key=f"{name} of {content_key((keys, axes))[:12]} {channel}")
        handout(name, None, lambda: replace(made, code=made.code.after(code)), dark)


def figure_of(comparison: pd.DataFrame, axes: tuple[str, str] | None, looks: dict[str, Look]) -> Figure:
    """The differences of a comparison, or the runs on two metrics."""
    if axes is None:
        return wb.figures.paired_differences(comparison, DRAWN, looks)
    return wb.figures.on_two_metrics(comparison, *axes, looks)


@messages.friendly
def table(comparison: pd.DataFrame) -> None:
    """Every metric of every run, with paired differences."""
    frame = in_units(comparison)
    first = html.escape(frame["run"].iloc[0])
    st.html(f'<div class="wb-live"><h2 class="wb-title">Every metric, and its difference from {first}</h2></div>')
    st.dataframe(
        frame, column_config=COLUMNS, column_order=list(COLUMNS), hide_index=True, height=TALL, key="values",
        placeholder="",
    )  # fmt: skip
    st.download_button(
        "Table (CSV)", lambda: comparison.to_csv(index=False), "comparison.csv", "text/csv", type="tertiary"
    )


def in_units(comparison: pd.DataFrame) -> pd.DataFrame:
    """The comparison as a person reads it, metric by metric: shares in per cent, their differences in points."""
    named = names_of_metrics(comparison)
    shares = named.map(is_share)
    frame = comparison.assign(
        metric=named.map(in_words) + shares.map({True: " (%)", False: ""}),
        run=comparison["table"],
        verdict=better(comparison).map(VERDICTS),
        order=named.map({name: place for place, name in enumerate(dict.fromkeys(named))}),
    )
    frame[NUMBERS] = frame[NUMBERS].mul(shares.map({True: 100.0, False: 1.0}), axis=0)
    frame.loc[frame["run"] == frame["run"].iloc[0], NUMBERS[3:]] = None  # the first run is what the others differ from
    return frame.sort_values("order", kind="stable", ignore_index=True)
