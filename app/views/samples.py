"""Samples: the rows themselves, with what was predicted for them and what is true."""

from __future__ import annotations

import numpy as np
import streamlit as st

import workbench as wb
from controls import rules
from controls.addressed import Readable, bound, drop, one_of, some_of, two_numbers
from controls.several import one_run
from drawing import messages, photos, row_detail
from session import reading
from session.navigation import LABELLED, NO_LABEL, SEVERAL, size_in_words
from workbench.figures import Code
from workbench.figures.base import counted
from workbench.metrics.rows import DISAGREEMENTS, OF_LABELS, ORDERS, RowFilter, in_order, listed
from workbench.sets.index import LARGEST_SIZE
from workbench.tables.groups import rows_by

VERDICTS = ANY, HITS, MISSES = ("any", "hit", "miss")
ALL, ALL_ROWS = "all", "all rows"
FEWEST = {NO_LABEL: 0, LABELLED: 1, SEVERAL: 2}  # labels of a row
MOST_GROUPS = 200  # of a grouping that can be chosen from


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
    answer = rules.answer("samples", key)
    asked, other = wanted(answer)
    sets = answer.sets
    rows = asked.rows(sets, None if other is None else answer.of(other))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = [name for name in ORDERS if sets.table.labels is not None or name not in OF_LABELS]
        order = st.selectbox("Order", names, width=220, **bound("order", one_of(names)))
        shown = photos.one_page(in_order(sets, rows, order))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(found(sets, rows), width="content")
        take_away(answer, asked, order, other, rows, shown)
    if len(shown) == 0:
        st.info("No test row is like that. Ask for less, or move K.", icon=":material/search_off:")
        return
    opened = photos.on_cards(answer, shown, dark, key=f"samples {answer.channel}")
    if opened is not None:
        st.query_params["row"] = str(opened)
    row = st.query_params.get_all("row")
    if one_of(range(sets.table.n))(row):
        row_detail.show(answer, int(row[0]), dark)
    elif row:
        drop("row")
        del st.query_params["row"]


def wanted(answer: rules.Answer) -> tuple[RowFilter, str | None]:
    """Which rows are asked for, all of it in the address, and the other run if they are those of a disagreement."""
    table = answer.sets.table
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
        disagreement, other = disagreeing(answer)
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


def disagreeing(answer: rules.Answer) -> tuple[str | None, str | None]:
    """How the run disagrees with another, and with which."""
    titles = reading.comparable(answer.key)
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
    return f"{words}, {sets.hits[rows].mean():.1%} of the sets hold the label" if len(rows) else words


def take_away(
    answer: rules.Answer, asked: RowFilter, order: str, other: str | None, rows: np.ndarray, shown: np.ndarray
) -> None:
    """The code that finds the rows, and all of them as a file."""
    with st.popover("Show the code", icon=":material/code:", type="tertiary"):
        st.code(code(answer, asked, order, other, shown), language="python", wrap_lines=True)
    st.download_button(
        "Rows (CSV)",
        lambda: listed(answer.sets, rows).to_csv(index=False),
        "rows.csv",
        "text/csv",
        type="tertiary",
        disabled=len(rows) == 0,
        on_click="ignore",
    )


def code(answer: rules.Answer, asked: RowFilter, order: str, other: str | None, shown: np.ndarray) -> Code:
    """The library calls that find the rows and, where there are photographs, draw those of the page."""
    imports = ["from workbench.metrics.rows import RowFilter, in_order", "from workbench.store import Store"]
    lines = [
        f"run = Store().open({answer.key!r})",
        'val, test = run.tables["val"], run.tables["test"]',
        f"sets = wb.{answer.rule!r}.fit(val)(test)",
    ]
    arguments = "sets"
    if other is not None:
        lines.append(f"other = Store().open({other!r})")
        lines.append(f'other_sets = wb.{answer.rule!r}.fit(other.tables["val"])(other.tables["test"])')
        arguments = "sets, other_sets"
    lines.append(f"rows = in_order(sets, {asked!r}.rows({arguments}), {order!r})")
    if len(shown) and reading.photographs(answer.key) is not None:
        images = "test.images"
        if answer.sets.table.images is None:
            imports.append("from workbench.datasets import load_spec")
            images = "load_spec(run.dataset_spec).test.inputs"
        lines.append(f"wb.figures.samples(sets, {images}, rows={shown.tolist()}).plot()")
    return Code(setup=lines, imports=imports)
