"""A table of a paper about set rules: rules are fitted and judged on scores that exist already; nothing is trained."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.claims.table import PaperTable
from workbench.claims.table_spec import Place
from workbench.metrics import coverage, macro_accuracy, mean_size
from workbench.metrics.set_metrics import class_accuracy
from workbench.sets import PredictionSets, rule_from_text
from workbench.tables import LogitTable

if TYPE_CHECKING:
    from workbench.claims.reproduction import Reproduction

# Parts of file names, as the authors publish their scores; an older name of the calibration part is "val".
CALIBRATION, TEST, TRAINING = ("_cal_softmax.npy", "_val_softmax.npy"), ("_test_softmax.npy",), ("_train_labels.npy",)


def classes_below_half(sets: PredictionSets) -> float:
    """The share of the classes that are in less than half of the sets of their rows."""
    shares = class_accuracy(sets)
    return float(np.mean(shares[~np.isnan(shares)] < 0.5))


def undercoverage_gap(sets: PredictionSets) -> float:
    """The mean over classes of what their coverage lacks to the promise."""
    shares = class_accuracy(sets)
    return float(np.mean(np.maximum(sets.rule.rule.confidence - shares[~np.isnan(shares)], 0)))


MEASURES: dict[str, Callable[[PredictionSets], float]] = {
    "classes_below_half": classes_below_half,
    "undercoverage_gap": undercoverage_gap,
    "macro_coverage": macro_accuracy,
    "coverage": coverage,
    "mean_size": mean_size,
}


@dataclass(frozen=True, kw_only=True)
class RuleTable(PaperTable):
    """A table whose rows are set rules; `rules` has them by row, as Python prints them."""

    rules: Mapping[str, str] = field(default_factory=dict)

    def conditions(self) -> dict[str, str]:
        conditions = {
            "data": "softmax and labels of calibration and test rows, and training labels, as .npy files in one folder: "
            + ", ".join(f"*{names[0]}" for names in (CALIBRATION, TEST, TRAINING))
            + ", and *_labels.npy beside each softmax",
            "reduced scale": "the demo's network of the garden in place of the authors'",
            "note": self.note,
            "command": self.command(small=True),
        }
        return {name: text for name, text in conditions.items() if text}

    def command(self, small: bool) -> str:
        return f"workbench reproduce '{self.name}' {'--small' if small else '--data FOLDER'}"

    def reproduce(self, data: Any = None, *, small: bool = False, store: Any = None, **_: Any) -> Reproduction:
        """Fit every rule on the calibration rows, judge it on the test rows, and lay ours beside theirs.

        Args:
            data: folder of the authors' files, or {"val": table, "test": table}.
            small: on the demo's network of the garden.
            store: where the result is kept.

        Returns:
            The table with both numbers in every cell.
        """
        from workbench.claims.reproduction import Reproduction, with_ours

        val, test = self._tables(data, small)
        ours = {place: {"ours": value, "seeds": 1, "loss": ""} for place, value in self.judged(val, test).items()}
        conditions = f"{val.n} rows to fit on, {test.n} to judge, {val.n_classes} classes; nothing is trained"
        found = Reproduction(self, with_ours(self, ours), small, conditions)
        found.save(store)
        return found

    def _tables(self, data: Any, small: bool) -> tuple[LogitTable, LogitTable]:
        if small:
            from workbench.claims.data import demo_tables

            tables = demo_tables()
            return tables["val"], tables["test"]
        if isinstance(data, Mapping):
            return data["val"], data["test"]
        if data is None:
            raise ValueError(
                f"{self.name} is judged on the authors' softmax files: give data=FOLDER (--data FOLDER), or small=True (--small)"
            )
        return authors_tables(data)

    def judged(self, val: LogitTable, test: LogitTable) -> dict[Place, float]:
        """Every number of the table."""
        found: dict[Place, float] = {}
        for row in self.rows:
            sets = rule_from_text(self.rules[row.label]).fit(val).sets(test)
            for column in self.columns:
                for part in column.parts:
                    found[row.label, column.label, part.name] = MEASURES[part.measure](sets)
        return found


def authors_tables(folder: str | os.PathLike[str]) -> tuple[LogitTable, LogitTable]:
    """Calibration and test rows from the files that Ding, Fermanian & Salmon publish, memory-mapped.

    Raises:
        FileNotFoundError: a file is missing; the message names it.
    """
    counts: np.ndarray | None = None
    tables = []
    for names in (CALIBRATION, TEST):
        path = _file(folder, names)
        softmax = np.load(path, mmap_mode="r", allow_pickle=False)
        labels = np.load(str(path).replace("_softmax.npy", "_labels.npy"), allow_pickle=False)
        if counts is None:
            training = np.load(_file(folder, TRAINING), allow_pickle=False)
            counts = np.bincount(training.astype(np.int64), minlength=softmax.shape[1])
        tables.append(LogitTable.from_probabilities(softmax, labels.astype(np.int64), class_counts=counts))
    return tables[0], tables[1]


def _file(folder: str | os.PathLike[str], names: tuple[str, ...]) -> Path:
    found = sorted(path for name in names for path in Path(folder).glob(f"*{name}"))
    if not found:
        raise FileNotFoundError(f"{folder} holds no file *{names[0]}; give the folder of the authors' .npy files")
    return found[0]
