"""From a picture to the rows behind it: what is chosen in a chart of any view opens in the Samples view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import streamlit as st

from reading import SLIDERS

LARGEST = 50  # the last size that can be asked for; it stands for all larger ones, as in the histograms


def samples_link(
    key: str,
    *,
    sizes: tuple[int, int] | None = None,
    verdict: str | None = None,
    label: str | None = None,
    holds: Sequence[str] = (),
    by: str | None = None,
    group: str | None = None,
    sure: tuple[float, float] | None = None,
    other: str | None = None,
    disagreement: str | None = None,
    row: int | None = None,
) -> dict[str, str | list[str]]:
    """The address of the Samples view of a run with these rows chosen, as the query of `st.page_link`.

    `sizes` are the smallest and the largest set; `verdict` is "hit" or "miss"; `label` the name of the true class and
    `holds` names of classes in the set; `by` and `group` are a grouping of the rows and one of its groups, such as "organ"
    and "leaf"; `sure` are the bounds of the largest probability, as of a bin of a reliability diagram; `other` is the short
    key of another run and `disagreement` one of `workbench.rows.DISAGREEMENTS`; `row` opens one row. The rule and its
    knobs are those of the present address.
    """
    kept = [name for name in st.query_params if name in SLIDERS or name.startswith("rule")]
    asked: dict[str, str | list[str] | None] = {
        "run": key,
        **{name: st.query_params[name] for name in kept},
        "size": None if sizes is None else [str(min(size, LARGEST)) for size in sizes],
        "verdict": verdict,
        "label": label,
        "holds": list(holds) or None,
        "by": by,
        "group": group,
        "sure": None if sure is None else [f"{bound:g}" for bound in sure],
        "other": other,
        "disagreement": disagreement,
        "row": None if row is None else str(row),
    }
    return {name: value for name, value in asked.items() if value is not None}


def open_samples(query: dict[str, str | list[str]]) -> NoReturn:
    """Go to the Samples view: `open_samples(samples_link(key, sizes=(3, 3)))` when somebody clicked on the bar of size 3."""
    from views.samples import page  # only here: that view opens rows itself

    st.switch_page(st.Page(page, url_path="samples"), query_params=query)
