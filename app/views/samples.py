"""Samples: the rows themselves, with what was predicted for them and what is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import streamlit as st

import workbench as wb
from controls import rules
from controls.runs import one_run
from drawing import photos, row_detail
from session import messages, reading
from session.address import Readable, bound, one_of, some_of, two_numbers
from session.navigation import go_to
from workbench.figures import Code
from workbench.figures.base import counted
from workbench.metrics.rows import DISAGREEMENTS, OF_LABELS, ORDERS, RowFilter, in_order, listed
from workbench.sets.index import LARGEST_SIZE
from workbench.tables.groups import mean_of_present, means, rows_by

VERDICTS = ANY, HITS, MISSES = ("any", "hit", "miss")
ALL, ALL_ROWS = "all", "all rows"
NO_LABEL, LABELLED, SEVERAL = "none", "at least one", "several"
FEWEST = {NO_LABEL: 0, LABELLED: 1, SEVERAL: 2}  # labels of a row
SHARED = ("by", "other")  # names of widgets here that other views have too
MOST_GROUPS = 200  # of a grouping that can be chosen from


def open_samples(
    key: str,
    *,
    sizes: tuple[int, int] | None = None,
    verdict: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    holds: Sequence[str] = (),
    by: str | None = None,
    group: str | None = None,
    sure: tuple[float, float] | None = None,
    other: str | None = None,
    disagreement: str | None = None,
    row: int | None = None,
    of_sliders: bool = False,
) -> NoReturn:
    """Go to this view of a run with these rows chosen: `open_samples(key, sizes=(3, 3))` for the bar of size 3.

    `sizes` are the smallest and the largest set; `verdict` is "hit" or "miss"; `label` the name of the true class,
    `labels` how many there are ("none", "at least one" or "several") and `holds` names of classes in the set; `by` and
    `group` are a grouping of the rows and one of its groups, such as "organ" and "leaf"; `sure` are the bounds of the
    largest probability, as of a bin of a reliability diagram; `other` is the short key of another run and `disagreement`
    one of `workbench.metrics.rows.DISAGREEMENTS`; `row` opens one row. The sets are those of the rule that was chosen
    last, or `of_sliders` where the present page knows no other.
    """
    given = {
        "size": None if sizes is None else tuple(min(size, LARGEST_SIZE) for size in sizes),
        "verdict": verdict,
        "label": label,
        "labels": labels,
        "holds": list(holds) or None,
        "by": by,
        "group": group,
        "sure": sure,
        "other": other,
        "disagreement": disagreement,
    }
    for name, value in {**given, "page": None}.items():
        if value is None:
            st.session_state.pop(name, None)  # what was asked for at an earlier visit
    sliders = {name: st.query_params[name] for name in reading.SLIDERS if name in st.query_params}
    kept = st.session_state.get(rules.KEPT)
    rule = {"rule": rules.ONE_THRESHOLD} if of_sliders or kept is None else kept
    asked = {name: value for name, value in given.items() if value is not None}
    written = {name: _written(name, value) for name, value in asked.items() if name not in SHARED}
    query = {"run": key, **sliders, **written, **({} if row is None else {"row": str(row)})}
    go_to("samples", query, asked={"run": key, **rule, **asked})


def open_rows(
    key: str, rows: RowFilter, table: wb.LogitTable, *, other: str | None = None, of_sliders: bool = False
) -> NoReturn:
    """Go to this view of a run with the rows that stand behind a part of a picture of its table."""
    names = table.named_classes()
    by, group = rows.groups[0] if rows.groups else (None, None)
    open_samples(
        key,
        sizes=rows.sizes,
        label=None if rows.label is None else names[rows.label],
        labels=None if rows.n_labels is None else NO_LABEL if rows.n_labels == (0, 0) else LABELLED,
        holds=sorted(names[member] for member in rows.holds),
        by=by,
        group=group,
        sure=rows.sure,
        other=other,
        disagreement=rows.disagreement,
        of_sliders=of_sliders,
    )


def _written(name: str, value: Any) -> str | list[str]:
    """A value, or several, as in an address."""
    if name == "size":
        return [size_in_words(size) for size in value]
    return [f"{each:g}" for each in value] if isinstance(value, tuple) else value


def size_in_words(size: int) -> str:
    """The size of a set as it is chosen: the last stands for all larger ones."""
    return f"{size}+" if size == LARGEST_SIZE else str(size)


def page() -> None:
    """The view."""
    st.title("Samples", anchor=False)
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    st.markdown(
        "Numbers are about many rows; these are the rows. Choose which to see, and open one to see what the network "
        "confuses it with."
    )
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the controls."""
    chosen_rule = rules.choose("samples", key)
    asked, other = wanted(chosen_rule)
    sets = chosen_rule.sets
    rows = asked.rows(sets, None if other is None else chosen_rule.of(other))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = [name for name in ORDERS if sets.table.labels is not None or name not in OF_LABELS]
        order = st.selectbox("Order", names, width=220, **bound("order", one_of(names)))
        ordered = in_order(sets, rows, order)
        shown = photos.one_page(ordered)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(found(sets, rows), width="content")
        take_away(chosen_rule, asked, order, other, rows, shown)
    if len(shown) == 0:
        st.info("No test row is like that. Ask for less, or move K.", icon=":material/search_off:")
        return
    opened = photos.on_cards(chosen_rule, shown, dark, key=f"samples {chosen_rule.channel}")
    row_detail.open_where_asked(chosen_rule, opened, ordered, dark)


def wanted(chosen_rule: rules.ChosenRule) -> tuple[RowFilter, str | None]:
    """Which rows are asked for, all of it in the address, and the other run if they are those of a disagreement."""
    table = chosen_rule.sets.table
    names = table.named_classes()
    with st.container(key="filters"):
        last = min(table.n_classes, LARGEST_SIZE)
        low, high = st.select_slider(
            "Set size", list(range(last + 1)), (0, last), format_func=size_in_words, **bound("size", sizes_up_to(last))
        )
        hit = label = n_labels = None
        if table.labels is not None:
            verdict = st.segmented_control(
                "Hit or miss", VERDICTS, default=ANY, required=True, **bound("verdict", one_of(VERDICTS))
            )
            hit = {HITS: True, MISSES: False}.get(verdict)
            label = st.selectbox("Truth", [ALL, *names], **bound("label", one_of([ALL, *names])))
        if table.many_labels:
            n_labels = number_of_labels(table)
        holds = st.multiselect("The set holds", names, placeholder="any classes", **bound("holds", some_of(names)))
        groups = group(table)
        sure = st.slider(
            "Largest probability", 0.0, 1.0, (0.0, 1.0), 0.01, format="percent", **bound("sure", two_numbers)
        )
        disagreement, other = disagreeing(chosen_rule)
    whole = (low, high) == (0, last)
    return RowFilter(
        sizes=None if whole else (low, table.n_classes if high == last else high),
        hit=hit,
        label=names.index(label) if label not in (None, ALL) else None,
        n_labels=n_labels,
        holds=tuple(names.index(name) for name in holds),
        groups=groups,
        sure=None if sure == (0, 1) else sure,
        disagreement=disagreement,
    ), other


def number_of_labels(table: wb.LogitTable) -> tuple[int, int] | None:
    """The fewest and the most labels of a row, where rows can have several or none; in the address as `labels`."""
    chosen = st.selectbox(
        "Labels of the row", [ANY, *FEWEST], **bound("labels", one_of([ANY, *FEWEST])),
        help="a row without a label shows none of the classes",
    )  # fmt: skip
    return None if chosen == ANY else (FEWEST[chosen], 0 if chosen == NO_LABEL else table.n_classes)


def sizes_up_to(last: int) -> Readable:
    """The smallest and the largest set."""
    texts = [size_in_words(size) for size in range(last + 1)]
    return lambda asked: len(asked) == 2 and {*asked} <= {*texts} and texts.index(asked[0]) <= texts.index(asked[1])


def group(table: wb.LogitTable) -> tuple[tuple[str, str], ...]:
    """One group of the rows by shots, by groups of classes or by an attribute, in the address as `by` and `group`."""
    names = list(table.attributes or {})
    if table.labels is not None and not table.many_labels:
        names = ["shots"] * (table.class_counts is not None) + ["groups"] * (table.groups is not None) + names
    few = [name for name in names if 1 < len(rows_by(table, name)[1]) <= MOST_GROUPS]
    if not few:
        return ()
    by = st.selectbox("Group by", [ALL_ROWS, *few], **bound("by", one_of([ALL_ROWS, *few])))
    if by == ALL_ROWS:
        return ()
    names = list(rows_by(table, by)[1])
    name = st.selectbox("Group", names, **bound("group", one_of(names)))
    return ((by, name),)


def disagreeing(chosen_rule: rules.ChosenRule) -> tuple[str | None, str | None]:
    """How the run disagrees with another, and with which."""
    titles = reading.comparable(chosen_rule.key)
    other = one_run("Against another run", titles, "other") if titles else None
    if other is None:
        return None, None
    options = [ANY, *DISAGREEMENTS]
    how = st.selectbox("Disagreement", options, **bound("disagreement", one_of(options)))
    return (None, None) if how == ANY else (how, other)


def found(sets: wb.PredictionSets, rows: np.ndarray) -> str:
    """How many rows there are, and what their sets are like."""
    words = f"**{counted(len(rows))}** of {counted(len(sets), 'test row')}"
    if len(rows) == 0:
        return words
    words += f", {sets.sizes[rows].mean():.2f} classes in a set on average"
    rows = rows[sets.labelled[rows]]
    if len(rows) == 0:
        return words
    words += f", {sets.hits[rows].mean():.1%} of the sets hold the label"
    if sets.table.many_labels:
        return words
    of_classes = means(sets.hits[rows], sets.table.checked_labels()[rows], sets.table.n_classes)
    return f"{words} (mean over rows), {mean_of_present(of_classes):.1%} by class"


def take_away(
    chosen_rule: rules.ChosenRule, asked: RowFilter, order: str, other: str | None, rows: np.ndarray, shown: np.ndarray
) -> None:
    """The code that finds the rows, and all of them as a file."""
    with st.popover("Show the code", icon=":material/code:", type="tertiary"):
        st.code(code(chosen_rule, asked, order, other, shown), language="python", wrap_lines=True)
    st.download_button(
        "Rows (CSV)",
        lambda: listed(chosen_rule.sets, rows).to_csv(index=False),
        "rows.csv",
        "text/csv",
        type="tertiary",
        disabled=len(rows) == 0,
        on_click="ignore",
    )


def code(chosen_rule: rules.ChosenRule, asked: RowFilter, order: str, other: str | None, shown: np.ndarray) -> Code:
    """The library calls that find the rows and, where there are photographs, draw those of the page."""
    imports = ["from workbench.metrics.rows import RowFilter, in_order", "from workbench.store import Store"]
    lines = [
        f"run = Store().open({chosen_rule.key!r})",
        'val, test = run.tables["val"], run.tables["test"]',
        f"sets = wb.{chosen_rule.rule!r}.fit(val)(test)",
    ]
    arguments = "sets"
    if other is not None:
        lines.append(f"other = Store().open({other!r})")
        lines.append(f'other_sets = wb.{chosen_rule.rule!r}.fit(other.tables["val"])(other.tables["test"])')
        arguments = "sets, other_sets"
    lines.append(f"rows = in_order(sets, {asked!r}.rows({arguments}), {order!r})")
    if len(shown) and reading.photographs(chosen_rule.key) is not None:
        images = "test.images"
        if chosen_rule.sets.table.images is None:
            imports.append("from workbench.datasets import load_spec")
            images = "load_spec(run.dataset_spec).test.inputs"
        lines.append(f"wb.figures.samples(sets, {images}, rows={shown.tolist()}).plot()")
    return Code(setup=lines, imports=imports)
