"""Runs on disk: one directory per run, named by its key, there as a whole or not at all.

A run directory holds `run.json` (everything needed to repeat the run), `weights.safetensors`, `history.csv`, one folder
per table (`val/`, `test/`, …) and `checksums.json`, the SHA-256 of every other file. It is written by `atomic`, so a
reader never meets half a run, and two processes may write the same run. The runs that ship with the package are a
second, read-only root. A run that cannot be read is named and set aside (`unreadable`), and never in the way of others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import platformdirs

from workbench.store.atomic import FullDisk, remove, room_for, turn, whole_file, whole_folder
from workbench.store.checked import CHECKSUMS, SHORT, is_whole, write_checksums
from workbench.store.record import RunRecord
from workbench.store.runs import StoredRun

DEMO = Path(__file__).parents[1] / "demo"  # the runs that ship with the package
REMOVED, CAN_BE_BROUGHT_BACK = ".removed", 8  # where runs wait that somebody removed, and how many of them
ELSEWHERE = "set WORKBENCH_HOME to another folder; a run that has a checkpoint goes on from there"


def home() -> Path:
    """Where runs live: `WORKBENCH_HOME`, else `./runs` if it exists, else the user's data folder."""
    if chosen := os.environ.get("WORKBENCH_HOME"):
        return Path(chosen).expanduser()
    if Path("runs").is_dir():
        return Path("runs").resolve()
    return Path(platformdirs.user_data_dir("workbench", appauthor=False))


class Store:
    """The runs under one root, followed by the read-only demo runs of the package.

    >>> Store("/nowhere").runs() == Store(DEMO).runs()
    True
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = home() if root is None else Path(root).expanduser().resolve()

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def runs(self) -> list[StoredRun]:
        """Every readable run: the newest of this root first, then the demo runs in the order they were built.

        What cannot be read is left out with a warning, and `unreadable` tells of it.
        """
        found = {root: _looked_at(root) for root in (self.root, DEMO)}
        for why in [why for looked_at in found.values() for _, why in looked_at if why]:
            warnings.warn(f"a run is left out: {why}", stacklevel=2)
        own, demo = ([run for run, why in found[root] if not why] for root in (self.root, DEMO))
        own = sorted(own, key=lambda run: run.finished, reverse=True) if self.root != DEMO else []
        demo = sorted(demo, key=lambda run: run.finished)
        keys = {run.key for run in own}
        return own + [run for run in demo if run.key not in keys]

    def unreadable(self) -> dict[str, str]:
        """Key → what is wrong, of every run that cannot be read."""
        return {run.key: why for root in dict.fromkeys((DEMO, self.root)) for run, why in _looked_at(root) if why}

    def has(self, key: str) -> bool:
        """Whether a run of exactly this key is stored."""
        return self._directory(key) is not None

    def open(self, key: str) -> StoredRun:
        """The run of this key, or of the only key that starts so; also of one that it had in an earlier version."""
        if directory := self._directory(key):
            return StoredRun(directory)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the one that is asked for says itself what is wrong with it
            runs = self.runs()
        candidates = [run for run in runs if key and run.key.startswith(key)]
        candidates = candidates or [run for run in runs if key and any(k.startswith(key) for k in run.record.formerly)]
        broken = {each: why for each, why in self.unreadable().items() if key and each.startswith(key)}
        if len(candidates) == 1 and not broken:
            return candidates[0]
        if len(broken) == 1 and not candidates:
            raise ValueError(*broken.values())
        known = [f"{run.short} ({run.title})" for run in (candidates or runs)]
        known += [f"{each[:SHORT]} (cannot be read)" for each in broken]
        many = f"{len(candidates) + len(broken)} runs have" if candidates or broken else "no run has"
        raise ValueError(
            f"{many} a key that starts with {key!r} in {self._place}; there are: {'; '.join(known) or 'none at all'}"
        )

    @contextlib.contextmanager
    def writing(self, key: str, *, replace: bool = False) -> Iterator[Path]:
        """A directory to fill; it becomes the run of this key when the block ends, and vanishes if the block fails.

        If another writer finished the same run meanwhile, its directory stays (same key, same content) and this one is
        dropped, unless `replace` is set.
        """

        def finished(directory: Path) -> bool:
            return not replace and is_whole(directory)

        with self.explained(), whole_folder(self.root / key, stays=finished) as directory:
            yield directory
            write_checksums(directory)

    @contextlib.contextmanager
    def held(self, keys: Iterable[str]) -> Iterator[None]:
        """While the block lasts nobody else holds these runs: whoever else would train them waits, and then reads them."""
        with contextlib.ExitStack() as held:
            for key in sorted(set(keys)):  # the same order everywhere, so that nobody waits in a circle
                held.enter_context(turn(self.unfinished(key).with_suffix(".turn")))
            yield

    @contextlib.contextmanager
    def replacing(self, file: Path, n_bytes: int | None = None) -> Iterator[Path]:
        """A path to write a single file to; it takes the place of `file` when the block ends, or vanishes."""
        with self.explained(), whole_file(file, n_bytes) as aside:
            yield aside

    def remove(self, key: str) -> None:
        """Removes a run, readable or not, with what its training left; the demo runs stay."""
        run = self.own(key)
        with self.explained():
            remove(run.path)
            for leftover in (self.unfinished(run.key), self.diverged(run.key), self.marks / f"{run.key}.json"):
                leftover.unlink(missing_ok=True)

    def put_away(self, key: str) -> StoredRun:
        """Takes a run out of the store in such a way that `bring_back` undoes it; the last few can be brought back."""
        run, removed = self.own(key), self.root / REMOVED
        with self.explained():
            removed.mkdir(exist_ok=True)
            if (removed / run.key).exists():  # the same run, trained or brought once more
                remove(removed / run.key)
            os.rename(run.path, removed / run.key)
            os.utime(removed / run.key)
            for older in sorted(removed.iterdir(), key=os.path.getmtime, reverse=True)[CAN_BE_BROUGHT_BACK:]:
                remove(older)
        return StoredRun(removed / run.key)

    def bring_back(self, key: str) -> StoredRun:
        """Puts a run back into the store that `put_away` took out of it."""
        away = self.root / REMOVED / key
        if not key or not is_whole(away):
            raise ValueError(f"run {key[:SHORT]!r} was not removed lately, or is gone for good")
        if is_whole(self.root / key):
            remove(away)
        else:
            os.rename(away, self.root / key)
        return StoredRun(self.root / key)

    @property
    def marks(self) -> Path:
        """The folder of what people mark runs with (`workbench.store.marks`)."""
        return self.root / ".marks"

    def rename(self, key: str, title: str) -> StoredRun:
        """Gives a run another title; all else stays as it is, its key too."""
        if not title.strip():
            raise ValueError("a run cannot be called nothing; give a title of at least one letter")
        run = self.own(key)
        with self.writing(run.key, replace=True) as directory:
            copy_run(run, directory, title=title.strip())
        return StoredRun(run.path)

    def renewed(self, former: str, key: str) -> StoredRun | None:
        """The run that an earlier version stored under another key, from now on under that of today; None if there is none.

        It still opens by its former key. Where it cannot be written anew, it stays as it is.
        """
        if (directory := self._directory(former)) is None:
            return None
        run, there = StoredRun(directory), Store(directory.parent)
        try:
            with there.writing(key) as renewed:
                copy_run(run, renewed, formerly=(*run.record.formerly, former))
            remove(directory)
        except (OSError, ValueError):  # a store of somebody else, a damaged run, or another process that was faster
            return self.open(key if self.has(key) else former)
        return StoredRun(there.root / key)

    def own(self, key: str) -> StoredRun:
        """The run of this root, readable or not, of this key or of the only key that starts so; no demo run."""
        keys = [run.key for run, _ in _looked_at(self.root)]
        found = [each for each in keys if each == key] or [each for each in keys if key and each.startswith(key)]
        if len(found) == 1 and self.root != DEMO:
            return StoredRun(self.root / found[0])
        if not found and key and any(run.key.startswith(key) for run, _ in _looked_at(DEMO)):
            raise ValueError(f"run {key} ships with the package and stays as it is")
        many = f"{len(found)} runs have" if found else "no run has"
        known = ", ".join(each[:SHORT] for each in (found or keys)) or "none at all"
        raise ValueError(f"{many} a key that starts with {key!r} in {self._place}; there are: {known}")

    def unfinished(self, key: str) -> Path:
        """The file that holds the last checkpoint of a run in progress (or would hold it)."""
        return self.root / ".unfinished" / f"{key}.ckpt"

    def diverged(self, key: str) -> Path:
        """The file that holds the best weights of a run whose loss diverged (or would hold them)."""
        return self.unfinished(key).with_suffix(".safetensors")

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turns a full disk or a folder that cannot be written into an error that says where and what to do."""
        try:
            with room_for(None, self.root / "a run"):
                yield
        except OSError as error:
            if isinstance(error, FullDisk):
                raise FullDisk(self.root, error.needed, f"free some space, or {ELSEWHERE}") from error
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
                raise PermissionError(
                    f"runs cannot be written to {self.root} ({error.strerror}): make it writable, or {ELSEWHERE}"
                ) from error
            raise

    @property
    def _place(self) -> Path:
        """Where people look for their runs."""
        return self.root

    def _directory(self, key: str) -> Path | None:
        found = [root / key for root in (self.root, DEMO) if key and is_whole(root / key)]
        return found[0] if found else None


def chosen_store(given: Store | None) -> Store:
    """The store that was given, or the user's own; an error for anything else, such as a path."""
    if given is not None and not isinstance(given, Store):
        raise ValueError(f"store = {given!r}; give a Store, Store('path/to/runs'), or nothing for the one in {home()}")
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
    try:
        names = sorted(entry.name for entry in os.scandir(root) if _is_run(entry))
    except OSError:
        return []
    found = []
    for name in names:
        run = StoredRun(root / name)
        why, known = _checked(run, _state(run))
        run.__dict__.update(known)
        found.append((run, why))
    return found


def _is_run(entry: os.DirEntry[str]) -> bool:
    """Whether something is, or was, a run: it has checksums, or it is named by a key."""
    named = re.fullmatch("[0-9a-f]{64}", entry.name) is not None
    return named or (not entry.name.startswith(".") and os.path.lexists(os.path.join(entry.path, CHECKSUMS)))


# Size, time and place of a file; None if there is none.
Status = tuple[int, int, int, int] | None


@lru_cache(maxsize=4096)
def _checked(run: StoredRun, state: tuple[Status, ...]) -> tuple[str, dict[str, Any]]:
    """What is wrong with a run, and what was read to know it; done again when one of its files has changed."""
    run = StoredRun(run.path)
    try:
        run.check()
    except (OSError, ValueError) as error:
        return str(error), {}
    return "", {"record": run.record, "checksums": run.checksums, "shapes": run.shapes}


def _state(run: StoredRun) -> tuple[Status, ...]:
    checksums = _status(os.path.join(run.path, CHECKSUMS))
    return (checksums, *(_status(os.path.join(run.path, name)) for name in _files(run, checksums)))


@lru_cache(maxsize=4096)
def _files(run: StoredRun, checksums: Status) -> tuple[str, ...]:
    """The files that a run should have, as long as its checksums are the same."""
    try:
        return tuple(StoredRun(run.path).checksums)
    except ValueError:
        return ()


def _status(path: str) -> Status:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode
