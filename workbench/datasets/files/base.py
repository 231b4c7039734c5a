"""Base of datasets on disk: path, seed, and detection of the format."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from workbench.datasets.base import Dataset, Split
from workbench.datasets.labels import divided
from workbench.knobs import Knobbed, knob


@dataclass(frozen=True)
class OnDisk(Knobbed, ABC):
    """A dataset that lies at a path. The path is made absolute, so that a run finds its data again from any folder."""

    looks_like: ClassVar[str]  # in words, for the message about a path that is nothing we know

    path: Path
    seed: int = knob(
        0, low=0, high=20, maximum=2**31 - 1, meaning="seed of the split into train, val and test, where none is given"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "path", Path(os.path.abspath(Path(self.path).expanduser())))

    @classmethod
    @abstractmethod
    def lies_at(cls, path: Path) -> bool:
        """Whether what lies at the path looks like this kind."""

    @abstractmethod
    def dataset(self) -> Dataset:
        """The three splits."""

    @property
    def spec(self) -> dict[str, Any]:
        """Return the arguments that load this dataset again."""
        return {"name": str(self.path), "knobs": self.settings()}

    def from_two(
        self, train: Split, test: Split, class_names: tuple[str, ...], groups: tuple[str, ...] | None = None
    ) -> Dataset:
        """The dataset of a training and a test split: val is a tenth of each class of the former."""
        rest, held_out = divided(train.labels, len(class_names), self.seed, held_out=1)
        return Dataset(
            self.path.name, train.rows(rest), train.rows(held_out), test, class_names, groups, spec=self.spec
        )


def listed(path: Path, most: int = 5) -> str:
    """Return a short listing of a folder for error messages."""
    entries = sorted(path.iterdir())
    folders = [f"{entry.name}/" for entry in entries if entry.is_dir()]
    files = [entry.name for entry in entries if not entry.is_dir()]
    parts = [_first(folders, "folder", most), _first(files, "file", most)]
    return " and ".join(part for part in parts if part) or "nothing"


def _first(names: list[str], kind: str, most: int) -> str:
    kind += "s" if len(names) > 1 else ""
    rest = ", …" if len(names) > most else ""
    return f"{len(names)} {kind} ({', '.join(names[:most])}{rest})" if names else ""
