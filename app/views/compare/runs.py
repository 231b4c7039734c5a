"""Any runs on the same rows, side by side."""

from __future__ import annotations

import html
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

import live
import workbench as wb
from controls import rules, slices
from controls.bar import tools
from controls.positions import along as places_along
from controls.positions import places
from controls.runs import chosen_runs, code_opening, looks, titles
from drawing.figures import browser_content, following, pictures
from drawing.handout import handout
from session import cached_data, messages
from session.address import bound, one_of
from session.films import if_ready
from session.navigation import go_to
from session.serving import AHEAD
from workbench.figures import Code, Figure
from workbench.figures.base import counted
from workbench.figures.film import Film, affordable
from workbench.figures.run_styles import Look
from workbench.figures.runs.comparisons import better, in_words, is_share, names_of_metrics, without_K
from workbench.files.cache import content_key
from workbench.metrics.rows import RowFilter
from workbench.sets import Rule, rule_from_text
from workbench.warning_capture import captured_warnings

TALL = 620
RESAMPLES = 400
OF_SETS = (
    *("accuracy", "macro_accuracy", "shot_accuracy", "group_accuracy"),
    *("mean_size", "empty_share", "regret", "micro_f1", "macro_f1"),
)
TOP = "top_k_accuracy"
OF_TABLES = ("expected_calibration_error", "brier_score", "negative_log_likelihood")
# Of many groups there are too many lines.
DRAWN_OF_SETS = tuple(name for name in OF_SETS if name != "group_accuracy")
DRAWN = (*DRAWN_OF_SETS, TOP, *OF_TABLES)
LOOKS = 2  # at every position: resampled rows cost as much as the sets
IN_UNIT = "in % where the metric says so"
IN_POINTS = "in percentage points where the metric is in %"
COLUMNS = {
    "metric": st.column_config.TextColumn("Metric"),
    "run": st.column_config.TextColumn("Run"),
    "value": st.column_config.NumberColumn("Value", format="%.2f", help=IN_UNIT),
    "low": st.column_config.NumberColumn("from", format="%.2f", help="lower end of the 95 % interval of the value"),
    "high": st.column_config.NumberColumn("to", format="%.2f", help="upper end of the 95 % interval of the value"),
    "difference": st.column_config.NumberColumn(
        "Difference", format="%+.2f", help=f"from the first run to this one, {IN_POINTS}"
    ),
    "difference_low": st.column_config.NumberColumn(
        "from ", format="%+.2f", help="paired: both runs saw the same rows"
    ),
    "difference_high": st.column_config.NumberColumn("to ", format="%+.2f", help="paired: both runs saw the same rows"),
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
    others = cached_data.comparable(key)
    if not others:
        st.info("No other run has the same test rows, with labels.", icon=":material/compare_arrows:")
        tell_why_not(key, expanded=True)
        return
    chosen_rule = rules.choose("compare", key)
    line = tools()
    with line:
        chosen = chosen_runs("Compare with", key, others)
    if not chosen:
        st.info("Choose at least one run to compare with.", icon=":material/compare_arrows:")
        return
    keys = (key, *chosen)
    rule, K = chosen_rule.rule, whole(chosen_rule)
    with line:
        asked = chosen_slice(chosen_rule)
    rows = None if asked is None else asked.rows(chosen_rule.sets)
    if rows is not None and not chosen_rule.sets.labelled[rows].any():
        st.info("No row with a label is in this slice.", icon=":material/filter_alt_off:")
        return
    comparison, code = compared(keys, rule, K, rows), code_of(keys, rule, K, asked)
    with line:
        axes = chosen_axes(comparison)
    with pictures():
        picture("differences", code, comparison, chosen_rule, keys, None, dark, moves=rows is None)
        picture("scatter", code, comparison, chosen_rule, keys, axes, dark, moves=rows is None)
    table(comparison)
    tell_why_not(key)


def tell_why_not(key: str, *, expanded: bool = False) -> None:
    """Why each of the other runs cannot be compared with this one, and the remedy."""
    reasons = cached_data.incomparable(key)
    if not reasons:
        return
    names = cached_data.named(cached_data.runs())
    title = f"{counted(len(reasons), 'run')} cannot be compared with this one"
    with st.expander(title, icon=":material/help:", expanded=expanded):
        st.markdown("\n".join(f"- **{messages.plain(names[other])}**: {why}" for other, why in reasons.items()))
        st.caption("Two runs are compared row by row, so they must be tested on the same rows with the same classes.")
        if st.button("Train a run on the rows of this one", icon=":material/model_training:"):
            go_to("train", {"run": key}, {"run": key, "train": "A new run"})


def whole(chosen_rule: rules.ChosenRule) -> int:
    """The whole number of classes nearest to the mean size of the sets: top-K sets of that size stand beside them."""
    size = (
        wb.metrics.mean_size(chosen_rule.sets)
        if chosen_rule.place is None
        else places(chosen_rule.key, chosen_rule.adjusted).K[chosen_rule.place]
    )
    return whole_size(chosen_rule.key, float(size))


def whole_size(key: str, size: float) -> int:
    """A number of classes that a set can have."""
    return min(max(round(size), 1), cached_data.run(key).tables["test"].n_classes)


def chosen_slice(chosen_rule: rules.ChosenRule) -> RowFilter | None:
    """The slice whose rows are compared, in the address as `rows`; None: all rows. The sets are those of the first run."""
    known = slices.named(chosen_rule.sets)
    name = slices.choose_rows(known) if known else None
    return None if name is None else known[name]


def compared(keys: tuple[str, ...], rule: Rule, K: int, rows: np.ndarray | None = None) -> pd.DataFrame:
    """`wb.comparison.compare` of the sets of the runs, and of their tables, which the rule does not change."""
    of_sets, top, of_tables = (
        measured(keys, repr(each), names, K, rows)
        for each, names, K in ((rule, OF_SETS, None), (wb.TopK(1), (TOP,), K), (wb.TopK(1), OF_TABLES, None))
    )
    return pd.concat([of_sets, top, of_tables], ignore_index=True)


@st.cache_data(show_spinner="Comparing on resampled rows…", max_entries=64)
def measured(
    keys: tuple[str, ...], rule: str, names: tuple[str, ...], K: int | None, rows: np.ndarray | None
) -> pd.DataFrame:
    """`wb.comparison.compare` of the runs on some metrics, by a rule as Python writes it; K is that of the metrics, if any."""
    return _measured(titles(keys), rule, names, K, rows)


def _measured(
    titled: dict[str, str], rule: str, names: tuple[str, ...], K: int | None = None, rows: np.ndarray | None = None
) -> pd.DataFrame:
    tables, val = (
        {title: cached_data.run(key).tables[split] for key, title in titled.items()} for split in ("test", "val")
    )
    if rows is not None:
        tables = {title: table.rows(rows) for title, table in tables.items()}
    metrics = [getattr(wb.metrics, name) for name in names]
    metrics = [metric if K is None else metric.at(K=K) for metric in metrics]
    return wb.comparison.compare(tables, rule_from_text(rule), metrics, val=val, resamples=RESAMPLES)


def at_every_place(
    chosen_rule: rules.ChosenRule, keys: tuple[str, ...], axes: tuple[str, str] | None, dark: bool
) -> Film | None:
    """A picture of the comparison with all its moves, once it is there: the differences, or the runs on two metrics.

    It takes seconds and is made in the background; until then Python draws each move.
    """
    tables = [cached_data.run(key).tables["test"] for key in keys]
    if not chosen_rule.moves or chosen_rule.adjusted or not affordable(*tables, looks=LOOKS):
        return None
    return if_ready(_drawn_ahead(keys, chosen_rule.along, axes, dark, titles(keys), looks(keys[0])))


@st.cache_resource(show_spinner=False, max_entries=32)
def _drawn_ahead(
    keys: tuple[str, ...],
    along: tuple[str, ...] | None,
    axes: tuple[str, str] | None,
    dark: bool,
    titled: dict[str, str],
    _looks: dict[str, Look],
) -> Future[Film]:
    comparisons = _compared_ahead(keys, along, titled)

    def drawn() -> Film:
        found = comparisons.result()  # there already: one thing is made after the other
        return following(figure_of(found[0], axes, _looks), {"comparisons": found}, dark, height=TALL)

    return AHEAD.submit(drawn)


@st.cache_resource(show_spinner=False, max_entries=8)
def _compared_ahead(
    keys: tuple[str, ...], along: tuple[str, ...] | None, titled: dict[str, str]
) -> Future[list[pd.DataFrame]]:
    return AHEAD.submit(_compared_along, keys[0], along, titled)


def _compared_along(key: str, along: tuple[str, ...] | None, titled: dict[str, str]) -> list[pd.DataFrame]:
    """The comparisons at every position of the sliders, or along that of a rule."""
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
    """The comparison by a rule that is not chosen yet."""
    with captured_warnings():
        return _measured(titled, rule, DRAWN_OF_SETS)


def code_of(keys: tuple[str, ...], rule: Rule, K: int, asked: RowFilter | None = None) -> Code:
    """The code that makes the comparison, from opening the runs on."""
    first = titles(keys)[keys[0]]
    of_slice = [
        "from workbench.metrics.rows import RowFilter",
        f"rows = {asked!r}.rows(wb.{rule!r}.fit(val[{first!r}])(test[{first!r}]))",
        "test = {name: table.rows(rows) for name, table in test.items()}",
    ]
    return code_opening(
        titles(keys),
        'test = {name: run.tables["test"] for name, run in runs.items()}',
        'val = {name: run.tables["val"] for name, run in runs.items()}',
        *(of_slice if asked is not None else []),
        f"metrics = (*wb.metrics.METRICS, wb.metrics.top_k_accuracy.at(K={K}))",
        f"comparison = wb.comparison.compare(test, wb.{rule!r}, metrics, val=val, resamples={RESAMPLES})",
    )


def chosen_axes(comparison: pd.DataFrame) -> tuple[str, str]:
    """The two metrics of the scatter plot, in the address as `x` and `y`."""
    names = list(dict.fromkeys(names_of_metrics(comparison.dropna(subset=["value"])).map(without_K)))
    x, y = (
        st.selectbox(label, names, first, width=230, format_func=in_words, **bound(axis, one_of(map(in_words, names))))
        for label, axis, first in (("x axis", "x", 0), ("y axis", "y", min(1, len(names) - 1)))
    )
    return x, y


@messages.friendly
def picture(
    name: str,
    code: Code,
    comparison: pd.DataFrame,
    chosen_rule: rules.ChosenRule,
    keys: tuple[str, ...],
    axes: tuple[str, str] | None,
    dark: bool,
    *,
    moves: bool,
) -> None:
    """A figure of the comparison; that of all rows `moves` with the sliders once it is known at every place of them."""
    made = figure_of(comparison, axes, looks(keys[0]))
    of_groups = axes is not None and any(each.startswith("group_accuracy") for each in axes)
    film = None if of_groups or not moves else at_every_place(chosen_rule, keys, axes, dark)
    with st.container(key=f"figure-{name}"):
        if film is None:
            live.prepared_drawing(browser_content(made, dark, height=TALL), key=f"drawing {name}")
        else:
            channel = chosen_rule.channel
            live.figure(channel, film, key=f"{name} of {content_key((keys, axes))[:12]} {channel}")
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
