"""Result of a reproduction: ours beside theirs as a frame, Markdown, LaTeX and a figure, and its file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench.claims.render import as_html, as_latex, as_markdown
from workbench.claims.table import PaperTable
from workbench.claims.table_spec import Place
from workbench.store import Store, chosen_store

if TYPE_CHECKING:
    from workbench.figures import Figure

FOLDER = "reproductions"
FORMAT = 1
MEASURED = ("ours", "low", "high", "seeds", "loss")


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A table that was reproduced.

    `frame` is tidy, in the units of the paper: `row`, `column`, `part`, `printed` with `printed_low` and `printed_high`,
    `ours` with `low` and `high` (Student's 95 % interval of the mean over seeds), the number of `seeds`, the `loss`, and
    whether the cell was `run`: one that was run and has no number diverged. `conditions` says at what scale; `runs` are the keys
    of the runs, and `diverged` what was said of those whose loss did.
    """

    table: PaperTable
    frame: pd.DataFrame
    small: bool = False
    conditions: str = ""
    runs: tuple[str, ...] = ()
    diverged: tuple[str, ...] = ()
    finished: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def title(self) -> str:
        """The table, and at what scale it was reproduced."""
        return f"{self.table.name}{', at a reduced scale' if self.small else ''}"

    @property
    def agrees(self) -> bool:
        """Whether every number that was reproduced is the printed one, to the digits that are printed."""
        ran = self.frame[self.frame["run"] & self.frame["printed"].notna()]
        return bool(len(ran)) and bool(np.isclose(ran["ours"], ran["printed"], rtol=1e-9, atol=0).all())

    def markdown(self) -> str:
        """The table as it is printed, ours beside theirs, as Markdown."""
        return f"{as_markdown(self.table, self.frame)}\n{self.conditions}\n"

    def latex(self) -> str:
        """The same for a document that loads booktabs."""
        return as_latex(self.table, self.frame)

    @property
    def figure(self) -> Figure:
        """Ours beside theirs with their intervals, as a picture."""
        from dataclasses import replace

        from workbench.figures import Code, reproduced

        made = reproduced(self.frame, title=f"{self.title}: ours beside theirs", subtitle=self.conditions)
        opened = f"wb.claims.TABLES[{self.table.name!r}].reproductions()[0]"
        return replace(
            made, code=made.code.after(Code(setup=[f"reproduction = {opened}", "frame = reproduction.frame"]))
        )

    def __repr__(self) -> str:
        return f"Reproduction({self.title!r}: {int(self.frame['run'].sum())} of {len(self.frame)} numbers; {self.conditions})"

    def _repr_html_(self) -> str:
        return as_html(self.table, self.frame, self.conditions)

    def save(self, store: Store | None = None) -> Path:
        """Keeps it beside the runs, in place of what was kept of this table at this scale."""
        store = chosen_store(store)
        ours = self.frame.loc[self.frame["run"], ["row", "column", "part", *MEASURED]]
        written = {
            "format": FORMAT,
            "table": self.table.name,
            "small": self.small,
            "conditions": self.conditions,
            "runs": list(self.runs),
            "diverged": list(self.diverged),
            "finished": self.finished,
            "cells": json.loads(ours.to_json(orient="records", double_precision=15)),
        }
        path = _file(self.table, store, self.small)
        path.parent.mkdir(parents=True, exist_ok=True)
        with store.replacing(path) as aside:
            aside.write_text(json.dumps(written, indent=1, ensure_ascii=False), encoding="utf-8")
        return path


def with_ours(table: PaperTable, ours: Mapping[Place, Mapping[str, Any]]) -> pd.DataFrame:
    """The frame of a table with what was measured of its cells: `ours`, `low`, `high`, `seeds`."""
    empty = {"ours": np.nan, "low": np.nan, "high": np.nan, "seeds": 0, "loss": ""}
    frame = table.frame
    places = list(zip(frame["row"], frame["column"], frame["part"], strict=True))
    found = pd.DataFrame([{**empty, **ours.get(place, {}), "run": place in ours} for place in places])
    return pd.concat([frame, found], axis=1)


def computed(table: PaperTable, store: Store | None = None) -> Reproduction:
    """Of a table whose numbers need no run: the numbers of the library."""
    if table.computed is None:
        raise ValueError(f"{table.name} is not run: {table.not_run}")
    ours = {place: {"ours": value, "seeds": 1} for place, value in table.computed(table).items()}
    found = Reproduction(table, with_ours(table, ours), conditions="computed by the library: nothing is trained")
    found.save(store)
    return found


def stored(table: PaperTable, store: Store | None = None) -> list[Reproduction]:
    """Return the stored reproductions of a table, newest first; damaged files are left out."""
    store = chosen_store(store)
    found = [_read(table, _file(table, store, small)) for small in (False, True)]
    return sorted((one for one in found if one is not None), key=lambda one: one.finished, reverse=True)


def _file(table: PaperTable, store: Store, small: bool) -> Path:
    name = re.sub(r"\W+", "-", table.name.lower()).strip("-")
    return store.root / FOLDER / f"{name}{'-small' if small else ''}.json"


def _read(table: PaperTable, path: Path) -> Reproduction | None:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        ours = {
            (cell["row"], cell["column"], cell["part"]): {name: _number(cell[name]) for name in MEASURED}
            for cell in written["cells"]
        }
        runs, diverged = (tuple(map(str, written[name])) for name in ("runs", "diverged"))
        conditions, finished = (str(written[name]) for name in ("conditions", "finished"))
        return Reproduction(table, with_ours(table, ours), bool(written["small"]), conditions, runs, diverged, finished)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _number(value: Any) -> Any:
    """JSON has no NaN."""
    return np.nan if value is None else value
