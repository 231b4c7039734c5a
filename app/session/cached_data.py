"""Data of the app, cached: the runs of the store, uploaded files, and the indexes of the sliders.

Everything is cached under the key of a run, which is a text: Streamlit would take two equal-looking dataclasses of
different classes for the same thing. Cached objects are shared by all sessions and must not be changed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

import workbench as wb
from session.sliced_runs import slice_of, whole
from streamlit_patches import in_session
from workbench.datasets import load_spec
from workbench.figures.base import Figure, counted
from workbench.figures.data.row_pictures import row_pictures
from workbench.figures.snippet import Code
from workbench.files.atomic import held_folder, remove, remove_leftovers
from workbench.files.checksums import SHORT
from workbench.metrics.row_texts import largest_features
from workbench.sets import Rule, rule_from_text
from workbench.sets.prevalence import AdjustedTable, class_weights
from workbench.store import DEMO, Store, StoredRun
from workbench.store.imported_tables import keep_tables
from workbench.store.lru_store import LRUStore
from workbench.store.run_titles import names
from workbench.store.tags import pinned_first
from workbench.tables.listed_classes import ListedClasses, read_listed
from workbench.trusted_imports import allowed_modules
from workbench.warning_capture import captured_warnings
from workbench.workers import nearest_neighbours

TEST_TABLE = Code(setup=["table = test"])  # that of most figures of one table
# The linked sliders, and the rule that each of them moves: one threshold, reached in three ways.
SLIDERS: dict[str, type[Rule]] = {"K": wb.AverageK, "threshold": wb.Threshold, "confidence": wb.LAC}
Rows = tuple[int, int, str, str | None]  # of a test table: how many rows and classes, and hashes of its labels and ids
BROUGHT, UPLOADS = "brought", 16  # of a session: keys of files it brought; of all sessions: how many there are
_USED: Counter[str] = Counter()  # key of an upload → sessions that use it
AWAY = 120.0  # seconds an upload outlives its session, as long as Streamlit waits for a lost connection
_CLAIMED: dict[str, str] = {}  # root of a store → the folder in it that holds the uploads of this server
HELD, CLAIMING = contextlib.ExitStack(), threading.Lock()  # these folders, locked until the server ends, then removed
LOOKING = ThreadPoolExecutor(1, thread_name_prefix="training features")  # one network at a time looks at pictures
FILE_HELP = (
    "Scores, one row per example and one column per class, with labels; or the best few classes of each row, sets made "
    "elsewhere, votes of annotators. The file stays on this machine, and is forgotten unless you keep it."
)


Data = (
    wb.PartialTable | ListedClasses | pd.DataFrame
)  # of a file that is not a table of all scores: sets are listed classes


@dataclass(frozen=True)
class UploadedRun:
    """A file that became a run: its key, and what was understood."""

    key: str
    understood: str


@dataclass(frozen=True)
class OtherData:
    """A file that is not a run, for it lacks the scores of some classes: its data, and what was understood."""

    data: Data
    understood: str


def runs() -> list[StoredRun]:
    """All runs that have rows to fit on and rows to judge; training and `workbench import` add some at any time.

    First the uploads of this session that are not kept.
    """
    stored = _listed(*_place())[0]
    known = {run.key for run in stored}
    return [*(uploads().open(key) for key in session_uploads() if uploads().has(key) and key not in known), *stored]


def at_first() -> list[str]:
    """Short keys in the order in which a page would open them: what is pinned, the demo, and then the newest."""
    ranked = sorted(runs(), key=lambda run: run.path.parent != DEMO)
    return [run.short for run in pinned_first(Store(), ranked)]


def uploads() -> LRUStore:
    """LRU store of uploads, until they are kept, newer ones replace them, or the server ends."""
    return LRUStore(size=UPLOADS, folder=_CLAIMED.get(str(Store().root), "uploads"))


def claim_uploads() -> LRUStore:
    """The uploads of this server, in a folder that is locked while its process lives. What other servers left is removed."""
    root = str(Store().root)
    with CLAIMING:
        if root not in _CLAIMED:
            parent = Store(root).inside("uploads")
            parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(parent)
            folder = HELD.enter_context(held_folder(parent))
            HELD.callback(shutil.rmtree, folder, ignore_errors=True)
            _CLAIMED[root] = folder.relative_to(root).as_posix()
    return uploads()


def session_uploads() -> list[str]:
    """Keys of the files that this session uploaded, the last one first."""
    return st.session_state.get(BROUGHT, []) if in_session() else []


def is_upload(key: str) -> bool:
    """Whether a run, by its short key, is an upload that is not kept."""
    return any(each.startswith(key) and not Store().has(each) for each in session_uploads())


def take_up(requested: str) -> None:
    """Add an upload to those of this session: the page was loaded again, or its link was shared.

    The whole short key is needed, which only the content of a file gives: a part of it could be guessed.
    """
    known = {key[:SHORT]: key for key in uploads().stored_keys()}
    if requested[:SHORT] in known and known[requested[:SHORT]] not in session_uploads():
        st.session_state[BROUGHT] = [known[requested[:SHORT]], *session_uploads()]
    for key in session_uploads():
        _in_use(key)


@st.cache_resource(show_spinner=False, scope="session", on_release=lambda key: _release(key))
def _in_use(key: str) -> str:
    """Say that this session uses an upload; when no session has done so for `AWAY` seconds, it is removed."""
    _USED[key] += 1
    return key


def _release(key: str) -> None:
    """A page that is loaded again, or loses its connection, releases its upload and asks for it once more."""
    _USED[key] -= 1
    waiting = threading.Timer(AWAY, _remove_unused, (key,))
    waiting.daemon = True
    waiting.start()


def _remove_unused(key: str) -> None:
    if not _USED[key]:
        with contextlib.suppress(OSError):
            remove(uploads().root / key)


def keep(key: str) -> None:
    """Put a file that was brought, by its short key, into the store."""
    for run in [run for run in runs() if run.short == key]:
        uploads().keep(run.key)
    forget()


def forget() -> None:
    """Read all runs anew: one was renamed, kept or removed."""
    run.clear()


def unreadable() -> dict[str, str]:
    """Short key → what is wrong, of the runs that cannot be read."""
    return _listed(*_place())[1]


def _place() -> tuple[str, int]:
    """The folder of the runs and its modification time: adding, removing or replacing a run is one move in it."""
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
    """The run of a short key, or of such a key with a slice: then its test table has only the rows of the slice."""
    short = whole(key)
    found = [run.anew() for run in runs() if run.key.startswith(short)]
    stored = found[0] if len(found) == 1 else Store().open(short)
    if (chosen := slice_of(key)) is not None:
        test = stored.tables["test"].slice(slice_rows(key), name=chosen[1])
        vars(stored)["tables"] = {"val": stored.tables["val"], "test": test}  # in the place of those on disk
    return stored


@st.cache_data(show_spinner=False, max_entries=64)
def slice_rows(key: str) -> np.ndarray:
    """The numbers of the rows that a key selects in the test table of its run: those of its slice, or all."""
    if (chosen := slice_of(key)) is None:
        return np.arange(run(key).tables["test"].n)
    origin, _, row_filter = chosen
    return row_filter.rows(sets_by(origin, repr(wb.TopK(1))))  # a filter that needs no sets takes any


@st.cache_resource(show_spinner="Sorting the probabilities, once for every K…", max_entries=64)
def index(key: str, split: str, tau: float = 0) -> wb.SetIndex:
    """The index of one table of a run, its probabilities divided by the class shares to the power τ.

    At τ = 0 it is kept beside the table; the runs of the package are never written to.
    """
    if split == "val" and key != whole(key):
        return index(whole(key), split, tau)
    stored = run(key)
    table = stored.tables[split]
    if (weights := class_weights(table, tau)) is not None:
        return wb.SetIndex(AdjustedTable.of(table, weights))
    on_disk = stored.path.parent != DEMO and key == whole(key)
    return wb.SetIndex.open(stored.path / split) if on_disk else wb.SetIndex(table)


def sets(key: str, held: str, value: float) -> wb.PredictionSets:
    """The sets of the test rows at a place of the sliders: `held` says which slider gave the value."""
    return sets_by(key, repr(SLIDERS[held](**{held: value})))


def sets_by(key: str, rule: str) -> wb.PredictionSets:
    """The sets of the test rows by a rule, written as Python writes it and fitted on the validation rows."""
    return _formed(key, rule)[0]


def warnings_of(key: str, rule: str) -> list[str]:
    """The warnings of the library when the rule was fitted."""
    return _formed(key, rule)[1]


@st.cache_resource(show_spinner="Forming the sets at every place of the slider…", max_entries=4)
def sets_along(key: str, rules: tuple[str, ...]) -> list[wb.PredictionSets]:
    """The sets of the test rows by each of some rules."""
    tables = run(key).tables
    with captured_warnings():  # the one that is chosen says what is wrong with it
        return [rule_from_text(rule).fit(tables["val"]).sets(tables["test"]) for rule in rules]


@st.cache_resource(show_spinner="Forming the sets…", max_entries=64)
def _formed(key: str, rule: str) -> tuple[wb.PredictionSets, list[str]]:
    tables = run(key).tables
    with captured_warnings() as messages:
        sets = rule_from_text(rule).fit(tables["val"]).sets(tables["test"])
    return sets, messages


def dataset(key: str) -> wb.Dataset | None:
    """The data a run was trained on, made again from its recipe; None if it was given as arrays."""
    spec = run(key).dataset_spec
    return None if spec is None else _dataset(json.dumps(spec, sort_keys=True))


@st.cache_resource(show_spinner="Loading the data…", max_entries=4)
def _dataset(spec: str) -> wb.Dataset:
    """The data of a recipe: all runs that were trained on them share them."""
    return load_spec(json.loads(spec), allowed=allowed_modules())


def photographs(key: str) -> Any:
    """The images of the test rows, from the table or from the data; None if there are none.

    An array, or what can be indexed like one: the images of a folder are read when they are asked for. Strokes and sounds are
    drawn; texts are not, for a page shows them as they are.
    """
    test = run(key).tables["test"]
    images: Any = row_pictures(test, texts=False)
    if images is None and test.texts is None and (data := dataset(key)) is not None:
        images = data.test.inputs
    return images if images is not None and images.ndim == 4 and len(images) == test.n else None


def row_texts(key: str, rows: np.ndarray) -> list[str]:
    """The text of each of some test rows: its own, or the largest numbers of a line of a table; none where it has none."""
    test = run(key).tables["test"]
    if test.texts is not None:
        return test.texts[rows].tolist()
    if test.strokes is not None or test.sounds is not None or photographs(key) is not None:
        return []
    data = dataset(key)
    if data is None or data.test.inputs.ndim != 2 or data.test.n != test.n:
        return []
    return largest_features(np.asarray(data.test.inputs), rows.tolist(), data.columns)


def training_features(key: str) -> Any:
    """The features of the training rows of a run; None until they are computed."""
    if (features := _seen(key)) is None:
        _seen.clear(key)
    return features


@st.cache_resource(show_spinner=False, max_entries=4)
def _seen(key: str) -> Any:
    return nearest_neighbours.training_features(run(key))


def awaits_features(key: str) -> bool:
    """Whether what the network of a run sees in its training pictures is being computed, which begins when it is asked.

    It takes seconds in the background: callers look again later. Errors are raised.
    """
    stored = run(key)
    knowable = nearest_neighbours.can_be_seen(stored) and stored.tables["test"].features is not None
    if not knowable or photographs(key) is None or training_features(key) is not None:
        return False
    looking = _looking(key)
    if looking.done():
        looking.result()
    return not looking.done()


@st.cache_resource(show_spinner=False, max_entries=16)
def _looking(key: str) -> Future[None]:
    """The one that computes the training features of a run."""
    return LOOKING.submit(nearest_neighbours.compute_training_features, run(key))


@st.cache_resource(show_spinner="Reading the file…", max_entries=4)
def bring(
    file_id: str,
    name: str,
    _content: bytes,
    scores: str | None = None,
    labels: str | None = None,
    link: str | None = None,
) -> UploadedRun | OtherData:
    """Make an uploaded file a run, in the LRU store of uploads; a file of listed classes, sets or votes stays data.

    `file_id` stands for the content, which is too large to compare each time.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(_content)
        table = wb.import_any(path, scores=scores, labels=labels, link=link)
        if not isinstance(table, wb.LogitTable):
            return _without_run(path, table)
        kept = keep_tables(table, title=Path(name).stem, store=claim_uploads())
    uploads().forget()
    return UploadedRun(kept.key, f"{table.note}. {kept.record.note}")


def _without_run(path: Path, data: Any) -> OtherData:
    """A file of listed classes, sets or votes: it can be looked at, and is not a run."""
    about = wb.describe(data)
    understood = f"{path.name}: {about.kind}. " + "; ".join(f"{name}: {fact}" for name, fact in about.facts.items())
    listed = read_listed(path) if isinstance(data, wb.PredictionSets) else None
    return OtherData(data if listed is None else listed, understood)


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
    return {other: name for other, name in on_the_same_rows(key).items() if other != whole(key)}


def on_the_same_rows(key: str) -> dict[str, str]:
    """Short key → name of the runs on the test rows of a run, which is one of them."""
    reasons = incomparable(key)
    return {other: name for other, name in named(runs()).items() if other not in reasons}


def incomparable(key: str) -> dict[str, str]:
    """Short key → why a run cannot be compared with this one row by row, of the runs that cannot."""
    key, by_key = whole(key), {run.short: run for run in runs()}
    here = by_key[key].rows_of("test") if key in by_key else None
    others = {short: run.rows_of("test") for short, run in by_key.items() if short != key}
    return {short: why for short, rows in others.items() if (why := _difference(here, rows)) is not None}


def _difference(here: Rows | None, there: Rows | None) -> str | None:
    """The reason why two test tables cannot be compared; None if they have the same rows."""
    if here is None or there is None:
        return "rows without labels cannot be compared"
    (n, n_classes, labels, ids), (other_n, other_n_classes, other_labels, other_ids) = here, there
    if n_classes != other_n_classes:
        return f"it has {counted(other_n_classes, 'class', 'classes')}, this run {n_classes}"
    if n != other_n:
        return f"it was tested on {counted(other_n, 'row')}, this run on {counted(n)}"
    if labels != other_labels or (None not in (ids, other_ids) and ids != other_ids):
        return f"its {counted(n, 'test row')} are not those of this run, in this order"
    return None


def named(runs: Iterable[StoredRun]) -> dict[str, str]:
    """Short key → name of each run. A name is fixed at birth: later runs do not change it."""
    return names({run.short: run.record for run in runs})


def code(key: str, figure: Figure, other: str | None = None, table: Code = TEST_TABLE) -> Code:
    """The code of a figure, from opening the run (and the other run, if the figure compares two) on.

    `table` gives the table that a figure of one table shows.
    """
    lines = [f"run = Store().open({whole(key)!r})", 'val, test = run.tables["val"], run.tables["test"]']
    if other is not None:
        lines.append(f"other = Store().open({whole(other)!r})")
        lines.append('other_val, other_test = other.tables["val"], other.tables["test"]')
    imports = ["from workbench.store import Store"]
    if (chosen := slice_of(key)) is not None:
        origin, name, row_filter = chosen
        val, test = ("val", "test") if origin == whole(key) else ("other_val", "other_test")
        imports.append("from workbench.metrics.rows import RowFilter")
        lines.append(f"rows = {row_filter!r}.rows(wb.TopK(1).fit({val})({test}))")
        lines.append(f"test = test.slice(rows, name={name!r})")
        lines += [f"other_test = other_test.slice(rows, name={name!r})"] * (other is not None)
    opened = Code(setup=lines, imports=imports)
    given = table.after(opened) if "table" in figure.code.needs else opened
    return figure.code.after(Code(setup=[""]).after(given))
