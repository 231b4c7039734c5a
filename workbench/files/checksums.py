"""A folder whose files are compared with their checksums before they are believed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

from workbench.untrusted_files import read_json

CHECKSUMS = "checksums.json"
SHORT = 12  # digits of a key that people read


@dataclass(frozen=True, repr=False)
class CheckedFolder:
    """A folder that is named by a key. What is wrong with a file of it becomes a `ValueError` that names the folder."""

    path: Path

    @property
    def key(self) -> str:
        return self.path.name

    @property
    def short(self) -> str:
        """The beginning of the key, as people read it and as it stands in the address of a page."""
        return self.key[:SHORT]

    @cached_property
    def checksums(self) -> dict[str, str]:
        """File, relative to the folder → SHA-256."""
        found = self.json(CHECKSUMS, self.path / CHECKSUMS)
        texts = isinstance(found, dict) and all(isinstance(checksum, str) for checksum in found.values())
        if not texts or not all(map(_inside, found)):
            raise ValueError(self.wrong(CHECKSUMS, "it is not a list of files with their checksums"))
        return dict(found)

    def verified(self, name: str) -> Path:
        """The path of a file, after comparing its content with its checksum."""
        path = self.path / name
        if name not in self.checksums:
            raise ValueError(f"{self.named}: it has no {name}, but {', '.join(self.checksums) or 'nothing'}")
        try:
            found = sha256_of(path) if path.is_file() else None
        except OSError as error:
            raise ValueError(self.wrong(name, str(error.strerror))) from None
        if found == self.checksums[name]:
            return path
        now = self.anew().checksums
        if found is not None and found == now.get(name):  # the folder was written anew since it was opened
            self.__dict__["checksums"] = now
            return path
        raise ValueError(self.wrong(name, "it does not match its checksum"))

    def anew(self) -> Self:
        """The same folder, with nothing read of it yet."""
        return type(self)(self.path)

    def json(self, name: str, path: Path) -> Any:
        """Read a JSON file; NaN and infinity are not allowed."""
        try:
            return read_json(path)
        except OSError as error:
            raise ValueError(self.wrong(name, str(error.strerror))) from None
        except ValueError as error:
            raise ValueError(self.wrong(name, str(error))) from None

    @property
    def named(self) -> str:
        """The folder as errors call it."""
        return f"{self.path.parent.name}/{self.short}"

    def wrong(self, name: str, what: str) -> str:
        """Return the error message of a damaged file."""
        return f"{self.named}: {name} is damaged or was changed: {what}"


def write_checksums(folder: Path) -> None:
    """Writes the checksums of all files that a folder holds: from now on it is whole."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    checksums = {file.relative_to(folder).as_posix(): sha256_of(file) for file in files}
    (folder / CHECKSUMS).write_text(json.dumps(checksums, indent=1), encoding="utf-8")


def is_whole(folder: Path) -> bool:
    """Whether a folder was written to its end."""
    return (folder / CHECKSUMS).is_file()


def sha256_of(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1024)  # runs have files of the same names
def _inside(name: str) -> bool:
    """Whether a name is that of a file inside a folder."""
    path = Path(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name
