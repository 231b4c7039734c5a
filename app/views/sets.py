"""Sets: move K or the threshold and see sizes, accuracy, classes and photographs follow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls import rules, slices
from controls.bar import WORDS_OF_SETS, introduce, tools
from controls.positions import along, compact, places
from controls.runs import looks_by_key, one_run
from drawing import photos, row_detail
from drawing.figures import HEIGHT, PANEL, at_each_place, browser_content, draw, following, pictures
from drawing.handout import handout
from session import cached_data, messages
from session.address import bound, one_of, switch
from session.messages import inert
from session.sliced_runs import sliced, whole
from views.samples import open_rows
from workbench.figures import Figure
from workbench.figures.base import Click, Places
from workbench.figures.film import Film
from workbench.figures.probabilities.reliability import Reliability
from workbench.figures.run_styles import Look
from workbench.figures.sets.curves import AccuracyAgainstSize
from workbench.figures.sets.head_or_tail import HeadOrTail
from workbench.figures.sets.rule_tradeoff import RuleTradeoff
from workbench.figures.sets.sizes import MOST_GROUPS, SetSizes
from workbench.figures.sets.thresholds import SizeAgainstThreshold
from workbench.metrics.rows import ORDERS, RowFilter, in_order
from workbench.tables.groups import rows_by

ABOUT = (
    "How large must the answer be? A set holds few classes when a row is clear and more when it is ambiguous. A class is in the "
    "set if its probability is at least λ. Choose λ itself, or the average size K, or the coverage 1 − α: the three sliders "
    "move together, fitted on the validation rows. All pictures are of the test rows."
)
TRADE = "Mean size, coverage of the average class and classes left behind, of every rule. A point opens its rule."
ALL_ROWS = "all rows"
TALL = 460  # pixels of the picture of all rules
KINDS = ("any rows", "missed", "correct", "largest sets", "empty sets")  # of rows on the wall


def page() -> None:
    """The view."""
    introduce("Sets", ABOUT, *WORDS_OF_SETS, "best possible")
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the controls. A fragment: releasing a slider runs this and nothing else.

    The key of the run also names the channel of the moving parts, so that no part ever follows another run's sliders.
    """
    line = tools()
    with line:
        key = slices.choose(key)
    chosen_rule = rules.choose("sets", key)
    figures(chosen_rule, line, dark)
    wall(chosen_rule, dark)


def figures(chosen_rule: rules.ChosenRule, line: AbstractContextManager[Any], dark: bool) -> None:
    """The pictures, each with its code and its data."""
    index = cached_data.index(chosen_rule.key, "test")
    labelled = index.table.labels is not None
    if not labelled:
        st.info("These rows have no labels: there are sizes to show, but no accuracy.", icon=":material/label_off:")
    with line:
        by = grouping(index.table)
        titles = cached_data.comparable(chosen_rule.key)
        other = one_run("Compare with", titles, "other") if titles else None
        # On demand: every rule is fitted anew at every size, which takes seconds on a large table.
        all_rules_wanted = labelled and st.toggle("All rules", help=TRADE, **bound("all_rules", switch))
    other = None if other is None else sliced(other, chosen_rule.key)
    beside = None if other is None else chosen_rule.of(other)
    makers: dict[str, Callable[[], Figure]] = {
        "sizes": lambda: wb.figures.set_sizes(
            chosen_rule.sets, by=by, other=beside, looks=both_looks(chosen_rule.key, other)
        )
    }
    if labelled:
        makers |= {
            **against_size(chosen_rule),
            "classes": lambda: wb.figures.per_class(chosen_rule.sets),
            "reliability": lambda: reliability(chosen_rule.key),
        }
    if (place := chosen_rule.place) is not None and not chosen_rule.adjusted:
        makers["thresholds"] = lambda: of_thresholds(chosen_rule.key, place)
    with pictures():
        for name, make in makers.items():
            of_sizes = (by, other) if name == "sizes" else (None, None)
            picture(name, chosen_rule, *of_sizes, make, dark)
        if all_rules_wanted:
            tradeoff(chosen_rule, dark)


def tradeoff(chosen_rule: rules.ChosenRule, dark: bool) -> None:
    """All rules at the confidence and the mean size that are chosen; a point opens its rule."""
    rule = chosen_rule.rule
    confidence = float(getattr(rule, "confidence", 0.9))
    size = round(max(wb.metrics.mean_size(chosen_rule.sets), 1.0), 1)

    def make() -> Figure:
        return all_rules(chosen_rule.key, confidence, size).marking(type(rule).__name__)

    clicked = draw("tradeoff", chosen_rule.key, make, dark, height=TALL, clickable=True)
    if clicked is not None and clicked.data is not None:
        rules.open_rule(clicked.data[0])


@st.cache_resource(show_spinner="Fitting every rule…", max_entries=32)
def all_rules(key: str, confidence: float, size: float) -> RuleTradeoff:
    """The trade of every rule, fitted on the validation rows of a run."""
    tables = cached_data.run(key).tables
    return wb.figures.rule_tradeoff(tables["val"], tables["test"], confidence, size)


def against_size(chosen_rule: rules.ChosenRule) -> dict[str, Callable[[], Figure]]:
    """The picture of what larger sets give: of one threshold, or from head to tail."""
    key = chosen_rule.key
    if chosen_rule.adjusted:
        return {"trade": lambda: trade(key)}
    return {"curve": lambda: curve(key).marking(chosen_rule.sets)}


@messages.friendly
def picture(
    name: str, chosen_rule: rules.ChosenRule, by: str | None, other: str | None, make: Callable[[], Figure], dark: bool
) -> None:
    """One picture with its code; if it fails, the others stay. A bar of it, a class or a bin opens its rows."""
    if chosen_rule.moves:
        clicked = moving(name, chosen_rule, by, other, make, dark)
    elif name == "reliability":
        with st.container(key=f"figure-{name}"):
            parts = prepared_reliability(chosen_rule.key, dark)
            clicked = live.prepared_drawing(parts, key=f"drawing {name}", clickable=True)
            handout(name, chosen_rule.key, make, dark)
    else:
        clicked = draw(name, chosen_rule.key, make, dark, other=other)
    if clicked is not None:
        figure = make()
        if (rows := figure.rows_behind(clicked)) is not None:
            outlined = isinstance(figure, SetSizes) and figure.outlined(clicked)
            key = other if other is not None and outlined else chosen_rule.key
            of_sliders = chosen_rule.place is not None and not chosen_rule.adjusted
            open_rows(key, rows, chosen_rule.sets.table, of_sliders=of_sliders)


def moving(
    name: str, chosen_rule: rules.ChosenRule, by: str | None, other: str | None, make: Callable[[], Figure], dark: bool
) -> Click | None:
    """A picture that follows the sliders. Returns what was clicked just now, or None."""
    key = chosen_rule.key

    def figure() -> Figure:
        made = make()
        return replace(made, code=cached_data.code(key, made, other))

    with st.container(key=f"figure-{name}"):
        film = at_every_place(name, key, chosen_rule.along, by, other, dark, chosen_rule.adjusted)
        clicked = live.figure(chosen_rule.channel, film, key=f"{name} {chosen_rule.channel}")
        handout(name, None, figure, dark)
    return clicked


def of_thresholds(key: str, place: int) -> SizeAgainstThreshold:
    """G of a run, with the threshold of a place of the sliders."""
    indices = cached_data.index(key, "val"), cached_data.index(key, "test")
    return wb.figures.size_against_threshold(*indices, threshold=float(places(key).thresholds[place]) or None)


@messages.friendly
def wall(chosen_rule: rules.ChosenRule, dark: bool) -> None:
    """Photographs (or, where there are none, rows) with their sets; which ones is chosen here.

    Those of a slice keep their numbers in the whole table.
    """
    of_slice = cached_data.slice_rows(chosen_rule.key)
    chosen_rule = replace(chosen_rule, key=whole(chosen_rule.key))
    st.header("Test rows and their sets", anchor=False)
    labelled = chosen_rule.sets.table.labels is not None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        options = KINDS if labelled else (KINDS[0], *KINDS[3:])
        choice = st.segmented_control(
            "Show", options, default=KINDS[0], required=True, **bound("show", one_of(options))
        )
        rows = chosen_rows(chosen_rule.sets, choice)
        rows = rows[np.isin(rows, of_slice)]
        shown = photos.one_page(rows)
    if len(shown) == 0:
        st.info(
            "No test row is of this kind here. Move a control, or choose another kind.", icon=":material/search_off:"
        )
        return
    opened = photos.on_cards(chosen_rule, shown, dark, key=f"wall {chosen_rule.channel}")
    row_detail.open_from_address(chosen_rule, opened, rows, dark)


def chosen_rows(sets: wb.PredictionSets, choice: str) -> np.ndarray:
    """The rows of a kind, in the order of the table (the largest sets first)."""
    filters = {"correct": RowFilter(hit=True), "missed": RowFilter(hit=False), "empty sets": RowFilter(sizes=(0, 0))}
    rows = filters.get(choice, RowFilter()).rows(sets)
    return in_order(sets, rows, choice) if choice in ORDERS else rows


def prepare() -> None:
    """Compute what the page of the first run needs, whatever its theme."""
    for key in cached_data.at_first()[:1]:
        compact(key, None)
        cached_data.comparable(key)
        if cached_data.index(key, "test").table.labels is not None:
            reliability(key)
            curve(key)


@st.cache_resource(show_spinner=False, max_entries=8)
def curve(key: str) -> AccuracyAgainstSize:
    """Accuracy against set size: the same for every rule."""
    return wb.figures.accuracy_against_size(cached_data.index(key, "test"))


@st.cache_resource(show_spinner="Sorting the probabilities for every τ…", max_entries=8)
def trade(key: str) -> HeadOrTail:
    """Coverage and macro-coverage against set size, from head to tail."""
    tables = cached_data.run(key).tables
    return wb.figures.head_or_tail(tables["val"], tables["test"]).standing_at(1, 0, 0)


@st.cache_resource(show_spinner=False, max_entries=8)
def reliability(key: str) -> Reliability:
    """Whether the confidence is right: the same for every set."""
    return wb.figures.reliability(cached_data.index(key, "test").table)


@st.cache_resource(show_spinner=False, max_entries=16)
def prepared_reliability(key: str, dark: bool) -> dict[str, Any]:
    """The same as it is sent to the browser."""
    return browser_content(reliability(key), dark)


def grouping(table: wb.LogitTable) -> str | None:
    """By what the histogram of sizes is split: shot groups, groups of classes, or an attribute of the rows."""
    names = list(table.attributes or {})
    if table.labels is not None and not table.many_labels:
        names = ["shots"] * (table.class_counts is not None) + ["groups"] * (table.groups is not None) + names
    few = [name for name in names if 1 < len(rows_by(table, name)[1]) <= MOST_GROUPS]
    if not few:
        return None
    by = st.segmented_control(
        "Group by",
        [ALL_ROWS, *few],
        default=ALL_ROWS,
        required=True,
        format_func=inert,
        **bound("by", one_of(map(inert, [ALL_ROWS, *few]))),
    )
    return None if by == ALL_ROWS else by


@st.cache_resource(show_spinner="Drawing…", max_entries=64)
def at_every_place(
    name: str,
    key: str,
    rules: tuple[str, ...] | None,
    by: str | None,
    other: str | None,
    dark: bool,
    adjusted: bool = False,
) -> Film:
    """A picture with all its moves. It does not depend on where the sliders stand.

    `rules` is another rule at every place of its slider; None: one threshold, by the linked sliders, with τ if it is
    `adjusted`.
    """
    everywhere = compact(key, by, adjusted=adjusted) if rules is None else along(key, rules, by)
    if name == "trade":
        return replace(following(trade(key), everywhere, dark), seeks="K")
    if name == "curve" and rules is not None:
        return at_each_place([curve(key).marking(sets) for sets in cached_data.sets_along(key, rules)], dark)
    if name == "curve":
        start = everywhere["mean_size"][0], everywhere["accuracy"][0]
        return replace(following(curve(key).standing_at(*start), everywhere, dark), seeks="K")
    if name == "thresholds":
        figure = of_thresholds(key, 0)
        fitted = {"thresholds": places(key).thresholds, "mean_size": places(key).mean_size}
        return replace(following(replace(figure, text=figure.unmarked), fitted, dark), seeks="threshold")
    if name == "reliability":
        return following(reliability(key), everywhere, dark)
    first = repr(wb.AverageK(float(places(key).K_values[0]))) if rules is None else rules[0]
    sets = cached_data.sets_by(key, first)
    if name == "classes":
        return following(wb.figures.per_class(sets), everywhere, dark)
    beside = None if other is None else cached_data.sets_by(other, first)
    of_other = None
    if other is not None:
        of_other = compact(key, by, other, adjusted) if rules is None else along(key, rules, by, other)
    sizes = wb.figures.set_sizes(sets, by=by, other=beside, looks=both_looks(key, other))
    return sizes_following(sizes, everywhere, dark, of_other)


def both_looks(key: str, other: str | None) -> tuple[Look, ...]:
    """The looks of two runs that are laid over each other; one alone needs none."""
    if other is None:
        return ()
    known = looks_by_key(key)
    return known[whole(key)], known[whole(other)]


def sizes_following(figure: SetSizes, everywhere: Places, dark: bool, other: Places | None = None) -> Film:
    """The histogram of sizes, or one below another, with all its moves; those of another run, if there is one, too."""
    height = HEIGHT + PANEL * (figure.frame["group"].nunique() - 1)
    return following(figure, everywhere, dark, height=height, other=other)
