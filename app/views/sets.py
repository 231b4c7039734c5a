"""Sets: move K or the threshold and see sizes, accuracy, classes and photographs follow."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

import live
import messages
import moving
import photos
import reading
import rules
import workbench as wb
from drawings import drawn
from handout import handout
from places import compact, places
from workbench.figures import Figure
from workbench.figures.sizes import MOST_GROUPS
from workbench.groups import rows_by

ALL_ROWS = "all rows"


def page() -> None:
    """The view."""
    st.title("Sets", anchor=False)
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    st.markdown(
        "A set holds few classes when a row is clear and more when it is ambiguous. Every class whose probability reaches one "
        "threshold is in: K, or a promised coverage, fixes it on the validation rows. All pictures are of the test rows."
    )
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the controls. A fragment: releasing a slider runs this and nothing else.

    The key of the run also names the channel of the moving parts, so that no part ever follows another run's sliders.
    """
    answer = rules.answer("sets", key)
    figures(answer, dark)
    photos.wall(answer, dark)


def figures(answer: rules.Answer, dark: bool) -> None:
    """The pictures, each with its code and its data."""
    index = reading.index(answer.key, "test")
    labelled = index.table.labels is not None
    if not labelled:
        st.info("These rows have no labels: there are sizes to show, but no accuracy.", icon=":material/label_off:")
    by = grouping(index.table)
    makers: dict[str, Callable[[], Figure]] = {"sizes": lambda: wb.figures.set_sizes(answer.sets, by=by)}
    if labelled:
        makers |= {
            "curve": lambda: wb.figures.accuracy_against_size(index, answer.sets),
            "classes": lambda: wb.figures.per_class(answer.sets),
            "reliability": lambda: wb.figures.reliability(index.table),
        }
    with st.container(key="figures"):
        for name, make in makers.items():
            if answer.row is None:
                drawn(name, answer.key, make, dark)
            else:
                with st.container(key=f"figure-{name}"):
                    picture(name, answer.key, by if name == "sizes" else None, make, dark)


@messages.friendly
def picture(name: str, key: str, by: str | None, make: Callable[[], Figure], dark: bool) -> None:
    """One picture that follows the sliders, with its code; if it fails, the others stay."""
    live.figure(key, **at_every_place(name, key, by, dark)._asdict(), key=f"{name} {key}")
    handout(name, key, make, dark)


def grouping(table: wb.LogitTable) -> str | None:
    """By what the histogram of sizes is split: shot groups, groups of classes, or an attribute of the rows."""
    names = list(table.attributes or {})
    if table.labels is not None and not table.many_labels:
        names = ["shots"] * (table.class_counts is not None) + ["groups"] * (table.groups is not None) + names
    few = [name for name in names if 1 < len(rows_by(table, name)[1]) <= MOST_GROUPS]
    if not few:
        return None
    by = st.segmented_control(
        "Sizes of the sets of", [ALL_ROWS, *few], default=ALL_ROWS, required=True, key="by", bind="query-params"
    )
    return None if by == ALL_ROWS else by


@st.cache_resource(show_spinner="Drawing…", max_entries=64)
def at_every_place(name: str, key: str, by: str | None, dark: bool) -> moving.Moving:
    """A picture as it is sent to the browser, with all its moves. It does not depend on where the sliders stand."""
    index = reading.index(key, "test")
    if name == "curve":
        return moving.curve(wb.figures.accuracy_against_size(index), compact(key, None), dark)
    if name == "reliability":
        return moving.still(wb.figures.reliability(index.table), dark)
    sets = reading.sets(key, "K", float(places(key).K_values[0]))
    if name == "classes":
        return moving.classes(wb.figures.per_class(sets), compact(key, None), dark)
    return moving.sizes(wb.figures.set_sizes(sets, by=by), compact(key, by), by is not None, dark)
