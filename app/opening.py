"""From one view to another: what was chosen stays chosen, and what is clicked in a picture opens its rows in Samples.

A new page takes over what the old one left behind before any of its widgets is made. The address would not do: Streamlit
drops what the widgets of the old page wrote there, and prefers what a widget of the same name said last.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NoReturn

import streamlit as st

from reading import SLIDERS
from rules import KEPT, ONE_THRESHOLD
from workbench.figures.reliability import Reliability

LARGEST = 50  # the last size that can be asked for; it stands for all larger ones, as in the histograms
DOTS, BARS = 2, 3  # traces of a reliability diagram
ROWS = ("size", "verdict", "label", "labels", "holds", "by", "group", "sure", "other", "disagreement", "page")
Rows = dict[str, Any]  # what `open_samples` takes


def arrive(view: str) -> None:
    """Take over, before a page is drawn, what another page asked of it, or else the rule that was chosen last."""
    before, st.session_state["view"] = st.session_state.get("view"), view
    asked = st.session_state.pop("asked", None)
    if asked is None and before not in (None, view) and "rule" not in st.query_params:
        asked = st.session_state.get(KEPT)
    if asked is not None:
        st.session_state.update(asked)
        st.rerun()  # only what was said in an earlier run is written into the address


def go(page: Any, asked: dict[str, Any], **query: str) -> NoReturn:
    """Go to another page, whose widgets then say what is `asked`; `query` is what no widget says."""
    st.session_state["asked"] = asked
    st.switch_page(page, query_params=query)


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
) -> NoReturn:
    """Go to the Samples view of a run with these rows chosen: `open_samples(key, sizes=(3, 3))` for the bar of size 3.

    `sizes` are the smallest and the largest set; `verdict` is "hit" or "miss"; `label` the name of the true class,
    `labels` how many there are ("none", "at least one" or "several") and `holds` names of classes in the set; `by` and
    `group` are a grouping of the rows and one of its groups, such as "organ" and "leaf"; `sure` are the bounds of the
    largest probability, as of a bin of a reliability diagram; `other` is the short key of another run and `disagreement`
    one of `workbench.rows.DISAGREEMENTS`; `row` opens one row. The sets are those of the present page.
    """
    from views.samples import page  # only here: that view opens rows itself

    given = {
        "size": None if sizes is None else tuple(min(size, LARGEST) for size in sizes),
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
    for name in ROWS:
        st.session_state.pop(name, None)  # what was asked for at an earlier visit
    sliders = {name: st.query_params[name] for name in SLIDERS if name in st.query_params}
    rule = dict(st.session_state.get(KEPT) or {"rule": ONE_THRESHOLD})
    if sliders and "rule" not in st.query_params:
        rule["rule"] = ONE_THRESHOLD  # the present page knows no other
    asked = {"run": key, **rule, **{name: value for name, value in given.items() if value is not None}}
    go(st.Page(page, url_path="samples"), asked, run=key, **sliders, **({} if row is None else {"row": str(row)}))


def rows_of_class(key: str, clicked: dict[str, Any]) -> Rows | None:
    """The rows of a class that was clicked; None if a bar stands for many classes."""
    return None if clicked["data"] is None else {"key": key, "label": html.unescape(clicked["data"][0])}


def rows_of_bin(key: str, clicked: dict[str, Any], diagram: Reliability) -> Rows | None:
    """The rows of a bin of a reliability diagram; None if neither its dot nor its bar was clicked."""
    if clicked["trace"] not in (DOTS, BARS):
        return None
    low, high = diagram.points()[["low", "high"]].iloc[clicked["point"]].tolist()
    return {"key": key, "sure": (low, high)}
