"""Parts of a table of a paper: printed numbers, rows and columns, data, protocol, reduced scale."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Spec = tuple[str, Mapping[str, Any]]  # the name of something that has knobs, and those that are set
Place = tuple[str, str, str]  # row, column and part of a cell

NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d+)?)(?:\s*±\s*(\d+(?:\.\d+)?))?")
MARKS = {"✓": 1.0, "✗": 0.0}


@dataclass(frozen=True)
class Number:
    """A number as it is printed: its value, the reach of its interval (NaN if none is printed), and its digits.

    >>> Number.read("89.63 ± 0.08")
    Number(value=89.63, reach=0.08, digits=2)
    """

    value: float
    reach: float = float("nan")
    digits: int = 0

    @classmethod
    def read(cls, text: str) -> Number:
        """The number that a text begins with; NaN for ×, — and the like, which stand where there is none."""
        if text.strip() in MARKS:
            return cls(MARKS[text.strip()])
        if (found := NUMBER.match(text.strip().removeprefix("≈").strip())) is None:
            return cls(float("nan"))
        value, reach = found.groups()
        mantissa, _, exponent = value.partition("e")
        digits = max(0, len(mantissa.partition(".")[2]) - int(exponent or 0))
        return cls(float(value), float(reach) if reach else float("nan"), digits)


def numbers(text: str) -> list[Number]:
    """The numbers of a cell, such as `89.63 ± 0.08 (27.08/65.83/85.97)` or `61.27 | 85.31`.

    >>> [number.value for number in numbers("89.63 ± 0.08 (27.08/65.83/85.97)")]
    [89.63, 27.08, 65.83, 85.97]
    """
    return [Number.read(part) for part in re.split(r"[|(/]", text)]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Settings of the runs of a row or a column; a cell combines those of both.

    - `loss`: name of the loss, with the `knobs` that the paper settled on and the `grid` that it searched before.
    - `K`: size of the sets; the losses that have a K take it.
    - `run`: other fields of the run.
    - `transforms`: of the data, each a name and its knobs.
    - `data`: name of the dataset, where a table has several.
    - `recalibrated`: name of what is fitted on val before anything is measured.
    """

    loss: str = ""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    K: int | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    transforms: tuple[Spec, ...] = ()
    data: str = ""
    recalibrated: str = ""

    def joined(self, other: Setting) -> Setting:
        """Return the settings of both."""
        return Setting(
            loss=self.loss or other.loss,
            knobs={**self.knobs, **other.knobs},
            grid={**self.grid, **other.grid},
            K=other.K if self.K is None else self.K,
            run={**self.run, **other.run},
            transforms=self.transforms + other.transforms,
            data=self.data or other.data,
            recalibrated=self.recalibrated or other.recalibrated,
        )


@dataclass(frozen=True)
class Part:
    """One of the numbers of a cell: its name ("" for the first), and what is measured.

    In it `{K}` is that of the cell, and `{row}` the place of the row, from 1.

    `measure` is one of `claims.measures`, or `history.` with a column of the history, of the last epoch; `percent` tells
    whether a share is printed as 97.35 or as 0.9735.
    """

    name: str
    measure: str
    percent: bool = True


@dataclass(frozen=True)
class Row:
    """A row: what stands before it, and what it says of the runs; None where nothing of it is run."""

    label: str
    setting: Setting | None = Setting()


@dataclass(frozen=True)
class Column:
    """A column: what stands above it, the numbers in each of its cells, and what it says of the runs."""

    label: str
    parts: tuple[Part, ...]
    setting: Setting = Setting()


@dataclass(frozen=True)
class Data:
    """A dataset of a paper: its name, and what data that stand in for it must have (`claims.needs`).

    Its `recipe` and its number of `seeds`, where they are not those of the protocol.
    """

    name: str
    needs: tuple[str, ...] = ()
    recipe: str = ""
    seeds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a paper trained: a recipe of `wb.recipes`, how many seeds, which epoch is kept, on which rows it is judged.

    - `monitor`: what chooses the epoch, `{K}` being that of the cell; with `{measure}` each number is of the epoch where
      it is best on val itself; None leaves the epoch to the recipe.
    - `seeds_told`: whether the paper says how many seeds there were.
    - `model`: whether the recipe names the network; otherwise the caller of `reproduce` gives a published one.
    """

    recipe: str
    seeds: int
    monitor: str | None = None
    split: str = "test"
    seeds_told: bool = True
    model: bool = True


@dataclass(frozen=True, kw_only=True)
class Small:
    """The same protocol at a reduced scale: other data that are always here, and what else is changed.

    - `data`: dataset of the paper → one that ships or is drawn, with its knobs; columns of other datasets are not run.
    - `run`: fields of the run that replace those of the recipe.
    - `transforms`: of the data, before those of rows and columns.
    - `seeds`: how many.
    """

    data: Mapping[str, Spec]
    run: Mapping[str, Any]
    transforms: tuple[Spec, ...] = ()
    seeds: int = 2
