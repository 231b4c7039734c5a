"""The folder that everything is kept in, and errors that say what to do where it cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from workbench.files.atomic import FullDisk, room_for

ELSEWHERE = "set WORKBENCH_HOME to another folder; a run that has a checkpoint goes on from there"


def home() -> Path:
    """Folder of runs: `WORKBENCH_HOME`, else `./runs` if it exists, else the user's data folder."""
    if chosen := os.environ.get("WORKBENCH_HOME"):
        return Path(chosen).expanduser()
    if Path("runs").is_dir():
        return Path("runs").resolve()
    return Path(platformdirs.user_data_dir("workbench", appauthor=False))


class Home:
    """A folder of runs and caches: that of the user, or the one given."""

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = home() if root is None else Path(root).expanduser().resolve()

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

    def inside(self, name: str) -> Path:
        """A folder of the store. A link is refused: its target is outside the store."""
        folder = self.root / name
        if folder.is_symlink():
            raise ValueError(f"{name} in {self.root} is a link to another place; remove the link")
        return folder
