"""The one way to write: a file or a folder is there as a whole or not at all, at every moment.

What is new is written aside, in a folder `.writing-…` beside its place, synced, and put into place by one rename; what was
there before changes places with it. So a reader meets the old or the new and never half of it, several processes may
write the same thing (each puts a whole one there), and a writer that is killed leaves a folder that the next one in the
same place removes. A full disk becomes a `FullDisk`, which says in words how much was to be written and where.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import re
import shutil
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such lock: leftovers are removed by age
    fcntl = None  # type: ignore[assignment]

ABANDONED = 24 * 3600  # seconds after which a leftover of another machine belongs to a writer that was killed
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
ASIDE = re.compile(r"\.writing-([0-9a-f]{8}-)?[0-9a-f]{32}")  # once without the machine
RETIRED = ".retired"  # ends the name of what was there before, where two things cannot change places at once
EXCHANGE, AT_CWD = 2, -100  # of Linux' renameat2; EXCHANGE is also RENAME_SWAP of macOS' renamex_np


class FullDisk(OSError):
    """There is no room left in a folder for what was to be written; nothing of it stays. `needed` says how much it is."""

    def __init__(self, folder: Path, needed: str, advice: str = "free some space") -> None:
        super().__init__(f"the disk that holds {folder} is full: {needed}; {advice}")
        self.needed = needed


@contextlib.contextmanager
def whole_file(target: Path, n_bytes: int | None = None, *, tidy: bool = True) -> Iterator[Path]:
    """A path to write a file to; it takes the place of `target` when the block ends, and vanishes if the block fails.

    `n_bytes` is how much will be written, where that is known: a full disk is reported early. Without `tidy` leftovers of other
    writers are not looked for, which takes long in a folder of many files.
    """
    target = Path(os.path.realpath(target))
    with _aside(target, n_bytes, tidy) as new:
        yield new
        _sync(new)
        os.replace(new, target)
        _sync(target.parent)


@contextlib.contextmanager
def whole_folder(
    target: Path, n_bytes: int | None = None, *, stays: Callable[[Path], bool] = lambda old: False
) -> Iterator[Path]:
    """An empty folder to fill; it takes the place of `target` when the block ends, and vanishes if the block fails.

    If something is there already that `stays`, it does, and the new one is dropped.
    """
    target = Path(os.path.realpath(target))
    with _aside(target, n_bytes) as new:
        new.mkdir()
        yield new
        _sync_tree(new)
        _put(new, target, stays)
        _sync(target.parent)


def remove(target: Path) -> None:
    """Removes a file or a folder: it is gone as a whole, whenever the process is killed."""
    with _aside(target, None) as gone:
        os.rename(target, gone)
        _sync(target.parent)


@contextlib.contextmanager
def room_for(n_bytes: int | None, target: Path) -> Iterator[None]:
    """Turns the many ways to say that a disk is full into a `FullDisk` that says how much was to be written, and where."""
    try:
        yield
    except FullDisk:
        raise
    except (OSError, RuntimeError) as error:
        if not _means_full(error):
            raise
        needed = "more room" if n_bytes is None else f"{n_bytes:,} bytes".replace(",", " ")
        raise FullDisk(target.parent, f"{target.name} needs {needed}") from error


def _means_full(error: BaseException | None) -> bool:
    """NumPy and torch replace the system's error message."""
    if error is None:
        return False
    by_system = isinstance(error, OSError) and error.errno in FULL
    by_numpy = isinstance(error, OSError) and re.fullmatch(r"\d+ requested and \d+ written", str(error)) is not None
    return by_system or by_numpy or _means_full(error.__context__)


@contextlib.contextmanager
def _aside(target: Path, n_bytes: int | None, tidy: bool = True) -> Iterator[Path]:
    """A path for what becomes `target`, in a folder of its own beside it that is gone when the block ends."""
    with room_for(n_bytes, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if tidy:
            remove_leftovers(target.parent)
        with held_folder(target.parent) as folder:
            try:
                yield folder / target.name
            finally:
                _put_back(folder, target.parent)
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def held_folder(parent: Path) -> Iterator[Path]:
    """A new folder that is locked as long as its writer lives, so that others can tell it from a leftover."""
    while True:
        folder = parent / f".writing-{MACHINE}-{uuid.uuid4().hex}"
        folder.mkdir()
        with _locked(folder) as ours:
            if ours and folder.exists():  # another process may have removed it as a leftover before it was locked
                yield folder
                return


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Whether the folder is locked by us while the block lasts; the system unlocks what a process held when it ends."""
    if fcntl is None:
        yield True
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError:  # a file system without locks
            yield True
        else:
            yield True
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def turn(file: Path) -> Iterator[None]:
    """A lock between processes and threads: waits until no other block of this file runs. The file is gone afterwards.

    The system releases the lock of a process that ends. A link in the place of the file is refused.
    """
    from filelock import FileLock  # here, for it takes a while to import and few calls need it

    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file, mode=0o666):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows keeps what is open
                file.unlink()


def remove_leftovers(parent: Path, names: Iterable[str] | None = None) -> None:
    """Removes what writers that were killed left in a folder, and puts back what one of them had moved out of the way.

    `names` are those in the folder, where they have been listed already.
    """
    names = [name for name in names or os.listdir(parent) if name.startswith(".writing-") and ASIDE.fullmatch(name)]
    for leftover in [parent / name for name in names if not (parent / name).is_symlink()]:
        of_this_machine = leftover.name.split("-")[1] == MACHINE and fcntl is not None
        with contextlib.suppress(OSError):  # another process removes it just now
            if not of_this_machine and time.time() - _youngest(leftover) < ABANDONED:
                continue
            with _locked(leftover) as abandoned:
                if abandoned:
                    _put_back(leftover, parent)
                    shutil.rmtree(leftover)


def _youngest(folder: Path) -> float:
    return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))


def _put_back(leftover: Path, parent: Path) -> None:
    for retired in leftover.glob(f"*{RETIRED}"):
        if not os.path.lexists(parent / retired.name.removesuffix(RETIRED)):
            os.rename(retired, parent / retired.name.removesuffix(RETIRED))


def _put(new: Path, target: Path, stays: Callable[[Path], bool]) -> None:
    """Moves a folder into its place. What is there and does not stay is left where the new one was."""
    while True:
        try:
            os.rename(new, target)  # if nothing is there, or an empty folder
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        if stays(target):
            return
        with contextlib.suppress(FileNotFoundError):  # another writer moved it away just now
            if _exchange(new, target):
                return
            retired = new.with_name(target.name + RETIRED)
            shutil.rmtree(retired, ignore_errors=True)  # of an earlier turn: another writer was faster
            os.rename(target, retired)


def _exchange(new: Path, target: Path) -> bool:
    """Lets two names change places in one step; False where the system cannot."""
    if sys.platform not in ("linux", "darwin"):
        return False
    library, names = ctypes.CDLL(None, use_errno=True), (os.fsencode(new), os.fsencode(target))
    if sys.platform == "darwin":
        failed = library.renamex_np(*names, EXCHANGE)
    elif hasattr(library, "renameat2"):
        failed = library.renameat2(AT_CWD, names[0], AT_CWD, names[1], EXCHANGE)
    else:
        return False
    if failed and ctypes.get_errno() == errno.ENOENT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
    return not failed


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    """Waits until a file, or the list of names in a folder, is on the disk and not only on its way."""
    if path.is_dir() and os.name != "posix":
        return  # only POSIX opens folders
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
