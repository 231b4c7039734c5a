"""A table of a paper: rows, columns, printed numbers, and how to reproduce them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from workbench import display_names
from workbench.citations import PAPERS
from workbench.claims.render import as_html, as_latex, as_markdown
from workbench.claims.table_spec import Column, Data, Number, Place, Protocol, Row, Setting, Small, Spec, numbers
from workbench.runs.recipes import RECIPES

if TYPE_CHECKING:
    from workbench.claims.reproduction import Reproduction
    from workbench.datasets import Dataset
    from workbench.store import Store

NOTHING = "_"  # stands for a cell that is empty in the paper
NUMBERS_OF_A_RUN = ("epochs", "batch_size", "learning_rate")
ABSENT = "—"  # stands in the paper where there is nothing to run
DRAWN = "?"  # stands where a figure has a point and prints no number
DIGITS = 2  # after the point, where no number is printed


def _monitor_in_words(monitor: str | None) -> str:
    """By which number an epoch is kept.

    >>> _monitor_in_words("average_k_accuracy@K={K}"), _monitor_in_words("top_k_accuracy@K=5")
    ('average-K accuracy, at each K', 'top-K accuracy, K = 5')
    """
    if monitor is None:
        return "as the recipe has it"
    name, _, at = monitor.partition("@")
    text = "what the column measures" if name == "{measure}" else display_names.of_name(name).replace(" k ", "-K ")
    return text + {"": "", "K={K}": ", at each K"}.get(at, f", {at.replace('=', ' = ')}")


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of a paper, or the points of a figure: what is printed, and how it is reproduced.

    `name` is how it is called here, `title` what it shows, `paper` and `place` where it stands. `rows` and `columns` are
    in the order of the paper, and `text` are its cells, a line a row. Tables with a `protocol` are trained again, at the
    paper's scale or at that of `small`; others are `computed` at once; of the rest `not_run` says why.

    >>> from workbench.claims import TABLES
    >>> table = TABLES["001 Table 2"]
    >>> table.printed["AVG-K", "K = 10", "few"].value
    75.75
    """

    name: str
    title: str
    paper: str
    place: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    text: str
    corner: str = ""
    of_cells: Mapping[tuple[str, str], Setting] = field(default_factory=dict)  # where row and column do not say it all
    data: tuple[Data, ...] = ()
    transforms: tuple[Spec, ...] = ()  # of the data, for every cell
    protocol: Protocol | None = None
    small: Small | None = None
    computed: Callable[[PaperTable], Mapping[Place, float]] | None = None
    not_run: str = ""
    note: str = ""

    @cached_property
    def cells(self) -> dict[tuple[str, str], str]:
        """(row, column) → what is printed there."""
        lines = [re.split(r"\s{2,}", line.strip()) for line in self.text.strip().splitlines()]
        if [len(line) for line in lines] != [len(self.columns)] * len(self.rows):
            raise ValueError(
                f"{self.name} has {len(self.rows)} × {len(self.columns)} cells, and the text has other ones"
            )
        return {
            (row.label, column.label): "" if cell == NOTHING else cell
            for row, line in zip(self.rows, lines, strict=True)
            for column, cell in zip(self.columns, line, strict=True)
        }

    @cached_property
    def printed(self) -> dict[Place, Number]:
        """(row, column, part) → the number that is printed there."""
        found = {}
        for row in self.rows:
            for column in self.columns:
                read = numbers(self.cells[row.label, column.label])
                if len(read) != len(column.parts):  # ×, — and the like stand for the whole cell
                    read = [Number(float("nan"))] * len(column.parts)
                for part, number in zip(column.parts, read, strict=True):
                    found[row.label, column.label, part.name] = number
        return found

    def digits(self, place: Place) -> int:
        """With how many digits after the point a number is printed; where there is none, as its neighbours are."""
        _, _, part = place
        if self.printed[place].value == self.printed[place].value:  # not NaN
            return self.printed[place].digits
        known = [n.digits for (_, _, other), n in self.printed.items() if other == part and n.value == n.value]
        return max(known, default=DIGITS)

    @property
    def frame(self) -> pd.DataFrame:
        """Tidy: one line per row, column and part, with `printed` and the ends of its interval, in the units of the paper."""
        records = [
            {
                **dict(zip(("row", "column", "part"), place, strict=True)),
                "printed": number.value,
                "printed_low": number.value - number.reach,
                "printed_high": number.value + number.reach,
            }
            for place, number in self.printed.items()
        ]
        columns = ["row", "column", "part", "printed", "printed_low", "printed_high"]
        return pd.DataFrame(records, columns=columns)

    @property
    def citation(self) -> str:
        """Authors, title and year of the paper, and the place in it."""
        return f"{PAPERS[self.paper]}, {self.place}"

    @property
    def reduced(self) -> str:
        """Differences of the small scale: data, network, epochs, learning rate, seeds; "" if there is none."""
        return "" if self.small is None else self.reduction(self.small.seeds)

    def reduction(self, n_seeds: int) -> str:
        """Differences of the small scale for a number of seeds."""
        if self.small is None or self.protocol is None:
            raise ValueError(f"{self.name} has no reduced scale")
        run, theirs = self.small.run, RECIPES[self.recipe_of(self.data[0])].settings
        kinds = [
            " with ".join([name, *(display_names.of_name(kind) for kind, _ in self.small.transforms)])
            for name, _ in self.small.data.values()
        ]
        data = dict.fromkeys(f"{kind} for {name}" for kind, name in zip(kinds, self.small.data, strict=True))
        left_out = [one.name for one in self.data if one.name not in self.small.data]
        differences = [
            f"data: {', '.join(data)}" + (f" ({', '.join(left_out)} left out)" if left_out else ""),
            f"network: {run['model']} for {theirs.get('model', 'a published one')}",
        ]
        seeds = {"seeds": (n_seeds, self.data[0].seeds or self.protocol.seeds)}
        pairs = {name: (run[name], theirs[name]) for name in NUMBERS_OF_A_RUN if name in run} | seeds
        differences += [f"{name.replace('_', ' ')}: {a:g} for {b:.3g}" for name, (a, b) in pairs.items() if a != b]
        return "; ".join([*differences, "no augmentation"] if theirs.get("transforms") else differences)

    def conditions(self) -> dict[str, str]:
        """How it is run, in words: protocol, reduced scale, what is to be known, and the command."""
        if self.protocol is None:
            conditions = (
                {"not run": self.not_run} if self.not_run else {"computed": "by the library, nothing is trained"}
            )
            return {**conditions, **({"note": self.note} if self.note else {}), **self._drawn}
        seeds = f"{self.protocol.seeds}" + ("" if self.protocol.seeds_told else " (their number is not stated)")
        needs = [f"{one.name} ({', '.join(one.needs)})" for one in self.data]
        conditions = {
            "data": "; ".join(needs),
            "recipe": ", ".join(dict.fromkeys(map(self.recipe_of, self.data))),
            "seeds": seeds,
            "epoch kept": _monitor_in_words(self.protocol.monitor),
            "sets": display_names.of_name(self.rule),
            "judged on": self.protocol.split,
            "reduced scale": self.reduced or "none",
            "note": self.note,
            "command": self.command(small=self.small is not None),
        }
        return {name: text for name, text in (conditions | self._drawn).items() if text}

    @property
    def _drawn(self) -> dict[str, str]:
        """What its mark for a drawn point means, if there is one."""
        return {DRAWN: "the paper draws a point there and prints no number"} if DRAWN in self.cells.values() else {}

    def command(self, small: bool) -> str:
        """Return the command that reproduces the table."""
        if self.protocol is None:
            return f"workbench reproduce '{self.name}'"
        data = "--data PATH" if len(self.data) == 1 else f"--data '{self.data[0].name}=PATH'"
        return f"workbench reproduce '{self.name}' {'--small' if small else data}"

    def recipe_of(self, data: Data) -> str:
        """The name of the recipe that is used on one of its datasets."""
        return data.recipe or self.protocol_of.recipe

    @property
    def rule(self) -> str:
        """How sets are made: from what is measured."""
        averaged = any("average_k" in part.measure for column in self.columns for part in column.parts)
        return "" if self.protocol is None else "AverageK" if averaged else "TopK"

    @property
    def protocol_of(self) -> Protocol:
        """Its protocol, where something is trained for it."""
        if self.protocol is None:
            raise ValueError(f"nothing is trained for {self.name}")
        return self.protocol

    def settings(self) -> Iterator[tuple[Row, Column, Setting]]:
        """Yield the settings of every cell that is run."""
        for row in self.rows:
            for column in self.columns:
                place = (row.label, column.label)
                if row.setting is not None and column.parts and self.cells[place] not in ("", ABSENT):
                    own = self.of_cells.get(place, Setting())
                    yield row, column, row.setting.joined(column.setting).joined(own)

    def renamed(self, name: str, **changes: Any) -> PaperTable:
        """The same table at another place, such as in a thesis."""
        return replace(self, name=name, **changes)

    def reproduce(
        self,
        data: str | os.PathLike[str] | Dataset | Mapping[str, Any] | None = None,
        *,
        small: bool = False,
        tune: bool = False,
        seeds: int | None = None,
        model: str | None = None,
        device: str = "auto",
        devices: int = 1,
        share: tuple[int, int] = (1, 1),
        store: Store | None = None,
        progress: bool = True,
    ) -> Reproduction:
        """Train what stands in the table, and lay ours beside theirs.

        - `data`: a dataset, its name or its path; where the table has several, {name of the paper: one of these}, and
          columns of those that are left out are not run.
        - `small`: the same protocol at the reduced scale of `self.small`, on data that are always here.
        - `tune`: search the grid that the paper searched, choosing on val; otherwise the knobs are those it settled on.
        - `seeds`: number of seeds, if not that of the paper.
        - `model`: the network, where the paper fine-tunes a published one.
        - `device`, `devices`: as in `Run`.
        - `share`: (2, 4) trains the second quarter of the runs, and lays out what is stored by then: for machines that work
          side by side on one store.
        - `store`: where runs and the result are kept; a run that is stored is not trained again.
        - `progress`: print a line for each run.
        """
        if self.protocol is None:
            from workbench.claims.reproduction import computed

            return computed(self, store)
        from workbench.claims.runner import reproduce

        return reproduce(
            self,
            data,
            small=small,
            tune=tune,
            seeds=seeds,
            model=model,
            device=device,
            devices=devices,
            share=share,
            store=store,
            progress=progress,
        )

    def reproductions(self, store: Store | None = None) -> list[Reproduction]:
        """Return the stored reproductions, newest first."""
        from workbench.claims.reproduction import stored

        return stored(self, store)

    def markdown(self) -> str:
        """The table as it is printed, as Markdown."""
        return as_markdown(self)

    def latex(self) -> str:
        """The table as it is printed, for a document that loads booktabs."""
        return as_latex(self)

    def __repr__(self) -> str:
        return f"PaperTable({self.name!r}: {self.title}; {self.paper}, {self.place})"

    def _repr_html_(self) -> str:
        return as_html(self)


class NoSuchTable(KeyError, ValueError):
    """A name that no table has; it says which there are."""

    def __str__(self) -> str:
        return str(self.args[0])


class Tables(dict[str, PaperTable]):
    """Tables by their names; one that does not exist lists those that do."""

    def __missing__(self, name: object) -> PaperTable:
        raise NoSuchTable(f"there is no table {name!r}; there are {', '.join(self)}")
