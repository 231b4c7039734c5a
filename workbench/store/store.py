"""The store: one directory per run, named by its key and written atomically.

A run directory holds `run.json` (everything needed to repeat the run), `weights.safetensors`, `history.csv`, one folder
per table (`val/`, `test/`, …) and `checksums.json`, the SHA-256 of every other file. It is written by `atomic`, so a
reader never meets half a run, and two processes may write the same run. The runs that ship with the package are a
second, read-only root. A run that cannot be read is named and set aside (`unreadable`), and never in the way of others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.files.atomic import remove, turn, whole_file, whole_folder
from workbench.files.checksums import CHECKSUMS, SHORT, is_whole, write_checksums
from workbench.files.home import Home, home
from workbench.store.record import RunRecord
from workbench.store.runs import StoredRun
from workbench.trusted_imports import check_writable
from workbench.warning_capture import captured_warnings, warn

DEMO = Path(__file__).parents[1] / "demo"  # the runs that ship with the package
TRASH, LOCKS = ".trash", ".locks"
KNOWN = 2**16  # runs whose check is remembered


class Store(Home):
    """The runs under one root, followed by the read-only demo runs of the package.

    Args:
        root: Folder of the store; by default `$WORKBENCH_HOME`, else `./runs` if it exists, else the user's data folder.

    >>> Store("/nowhere").runs() == Store(DEMO).runs()
    True
    """

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def runs(self) -> list[StoredRun]:
        """Every readable run: the newest of this root first, then the demo runs in the order they were built.

        What cannot be read is left out with a warning, and `unreadable` tells of it.
        """
        found = {root: _looked_at(root) for root in (self.root, DEMO)}
        for why in [why for looked_at in found.values() for _, why in looked_at if why]:
            warn(f"a run is left out: {why}", stacklevel=2)
        own, demo = ([run for run, why in found[root] if not why] for root in (self.root, DEMO))
        own = sorted(own, key=lambda run: run.finished, reverse=True) if self.root != DEMO else []
        demo = sorted(demo, key=lambda run: run.finished)
        keys = {run.key for run in own}
        return own + [run for run in demo if run.key not in keys]

    def unreadable(self) -> dict[str, str]:
        """Key → what is wrong, of every run that cannot be read."""
        return {run.key: why for root in dict.fromkeys((DEMO, self.root)) for run, why in _looked_at(root) if why}

    def stored_keys(self) -> list[str]:
        """The keys of all runs of this root, readable or not; nothing is read to know."""
        return _keys(self.root)

    def has(self, key: str) -> bool:
        """Whether a run of exactly this key is stored."""
        return self._directory(key) is not None

    def open(self, key: str) -> StoredRun:
        """The run of this key, or of the only key that starts so, or of this title."""
        if directory := self._directory(key):
            return StoredRun(directory)
        with captured_warnings():  # a damaged run is reported when it is opened
            runs = self.runs()
        candidates = [run for run in runs if key and run.key.startswith(key)]
        candidates = candidates or [run for run in runs if key in (run.title, run.display_name)]
        broken = {each: why for each, why in self.unreadable().items() if key and each.startswith(key)}
        if len(candidates) == 1 and not broken:
            return candidates[0]
        if len(broken) == 1 and not candidates:
            raise ValueError(*broken.values())
        known = [f"{run.short} ({run.title})" for run in (candidates or runs)]
        known += [f"{each[:SHORT]} (cannot be read)" for each in broken]
        many = f"{len(candidates) + len(broken)} runs have" if candidates or broken else "no run has"
        raise ValueError(
            f"{many} a key that starts with {key!r}, or that title, in {self._place}; there are: "
            f"{'; '.join(known) or 'none at all'}"
        )

    @contextlib.contextmanager
    def writing(self, key: str, *, replace: bool = False) -> Iterator[Path]:
        """A directory to fill; it becomes the run of this key when the block ends, and vanishes if the block fails.

        If another writer finished the same run meanwhile, its directory stays (same key, same content) and this one is
        dropped, unless `replace` is set.
        """

        def finished(directory: Path) -> bool:
            return not replace and is_whole(directory)

        with self.explained(), whole_folder(self.inside(key), stays=finished) as directory:
            yield directory
            write_checksums(directory)

    @contextlib.contextmanager
    def lock(self, keys: Iterable[str]) -> Iterator[None]:
        """Hold these runs exclusively while the block lasts: other processes wait, and then read them."""
        with contextlib.ExitStack() as held:
            for key in sorted(set(keys)):  # the same order in every process, so that there is no deadlock
                held.enter_context(turn(self.unfinished(key).with_suffix(".turn")))
            yield

    @contextlib.contextmanager
    def replacing(self, file: Path, n_bytes: int | None = None) -> Iterator[Path]:
        """A path to write a single file to; it takes the place of `file` when the block ends, or vanishes."""
        if file.is_symlink():
            raise ValueError(f"{file} is a link to another place; remove the link")
        with self.explained(), whole_file(file, n_bytes) as aside:
            yield aside

    def remove(self, key: str) -> None:
        """Removes a run for good, readable or not, with what its training left; the demo runs stay."""
        with self.changing():
            run = self.own(key)
            remove(run.path)
            for leftover in (self.unfinished(run.key), self.diverged(run.key), self.marks / f"{run.key}.json"):
                leftover.unlink(missing_ok=True)

    def trash(self, key: str) -> StoredRun:
        """Moves a run into the trash, from where `restore` brings it back; `workbench runs --prune` empties the trash."""
        with self.changing():
            place = self.inside(TRASH)
            if not os.path.lexists(self.root / key) and is_whole(place / key):
                return StoredRun(place / key)  # another process was faster
            run = self.own(key)
            place.mkdir(exist_ok=True)
            if os.path.lexists(place / run.key):  # the same run, trained or imported once more
                remove(place / run.key)
            os.rename(run.path, place / run.key)
        return StoredRun(place / run.key)

    def trashed(self) -> list[StoredRun]:
        """The runs in the trash, the newest first."""
        runs = [run for run, why in _looked_at(self.inside(TRASH)) if not why]
        return sorted(runs, key=lambda run: run.finished, reverse=True)

    def restore(self, key: str) -> StoredRun:
        """Puts a run back into the store, by its key in the trash or the only one that starts so."""
        with self.changing():
            place = self.inside(TRASH)
            keys = [each for each in _keys(place) if key and each.startswith(key)]
            if not keys and self.has(key):  # another process was faster
                return StoredRun(self.root / key)
            if len(keys) != 1:
                raise ValueError(f"{len(keys) or 'no'} runs in the trash have a key that starts with {key[:SHORT]!r}")
            if is_whole(self.root / keys[0]):
                remove(place / keys[0])
            else:
                os.rename(place / keys[0], self.root / keys[0])
        return StoredRun(self.root / keys[0])

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """While the block lasts no other process removes, restores, renames or tags runs of this store."""
        check_writable("no run is removed, restored, renamed or tagged")
        with self.explained(), turn(self.inside(LOCKS) / "store"):
            yield

    @property
    def marks(self) -> Path:
        """The folder with tags and pins (`workbench.store.tags`)."""
        return self.inside(".marks")

    def rename(self, key: str, title: str) -> StoredRun:
        """Gives a run another title; all else stays as it is, its key too."""
        if not title.strip():
            raise ValueError("a run cannot be called nothing; give a title of at least one letter")
        with self.changing():
            run = self.own(key)
            with self.writing(run.key, replace=True) as directory:
                copy_run(run, directory, title=title.strip())
        return StoredRun(run.path)

    def own(self, key: str) -> StoredRun:
        """The run of this root, readable or not, of this key or of the only key that starts so; no demo run."""
        keys = self.stored_keys()
        found = [each for each in keys if each == key] or [each for each in keys if key and each.startswith(key)]
        if len(found) == 1 and self.root != DEMO:
            return StoredRun(self.root / found[0])
        if not found and key and any(each.startswith(key) for each in _keys(DEMO)):
            raise ValueError(f"run {key} ships with the package and stays as it is")
        many = f"{len(found)} runs have" if found else "no run has"
        known = ", ".join(each[:SHORT] for each in (found or keys)) or "none at all"
        raise ValueError(f"{many} a key that starts with {key!r} in {self._place}; there are: {known}")

    def unfinished(self, key: str) -> Path:
        """The file that holds the last checkpoint of a run in progress (or would hold it)."""
        return self.inside(".unfinished") / f"{key}.ckpt"

    def diverged(self, key: str) -> Path:
        """The file that holds the best weights of a run whose loss diverged (or would hold them)."""
        return self.unfinished(key).with_suffix(".safetensors")

    @property
    def _place(self) -> Path:
        """The folder of the runs."""
        return self.root

    def _directory(self, key: str) -> Path | None:
        named = re.fullmatch(r"[\w-][\w.-]*", key) is not None  # else it is a path, or nothing
        found = [root / key for root in (self.root, DEMO) if named and is_whole(root / key)]
        return found[0] if found else None


def chosen_store(given: Store | None) -> Store:
    """The store that was given, or the user's own; an error for anything else, such as a path."""
    if given is not None and not isinstance(given, Store):
        raise TypeError(f"store = {given!r}; give a Store, Store('path/to/runs'), or nothing for the one in {home()}")
    return Store() if given is None else given


def copy_run(run: StoredRun, directory: Path, **changed: Any) -> None:
    """Fills a directory with the files of a run, each compared with its checksum; what shares its bytes takes no room.

    `changed` are fields of its record that become others.
    """
    for name in run.checksums:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        if name == "run.json" and changed:
            write_record(directory, dataclasses.replace(run.record, **changed))
            continue
        try:
            os.link(run.verified(name), directory / name)
        except OSError:  # another disk, or one without links
            shutil.copyfile(run.path / name, directory / name)


def write_record(directory: Path, record: RunRecord) -> None:
    """Writes the `run.json` of a run directory."""
    text = json.dumps(record.to_json(), indent=1, ensure_ascii=False)
    (directory / "run.json").write_text(text, encoding="utf-8")


def _looked_at(root: Path) -> list[tuple[StoredRun, str]]:
    """The runs under a root, each with what is wrong with it: nothing, for most."""
    found = []
    for name in _keys(root):
        run = StoredRun(root / name)
        why, known = _checked(run, _state(run))
        run.__dict__.update(known)
        found.append((run, why))
    return found


def _keys(root: Path) -> list[str]:
    """The names of the runs under a root, readable or not."""
    try:
        return sorted(entry.name for entry in os.scandir(root) if _is_run(entry))
    except OSError:
        return []


def _is_run(entry: os.DirEntry[str]) -> bool:
    """Whether something is, or was, a run: it has checksums, or it is named by a key."""
    named = re.fullmatch("[0-9a-f]{64}", entry.name) is not None
    return named or (not entry.name.startswith(".") and os.path.lexists(os.path.join(entry.path, CHECKSUMS)))


# Size, time and place of a file; None if there is none.
Status = tuple[int, int, int, int] | None


@lru_cache(maxsize=KNOWN)
def _checked(run: StoredRun, state: tuple[Status, ...]) -> tuple[str, dict[str, Any]]:
    """The error of a run, and the files that were read to find it; checked again when one of them has changed."""
    run = StoredRun(run.path)
    if files := _files(run, state[0]):
        run.__dict__["checksums"] = files
    try:
        run.check()
    except (OSError, ValueError) as error:
        return str(error), {}
    return "", {"record": run.record, "checksums": run.checksums, "shapes": run.shapes}


def _state(run: StoredRun) -> tuple[Status, ...]:
    checksums = _status(os.path.join(run.path, CHECKSUMS))
    return (checksums, *(_status(os.path.join(run.path, name)) for name in _files(run, checksums)))


@lru_cache(maxsize=KNOWN)
def _files(run: StoredRun, checksums: Status) -> dict[str, str]:
    """The files that a run should have, as long as its checksums are the same; none where these cannot be read."""
    try:
        return StoredRun(run.path).checksums
    except ValueError:
        return {}


def _status(path: str) -> Status:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode
