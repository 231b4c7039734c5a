"""The one shape of every metric: sums over cells of rows, and a formula on the sums.

Accuracy is a sum of hits over a count of rows; macro-accuracy is the same in one cell per class; a calibration error has
one cell per bin. Taken apart this way, a metric is written once and its interval comes for free: a resample is a weight
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

from workbench.metrics.intervals import bootstrap_interval, mean_share_interval
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables import LogitTable, checked_table
from workbench.tables.checks import read_only
from workbench.tables.passes import everywhere

Value = float | dict[str, float]
CHUNK = 2**22  # weights held at a time: 32 MB


@dataclass(frozen=True, eq=False)
class Parts:
    """A metric taken apart for one table or one collection of sets.

    Entry e adds `columns[e]` to `cells[e]`; `formula` turns sums of shape (..., cells, columns) into values of shape
    (...), or into {name: values}. Entries are the rows themselves unless `rows` says which row each belongs to.

    - `n_rows`: number of rows.
    - `n_cells`: number of groups that sums are taken over.
    - `shares`: sums → the hits and rows of the shares that the value is a mean of.
    """

    n_rows: int
    columns: np.ndarray  # (entries, columns)
    formula: Callable[[np.ndarray], Any]
    cells: np.ndarray | None = None  # (entries,); None: all in one cell
    n_cells: int = 1
    rows: np.ndarray | None = None  # (entries,)
    # Where the value is a mean of shares: sums → (hits, rows) of the cells it is the mean of, or {name: such a pair}.
    shares: Callable[[np.ndarray], Any] | None = None

    @property
    def splits_rows(self) -> bool:
        """Whether the metric is a share of the rows, each of which counts or does not."""
        return self.shares is not None and self.n_cells == 1

    def value(self) -> Value:
        """The metric on all rows."""
        return _as_value(self.formula(self.sums()))

    def sums(self) -> np.ndarray:
        """(cells, columns) of all rows."""
        sums: np.ndarray = self._sums(np.ones((self.n_rows, 1)))[0]
        return sums

    def resampled(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        """{name: (resamples,)} for weights (n, resamples): how often each row was drawn. One value has the name ""."""
        return named(self.formula(self._sums(weights)))

    def among(self, rows: np.ndarray, n_rows: int) -> Parts:
        """The same metric, of these rows among n: a resample of all n rows has some of them."""
        return dataclasses.replace(self, n_rows=n_rows, rows=rows if self.rows is None else rows[self.rows])

    def _sums(self, weights: np.ndarray) -> np.ndarray:
        """(resamples, cells, columns). Summed row by row: a product of plain matrices depends on the number of threads."""
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

    Call it like a function: `accuracy(sets)`. `accuracy.interval(sets)` gives its interval,
    of the kind that is right for it (`metrics/intervals.py`).

    - `name`, `title`: how it is called in code, and in tables.
    - `definition`: in words and formulas.
    - `direction`: "higher" or "lower" is better, or "none".
    - `bounds`: smallest and largest value.
    - `subject`: what it is a function of: "sets", "table", "tables" or "grouped sets".
    - `labels`: "none", "any" (needs labels), "one" or "many" a row.
    - `needs`: fields of the table it cannot do without.
    - `suits`: further conditions on the table.
    - `parts`: the function that returns its `Parts`.
    - `inflated`: "up" or "down", where few rows push it.
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
    inflated: str = ""  # "up" or "down", where few rows push it: its interval takes that out

    def __call__(self, *subjects: Any, **options: Any) -> Any:
        self._check(subjects)
        return self.parts(*subjects, **options).value()

    def interval(
        self, *subjects: Any, confidence: float = 0.95, resamples: int = 1000, seed: int = 0, **options: Any
    ) -> Any:
        """(low, high): where the metric may lie, given these rows; {name: (low, high)} where the metric gives several.

        Wilson's interval for shares, otherwise from the bootstrap (`workbench.metrics.intervals`); it holds the value.

        >>> import workbench as wb
        >>> table = wb.LogitTable(np.eye(2)[[0, 1] * 50] * 9, labels=[0, 1] * 45 + [0, 0] * 5)
        >>> low, high = wb.metrics.top_k_accuracy.interval(table, K=1)
        >>> round(low, 3), wb.metrics.top_k_accuracy(table, K=1), round(high, 3)
        (0.888, 0.95, 0.978)
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

    def stated(self) -> Metric:
        """The same metric, named after its K where it has one: what reports call it.

        >>> import workbench as wb
        >>> wb.metrics.top_k_accuracy.stated().name, wb.metrics.accuracy.stated().name
        ('top_k_accuracy, K = 1', 'accuracy')
        """
        K = inspect.signature(self.parts).parameters.get("K")
        settled = isinstance(self.parts, functools.partial) and "K" in self.parts.keywords
        return self if K is None or settled else self.at(K=K.default)

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
    inflated: str = "",
) -> Callable[[Callable[..., Parts]], Metric]:
    """Declares a metric: the function below it returns its parts; its docstring, up to the parameters, is the definition.

    - `title`: its name in tables.
    - `direction`: "higher" or "lower" is better, or "none".
    - `bounds`: smallest and largest value.
    - `subject`: what it is a function of: "sets", "table", "tables" or "grouped sets".
    - `labels`: "none", "any" (needs labels), "one" or "many" a row.
    - `needs`: fields of the table it cannot do without.
    - `suits`: further conditions on the table, such as its link.
    - `inflated`: "up" or "down", where few rows push it: its interval takes that out.
    """

    def declared(parts: Callable[..., Parts]) -> Metric:
        doc = inspect.getdoc(parts) or ""
        definition = doc.split("\n\n- `")[0]
        of = _of_labelled_rows(parts) if labels != "none" and subject in ("sets", "table") else parts
        found = Metric(
            parts.__name__, title, definition, direction, bounds, subject, labels, needs, suits, of, inflated
        )
        signature = inspect.signature(parts).replace(return_annotation=Value)
        for name, value in {"__signature__": signature, "__doc__": doc, "__name__": parts.__name__}.items():
            object.__setattr__(found, name, value)
        return found

    return declared


def _of_labelled_rows(parts: Callable[..., Parts]) -> Callable[..., Parts]:
    """What is right or wrong is measured on the rows that have a label; where none has one, it is NaN."""

    @functools.wraps(parts)
    def of_labelled_rows(subject: Any, *given: Any, **options: Any) -> Parts:
        table = getattr(subject, "table", subject)
        if table.labels is None or table.labelled.all():
            return parts(subject, *given, **options)
        rows = np.flatnonzero(table.labelled)
        if len(rows):
            return parts(subject.rows(rows), *given, **options).among(rows, table.n)
        names = named(parts(_as_if_labelled(subject), *given, **options).value())  # those it would have with labels
        return PointParts.of(table.n, np.nan if list(names) == [""] else dict.fromkeys(names, np.nan))

    return of_labelled_rows


def _as_if_labelled(subject: PredictionSets | LogitTable) -> Any:
    """The sets or the table with some label in every row."""
    if isinstance(subject, PredictionSets):
        return dataclasses.replace(subject, table=_as_if_labelled(subject.table))
    labels = np.ones_like(subject.labels) if subject.many_labels else np.zeros_like(subject.labels)
    return dataclasses.replace(subject, labels=labels)


def checked_metrics(given: Any) -> tuple[Metric, ...]:
    """The metrics, or an error for anything else, such as their names."""
    metrics = tuple(given) if isinstance(given, Iterable) else (given,)
    if wrong := [metric for metric in metrics if not isinstance(metric, Metric)]:
        raise ValueError(f"{wrong[0]!r} is not a metric; give a list of some, such as [workbench.metrics.accuracy]")
    return metrics


def mean(values: np.ndarray) -> Parts:
    """The mean of one value per row: of true and false a share.

    - `values`: (n,) one of each row.
    """
    columns = np.column_stack([np.ones(len(values)), values])
    shares = (lambda sums: (sums[:, 1], sums[:, 0])) if values.dtype == bool else None
    return Parts(len(values), columns, lambda sums: ratio(sums[..., 0, 1], sums[..., 0, 0]), shares=shares)


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where there is nothing to divide by."""
    part, whole = np.broadcast_arrays(part, whole)
    ratios: np.ndarray = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)
    return ratios


def intervals(
    measured: Sequence[tuple[Metric, Parts]], confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> list[dict[str, tuple[float, float]]]:
    """Intervals of several metrics of the same rows; those that need a bootstrap share its resamples.

    - `measured`: metrics with their parts.
    - `confidence`: how often an interval holds the true value.
    - `resamples`: number of bootstrap resamples.
    - `seed`: of the resamples, so that the same call gives the same numbers.
    """
    drawn = iter(resampled([parts for _, parts in measured if parts.shares is None], resamples, seed))
    return [
        intervals_of(metric, parts, {} if parts.shares is not None else next(drawn), confidence)
        for metric, parts in measured
    ]


def intervals_of(
    metric: Metric, parts: Parts, drawn: dict[str, np.ndarray], confidence: float
) -> dict[str, tuple[float, float]]:
    """The interval of each value of a metric: of shares from what was counted, of others from what resamples gave."""
    if parts.shares is not None:
        cells = named(parts.shares(parts.sums()))
        return {name: mean_share_interval(hits, n, confidence) for name, (hits, n) in cells.items()}
    values = named(parts.value())
    return {
        name: bootstrap_interval(of_resamples, values[name], confidence, metric.bounds, metric.inflated)
        for name, of_resamples in drawn.items()
    }


def resampled(parts: Sequence[Parts], resamples: int, seed: int) -> list[dict[str, np.ndarray]]:
    """The values of several metrics on the same resamples of the same rows: differences of them are paired."""
    if not parts:
        return []
    (n_rows,) = {part.n_rows for part in parts}
    chunks = everywhere(values_of_resamples, (list(parts), seed), [(some,) for some in _chunks(n_rows, resamples)])
    found = list(zip(*chunks, strict=True))
    return [{name: np.concatenate([chunk[name] for chunk in values]) for name in values[0]} for values in found]


def values_of_resamples(of: tuple[list[Parts], int], resamples: range) -> list[dict[str, np.ndarray]]:
    """The values of several metrics on some resamples."""
    parts, seed = of
    weights = drawn_weights(parts[0].n_rows, resamples, seed)
    return [part.resampled(weights) for part in parts]


def bootstrap_weights(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """(n, some resamples): how often each row is drawn when n rows are drawn with replacement; a chunk at a time."""
    return (drawn_weights(n, some, seed) for some in _chunks(n, resamples))


@functools.lru_cache(maxsize=1)
def drawn_weights(n: int, resamples: range, seed: int) -> np.ndarray:
    """The weights of these resamples, each drawn by its own generator: anybody can draw any of them.

    The last ones are kept: who measures the same rows at one K after the other draws them once.
    """
    drawn = (np.random.default_rng([seed, number]).integers(n, size=n) for number in resamples)
    counts = np.stack([np.bincount(rows, minlength=n) for rows in drawn])
    return read_only(counts.T.astype(float, order="C"))  # what sums over cells would copy it to, each time


def _chunks(n: int, resamples: int) -> list[range]:
    if resamples < 1:
        raise ValueError(f"resamples = {resamples}; a bootstrap needs at least one")
    at_once = max(1, CHUNK // n)
    return [range(start, min(start + at_once, resamples)) for start in range(0, resamples, at_once)]


def in_full(metric: str, group: str) -> str:
    """The name of a metric with the group it is of, if any.

    >>> in_full("shot_accuracy", "few")
    'shot_accuracy (few)'
    """
    return f"{metric} ({group})" if group else metric


def named(value: Any) -> dict[str, Any]:
    """A value as {name: value}; a single one has the name ""."""
    return value if isinstance(value, dict) else {"": value}


def _as_value(values: Any) -> Value:
    if isinstance(values, dict):
        return {name: float(value) for name, value in values.items()}
    return float(values)
