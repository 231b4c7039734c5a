"""Where shards lie: a folder of this machine, or any address that fsspec knows (`s3://…`, `gs://…`, `memory://…`)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from workbench.lookup import check_installed
from workbench.store.atomic import whole_file

try:
    import fcntl
except ImportError:  # Windows: there one process at a time is asked to append
    fcntl = None  # type: ignore[assignment]

CHUNK = 2**24  # bytes read at a time where all of a file is looked at


def is_url(given: Any) -> bool:
    """Whether this is the address of something, and not the name of a file or folder.

    >>> is_url("s3://bucket/table"), is_url("runs/table"), is_url("C:\\\\table")
    (True, False, False)
    """
    return isinstance(given, str) and "://" in given


class Place:
    """A folder by its address: files are read as a whole or in part, and are written as a whole."""

    url: str

    def local(self, name: str) -> Path | None:
        """The path of a file, where it lies on this machine."""
        return None

    def names(self) -> list[str]:
        """The files there are."""
        raise NotImplementedError

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        raise NotImplementedError

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """The bytes of a file, or some of them."""
        raise NotImplementedError

    def open(self, name: str) -> IO[bytes]:
        """A file to read from."""
        raise NotImplementedError

    def write(self, name: str, content: bytes) -> None:
        """Puts a file there: a reader finds it as a whole, or what was there before."""
        raise NotImplementedError

    @contextlib.contextmanager
    def appending(self) -> Iterator[None]:
        """While the block lasts nobody else appends; on this machine that is seen to, elsewhere it is asked of people."""
        yield

    def remove_leftovers(self, kind: re.Pattern[str], known: set[str]) -> None:
        """Removes files of a kind that no manifest knows, where it is sure that nobody is writing them just now."""

    def sha256(self, name: str) -> str:
        """The sha256 of a file, a chunk at a time."""
        digest = hashlib.sha256()
        with self.open(name) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
        return digest.hexdigest()


class LocalPlace(Place):
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, str(folder)

    def local(self, name: str) -> Path:
        return self.folder / name

    def names(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self.folder) if entry.is_file())

    def size(self, name: str) -> int:
        return self.local(name).stat().st_size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        with self.open(name) as file:
            file.seek(start)
            return file.read(-1 if stop is None else stop - start)

    def open(self, name: str) -> IO[bytes]:
        return self.local(name).open("rb")

    def write(self, name: str, content: bytes) -> None:
        with whole_file(self.local(name), len(content)) as aside:
            aside.write_bytes(content)

    @contextlib.contextmanager
    def appending(self) -> Iterator[None]:
        if fcntl is None:
            yield
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # the system unlocks it when the process ends, however it ends
            yield
        finally:
            os.close(descriptor)

    def remove_leftovers(self, kind: re.Pattern[str], known: set[str]) -> None:
        for name in self.names():
            if kind.fullmatch(name) and name not in known:
                self.local(name).unlink(missing_ok=True)


class RemotePlace(Place):
    """A folder that fsspec reaches. Object stores put a file there as a whole."""

    def __init__(self, url: str) -> None:
        check_installed("fsspec")
        from fsspec.core import url_to_fs

        self.url = url.rstrip("/")
        try:
            self._files, self._folder = url_to_fs(self.url)
        except (ImportError, ValueError) as error:  # the protocol needs a package, or nobody knows it
            raise ValueError(f"{url} cannot be reached: {error}") from None

    def _path(self, name: str) -> str:
        return f"{self._folder.rstrip('/')}/{name}"

    def names(self) -> list[str]:
        return sorted(path.rsplit("/", 1)[-1] for path in self._files.ls(self._folder, detail=False))

    def size(self, name: str) -> int:
        return int(self._files.size(self._path(name)))

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        return bytes(self._files.cat_file(self._path(name), start=start, end=stop))

    def open(self, name: str) -> IO[bytes]:
        opened: IO[bytes] = self._files.open(self._path(name), "rb")
        return opened

    def write(self, name: str, content: bytes) -> None:
        self._files.makedirs(self._folder, exist_ok=True)
        self._files.pipe_file(self._path(name), content)


@lru_cache(maxsize=64)
def place_at(url: str) -> Place:
    """The folder at an address; `file://…` and plain paths are folders of this machine."""
    if url.startswith("file://"):
        url = url.removeprefix("file://")
    return RemotePlace(url) if is_url(url) else LocalPlace(Path(os.path.abspath(url)))  # workers start elsewhere
