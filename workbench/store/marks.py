"""What a person marks a run with: tags, and a pin that puts it first.

Marks lie beside the runs and not in them, `.marks/<key>.json` in the folder of the store: so a run stays what it was, and
those that ship with the package can be marked too.

>>> import tempfile
>>> store = Store(tempfile.mkdtemp())
>>> key = store.runs()[0].key
>>> tag(store, key, "lecture"), pin(store, key).pinned != ""
(Marks(tags=('lecture',), pinned=''), True)
>>> marks_of(store, key).tags, untag(store, key, "lecture").tags
(('lecture',), ())
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from workbench.store.runs import StoredRun
from workbench.store.store import Store

LONGEST = 40  # letters of a tag


@dataclass(frozen=True)
class Marks:
    """Tags in the order they were given, and since when the run is pinned (ISO 8601, UTC; "" if it is not)."""

    tags: tuple[str, ...] = ()
    pinned: str = ""


def marks_of(store: Store, key: str) -> Marks:
    """The marks of a run, by its whole key; none where there are none, or where the file says something else."""
    try:
        said = json.loads(_file(store, key).read_text(encoding="utf-8"))
        tags, pinned = tuple(said["tags"]), said["pinned"]
    except (OSError, ValueError, TypeError, KeyError):
        return Marks()
    return Marks(tags, pinned) if all(isinstance(text, str) for text in (*tags, pinned)) else Marks()


def all_marks(store: Store) -> dict[str, Marks]:
    """Key → marks, of every run that has some."""
    return {file.stem: marks_of(store, file.stem) for file in sorted(store.marks.glob("*.json"))}


def tag(store: Store, key: str, *tags: str) -> Marks:
    """Give a run tags, in addition to those it has."""
    cleaned = [" ".join(text.split()) for text in tags]
    if wrong := [text for text in cleaned if not text or len(text) > LONGEST or "," in text]:
        raise ValueError(f"{wrong[0]!r} is no tag; give 1 to {LONGEST} letters without a comma")
    run, marks = _marked(store, key)
    return _write(store, run, dataclasses.replace(marks, tags=tuple(dict.fromkeys((*marks.tags, *cleaned)))))


def untag(store: Store, key: str, *tags: str) -> Marks:
    """Take tags from a run; those it does not have are nothing to take."""
    run, marks = _marked(store, key)
    return _write(store, run, dataclasses.replace(marks, tags=tuple(each for each in marks.tags if each not in tags)))


def pin(store: Store, key: str) -> Marks:
    """Put a run first: the one that was pinned last is what the app opens with."""
    run, marks = _marked(store, key)
    return _write(store, run, dataclasses.replace(marks, pinned=datetime.now(UTC).isoformat()))


def unpin(store: Store, key: str) -> Marks:
    """Let a run stand where it stood."""
    run, marks = _marked(store, key)
    return _write(store, run, dataclasses.replace(marks, pinned=""))


def pinned_first(store: Store, runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs, those that are pinned before all others, the last one that was pinned before all."""
    marks = all_marks(store)
    return sorted(runs, key=lambda run: marks.get(run.key, Marks()).pinned, reverse=True)


def _marked(store: Store, key: str) -> tuple[StoredRun, Marks]:
    run = store.open(key)
    return run, marks_of(store, run.key)


def _write(store: Store, run: StoredRun, marks: Marks) -> Marks:
    file = _file(store, run.key)
    if marks == Marks():
        file.unlink(missing_ok=True)
        return marks
    with store.replacing(file) as aside:
        aside.write_text(json.dumps(dataclasses.asdict(marks), ensure_ascii=False), encoding="utf-8")
    return marks


def _file(store: Store, key: str) -> Path:
    return store.marks / f"{key}.json"
