"""From one view to another: what was chosen stays chosen, and what is clicked in a picture opens its rows in Samples.

What is asked of a new page is put into its address and into the state of its widgets. The address alone would not do:
Streamlit keeps out of it what widgets of the old page are bound to, and a default in it does not undo an earlier choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import streamlit as st

from controls.addressed import came_back
from controls.rules import KEPT, ONE_THRESHOLD, changed
from session.reading import SLIDERS
from workbench.knobs import shown
from workbench.metrics.rows import RowFilter
from workbench.sets.index import LARGEST_SIZE
from workbench.tables import LogitTable

NO_LABEL, LABELLED, SEVERAL = "none", "at least one", "several"  # labels of a row
# How the widgets of the Samples view are named that choose rows: those of no other view, and those others have too.
OF_SAMPLES = ("size", "verdict", "label", "labels", "holds", "group", "sure", "disagreement")
SHARED = ("by", "other", "page")
WITH_RULES = ("", "sets", "samples", "classes", "compare")  # views in which a rule can be chosen; "" is the first page


def arrive(page: Any) -> None:
    """Take over, before a page is drawn, what another page asked of it, or else the rule that was chosen last.

    Who goes back finds the rule that was chosen there.
    """
    view = page.url_path
    before, st.session_state["view"] = st.session_state.get("view"), view
    asked, address = st.session_state.pop("asked", None), {}
    arrived = before not in (None, view) and not came_back()
    if asked is None and view in WITH_RULES and arrived and "rule" not in st.query_params:
        asked = st.session_state.get(KEPT)
        address = {} if asked is None else changed(asked)
    if asked is not None:
        st.session_state.update(asked)
        # Once more: Streamlit writes into the address only what it knows from an earlier run.
        address |= {name: st.query_params.get_all(name) for name in st.query_params}
        st.switch_page(page, query_params=address)


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
    """Go to the Samples view of a run with these rows chosen: `open_samples(key, sizes=(3, 3))` for the bar of size 3.

    `sizes` are the smallest and the largest set; `verdict` is "hit" or "miss"; `label` the name of the true class,
    `labels` how many there are ("none", "at least one" or "several") and `holds` names of classes in the set; `by` and
    `group` are a grouping of the rows and one of its groups, such as "organ" and "leaf"; `sure` are the bounds of the
    largest probability, as of a bin of a reliability diagram; `other` is the short key of another run and `disagreement`
    one of `workbench.metrics.rows.DISAGREEMENTS`; `row` opens one row. The sets are those of the rule that was chosen
    last, or `of_sliders` where the present page knows no other.
    """
    from views.samples import page  # only here: that view opens rows itself

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
    for name in (*OF_SAMPLES, *SHARED):
        if given.get(name) is None:
            st.session_state.pop(name, None)  # what was asked for at an earlier visit
    sliders = {name: st.query_params[name] for name in SLIDERS if name in st.query_params}
    kept = st.session_state.get(KEPT)
    rule = {"rule": ONE_THRESHOLD} if of_sliders or kept is None else kept
    asked = {name: value for name, value in given.items() if value is not None}
    st.session_state["asked"] = {"run": key, **rule, **asked}
    written = {name: _written(name, value) for name, value in asked.items() if name in OF_SAMPLES}
    query = {"run": key, **sliders, **written, **({} if row is None else {"row": str(row)})}
    st.switch_page(st.Page(page, url_path="samples"), query_params=query)


def open_live_training(key: str, loss: Any) -> NoReturn:
    """Go to the live panel of the Train view, where a new head on the backbone of a run learns with this loss."""
    from views.train import LIVE, page  # only here: whoever opens rows need not train

    name = type(loss).__name__
    knobs = {f"live_{name}_{knob}": getattr(loss, knob) for knob in loss.knobs()}
    st.session_state["asked"] = {"run": key, "train": LIVE, "live_loss": name, **knobs}
    written = {knob: shown(value) for knob, value in knobs.items()}
    st.switch_page(st.Page(page, url_path="train"), query_params={"run": key, **written})


def _written(name: str, value: Any) -> str | list[str]:
    """A value, or several, as in an address."""
    if name == "size":
        return [size_in_words(size) for size in value]
    return [f"{each:g}" for each in value] if isinstance(value, tuple) else value


def size_in_words(size: int) -> str:
    """The size of a set as it is chosen: the last stands for all larger ones."""
    return f"{size}+" if size == LARGEST_SIZE else str(size)


def open_rows(
    key: str, rows: RowFilter, table: LogitTable, *, other: str | None = None, of_sliders: bool = False
) -> NoReturn:
    """Go to the Samples view of a run with the rows that stand behind a part of a picture of its table."""
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
