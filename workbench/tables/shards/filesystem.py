"""Filesystem of shards: a folder of this machine, or any address that fsspec knows (`s3://…`, `gs://…`, `memory://…`)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from workbench.files.atomic import remove_leftovers, turn, whole_file
from workbench.optional_dependencies import check_installed
from workbench.trusted_imports import allowed_modules
from workbench.untrusted_files import open_regular

LOCK = ".appending"
CHUNK = 2**24  # bytes read at a time where all of a file is looked at


def is_url(given: Any) -> bool:
    """Whether this is the address of something, and not the name of a file or folder.

    >>> is_url("s3://bucket/table"), is_url("runs/table"), is_url("C:\\\\table")
    (True, False, False)
    """
    return isinstance(given, str) and "://" in given


def check_address(url: Any, allow: Iterable[str] = ()) -> None:
    """Refuse an address of another machine that stands in a file, unless a person has allowed its beginning.

    >>> check_address("runs/table")
    >>> check_address("http://10.0.0.1/scores", allow=["s3://mine/"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: the scores are said to be at http://10.0.0.1/scores; a file that names an address is no reason to ask it. If ...
    """
    if not isinstance(url, str):
        raise ValueError(f"the address of shards is a text, not {type(url).__name__}")
    local = not is_url(url) or url.startswith("file://")
    if not local and not any(is_url(start) and url.startswith(start) for start in allowed_modules(allow)):
        start = url[: url.index("://") + 3] + url.split("://", 1)[1].split("/")[0] + "/"
        raise ValueError(
            f"the scores are said to be at {url:.200}; a file that names an address is no reason to ask it. If you trust it, "
            f"say so: --allow {start:.100} on the command line, or allow=[{start!r:.100}] in Python"
        )


class Filesystem:
    """A folder by its address: files are read as a whole or in part, and are written as a whole."""

    url: str

    def local(self, name: str) -> Path | None:
        """The path of a file, where it lies on this machine."""
        return None

    def names(self) -> list[str]:
        """The files there are."""
        raise NotImplementedError

    def size(self, name: str) -> int:
        """Size of a file in bytes."""
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
        """Exclusive right to append while the block lasts; locked on this machine, a convention elsewhere."""
        yield

    def remove_leftovers(self, kind: re.Pattern[str], known: set[str]) -> None:
        """Remove files of a kind that no manifest lists, if no writer can be using them."""

    def sha256(self, name: str) -> str:
        """The sha256 of a file, a chunk at a time."""
        digest = hashlib.sha256()
        with self.open(name) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
        return digest.hexdigest()


class LocalFilesystem(Filesystem):
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, str(folder)

    def local(self, name: str) -> Path:
        return self.folder / name

    def names(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self.folder) if entry.is_file() and entry.name != LOCK)

    def size(self, name: str) -> int:
        return self.local(name).stat().st_size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        with self.open(name) as file:
            file.seek(start)
            return file.read(-1 if stop is None else stop - start)

    def open(self, name: str) -> IO[bytes]:
        return open_regular(self.local(name))

    def write(self, name: str, content: bytes) -> None:
        with whole_file(self.local(name), len(content), tidy=False) as aside:  # `remove_leftovers` looks once for all
            aside.write_bytes(content)

    @contextlib.contextmanager
    def appending(self) -> Iterator[None]:
        with turn(self.folder / LOCK):
            yield

    def remove_leftovers(self, kind: re.Pattern[str], known: set[str]) -> None:
        names = os.listdir(self.folder)
        remove_leftovers(self.folder, names)
        for name in names:
            if name not in known and kind.fullmatch(name):
                self.local(name).unlink(missing_ok=True)


class RemoteFilesystem(Filesystem):
    """A folder that fsspec reaches. Object stores put a file there as a whole."""

    def __init__(self, url: str) -> None:
        check_installed("fsspec")
        from fsspec.core import url_to_fs

        self.url = url.rstrip("/")
        try:
            self._files, self._folder = url_to_fs(self.url)
        except (ImportError, ValueError) as error:  # the protocol is unknown or needs a package
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
def filesystem_at(url: str) -> Filesystem:
    """The folder at an address; `file://…` and plain paths are folders of this machine."""
    if url.startswith("file://"):
        url = url.removeprefix("file://")
    return (
        RemoteFilesystem(url) if is_url(url) else LocalFilesystem(Path(os.path.abspath(url)))
    )  # workers start elsewhere
