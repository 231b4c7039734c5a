"""What the app reads: the runs of the store, the files people bring, and what the sliders need of them.

Everything is cached under the key of a run, which is a text: Streamlit would take two equal-looking dataclasses of
different classes for the same thing. Cached objects are shared by all sessions, so nobody may change them.
"""

from __future__ import annotations

import contextlib
import glob
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

import workbench as wb
from workbench.datasets import load_spec
from workbench.figures.base import Figure, counted
from workbench.figures.code import Code
from workbench.lookup import allowed_modules
from workbench.sets import Rule, rule_from_text
from workbench.store import DEMO, Store, StoredRun
from workbench.store.checked import SHORT
from workbench.store.imported import keep_tables
from workbench.store.marks import pinned_first
from workbench.store.naming import names
from workbench.store.shelf import Shelf
from workbench.tables.formats import SUFFIXES
from workbench.workers import similar

TEST_TABLE = Code(setup=["table = test"])  # that of most figures of one table
# The linked sliders, and the rule that each of them moves: one threshold, reached in three ways.
SLIDERS: dict[str, type[Rule]] = {"K": wb.AverageK, "threshold": wb.Threshold, "confidence": wb.LAC}
BROUGHT, UPLOADS = "brought", 16  # of a session: keys of files it brought; of all sessions: how many there are
LOOKING = ThreadPoolExecutor(1, thread_name_prefix="training features")  # one network at a time looks at pictures
WARNINGS = threading.Lock()  # who hears of warnings is settled for all threads at once: one at a time may change it
FILE_TYPES = tuple(suffix.removeprefix(".") for suffix in SUFFIXES)
FILE_HELP = (
    "Scores, one row per example and one column per class, with labels. The file stays on this machine, and is forgotten "
    "unless you keep it."
)


@dataclass(frozen=True)
class Brought:
    """A file that became a run: its key, and what was understood."""

    key: str
    understood: str


def runs() -> list[StoredRun]:
    """All runs that have rows to fit on and rows to judge; training and `workbench import` add some at any time.

    First the files that this session has brought and not kept.
    """
    stored = _listed(*_place())[0]
    known = {run.key for run in stored}
    return [*(uploads().open(key) for key in brought() if uploads().has(key) and key not in known), *stored]


def at_first() -> list[str]:
    """Short keys in the order in which a page would open them: what is pinned, the demo, and then the newest."""
    ranked = sorted(runs(), key=lambda run: run.path.parent != DEMO)
    return [run.short for run in pinned_first(Store(), ranked)]


def uploads() -> Shelf:
    """Where files that people bring are, until they ask to keep them or newer ones push them off."""
    return Shelf(size=UPLOADS, folder="brought")


def brought() -> list[str]:
    """Keys of the files that this session has brought, the last one first."""
    return st.session_state.get(BROUGHT, []) if get_script_run_ctx() is not None else []


def is_brought(key: str) -> bool:
    """Whether a run, by its short key, is a file that nobody has asked to keep."""
    return any(run.short == key and run.path.parent == uploads().root for run in runs())


def take_up(asked: str) -> None:
    """Add a file that was brought to those of this session: somebody may have loaded the page again, or shared its link."""
    found = [path.name for path in uploads().root.glob(f"{glob.escape(asked)}*") if uploads().has(path.name)]
    if len(found) == 1 and found[0] not in brought():
        st.session_state[BROUGHT] = [found[0], *brought()]


def keep(key: str) -> None:
    """Put a file that was brought, by its short key, into the store."""
    for run in [run for run in runs() if run.short == key]:
        uploads().keep(run.key)
    forget()


def forget() -> None:
    """Read all runs anew: one was renamed, kept or removed."""
    run.clear()


def former_keys(runs: list[StoredRun]) -> dict[str, str]:
    """Short key that a run had in an earlier version → its short key of today."""
    return {former[:SHORT]: run.key[:SHORT] for run in runs for former in run.record.formerly}


def unreadable() -> dict[str, str]:
    """Short key → what is wrong, of the runs that cannot be read."""
    return _listed(*_place())[1]


def _place() -> tuple[str, int]:
    """Where the runs are, and when one was last added, removed or replaced: each of these is one move in that folder."""
    root = Store().root
    return str(root), root.stat().st_mtime_ns if root.is_dir() else 0


@st.cache_resource(show_spinner="Looking for runs…", max_entries=2)
def _listed(root: str, changed: int) -> tuple[list[StoredRun], dict[str, str]]:
    """The runs of a store, and what is wrong with those that cannot be read: looking at all files of a thousand takes long."""
    store = Store(root)
    unreadable = {key[:SHORT]: why for key, why in store.unreadable().items()}
    return [run for run in store.runs() if {"val", "test"} <= run.tables.keys()], unreadable


def opens(key: str) -> bool:
    """Whether the tables of a run can be read: what is wrong with them, only reading them tells."""
    try:
        return bool(in_words(key))
    except ValueError:
        return False


@st.cache_resource(show_spinner="Opening the run…", max_entries=16)
def run(key: str) -> StoredRun:
    """The run of a short key."""
    found = [run.anew() for run in runs() if run.key.startswith(key)]
    return found[0] if len(found) == 1 else Store().open(key)


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


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """What is computed for later has nothing to say now."""
    with WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def warnings_of(key: str, rule: str) -> list[str]:
    """What the library warned of when the rule was fitted."""
    return _formed(key, rule)[1]


@st.cache_resource(show_spinner="Forming the sets at every place of the slider…", max_entries=4)
def sets_along(key: str, rules: tuple[str, ...]) -> list[wb.PredictionSets]:
    """The sets of the test rows by each of some rules."""
    tables = run(key).tables
    with unheard():  # the one that is chosen says what is wrong with it
        return [rule_from_text(rule).fit(tables["val"]).sets(tables["test"]) for rule in rules]


@st.cache_resource(show_spinner="Forming the sets…", max_entries=16)
def _formed(key: str, rule: str) -> tuple[wb.PredictionSets, list[str]]:
    tables = run(key).tables
    with WARNINGS, warnings.catch_warnings(record=True) as caught:
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


def training_features(key: str) -> Any:
    """What the network of a run sees in its training rows; None as long as nobody has computed it."""
    if (features := _seen(key)) is None:
        _seen.clear(key)
    return features


@st.cache_resource(show_spinner=False, max_entries=4)
def _seen(key: str) -> Any:
    return similar.training_features(run(key))


def awaits_features(key: str) -> bool:
    """Whether what the network of a run sees in its training pictures is being computed, which begins when it is asked.

    It takes seconds, and nobody waits for it: who asks looks again later. What went wrong is raised.
    """
    stored = run(key)
    knowable = similar.can_be_seen(stored) and stored.tables["test"].features is not None
    if not knowable or photographs(key) is None or training_features(key) is not None:
        return False
    looking = _looking(key)
    if looking.done():
        looking.result()
    return not looking.done()


@st.cache_resource(show_spinner=False, max_entries=16)
def _looking(key: str) -> Future[None]:
    """The one that computes the training features of a run."""
    return LOOKING.submit(similar.compute_training_features, run(key))


@st.cache_resource(show_spinner="Reading the file…", max_entries=4)
def bring(
    file_id: str,
    name: str,
    _content: bytes,
    scores: str | None = None,
    labels: str | None = None,
    link: str | None = None,
) -> Brought:
    """Make an uploaded file a run, on the shelf of uploads.

    `file_id` stands for the content, which is too large to compare each time.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(_content)
        table = wb.import_table(path, scores=scores, labels=labels, link=link)
        kept = keep_tables(table, title=Path(name).stem, store=uploads())
    uploads().forget()
    return Brought(kept.key, f"{table.note}. {kept.record.note}")


def in_words(key: str) -> str:
    """The whole name of a run, how many rows and classes it has, and what was noted about its splits."""
    tables = run(key).tables
    sizes = " and ".join(
        f"{counted(tables[split].n)} {name}" for split, name in (("val", "validation"), ("test", "test"))
    )
    classes = counted(tables["test"].n_classes, "class", "classes")
    return f"{run(key).name}: {sizes} rows, {classes}. {run(key).record.note}"


def comparable(key: str) -> dict[str, str]:
    """Short key → name of the other runs on the same test rows. Not one of their tables is opened to know."""
    return {other: name for other, name in on_the_same_rows(key).items() if other != key}


def on_the_same_rows(key: str) -> dict[str, str]:
    """Short key → what a run is called among those on the test rows of a run, which is one of them."""
    rows = {run.short: run.rows_of("test") for run in runs()}
    here = rows.get(key)
    return named(run for run in runs() if run.short == key or (here is not None and rows[run.short] == here))


def named(runs: Iterable[StoredRun]) -> dict[str, str]:
    """Short key → what each of these runs is called beside the others."""
    return names({run.short: run.record for run in runs})


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
