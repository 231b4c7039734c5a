"""Selection of test rows: filters, chips that undo them, and clicks on pictures that set them; all in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

import numpy as np
import streamlit as st

import workbench as wb
from controls.rules import ChosenRule
from controls.runs import one_run
from session import cached_data, messages
from session.address import Readable, any_text, bound, drop, forget, one_of, some_of, two_numbers
from workbench.metrics.against_bayes import MEANING, QUADRANTS
from workbench.metrics.frequent_sets import NO_CLASS
from workbench.metrics.rows import DISAGREEMENTS, RowFilter
from workbench.sets.index import LARGEST_SIZE
from workbench.tables.groups import rows_by
from workbench.warning_capture import captured_warnings

VERDICTS = ANY, HITS, MISSES = ("any", "correct", "missed")
ALL, ALL_ROWS = "all", "all rows"
NO_LABEL, LABELLED, SEVERAL = "none", "at least one", "several"
FEWEST = {NO_LABEL: 0, LABELLED: 1, SEVERAL: 2}  # labels of a row
MOST_GROUPS = 200  # of a grouping that can be chosen from
NEXT = "samples next"  # of a session: widgets that a click on a picture sets
EMPTY_SET = "empty"  # in the address
LONGEST = 64  # letters of a value on a chip


def size_in_words(size: int) -> str:
    """The size of a set as it is chosen: the last stands for all larger ones."""
    return f"{size}+" if size == LARGEST_SIZE else str(size)


def selected(chosen_rule: ChosenRule, row_filter: RowFilter, other: str | None) -> tuple[RowFilter, np.ndarray]:
    """The selected rows; the quadrant is ignored where the rule has no Bayes sets to compare with."""
    beside = None if other is None else chosen_rule.of(other)
    with captured_warnings():  # of the Bayes sets; the rule itself said in the bar what it warns of
        try:
            return row_filter, row_filter.rows(chosen_rule.sets, beside)
        except ValueError as error:
            if row_filter.quadrant is None:
                raise
            st.warning(messages.plain(str(error)), icon=":material/warning:")
            row_filter = replace(row_filter, quadrant=None)
            return row_filter, row_filter.rows(chosen_rule.sets, beside)


def take_next() -> None:
    """Set the widgets that a click on a picture selects, before they are created."""
    for name, value in st.session_state.pop(NEXT, {}).items():
        if value is None:
            forget([name])
        else:
            st.session_state[name] = value


def select(clicked: RowFilter | None, row_filter: RowFilter) -> None:
    """Select the rows of the part of a picture that was clicked just now; a second click on it selects all again."""
    if clicked is None:
        return
    names = cached_data.run(st.session_state["run"]).tables["test"].named_classes()
    selection: dict[str, Any] = {
        "size": clicked.sizes and tuple(min(size, LARGEST_SIZE) for size in clicked.sizes),
        "quadrant": clicked.quadrant,
        "label": None if clicked.label is None else names[clicked.label],
        "by": clicked.groups[0][0] if clicked.groups else None,
        "group": clicked.groups[0][1] if clicked.groups else None,
    }
    again = clicked.given().items() <= row_filter.given().items()
    now = {name: None if again else value for name, value in selection.items() if value is not None}
    st.session_state[NEXT] = {**now, "page": None}
    for name, members in {"answer": clicked.exactly, "pair": clicked.pair}.items():
        if members is not None and again:
            del st.query_params[name]
        elif members is not None:
            st.query_params[name] = numbers_in_words(members)
    st.rerun(scope="fragment")


def select_only(rows: RowFilter, table: wb.LogitTable) -> None:
    """Select the rows of a filter and undo all others."""
    names = table.named_classes()
    by, group = rows.groups[0] if rows.groups else (None, None)
    st.session_state[NEXT] = {
        "size": rows.sizes and tuple(min(size, LARGEST_SIZE, table.n_classes) for size in rows.sizes),
        "verdict": None if rows.hit is None else HITS if rows.hit else MISSES,
        "label": None if rows.label is None else names[rows.label],
        "labels": None if rows.n_labels is None else next(n for n, low in FEWEST.items() if low == rows.n_labels[0]),
        "holds": [names[member] for member in rows.holds] or None,
        "by": by,
        "group": group,
        "sure": rows.sure,
        "disagreement": rows.disagreement,
        "quadrant": rows.quadrant,
        "text": rows.text,
        "page": None,
    }
    for name, members in {"answer": rows.exactly, "two_of": rows.two_of, "pair": rows.pair}.items():
        if members is not None:
            st.query_params[name] = numbers_in_words(members)
        else:
            st.query_params.pop(name, None)
    st.rerun()


def numbers_in_words(members: Sequence[int]) -> str:
    """Numbers of classes as in an address: `3.17`."""
    return ".".join(map(str, members)) or EMPTY_SET


def classes_in_address(name: str, table: wb.LogitTable, n: int | None = None) -> tuple[int, ...] | None:
    """Classes that the address has under a name, by their numbers: `3.17`, or n of them; None where it has none."""
    values = st.query_params.get_all(name)
    if not values:
        return None
    members = [] if values == [EMPTY_SET] else values[0].split(".")
    known = {str(member) for member in range(table.n_classes)}
    if len(values) == 1 and known.issuperset(members) and len({*members}) == len(members) and n in (None, len(members)):
        return tuple(map(int, members))
    drop(name)
    del st.query_params[name]
    return None


def chips(row_filter: RowFilter, inside: np.ndarray | None) -> None:
    """The selections, each with a button that removes it."""
    if inside is not None:
        st.button(
            "lasso",
            icon=":material/close:",
            on_click=forget,
            args=(["lasso"],),
            key="chip lasso",
            help="Select all rows",
        )
    for name, value in selections(row_filter).items():
        words = messages.plain(shorten(value, LONGEST, placeholder=" …"))
        st.button(
            f"{name}: {words}", icon=":material/close:", key=f"chip {name}", on_click=forget, args=(CHIPS[name],),
            help="Undo this filter",
        )  # fmt: skip


CHIPS = {  # name of a chip → the widgets that ask for it
    "size": ("size",), "set is": ("verdict",), "true class": ("label",), "labels": ("labels",),
    "set contains": ("holds",), "group": ("by", "group"), "largest probability": ("sure",),
    "disagreement": ("disagreement", "other"), "answer": ("answer",), "contains two of": ("two_of",),
    "hesitates between": ("pair",), "sizes": ("quadrant",),
}  # fmt: skip


def selections(row_filter: RowFilter) -> dict[str, str]:
    """Name → value of each filter that is set, as a person reads it."""
    names = cached_data.run(st.session_state["run"]).tables["test"].named_classes()
    found = {
        "size": None if row_filter.sizes is None else "–".join(map(str, dict.fromkeys(row_filter.sizes))),
        "set is": None if row_filter.hit is None else HITS if row_filter.hit else MISSES,
        "true class": None if row_filter.label is None else names[row_filter.label],
        "labels": None if row_filter.n_labels is None else str(st.session_state.get("labels")),
        "set contains": ", ".join(names[member] for member in row_filter.holds) or None,
        "group": ", ".join(f"{by} {name}" for by, name in row_filter.groups) or None,
        "largest probability": None if row_filter.sure is None else "–".join(f"{end:.0%}" for end in row_filter.sure),
        "disagreement": row_filter.disagreement,
        "answer": None
        if row_filter.exactly is None
        else ", ".join(names[member] for member in row_filter.exactly) or NO_CLASS,
        "contains two of": None
        if row_filter.two_of is None
        else ", ".join(names[member] for member in row_filter.two_of),
        "hesitates between": None
        if row_filter.pair is None
        else " and ".join(names[member] for member in row_filter.pair),
        "sizes": None if row_filter.quadrant is None else f"{row_filter.quadrant}, {MEANING[row_filter.quadrant]}",
    }
    return {name: value for name, value in found.items() if value is not None}


def from_address(chosen_rule: ChosenRule) -> tuple[RowFilter, str | None]:
    """The filter in the address, and the other run if the rows are those of a disagreement."""
    table = chosen_rule.sets.table
    names = table.named_classes()
    last = min(table.n_classes, LARGEST_SIZE)
    low, high = st.select_slider(
        "Set size", list(range(last + 1)), (0, last), format_func=size_in_words, **bound("size", sizes_up_to(last))
    )
    hit = label = n_labels = None
    if table.labels is not None:
        verdict = st.segmented_control(
            "Set is", VERDICTS, default=ANY, required=True, **bound("verdict", one_of(VERDICTS))
        )
        hit = {HITS: True, MISSES: False}.get(verdict)
        label = st.selectbox("True class", [ALL, *names], **bound("label", one_of([ALL, *names])))
    if table.many_labels:
        n_labels = number_of_labels(table)
    holds = st.multiselect("Set contains", names, placeholder="any classes", **bound("holds", some_of(names)))
    groups = group(table)
    sure = st.slider("Largest probability", 0.0, 1.0, (0.0, 1.0), 0.01, format="percent", **bound("sure", two_numbers))
    disagreement, other = disagreeing(chosen_rule)
    quadrant = None
    if knows_truth(table):
        options = [ANY, *QUADRANTS]
        quadrant = st.selectbox(
            "Network and Bayes set", options, **bound("quadrant", one_of(options)),
            help="large: more classes than the Bayes sets have on average",
        )  # fmt: skip
    text = None
    if table.texts is not None:
        text = st.text_input("Text contains", **bound("text", any_text)) or None
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
        text=text,
        exactly=classes_in_address("answer", table),
        two_of=classes_in_address("two_of", table),
        pair=classes_in_address("pair", table, 2),  # type: ignore[arg-type]
        quadrant=None if quadrant == ANY else quadrant,
    ), other


def knows_truth(table: wb.LogitTable) -> bool:
    """Whether a table knows its true posterior or what people voted."""
    return table.posterior is not None or table.votes is not None


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
    return lambda values: (
        len(values) == 2 and {*values} <= {*texts} and texts.index(values[0]) <= texts.index(values[1])
    )


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


def disagreeing(chosen_rule: ChosenRule) -> tuple[str | None, str | None]:
    """How the run disagrees with another, and with which."""
    titles = cached_data.comparable(chosen_rule.key)
    other = one_run("Disagrees with run", titles, "other") if titles else None
    if other is None:
        return None, None
    options = [ANY, *DISAGREEMENTS]
    how = st.selectbox("Disagreement", options, **bound("disagreement", one_of(options)))
    return (None, None) if how == ANY else (how, other)
