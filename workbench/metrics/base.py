"""The one shape of every metric: sums over cells of rows, and a formula on the sums.

Accuracy is a sum of hits over a count of rows; macro-accuracy is the same in one cell per class; a calibration error has
one cell per bin. Taken apart this way, a metric is written once and its bootstrap comes for free: a resample is a weight
per row, so all resamples of all metrics are products of one weight matrix.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.prediction_sets import checked_sets
from workbench.tables import checked_table

Value = float | dict[str, float]
CHUNK = 2**22  # weights held at a time: 32 MB


@dataclass(frozen=True, eq=False)
class Parts:
    """A metric taken apart for one table or one collection of sets.

    Entry e adds `columns[e]` to `cells[e]`; `formula` turns sums of shape (..., cells, columns) into values of shape
    (...), or into {name: values}. Entries are the rows themselves unless `rows` says which row each belongs to.
    """

    n_rows: int
    columns: np.ndarray  # (entries, columns)
    formula: Callable[[np.ndarray], Any]
    cells: np.ndarray | None = None  # (entries,); None: all in one cell
    n_cells: int = 1
    rows: np.ndarray | None = None  # (entries,)

    def value(self) -> Value:
        """The metric on all rows."""
        return _as_value(self.formula(self._sums(np.ones((self.n_rows, 1)))[0]))

    def resampled(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        """{name: (resamples,)} for weights (n, resamples): how often each row was drawn. One value has the name ""."""
        return named(self.formula(self._sums(weights)))

    def _sums(self, weights: np.ndarray) -> np.ndarray:
        """(resamples, cells, columns)."""
        if self.n_cells == 1 and self.rows is None:
            return (weights.T @ self.columns)[:, None, :]
        from scipy.sparse import csr_array

        n_entries, n_columns = self.columns.shape
        rows = np.arange(n_entries) if self.rows is None else self.rows
        cells = np.zeros(n_entries, np.int64) if self.cells is None else self.cells
        sums = np.empty((weights.shape[1], self.n_cells, n_columns))
        for column in range(n_columns):
            matrix = csr_array((self.columns[:, column], (cells, rows)), shape=(self.n_cells, self.n_rows))
            sums[:, :, column] = (matrix @ weights).T
        return sums


@dataclass(frozen=True, eq=False)
class PointParts(Parts):
    """A metric that needs all n·L probabilities at once: its value is known, an interval is not offered (NaN)."""

    @classmethod
    def of(cls, n_rows: int, known: Any) -> PointParts:
        """The parts of a value that was computed already."""
        return cls(n_rows, np.ones((n_rows, 1)), lambda _: known)

    def resampled(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        return {name: np.full(weights.shape[1], np.nan) for name in named(self.value())}


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric: its name, what it means, which way is better, its bounds, and its parts.

    Call it like a function: `accuracy(sets)`. `accuracy.interval(sets)` gives a bootstrap interval.
    """

    name: str
    title: str
    definition: str
    direction: str  # "higher" or "lower" is better; "none": neither
    bounds: tuple[float, float]
    subject: str  # "sets", "table", "tables" (inside and outside) or "grouped sets" (sets and what to group by)
    labels: str  # "none", "any" (needs labels), "one" or "many"
    needs: tuple[str, ...]  # fields of the table it cannot do without
    suits: Callable[[Any], bool]  # further conditions on the table, such as its link
    parts: Callable[..., Parts]

    def __call__(self, *subjects: Any, **options: Any) -> Any:
        self._check(subjects)
        return self.parts(*subjects, **options).value()

    def interval(
        self, *subjects: Any, confidence: float = 0.95, resamples: int = 1000, seed: int = 0, **options: Any
    ) -> Any:
        """(low, high): the basic bootstrap interval over rows; {name: (low, high)} where the metric gives several.

        >>> import workbench as wb
        >>> table = wb.LogitTable(np.eye(2)[[0, 1] * 50] * 9, labels=[0, 1] * 45 + [0, 0] * 5)
        >>> low, high = wb.metrics.top_k_accuracy.interval(table, K=1)
        >>> round(low, 3), wb.metrics.top_k_accuracy(table, K=1), round(high, 3)
        (0.91, 0.95, 0.99)
        """
        self._check(subjects)
        found = intervals([(self, self.parts(*subjects, **options))], confidence, resamples, seed)[0]
        return found[""] if list(found) == [""] else found

    def _check(self, subjects: tuple[Any, ...]) -> None:
        """Refuses a table where sets are meant and the reverse, and one label where many are meant."""
        if self.subject == "tables" or not subjects:  # those may be confidences as well
            return
        table = checked_sets(subjects[0]).table if "sets" in self.subject else checked_table(subjects[0])
        if self.labels == "many" and table.labels is not None and not table.many_labels:
            raise ValueError(
                f"{self.name} is for rows with many labels or none; these have one: give (n, L) bool labels"
            )

    def at(self, **options: Any) -> Metric:
        """The same metric with some options settled, and named after them: for a report or a comparison.

        >>> import workbench as wb
        >>> top_3 = wb.metrics.top_k_accuracy.at(K=3)
        >>> top_3.name, top_3(wb.LogitTable(9 * np.eye(4), labels=[3, 2, 1, 0]))
        ('top_k_accuracy, K = 3', 0.75)
        """
        settled = ", ".join(f"{name} = {value}" for name, value in options.items())
        name, title = (f"{words}, {settled}" for words in (self.name, self.title))
        return dataclasses.replace(self, name=name, title=title, parts=functools.partial(self.parts, **options))

    def applies(self, table: Any) -> bool:
        """Whether the table has what the metric needs."""
        if self.labels != "none" and table.labels is None:
            return False
        if (self.labels == "one" and table.many_labels) or (self.labels == "many" and not table.many_labels):
            return False
        return self.suits(table) and all(getattr(table, field) is not None for field in self.needs)

    def __repr__(self) -> str:
        return f"wb.metrics.{self.name}"


def metric(
    *,
    title: str,
    direction: str,
    bounds: tuple[float, float] = (0, 1),
    subject: str = "sets",
    labels: str = "any",
    needs: tuple[str, ...] = (),
    suits: Callable[[Any], bool] = lambda table: True,
) -> Callable[[Callable[..., Parts]], Metric]:
    """Declares a metric: the function below it returns its parts; its docstring is the definition."""

    def declared(parts: Callable[..., Parts]) -> Metric:
        definition = inspect.getdoc(parts) or ""
        found = Metric(parts.__name__, title, definition, direction, bounds, subject, labels, needs, suits, parts)
        signature = inspect.signature(parts).replace(return_annotation=Value)
        for name, value in {"__signature__": signature, "__doc__": definition, "__name__": parts.__name__}.items():
            object.__setattr__(found, name, value)
        return found

    return declared


def checked_metrics(given: Any) -> tuple[Metric, ...]:
    """The metrics, or an error for anything else, such as their names."""
    metrics = tuple(given) if isinstance(given, Iterable) else (given,)
    if wrong := [metric for metric in metrics if not isinstance(metric, Metric)]:
        raise ValueError(f"{wrong[0]!r} is not a metric; give a list of some, such as [workbench.metrics.accuracy]")
    return metrics


def mean(values: np.ndarray) -> Parts:
    """The mean of one value per row."""
    columns = np.column_stack([np.ones(len(values)), values])
    return Parts(len(values), columns, lambda sums: ratio(sums[..., 0, 1], sums[..., 0, 0]))


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where there is nothing to divide by."""
    part, whole = np.broadcast_arrays(part, whole)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)


def intervals(
    measured: Sequence[tuple[Metric, Parts]], confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> list[dict[str, tuple[float, float]]]:
    """Bootstrap intervals of several metrics of the same rows, from the same resamples."""
    drawn = resampled([parts for _, parts in measured], resamples, seed)
    return [
        {
            name: interval_of(values, named(parts.value())[name], confidence, metric.bounds)
            for name, values in of.items()
        }
        for (metric, parts), of in zip(measured, drawn, strict=True)
    ]


def resampled(parts: Sequence[Parts], resamples: int, seed: int) -> list[dict[str, np.ndarray]]:
    """The values of several metrics on the same resamples of the same rows: differences of them are paired."""
    (n_rows,) = {part.n_rows for part in parts}
    found: list[list[dict[str, np.ndarray]]] = [[] for _ in parts]
    for weights in bootstrap_weights(n_rows, resamples, seed):
        for values, part in zip(found, parts, strict=True):
            values.append(part.resampled(weights))
    return [{name: np.concatenate([chunk[name] for chunk in values]) for name in values[0]} for values in found]


def bootstrap_weights(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """(n, some resamples): how often each row is drawn when n rows are drawn with replacement; a chunk at a time."""
    if resamples < 1:
        raise ValueError(f"resamples = {resamples}; a bootstrap needs at least one")
    generator = np.random.default_rng(seed)
    at_once = max(1, CHUNK // n)
    for start in range(0, resamples, at_once):
        rows = range(min(at_once, resamples - start))
        counts = np.stack([np.bincount(generator.integers(n, size=n), minlength=n) for _ in rows])
        yield counts.T.astype(float, order="C")  # what sums over cells would copy it to, each time


def interval_of(
    values: np.ndarray, estimate: float, confidence: float, bounds: tuple[float, float]
) -> tuple[float, float]:
    """The basic bootstrap interval: what resampling does to the estimate, the sample has done to the truth.

    With q the quantiles of the resampled values it is [2·estimate − q_high, 2·estimate − q_low], cut to the bounds.
    Calibration errors and gaps per class grow when rows are few; this interval takes that bias out, so it may lie below
    such an estimate. NaN when a resample had no value (an empty group).
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence} of an interval must lie strictly between 0 and 1, such as 0.95")
    if np.isnan(values).any():
        return float("nan"), float("nan")
    low, high = 2 * estimate - np.quantile(values, [(1 + confidence) / 2, (1 - confidence) / 2])
    return float(np.clip(low, *bounds)), float(np.clip(high, *bounds))


def named(value: Any) -> dict[str, Any]:
    """A value as {name: value}; a single one has the name ""."""
    return value if isinstance(value, dict) else {"": value}


def _as_value(values: Any) -> Value:
    if isinstance(values, dict):
        return {name: float(value) for name, value in values.items()}
    return float(values)
