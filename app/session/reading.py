"""What the app reads: the runs of the store, the files people bring, and what the sliders need of them.

Everything is cached under the key of a run, which is a text: Streamlit would take two equal-looking dataclasses of
different classes for the same thing. Cached objects are shared by all sessions, so nobody may change them.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

import workbench as wb
from workbench.datasets import load_spec
from workbench.figures.base import Figure, counted
from workbench.figures.code import Code
from workbench.lookup import allowed_modules
from workbench.sets import Rule, rule_from_text
from workbench.store import DEMO, Store, StoredRun
from workbench.store.checked import SHORT
from workbench.store.imported import keep_tables
from workbench.tables.formats import SUFFIXES
from workbench.workers import similar

TEST_TABLE = Code(setup=["table = test"])  # that of most figures of one table
# The linked sliders, and the rule that each of them moves: one threshold, reached in three ways.
SLIDERS: dict[str, type[Rule]] = {"K": wb.AverageK, "threshold": wb.Threshold, "confidence": wb.LAC}
FILE_TYPES = tuple(suffix.removeprefix(".") for suffix in SUFFIXES)
FILE_HELP = "Scores, one row per example and one column per class, with labels. It is kept as a run on this machine."


@dataclass(frozen=True)
class Brought:
    """A file that became a run: its short key, and what was understood."""

    key: str
    understood: str


def runs() -> list[StoredRun]:
    """All runs that have rows to fit on and rows to judge; not cached, because training and `workbench import` add some."""
    return [run for run in Store().runs() if {"val", "test"} <= run.tables.keys()]


def former_keys(runs: list[StoredRun]) -> dict[str, str]:
    """Short key that a run had in an earlier version → its short key of today."""
    return {former[:SHORT]: run.key[:SHORT] for run in runs for former in run.record.formerly}


def unreadable() -> dict[str, str]:
    """Short key → what is wrong, of the runs that cannot be read."""
    return {key[:SHORT]: why for key, why in Store().unreadable().items()}


def opens(key: str) -> bool:
    """Whether the tables of a run can be read: what is wrong with them, only reading them tells."""
    try:
        return bool(in_words(key))
    except ValueError:
        return False


@st.cache_resource(show_spinner="Opening the run…", max_entries=8)
def run(key: str) -> StoredRun:
    """The run of a short key."""
    return Store().open(key)


@st.cache_resource(show_spinner="Sorting the probabilities, once for every K…", max_entries=16)
def index(key: str, split: str) -> wb.SetIndex:
    """The index of one table of a run. It is kept beside the table; the runs of the package are never written to."""
    stored = run(key)
    table = stored.tables[split]
    return wb.SetIndex(table) if stored.path.parent == DEMO else wb.SetIndex.open(stored.path / split)


def sets(key: str, held: str, value: float) -> wb.PredictionSets:
    """The sets of the test rows at a place of the sliders: `held` says which slider gave the value."""
    return sets_by(key, repr(SLIDERS[held](**{held: value})))


def sets_by(key: str, rule: str) -> wb.PredictionSets:
    """The sets of the test rows by a rule, written as Python prints it and fitted on the validation rows."""
    return _formed(key, rule)[0]


def warnings_of(key: str, rule: str) -> list[str]:
    """What the library warned of when the rule was fitted."""
    return _formed(key, rule)[1]


@st.cache_resource(show_spinner="Forming the sets…", max_entries=16)
def _formed(key: str, rule: str) -> tuple[wb.PredictionSets, list[str]]:
    tables = run(key).tables
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sets = rule_from_text(rule).fit(tables["val"]).sets(tables["test"])
    return sets, [str(warning.message) for warning in caught]


@st.cache_resource(show_spinner="Drawing the photographs…", max_entries=2)
def dataset(key: str) -> wb.Dataset | None:
    """The data a run was trained on, made again from its recipe; None if it was given as arrays."""
    spec = run(key).dataset_spec
    return None if spec is None else load_spec(spec, allowed=allowed_modules())


def photographs(key: str) -> Any:
    """The images of the test rows, from the table or from the data; None if there are none.

    An array, or what can be indexed like one: the images of a folder are read when they are asked for.
    """
    test = run(key).tables["test"]
    images: Any = test.images
    if images is None and (data := dataset(key)) is not None:
        images = data.test.inputs
    return images if images is not None and images.ndim == 4 and len(images) == test.n else None


def features_missing(key: str) -> bool:
    """Whether what the network of a run sees in its training pictures could be known, but nobody has computed it."""
    stored = run(key)
    knowable = similar.can_be_seen(stored) and stored.tables["test"].features is not None
    return knowable and photographs(key) is not None and similar.training_features(stored) is None


@st.cache_resource(show_spinner="Looking at the training pictures through this network, once…", max_entries=4)
def training_features(key: str) -> Any:
    """What the network of a run sees in its training rows, computed if it must be; None if it cannot be known."""
    if features_missing(key):
        similar.compute_training_features(run(key))
    return similar.training_features(run(key))


@st.cache_resource(show_spinner="Reading the file…", max_entries=4)
def bring(
    file_id: str,
    name: str,
    _content: bytes,
    scores: str | None = None,
    labels: str | None = None,
    link: str | None = None,
) -> Brought:
    """Keep an uploaded file as a run. `file_id` stands for the content, which is too large to compare each time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(_content)
        table = wb.import_table(path, scores=scores, labels=labels, link=link)
        kept = keep_tables(table, title=Path(name).stem)
    return Brought(kept.key[:SHORT], f"{table.note}. {kept.record.note}")


def in_words(key: str) -> str:
    """The whole title of a run, how many rows and classes it has, and what was noted about its splits."""
    tables = run(key).tables
    sizes = " and ".join(
        f"{counted(tables[split].n)} {name}" for split, name in (("val", "validation"), ("test", "test"))
    )
    classes = counted(tables["test"].n_classes, "class", "classes")
    return f"{run(key).title}: {sizes} rows, {classes}. {run(key).record.note}"


@st.cache_resource(show_spinner="Opening the run…", max_entries=256)
def _rows(key: str) -> str | None:
    """A text that two runs share if their test tables are of the same rows and classes; None without labels.

    None also for a table that cannot be read: the page of that run says why, and those of others do without it.
    """
    try:
        test = run(key).tables["test"]
    except ValueError:
        return None
    if test.labels is None:
        return None
    return f"{test.scores.shape} {hashlib.sha256(test.labels.tobytes()).hexdigest()}"


def comparable(key: str) -> dict[str, str]:
    """Short key → title of the other runs on the same test rows."""
    others = {other.key[:SHORT]: other.title for other in runs() if other.key[:SHORT] != key}
    if (rows := _rows(key)) is None:
        return {}
    return {other: title for other, title in others.items() if _rows(other) == rows}


def code(key: str, figure: Figure, other: str | None = None, table: Code = TEST_TABLE) -> Code:
    """The code of a figure, from opening the run (and the other run, if the figure compares two) on.

    `table` gives the table that a figure of one table shows.
    """
    lines = [f"run = Store().open({key!r})", 'val, test = run.tables["val"], run.tables["test"]']
    if other is not None:
        lines.append(f"other = Store().open({other!r})")
        lines.append('other_val, other_test = other.tables["val"], other.tables["test"]')
    opened = Code(setup=lines, imports=["from workbench.store import Store"])
    given = table.after(opened) if "table" in figure.code.needs else opened
    return figure.code.after(Code(setup=[""]).after(given))
