"""Samples: the rows themselves, with what was predicted for them and what is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import streamlit as st

import workbench as wb
from controls import row_filters, rules, slices
from controls.bar import WORDS_OF_SETS, introduce, tools
from controls.row_filters import HITS, LABELLED, MISSES, NO_LABEL, size_in_words
from drawing import photos, row_detail, row_map, row_pictures
from drawing.annotate import annotate
from session import cached_data, messages
from session.address import bound, one_of
from session.navigation import go_to
from session.sliced_runs import slice_of, whole
from workbench.figures import Code
from workbench.figures.base import counted
from workbench.metrics.row_map import description
from workbench.metrics.rows import OF_LABELS, ORDERS, RowFilter, in_order, listed
from workbench.sets.index import LARGEST_SIZE
from workbench.tables.groups import mean_of_present, means

ABOUT = "The test rows themselves. Filter them, and open one to see what the network confuses it with."
SHARED = ("by", "other")  # names of widgets here that other views have too


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
    text: str | None = None,
    quadrant: str | None = None,
    answer: Sequence[int] | None = None,
    two_of: Sequence[int] | None = None,
    pair: Sequence[int] | None = None,
    of_sliders: bool = False,
) -> NoReturn:
    """Go to this view of a run with these rows chosen: `open_samples(key, sizes=(3, 3))` for the bar of size 3.

    `sizes` are the smallest and the largest set; `verdict` is "hit" or "miss"; `label` the name of the true class,
    `labels` how many there are ("none", "at least one" or "several") and `holds` names of classes in the set; `by` and
    `group` are a grouping of the rows and one of its groups, such as "organ" and "leaf"; `sure` are the bounds of the
    largest probability, as of a bin of a reliability diagram; `other` is the short key of another run and `disagreement`
    one of `workbench.metrics.rows.DISAGREEMENTS`; `row` opens one row; `text` is a part of the text of a row and `quadrant`
    one of `workbench.metrics.against_bayes.QUADRANTS`; `answer`, `two_of` and `pair` are numbers of classes: all of the set,
    those of which it holds two, and the two likeliest. The sets are those of the rule that was chosen
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
        "quadrant": quadrant,
        "text": text,
    }
    for name, value in {**given, "page": None}.items():
        if value is None:
            st.session_state.pop(name, None)  # from an earlier visit
    sliders = {name: st.query_params[name] for name in (*cached_data.SLIDERS, "tau") if name in st.query_params}
    kept = st.session_state.get(rules.KEPT)
    rule = {"rule": rules.ONE_THRESHOLD} if of_sliders or kept is None else kept
    filled = {name: value for name, value in given.items() if value is not None}
    written = {name: _written(name, value) for name, value in filled.items() if name not in SHARED}
    query = {"run": key, **sliders, **written, **({} if row is None else {"row": str(row)})}
    numbers = {"answer": answer, "two_of": two_of, "pair": pair}
    query |= {name: row_filters.numbers_in_words(of) for name, of in numbers.items() if of is not None}
    go_to("samples", query, widgets={"run": key, **rule, **filled})


def open_rows(
    key: str, rows: RowFilter, table: wb.LogitTable, *, other: str | None = None, of_sliders: bool = False
) -> NoReturn:
    """Go to this view of a run with the rows that stand behind a part of a picture of its table.

    Of a run that is seen through a slice, these are the rows of the slice.
    """
    if (chosen := slice_of(key)) is not None:
        try:
            rows = rows.within(chosen[2])
        except ValueError as error:
            st.warning(messages.plain(f"These rows cannot be opened: {error}"), icon=":material/filter_alt_off:")
            st.stop()
    names = table.named_classes()
    by, group = rows.groups[0] if rows.groups else (None, None)
    open_samples(
        whole(key),
        sizes=rows.sizes,
        label=None if rows.label is None else names[rows.label],
        labels=None if rows.n_labels is None else NO_LABEL if rows.n_labels == (0, 0) else LABELLED,
        holds=sorted(names[member] for member in rows.holds),
        by=by,
        group=group,
        sure=rows.sure,
        other=None if other is None else whole(other),
        disagreement=rows.disagreement,
        verdict=None if rows.hit is None else HITS if rows.hit else MISSES,
        text=rows.text,
        quadrant=rows.quadrant,
        answer=rows.exactly,
        two_of=rows.two_of,
        pair=rows.pair,
        of_sliders=of_sliders,
    )


def _written(name: str, value: Any) -> str | list[str]:
    """A value, or several, as in an address."""
    if name == "size":
        return [size_in_words(size) for size in value]
    return [f"{each:g}" for each in value] if isinstance(value, tuple) else value


def page() -> None:
    """The view."""
    introduce("Samples", ABOUT, *WORDS_OF_SETS)
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    body(st.session_state["run"], st.context.theme.type == "dark")
    with st.expander("Label rows as sets", icon=":material/edit_note:"):
        annotate(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the controls."""
    row_filters.take_next()
    chosen_rule = rules.choose("samples", key)
    sets = chosen_rule.sets
    line = tools()
    with line:
        picture = row_pictures.choose(sets.table)
        st.toggle("Filter", key="show filters")
    with st.container(key="filters"):
        row_filter, other = row_filters.from_address(chosen_rule)
    row_filter, rows = row_filters.selected(chosen_rule, row_filter, other)
    with st.container(key="mapped"):
        left, right = st.container(key="map"), st.container(key="wall")
    with left, st.container(key="said", horizontal=True, gap="small", vertical_alignment="center"):
        # The plane also where it is not seen: a lasso is drawn in it.
        seen = picture == row_pictures.MAP
        with st.container(key="of-map" if seen else "unused", horizontal=True, gap="small", width="content"):
            plane, colour = row_map.controls(key, sets.table)
        inside = row_map.selected(key, plane)
        row_filters.chips(row_filter, inside)
        of_name = slices.named(sets)
        if (opened := slices.offer(row_filter, of_name, lasso=inside is not None)) is not None:
            row_filters.select_only(of_name[opened], sets.table)
    rows = rows if inside is None else rows[np.isin(rows, inside)]
    with right:
        st.markdown(found(sets, rows))
        with st.container(key="of-wall", horizontal=True, gap="small", vertical_alignment="center"):
            names = [name for name in ORDERS if sets.table.labels is not None or name not in OF_LABELS]
            order = st.selectbox("Order", names, width=190, **bound("order", one_of(names)))
            ordered = in_order(sets, rows, order)
            shown = photos.one_page(ordered)
    found_by = code_of_rows(chosen_rule, row_filter, other, plane)
    with line:
        take_away(chosen_rule, found_by, order, rows, shown)
    clicked = None
    with left:
        if picture == row_pictures.MAP:
            clicked = row_map.draw(chosen_rule, rows, plane, colour, dark)
        elif len(rows):
            drawn = row_pictures.draw(picture, chosen_rule, row_filter, rows, of_name, found_by, dark)
            row_filters.select(drawn, row_filter)
    with right:
        st.markdown(description(sets, rows))
        if len(shown) == 0:
            st.info("No test row is like that. Ask for less, or move K.", icon=":material/search_off:")
            return
        card = photos.on_cards(chosen_rule, shown, dark, key=f"samples {chosen_rule.channel}")
    row_detail.open_from_address(chosen_rule, card if clicked is None else clicked, ordered, dark)


def found(sets: wb.PredictionSets, rows: np.ndarray) -> str:
    """How many rows there are, and what their sets are like."""
    words = f"**{counted(len(rows))}** of {counted(len(sets), 'row')}"
    if len(rows) == 0:
        return words
    words += f" · mean size {sets.sizes[rows].mean():.2f}"
    rows = rows[sets.labelled[rows]]
    if len(rows) == 0:
        return words
    words += f" · {sets.hits[rows].mean():.1%} correct"
    if sets.table.many_labels:
        return words
    of_classes = means(sets.hits[rows], sets.table.checked_labels()[rows], sets.table.n_classes)
    return f"{words}, {mean_of_present(of_classes):.1%} mean over classes"


def take_away(chosen_rule: rules.ChosenRule, found_by: Code, order: str, rows: np.ndarray, shown: np.ndarray) -> None:
    """The code that finds the rows, and all of them as a file."""
    with st.popover("Show the code", icon=":material/code:", type="tertiary"):
        st.code(code(chosen_rule, found_by, order, shown), language="python", wrap_lines=True)
    st.download_button(
        "Rows (CSV)",
        lambda: listed(chosen_rule.sets, rows).to_csv(index=False),
        "rows.csv",
        "text/csv",
        type="tertiary",
        disabled=len(rows) == 0,
        on_click="ignore",
    )


def code_of_rows(chosen_rule: rules.ChosenRule, row_filter: RowFilter, other: str | None, plane: str) -> Code:
    """The library calls that find the rows: `sets` and `rows`."""
    imports = ["from workbench.metrics.rows import RowFilter", "from workbench.store import Store"]
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
    lines.append(f"rows = {row_filter!r}.rows({arguments})")
    if (polygon := row_map.lasso()) is not None:
        imports.append("from workbench.metrics.row_map import inside, positions")
        lines.append(f"rows = rows[inside(positions(run, {plane!r})[rows], {polygon})]")
    return Code(setup=lines, imports=imports)


def code(chosen_rule: rules.ChosenRule, found_by: Code, order: str, shown: np.ndarray) -> Code:
    """The library calls that find the rows, order them and, where there are photographs, draw those of the page."""
    imports = ["from workbench.metrics.rows import in_order"]
    lines = [f"rows = in_order(sets, rows, {order!r})"]
    test = chosen_rule.sets.table
    if len(shown) and any(getattr(test, name) is not None for name in (*test.TEXTS, "images")):
        lines.append(f"wb.figures.samples(sets, rows={shown.tolist()}).plot()")
    elif len(shown) and cached_data.photographs(chosen_rule.key) is not None:
        imports.append("from workbench.datasets import load_spec")
        images = "load_spec(run.dataset_spec).test.inputs"
        lines.append(f"wb.figures.samples(sets, {images}, rows={shown.tolist()}).plot()")
    return Code(setup=lines, imports=imports).after(found_by)
