"""Tags of runs, and pins that list a run first.

Tags lie beside the runs and not in them, `.marks/<key>.json` in the folder of the store: so a run stays what it was, and
those that ship with the package can be marked too.

>>> import tempfile
>>> store = Store(tempfile.mkdtemp())
>>> key = store.runs()[0].key
>>> tag(store, key, "lecture"), pin(store, key).pinned != ""
(Tags(tags=('lecture',), pinned=''), True)
>>> tags_of(store, key).tags, untag(store, key, "lecture").tags
(('lecture',), ())
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.store.runs import StoredRun
from workbench.store.store import Store
from workbench.untrusted_files import read_json

LONGEST = 40  # letters of a tag


@dataclass(frozen=True)
class Tags:
    """Tags in the order they were given, and since when the run is pinned (ISO 8601, UTC; "" if it is not)."""

    tags: tuple[str, ...] = ()
    pinned: str = ""


def tags_of(store: Store, key: str) -> Tags:
    """The marks of a run, by its whole key; none where there are none, or where the file says something else."""
    try:
        content = read_json(_file(store, key))
        tags, pinned = tuple(content["tags"]), content["pinned"]
    except (OSError, ValueError, TypeError, KeyError):
        return Tags()
    return Tags(tags, pinned) if all(isinstance(text, str) for text in (*tags, pinned)) else Tags()


def all_tags(store: Store) -> dict[str, Tags]:
    """Key → marks, of every run that has some."""
    return {file.stem: tags_of(store, file.stem) for file in sorted(store.marks.glob("*.json"))}


def tag(store: Store, key: str, *tags: str) -> Tags:
    """Give a run tags, in addition to those it has."""
    cleaned = [" ".join(text.split()) for text in tags]
    if wrong := [text for text in cleaned if not text or len(text) > LONGEST or "," in text]:
        raise ValueError(f"{wrong[0]!r} is not a tag; give 1 to {LONGEST} letters without a comma")
    return _change(store, key, lambda marks: {"tags": tuple(dict.fromkeys((*marks.tags, *cleaned)))})


def untag(store: Store, key: str, *tags: str) -> Tags:
    """Take tags from a run; those it does not have are nothing to take."""
    return _change(store, key, lambda marks: {"tags": tuple(each for each in marks.tags if each not in tags)})


def pin(store: Store, key: str) -> Tags:
    """Put a run first: the one that was pinned last is what the app opens with."""
    return _change(store, key, lambda _: {"pinned": datetime.now(UTC).isoformat()})


def unpin(store: Store, key: str) -> Tags:
    """Let a run stand where it stood."""
    return _change(store, key, lambda _: {"pinned": ""})


def pinned_first(store: Store, runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs, those that are pinned before all others, the last one that was pinned before all."""
    marks = all_tags(store)
    return sorted(runs, key=lambda run: marks.get(run.key, Tags()).pinned, reverse=True)


def _change(store: Store, key: str, change: Callable[[Tags], dict[str, Any]]) -> Tags:
    """Read, change and write the marks of a run while no other process does."""
    run = store.open(key)
    with store.changing():
        before = tags_of(store, run.key)
        return _write(store, run, dataclasses.replace(before, **change(before)))


def _write(store: Store, run: StoredRun, marks: Tags) -> Tags:
    file = _file(store, run.key)
    if marks == Tags():
        file.unlink(missing_ok=True)
        return marks
    with store.replacing(file) as aside:
        aside.write_text(json.dumps(dataclasses.asdict(marks), ensure_ascii=False), encoding="utf-8")
    return marks


def _file(store: Store, key: str) -> Path:
    return store.marks / f"{key}.json"
