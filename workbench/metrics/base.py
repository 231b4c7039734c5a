"""The one shape of every metric: sums over cells of rows, and a formula on the sums.

Coverage is a sum of hits over a count of rows; macro-coverage is the same in one cell per class; a calibration error has
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

from workbench.metric_spec import MetricSpec
from workbench.metrics.intervals import bootstrap_interval, mean_share_interval
from workbench.metrics.row_facts import Fact, gather
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables import LogitTable, checked_table
from workbench.tables.checks import read_only
from workbench.tables.map_reduce import map_in_order

Value = float | dict[str, float]
CHUNK = 2**20  # weights drawn at a time, 8 MB: a product with them is several times quicker while they are in the cache


@dataclass(frozen=True, eq=False)
class Parts:
    """A metric taken apart for one table or one collection of sets.

    Entry e adds `columns[e]` to `cells[e]`; `formula` turns sums of shape (..., cells, columns), or what `of_sums` makes of
    them, into values of shape (...), or into {name: values}. Entries are the rows themselves unless `rows` says which row
    each belongs to.

    Args:
        n_rows: Number of rows.
        n_cells: Number of groups that sums are taken over.
        shares: Sums → the hits and rows of the shares that the value is a mean of.
        is_mean: Whether it is the mean of one value a row, which is column 1.
    """

    n_rows: int
    columns: np.ndarray  # (entries, columns)
    formula: Callable[[np.ndarray], Any]
    cells: np.ndarray | None = None  # (entries,); None: all in one cell
    n_cells: int = 1
    rows: np.ndarray | None = None  # (entries,)
    # Where the value is a mean of shares: sums → (hits, rows) of the cells it is the mean of, or {name: such a pair}.
    shares: Callable[[np.ndarray], Any] | None = None
    is_mean: bool = False
    of_sums: Callable[[np.ndarray], np.ndarray] | None = None  # what formulas of the same sums have in common

    @property
    def splits_rows(self) -> bool:
        """Whether the metric is a share of the rows, each of which counts or does not."""
        return self.shares is not None and self.is_mean

    def value(self) -> Value:
        """The metric on all rows."""
        return _as_value(self.formula(self._reduced(self.sums())))

    def sums(self) -> np.ndarray:
        """(cells, columns) of all rows."""
        cells = np.zeros(len(self.columns), np.int64) if self.cells is None else self.cells
        return np.stack([np.bincount(cells, column, self.n_cells) for column in self.columns.T], axis=-1)

    def resampled(self, weights: np.ndarray, known: dict[Any, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """{name: (resamples,)} for weights (n, resamples): how often each row was drawn. One value has the name "".

        `known` holds sums on these weights: metrics that are formulas of the same sums take them from there.
        """
        known = {} if known is None else known
        key = (*map(id, (self.columns, self.cells, self.rows)), self.of_sums)
        if key not in known:
            known[key] = self._reduced(self.resampled_sums(weights))
        return named(self.formula(known[key]))

    def _reduced(self, sums: np.ndarray) -> np.ndarray:
        """What the formula is of."""
        return sums if self.of_sums is None else self.of_sums(sums)

    def resampled_sums(self, weights: np.ndarray) -> np.ndarray:
        """(resamples, cells, columns): the sums over the rows as often as each was drawn."""
        sums: np.ndarray
        if self.n_cells == 1 and self.rows is None:
            sums = (weights.T @ self.columns)[:, None]
        else:
            sums = (self._lines @ weights).T.reshape(-1, self.n_cells, self.columns.shape[1])
        return sums

    def among(self, rows: np.ndarray, n_rows: int) -> Parts:
        """The same metric, of these rows among n: a resample of all n rows has some of them."""
        return dataclasses.replace(self, n_rows=n_rows, rows=rows if self.rows is None else rows[self.rows])

    @functools.cached_property
    def _lines(self) -> Any:
        """(cells · columns, n) sparse: a product with the weights gives all sums.

        It is stored by column, so that the weights are read in the order in which they lie in memory.
        """
        from scipy.sparse import csc_array

        n_entries, n_columns = self.columns.shape
        rows = np.arange(n_entries) if self.rows is None else self.rows
        cells = np.zeros(n_entries, np.int64) if self.cells is None else self.cells
        lines = (cells[:, None] * n_columns + np.arange(n_columns)).ravel()
        filled = np.flatnonzero(self.columns)  # of a miss nothing is added
        entries = self.columns.ravel()[filled], (lines[filled], np.repeat(rows, n_columns)[filled])
        return csc_array(entries, shape=(self.n_cells * n_columns, self.n_rows))


@dataclass(frozen=True, eq=False)
class PointParts(Parts):
    """A metric that needs all n·L probabilities at once: its value is known, an interval is not offered (NaN)."""

    @classmethod
    def of(cls, n_rows: int, known: Any) -> PointParts:
        """The parts of a value that was computed already."""
        return cls(n_rows, np.ones((n_rows, 1)), lambda _: known)

    def resampled(self, weights: np.ndarray, known: dict[Any, np.ndarray] | None = None) -> dict[str, np.ndarray]:
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
    - `rows`: "labelled" (those with a label that a set can contain), "known" (those whose truth is known) or "all".
    - `needs`: fields of the table it cannot do without.
    - `suits`: further conditions on the table.
    - `parts`: the function that returns its `Parts`.
    - `inflated`: "up" or "down", where few rows push it.
    - `reads`: facts of the rows that it is made of.
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
    rows: str = "labelled"
    inflated: str = ""  # "up" or "down", where few rows push it: its interval takes that out
    reads: tuple[Fact, ...] = ()  # of the table, so that a report gathers what all its metrics read in one pass

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
        if self.labels == "one" and table.many_labels:
            raise ValueError(f"{self.name} is for rows with one label; these may have many: give one class per row")

    def at(self, **options: Any) -> Metric:
        """The same metric with some options settled, and named after them: for a report or a comparison.

        >>> import workbench as wb
        >>> top_3 = wb.metrics.top_k_accuracy.at(K=3)
        >>> top_3.name, top_3(wb.LogitTable(9 * np.eye(4), labels=[3, 2, 1, 0]))
        ('top_k_accuracy@K=3', 0.75)
        """
        others = "".join(f", {option} = {value}" for option, value in options.items() if option != "K")
        name = str(MetricSpec(self.name + others, K=options.get("K")))
        title = f"{self.title}, {', '.join(f'{option} = {value}' for option, value in options.items())}"
        return dataclasses.replace(self, name=name, title=title, parts=functools.partial(self.parts, **options))

    def stated(self) -> Metric:
        """The same metric, named after its K where it has one: what reports call it.

        >>> import workbench as wb
        >>> wb.metrics.top_k_accuracy.stated().name, wb.metrics.accuracy.stated().name
        ('top_k_accuracy@K=1', 'accuracy')
        """
        K = inspect.signature(self.parts).parameters.get("K")
        settled = isinstance(self.parts, functools.partial) and "K" in self.parts.keywords
        return self if K is None or settled else self.at(K=K.default)

    def K(self, otherwise: float = np.nan) -> float:
        """The K that its name states; `otherwise`, such as that of the rule, where it states none."""
        K = MetricSpec.parse(self.name).K
        return float(otherwise if K is None else K)

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
    rows: str = "labelled",
    needs: tuple[str, ...] = (),
    suits: Callable[[Any], bool] = lambda table: True,
    inflated: str = "",
    reads: tuple[Fact, ...] = (),
    name: str | None = None,
) -> Callable[[Callable[..., Parts]], Metric]:
    """Declares a metric: the function below it returns its parts; its docstring, up to the parameters, is the definition.

    Args:
        title: Its name in tables.
        direction: "higher" or "lower" is better, or "none".
        bounds: Smallest and largest value.
        subject: What it is a function of: "sets", "table", "tables" or "grouped sets".
        labels: "none", "any" (needs labels), "one" or "many" a row.
        rows: "labelled" if it asks whether a set contains the label, "known" if "none of these" is an answer too.
        needs: Fields of the table it cannot do without.
        suits: Further conditions on the table, such as its link.
        inflated: "up" or "down", where few rows push it: its interval takes that out.
        reads: Facts of the rows that it is made of (`row_facts`), where a pass over the table finds them.
        name: Its name in reports, where that is not the name of the function.
    """

    def declared(parts: Callable[..., Parts]) -> Metric:
        doc = inspect.getdoc(parts) or ""
        definition = doc.split("\n\nArgs:\n")[0]
        judged = "all" if labels == "none" else rows
        of = _of_rows(parts, judged) if judged != "all" and subject in ("sets", "table") else parts
        found = Metric(
            name or parts.__name__,
            title,
            definition,
            direction,
            bounds,
            subject,
            labels,
            needs,
            suits,
            of,
            judged,
            inflated,
            reads,
        )
        signature = inspect.signature(parts).replace(return_annotation=Value)
        for field, value in {"__signature__": signature, "__doc__": doc, "__name__": parts.__name__}.items():
            object.__setattr__(found, field, value)
        return found

    return declared


def K_of_rule(rule: Any) -> float:
    """The size that a rule aims at; NaN for one that promises something else."""
    return float(getattr(rule, "K", np.nan))


def judged_rows(table: LogitTable, rows: str) -> np.ndarray:
    """(n,) bool: the "labelled" rows of a table, those whose truth is "known", or "all"."""
    return np.ones(table.n, bool) if rows == "all" else getattr(table, rows)


def beside_coverage(metric: Metric, subject: Any) -> tuple[Parts, int]:
    """The parts of a metric and the number of its rows, where it stands beside others.

    Sizes and confidences need no label; beside a coverage they are of the same rows, those with a label (if any has one).
    """
    table: LogitTable = getattr(subject, "table", subject)
    judged = _beside(metric, table)
    if metric.rows != "all" or judged.all() or not judged.any():
        return metric.parts(subject), table.n if metric.rows == "all" else int(np.count_nonzero(judged))
    rows = np.flatnonzero(judged)
    return metric.parts(subject.rows(rows)).among(rows, table.n), len(rows)


def _beside(metric: Metric, table: LogitTable) -> np.ndarray:
    """(n,) bool: the rows that a metric is of where it stands beside others."""
    return table.labelled if metric.rows == "all" else judged_rows(table, metric.rows)


def _of_rows(parts: Callable[..., Parts], judged: str) -> Callable[..., Parts]:
    """The metric on the rows that are labelled, or known; NaN where there are none."""

    @functools.wraps(parts)
    def of_rows(subject: Any, *given: Any, **options: Any) -> Parts:
        table = getattr(subject, "table", subject)
        if table.labels is None or (mask := judged_rows(table, judged)).all():
            return parts(subject, *given, **options)
        rows = np.flatnonzero(mask)
        if len(rows):
            return parts(subject.rows(rows), *given, **options).among(rows, table.n)
        names = named(parts(_as_if_labelled(subject), *given, **options).value())  # those it would have with labels
        return PointParts.of(table.n, np.nan if list(names) == [""] else dict.fromkeys(names, np.nan))

    return of_rows


def _as_if_labelled(subject: PredictionSets | LogitTable) -> Any:
    """The sets or the table with some label in every row."""
    if isinstance(subject, PredictionSets):
        return dataclasses.replace(subject, table=_as_if_labelled(subject.table))
    labels = np.ones_like(subject.labels) if subject.many_labels else np.zeros_like(subject.labels)
    return dataclasses.replace(subject, labels=labels)


def gather_for(metrics: Iterable[Metric], table: LogitTable, sets: Iterable[PredictionSets]) -> None:
    """One pass over a table for all that these metrics read of it and of its sets.

    Metrics of some rows only make a pass over those themselves.
    """
    metrics = [metric for metric in metrics if metric.applies(table)]
    whole = [metric for metric in metrics if table.labels is None or _beside(metric, table).all()]
    facts = [fact for metric in whole if metric.subject == "table" for fact in metric.reads]
    gather(table, facts, sets if any(metric.subject == "sets" for metric in metrics) else ())


def checked_metrics(given: Any) -> tuple[Metric, ...]:
    """The metrics, or an error for anything else, such as their names."""
    metrics = tuple(given) if isinstance(given, Iterable) else (given,)
    if wrong := [metric for metric in metrics if not isinstance(metric, Metric)]:
        raise ValueError(f"{wrong[0]!r} is not a metric; give a list of some, such as [workbench.metrics.accuracy]")
    return metrics


def mean(values: np.ndarray) -> Parts:
    """The mean of one value per row: of true and false a share.

    Args:
        values: (n,) one of each row.
    """
    columns = np.column_stack([np.ones(len(values)), values])
    shares = (lambda sums: (sums[:, 1], sums[:, 0])) if values.dtype == bool else None
    return Parts(
        len(values), columns, lambda sums: ratio(sums[..., 0, 1], sums[..., 0, 0]), shares=shares, is_mean=True
    )


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where there is nothing to divide by."""
    part, whole = np.broadcast_arrays(part, whole)
    ratios: np.ndarray = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole != 0)
    return ratios


def intervals(
    measured: Sequence[tuple[Metric, Parts]], confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> list[dict[str, tuple[float, float]]]:
    """Intervals of several metrics of the same rows; those that need a bootstrap share its resamples.

    Args:
        measured: Metrics with their parts.
        confidence: How often an interval holds the true value.
        resamples: Number of bootstrap resamples.
        seed: Of the resamples, so that the same call gives the same numbers.
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
    chunks = map_in_order(values_of_resamples, (list(parts), seed), [(some,) for some in _chunks(n_rows, resamples)])
    found = list(zip(*chunks, strict=True))
    return [{name: np.concatenate([chunk[name] for chunk in values]) for name in values[0]} for values in found]


def values_of_resamples(of: tuple[list[Parts], int], resamples: range) -> list[dict[str, np.ndarray]]:
    """The values of several metrics on some resamples."""
    parts, seed = of
    weights = drawn_weights(parts[0].n_rows, resamples, seed)
    means = [part for part in parts if _is_plain_mean(part)]
    values = np.column_stack([part.columns[:, 1] for part in means]) if means else np.zeros((len(weights), 0))
    of_means = iter((weights.T @ values / len(weights)).T)  # one product for all means over rows
    known: dict[Any, np.ndarray] = {}
    return [{"": next(of_means)} if _is_plain_mean(part) else part.resampled(weights, known) for part in parts]


def _is_plain_mean(part: Parts) -> bool:
    """Whether it is a mean over all rows, of which every resample has n."""
    return part.is_mean and part.rows is None


def bootstrap_weights(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """(n, some resamples): how often each row is drawn when n rows are drawn with replacement; a chunk at a time."""
    return (drawn_weights(n, some, seed) for some in _chunks(n, resamples))


@functools.lru_cache(maxsize=4)
def drawn_weights(n: int, resamples: range, seed: int) -> np.ndarray:
    """The weights of these resamples, each drawn by its own generator: anybody can draw any of them.

    The last ones are kept: who measures the same rows at one K after the other draws them once.
    """
    counts = np.empty((len(resamples), n), np.min_scalar_type(n))  # small numbers, for they are written twice
    for line, number in zip(counts, resamples, strict=True):
        line[:] = np.bincount(np.random.default_rng([seed, number]).integers(n, size=n), minlength=n)
    return read_only(counts.T.astype(float, order="C"))  # what sums over cells would copy it to, each time


def _chunks(n: int, resamples: int) -> list[range]:
    if resamples < 1:
        raise ValueError(f"resamples = {resamples}; a bootstrap needs at least one")
    at_once = max(1, CHUNK // n)
    return [range(start, min(start + at_once, resamples)) for start in range(0, resamples, at_once)]


def named(value: Any) -> dict[str, Any]:
    """A value as {name: value}; a single one has the name ""."""
    return value if isinstance(value, dict) else {"": value}


def _as_value(values: Any) -> Value:
    if isinstance(values, dict):
        return {name: float(value) for name, value in values.items()}
    return float(values)
