"""Slices: selections of rows with a name, in the address of every view as `slice`."""

from __future__ import annotations

import json

import streamlit as st

import workbench as wb
from controls.row_filters import selections
from session import cached_data, messages
from session.address import bound, drop, one_of
from session.sliced_runs import APART, parsed, through
from workbench.metrics.rows import RowFilter

SLICES = "slice"  # in the address, once for each; of a session, all of them
MOST, LONGEST = 12, 40  # slices; letters of a name
SHOWN = "slice that is shown"  # of a session, by its name
ROWS, ALL_ROWS = "rows", "all rows"  # in the address, the name of the slice that is shown; none
ABOUT_LEFT_OUT = (
    "Slices that ask for sets, such as the missed rows, change with the slider, so they are shown in Samples and Compare only; "
    "one without a row that has a label is not shown either."
)


def carry() -> None:
    """Write the slices of the session into the address of the view; what an address asks for replaces them."""
    if SLICES in st.query_params:
        st.session_state[SLICES] = st.query_params.get_all(SLICES)
    elif st.session_state.get(SLICES):
        st.query_params[SLICES] = st.session_state[SLICES]


def named(sets: wb.PredictionSets) -> dict[str, RowFilter]:
    """Name → what asks for the rows, of the slices that this table can have; the others leave the address."""
    texts = st.query_params.get_all(SLICES)
    known = {text: read(text, sets) for text in texts}
    if None in known.values() or len(known) < len(texts):
        drop(SLICES)
        keep([text for text, asked in known.items() if asked is not None])
    return {asked[0]: asked[1] for asked in known.values() if asked is not None}


def read(text: str, sets: wb.PredictionSets) -> tuple[str, RowFilter] | None:
    """The name of a slice and what asks for its rows; None for what no such table has."""
    try:
        name, given = parsed(text)
        given.rows(sets)
    except (AttributeError, IndexError, TypeError, ValueError):
        return None
    return (name, given) if 0 < len(name) <= LONGEST and given.given() else None


def written(name: str, asked: RowFilter) -> str:
    """A slice as it stands in the address."""
    return f"{name}{APART}{json.dumps(asked.given(), separators=(',', ':'))}"


def choose_rows(known: dict[str, RowFilter], help: str | None = None) -> str | None:
    """The slice whose rows a page shows, by its name, in the address as `rows`; None: all rows."""
    names = [ALL_ROWS, *known]
    chosen = st.selectbox("Rows", names, width=230, help=help, **bound(ROWS, one_of(names)))
    asked = known.get(chosen)
    st.session_state[SHOWN] = None if asked is None or asked.needs_sets else chosen
    return None if asked is None else chosen


def last_slice() -> tuple[dict[str, str], dict[str, str]] | None:
    """The slice that was shown last, as state of its widget and as it stands in the address; None: all rows."""
    name = st.session_state.get(SHOWN)
    if name is None or not any(text.startswith(f"{name}{APART}") for text in st.session_state.get(SLICES, [])):
        return None
    return {ROWS: name}, {ROWS: name}


def choose(key: str) -> str:
    """The key of a run, seen through the slice that is chosen; a chip says which, and leaves it.

    Without a slice nothing is drawn. One that asks for sets selects other rows wherever the slider stands: it is left out.
    """
    if SLICES not in st.query_params:
        return key
    whole = cached_data.sets_by(key, repr(wb.TopK(1)))
    known = named(whole)
    usable = {name: asked for name, asked in known.items() if not asked.needs_sets and labelled(asked, whole)}
    if not usable:
        return key
    name = choose_rows(usable, None if len(usable) == len(known) else ABOUT_LEFT_OUT)
    if name is None:
        return key
    n = len(usable[name].rows(whole))
    words = f"slice {messages.plain(name)}, n = {n}"
    st.button(words, icon=":material/close:", key="chip slice", on_click=leave, help="Show all rows")
    return through(key, written(name, usable[name]))


def labelled(asked: RowFilter, sets: wb.PredictionSets) -> bool:
    """Whether a slice has rows, with labels where the table has labels."""
    rows = asked.rows(sets)
    return len(rows) > 0 and (sets.table.labels is None or bool(sets.labelled[rows].any()))


def leave() -> None:
    """Show all rows."""
    st.session_state[ROWS] = ALL_ROWS


def keep(texts: list[str]) -> None:
    """Make these the slices of the session and of the address."""
    st.session_state[SLICES] = texts[:MOST]
    if texts:
        st.query_params[SLICES] = texts[:MOST]
    else:
        st.query_params.pop(SLICES, None)


def offer(asked: RowFilter, slices: dict[str, RowFilter], *, lasso: bool) -> str | None:
    """Name the present selection, open or forget those with a name. Returns the name of the one to open, if any."""
    opened = None
    with st.popover(f"Slices ({len(slices)})" if slices else "Slices", icon=":material/bookmark:", type="tertiary"):
        words = "; ".join(f"{name}: {value}" for name, value in selections(asked).items())
        if lasso or asked.disagreement is not None or not words:
            st.caption(
                "Filter the rows, and the selection can have a name. A lasso or another run cannot be part of it."
            )
        else:
            with st.form("name", border=False, clear_on_submit=True):
                st.caption(messages.plain(words))
                name = st.text_input("Name of this slice", max_chars=LONGEST, placeholder="dark leaves")
                name = name.replace("~", " ").strip()
                if st.form_submit_button("Keep", icon=":material/bookmark_add:") and name:
                    keep([written(*each) for each in {**slices, name: asked}.items()])
                    st.rerun()
        for place, name in enumerate(slices):
            with st.container(horizontal=True, key=f"kept {place}", vertical_alignment="center"):
                if st.button(messages.plain(name), icon=":material/filter_alt:", key=f"open slice {place}"):
                    opened = name
                if st.button("Forget", key=f"forget slice {place}", type="tertiary"):
                    keep([written(*each) for each in slices.items() if each[0] != name])
                    st.rerun()
    return opened
