"""Folders of `.wav` files, one folder for each class, as they are before a model gives them scores."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from workbench.datasets.files.image_folders import SPLIT_FOLDERS

HEADERS = 1000  # files whose length is read, the first by name


@dataclass(frozen=True, eq=False)
class SoundFolder:
    """The `.wav` files of a folder: `<class>/…`, `train/<class>/…`, or files of no class beside each other."""

    path: Path
    files: tuple[Path, ...]  # below the folder, by name

    @classmethod
    def at(cls, path: str | Path) -> Self | None:
        """The sounds of a folder; None if it holds none."""
        folder = Path(path)
        if not folder.is_dir():
            return None
        found = [
            each.relative_to(folder) for each in folder.rglob("*") if each.suffix.lower() == ".wav" and each.is_file()
        ]
        return cls(folder, tuple(sorted(found))) if found else None

    @property
    def splits(self) -> list[str]:
        """The split of each file, "rows" where there are no folders of splits."""
        known = {name: split for split, names in SPLIT_FOLDERS.items() for name in names}
        return [known.get(file.parts[0], "rows") if len(file.parts) > 2 else "rows" for file in self.files]

    @property
    def classes(self) -> list[str]:
        """The class of each file, "" for a file beside the folders."""
        return [
            "" if len(file.parts) == 1 else file.parts[0 if split == "rows" else 1]
            for file, split in zip(self.files, self.splits, strict=True)
        ]

    def headers(self) -> Iterator[Header | str]:
        """Length and sampling rate of the first files, or why one cannot be read."""
        for file in self.files[:HEADERS]:
            try:
                with wave.open(str(self.path / file)) as sound:
                    yield Header(sound.getnframes() / sound.getframerate(), sound.getframerate())
            except (wave.Error, EOFError, OSError, ZeroDivisionError) as error:
                yield f"{file} ({str(error) or 'it ends too early'})"


class Header(NamedTuple):
    """What the header of a sound says."""

    seconds: float
    rate: int  # samples in a second
