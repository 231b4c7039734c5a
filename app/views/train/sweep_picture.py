"""The picture of a sweep: every metric against what was varied, on the validation rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

import live
import workbench as wb
from drawing.figures import browser_content
from drawing.handout import handout
from session import cached_data, messages
from workbench.figures import Code, Figure
from workbench.figures.runs.learning import ACROSS
from workbench.metrics.sweeps import StoredSweep
from workbench.store.lru_store import LRUStore

PANELS_HIGH = 260  # pixels of a line of panels


@messages.friendly
def swept(name: str, sweep: StoredSweep, K: float, dark: bool, mark: float | None = None) -> None:
    """Every metric of a sweep against its knob, on the validation rows: a setting is chosen on these.

    `mark` is the value of the knob in use.
    """
    made, parts = prepared(*_named(sweep), K, dark, mark)
    with st.container(key=f"figure-{name}"):
        live.prepared_drawing(parts, key=f"drawing {name}")
        handout(name, None, lambda: made, dark)


def measured(sweep: StoredSweep, K: float) -> pd.DataFrame:
    """The summary of a sweep, with average-K sets."""
    return summary(*_named(sweep), K)


def _named(sweep: StoredSweep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys of its runs, and what was varied: by these it is cached."""
    return tuple(run.key for run in sweep.runs), tuple(sweep.varied)


@st.cache_data(show_spinner="Judging every run of the sweep…", max_entries=64)
def summary(keys: tuple[str, ...], varied: tuple[str, ...], K: float) -> pd.DataFrame:
    """The summary of the sweep that these runs are, with average-K sets."""
    knob, beside = (*varied, None)[:2]
    assert knob is not None
    return StoredSweep(knob, beside, tuple(map(LRUStore().open, keys))).summary(wb.AverageK(K))


@st.cache_resource(show_spinner="Drawing the sweep…", max_entries=64)
def prepared(
    keys: tuple[str, ...], varied: tuple[str, ...], K: float, dark: bool, mark: float | None = None
) -> tuple[Figure, dict[str, Any]]:
    """The picture of the sweep that these runs are, with average-K sets, and what the browser needs to draw it."""
    made = wb.figures.against_knob(summary(keys, varied, K), varied[0], split="val", mark=mark)
    made = dataclasses.replace(made, code=code(keys, varied, K, made))
    return made, browser_content(made, dark, height=80 + PANELS_HIGH * math.ceil(len(made.panels()) / ACROSS))


def code(keys: Sequence[str], varied: Sequence[str], K: float, figure: Figure) -> Code:
    """The code of a figure of a sweep, from opening its runs on; live heads are kept in the LRU store."""
    knob, beside = (*varied, None)[:2]
    lines = [
        f"keys = {[key[: cached_data.SHORT] for key in keys]}",
        f"sweep = StoredSweep({knob!r}, {beside!r}, tuple(LRUStore().open(key) for key in keys))",
        f"summary = sweep.summary(wb.AverageK({K!r}))",
    ]
    imports = ["from workbench.store.lru_store import LRUStore", "from workbench.metrics.sweeps import StoredSweep"]
    return figure.code.after(Code(setup=lines, imports=imports))
