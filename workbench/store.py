"""Runs on disk: one directory per run, named by its key, there as a whole or not at all.

A run directory holds `run.json` (everything needed to repeat the run), `weights.safetensors`, `history.csv`, one folder
per table (`val/`, `test/`, …) and `checksums.json`, the SHA-256 of every other file. It is written aside, synced and
renamed, so a reader never meets half a run, and two processes may write the same run. The runs that ship with the
package are a second, read-only root.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from workbench.stored_runs import CHECKSUMS, StoredRun, sha256_of

DEMO = Path(__file__).parent / "demo"  # the runs that ship with the package
ABANDONED = 24 * 3600  # seconds after which a half-written directory belongs to a writer that was killed


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
        """Every readable run: the newest of this root first, then the demo runs in the order they were built."""
        own = sorted(_readable(self.root), key=lambda run: run.finished, reverse=True) if self.root != DEMO else []
        demo = sorted(_readable(DEMO), key=lambda run: run.finished)
        keys = {run.key for run in own}
        return own + [run for run in demo if run.key not in keys]

    def has(self, key: str) -> bool:
        """Whether a run of exactly this key is stored."""
        return self._directory(key) is not None

    def open(self, key: str) -> StoredRun:
        """The run of this key, or of the only key that starts so."""
        if directory := self._directory(key):
            return StoredRun(directory)
        candidates = [run for run in self.runs() if key and run.key.startswith(key)]
        if len(candidates) == 1:
            return candidates[0]
        known = "; ".join(f"{run.key[:12]} ({run.title})" for run in (candidates or self.runs())) or "none at all"
        found = (
            f"{len(candidates)} runs have a key that starts with" if candidates else "no run has a key that starts with"
        )
        raise ValueError(f"{found} {key!r} in {self._place}; there are: {known}")

    @contextlib.contextmanager
    def writing(self, key: str, *, replace: bool = False) -> Iterator[Path]:
        """A directory to fill; it becomes the run of this key when the block ends, and vanishes if the block fails.

        If another writer finished the same run meanwhile, its directory stays (same key, same content) and this one is
        dropped, unless `replace` is set.
        """
        aside = self.root / f".writing-{uuid.uuid4().hex}"
        with self.explained():
            self._sweep()
            aside.mkdir(parents=True)
            try:
                yield aside
                _write_checksums(aside)
                _sync_tree(aside)
                _publish(aside, self.root / key, replace)
            finally:
                shutil.rmtree(aside, ignore_errors=True)

    @contextlib.contextmanager
    def replacing(self, file: Path) -> Iterator[Path]:
        """A path to write a single file to; it takes the place of `file` when the block ends, or vanishes."""
        aside = self.root / f".writing-{uuid.uuid4().hex}"
        with self.explained():
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                yield aside
                _sync(aside)
                os.replace(aside, file)
            finally:
                aside.unlink(missing_ok=True)

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
            yield
        except OSError as error:
            elsewhere = "set WORKBENCH_HOME to another folder; a run that has a checkpoint goes on from there"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise OSError(f"the disk that holds {self.root} is full: free some space, or {elsewhere}") from error
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
                raise PermissionError(
                    f"runs cannot be written to {self.root} ({error.strerror}): make it writable, or {elsewhere}"
                ) from error
            raise

    @property
    def _place(self) -> Path:
        """Where people look for their runs."""
        return self.root

    def _directory(self, key: str) -> Path | None:
        found = [root / key for root in (self.root, DEMO) if key and (root / key / CHECKSUMS).is_file()]
        return found[0] if found else None

    def _sweep(self) -> None:
        for leftover in self.root.glob(".writing-*"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - leftover.stat().st_mtime > ABANDONED:
                    shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def chosen_store(given: Store | None) -> Store:
    """The store that was given, or the user's own; an error for anything else, such as a path."""
    if given is not None and not isinstance(given, Store):
        raise ValueError(f"store = {given!r}; give a Store, Store('path/to/runs'), or nothing for the one in {home()}")
    return Store() if given is None else given


def _readable(root: Path) -> list[StoredRun]:
    runs = []
    for checksums in sorted(root.glob("[!.]*/" + CHECKSUMS)):
        run = StoredRun(checksums.parent)
        try:
            run.title  # noqa: B018  (reads and verifies run.json)
        except (OSError, ValueError, KeyError) as error:
            warnings.warn(f"a run is left out: {error}", stacklevel=3)
        else:
            runs.append(run)
    return runs


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _write_checksums(directory: Path) -> None:
    checksums = {file.relative_to(directory).as_posix(): sha256_of(file) for file in _files(directory)}
    (directory / CHECKSUMS).write_text(json.dumps(checksums, indent=1), encoding="utf-8")


def _sync_tree(directory: Path) -> None:
    for path in [*_files(directory), *(path for path in directory.rglob("*") if path.is_dir()), directory]:
        _sync(path)


def _sync(path: Path) -> None:
    """Waits until a file, or the list of names in a directory, is on the disk and not only on its way."""
    if path.is_dir() and os.name != "posix":
        return  # only POSIX opens directories
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish(aside: Path, target: Path, replace: bool) -> None:
    """Renames `aside` to `target`. A run that is there already stays, unless `replace` is set; what is no run makes room."""
    retired: list[Path] = []
    while True:
        try:
            os.rename(aside, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if not replace and (target / CHECKSUMS).is_file():
                return
            retired.append(aside.with_name(f"{aside.name}-retired-{len(retired)}"))
            with contextlib.suppress(FileNotFoundError):  # another writer may have moved it away just now
                os.rename(target, retired[-1])
        else:
            break
    _sync(target.parent)
    for leftover in retired:
        shutil.rmtree(leftover, ignore_errors=True)
