"""Two or more networks on the same rows: paired differences with intervals, and the rows on which they differ."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from workbench.metric_spec import MetricSpec
from workbench.metrics import (
    METRICS,
    Metric,
    Parts,
    accuracy,
    auroc,
    exact_match,
    fpr_at_95,
    macro_f1,
    max_confidence,
    micro_f1,
    top_k_calibration_error,
)
from workbench.metrics.base import (
    K_of_rule,
    beside_coverage,
    checked_metrics,
    gather_for,
    intervals_of,
    named,
    resampled,
)
from workbench.metrics.intervals import bootstrap_interval, paired_share_interval
from workbench.metrics.probability_metrics import top_classes
from workbench.metrics.significance import holm, paired_t_test
from workbench.progress import slow
from workbench.sets import PredictionSets, Rule, Threshold, checked_rule
from workbench.store.imported_tables import with_classes_of
from workbench.tables import LogitTable, checked_table
from workbench.tables.objects import objects_of_rows, split_rows


def compare(
    tables: Mapping[str, LogitTable],
    rule: Rule,
    metrics: Iterable[Metric] = METRICS,
    *,
    val: Mapping[str, LogitTable] | None = None,
    interval: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Every metric of every table, and its difference from the first table with a paired interval.

    Args:
        tables: Tables by their names, of the same rows.
        rule: The rule that makes the sets, not fitted yet.
        metrics: What is measured; `(*wb.metrics.METRICS, mine)` adds one of yours.
        interval: Confidence of the intervals.
        resamples: Number of bootstrap resamples.
        seed: Of the resamples, so that the same call gives the same numbers.

    The rule is fitted for each table on its own `val[name]`; without `val`, all tables are split into the same two
    halves, one to fit on and one to judge on. Rows are paired by their ids where all tables have some, else by their
    order. Because both networks see the same rows, a difference is known far better than the two values.

    Columns: `metric`, `K` (of the metric, else of the rule; NaN where neither has one), `group` ("" or few, medium, many, …),
    `table`, `value`, `low`, `high`, `difference` (value minus that of the first table), `difference_low`, `difference_high`,
    `n`. An interval holds its value. That of a difference
    of shares counts the rows that only one of the two gets (Bonett & Price 2012); others come from the bootstrap.

    >>> from workbench.sets import TopK
    >>> scores = np.random.default_rng(0).normal(size=(500, 4))
    >>> labels = scores.argmax(1)
    >>> noisy = scores + np.random.default_rng(1).normal(size=scores.shape)
    >>> frame = compare({"clean": LogitTable(scores, labels), "noisy": LogitTable(noisy, labels)}, TopK(1))
    >>> frame[(frame.metric == "accuracy") & (frame.table == "noisy")].difference_high.item() < 0
    True
    """
    records = []
    for first, *others in _measured(tables, rule, metrics, val, resamples, seed):
        for each in (first, *others):
            bands = intervals_of(each.metric, each.parts, each.drawn, interval)
            for group in [group for group in each.found if group in first.found]:
                record = {"metric": each.metric.name, "K": each.metric.K(K_of_rule(rule)), "group": group}
                record |= {"table": each.table, "value": each.found[group]}
                record["low"], record["high"] = bands[group]
                record["difference"] = each.found[group] - first.found[group]
                ends = each.interval_of_difference(first, group, interval)
                record["difference_low"], record["difference_high"] = ends
                records.append(record | {"n": each.n})
    differences = ["difference", "difference_low", "difference_high"]
    columns = ["metric", "K", "group", "table", "value", "low", "high", *differences, "n"]
    frame = pd.DataFrame(records, columns=columns)
    frame.attrs["interval"] = interval  # for those who draw it
    return frame


def pairwise(
    tables: Mapping[str, LogitTable],
    rule: Rule,
    metrics: Iterable[Metric] = (accuracy,),
    *,
    val: Mapping[str, LogitTable] | None = None,
    interval: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Every pair of tables: the difference of a metric with its paired interval, and whether it may be luck.

    Args:
        tables: Tables by their names, of the same rows.
        metrics: What is measured; `(*wb.metrics.METRICS, mine)` adds one of yours.
        interval: Confidence of the intervals.
        resamples: Number of bootstrap resamples (default: 200 a pair, at least 1000, so that a p-value can be small).
        seed: Of the resamples, so that the same call gives the same numbers.

    Columns: `metric`, `K`, `group` (as in `compare`), `first`, `second`, `difference` (first minus second), `low`, `high` (of
    this pair alone), `p` (McNemar's exact test for shares of rows, the paired t-test for means over rows, paired bootstrap for
    others), `p_holm`, `p_is_bound` (no resample was as extreme: p lies below what is given), `n`. Many pairs make a small p
    likely somewhere: `p_holm` is corrected by Holm's method for all pairs of a metric, so that all of it below 0.05 are wrong
    together in at most 5 % of cases. Rows, `rule` and `val` as in `compare`.

    >>> from workbench.sets import TopK
    >>> scores = np.random.default_rng(0).normal(size=(500, 4))
    >>> noise = np.random.default_rng(1).normal(size=(2, 500, 4))
    >>> tables = {"clean": scores, "noisy": scores + noise[0], "noisier": scores + 2 * noise[1]}
    >>> frame = pairwise({name: LogitTable(each, scores.argmax(1)) for name, each in tables.items()}, TopK(1))
    >>> frame[["first", "second"]].to_numpy().tolist(), bool((frame.p_holm < 0.05).all())
    ([['clean', 'noisy'], ['clean', 'noisier'], ['noisy', 'noisier']], True)
    """
    records = []
    n_pairs = len(tables) * (len(tables) - 1) // 2
    resamples = max(1000, 200 * n_pairs) if resamples is None else resamples
    for measured in _measured(tables, rule, metrics, val, resamples, seed):
        for group in measured[0].found:
            pairs = [pair for pair in itertools.combinations(measured, 2) if all(group in each.found for each in pair)]
            tested = [one.p_value(other, group) for one, other in pairs]
            p_values = np.array([p for p, _ in tested])
            for (one, other), (p, is_bound), corrected in zip(pairs, tested, holm(p_values), strict=True):
                record: dict[str, Any] = {"metric": one.metric.name, "K": one.metric.K(K_of_rule(rule)), "group": group}
                record |= {"first": one.table, "second": other.table}
                record["difference"] = one.found[group] - other.found[group]
                record["low"], record["high"] = one.interval_of_difference(other, group, interval)
                records.append(record | {"p": p, "p_holm": corrected, "p_is_bound": is_bound, "n": one.n})
    names = ["metric", "K", "group", "first", "second", "difference", "low", "high", "p", "p_holm", "p_is_bound", "n"]
    frame = pd.DataFrame(records, columns=names)
    frame.attrs["interval"] = interval
    return frame


def matrices(pairs: pd.DataFrame) -> str:
    """Format the result of `pairwise` as text: one matrix per metric, row minus column.

    Args:
        pairs: The frame that `pairwise` gives.
    """
    lines: dict[str, list[dict[Any, Any]]] = {}
    for row in pairs.to_dict("records"):
        lines.setdefault(str(MetricSpec.parse(row["metric"], row["group"])), []).append(row)
    if not lines:
        return "these tables have none of the metrics\n"
    parts = []
    for heading, rows in lines.items():
        names = list(dict.fromkeys(row[side] for side in ("first", "second") for row in rows))
        cells = {line: dict.fromkeys(names, "") for line in names}
        for row in rows:
            sign = "<" if row["p_is_bound"] else "="
            p = f"p {sign} {row['p_holm']:.3f}" if row["p_holm"] >= 0.001 else "p < 0.001"
            difference, low, high = row["difference"], row["low"], row["high"]
            cells[row["first"]][row["second"]] = f"{difference:+.4f} [{low:+.4f}, {high:+.4f}] {p}"
            cells[row["second"]][row["first"]] = f"{-difference:+.4f} [{-high:+.4f}, {-low:+.4f}] {p}"
        matrix = pd.DataFrame.from_dict(cells, orient="index", columns=names)
        parts.append(f"{heading}, line minus column, n = {rows[0]['n']} rows\n{matrix.to_string()}\n")
    most = max(len(rows) for rows in lines.values())
    parts.append(
        f"Intervals are of {pairs.attrs['interval']:.0%}, of each pair alone. p-values are corrected for the {most} pairs of "
        "a metric by Holm's method.\n"
    )
    return "\n".join(parts)


def zero_and_many(tables: Mapping[str, LogitTable], threshold: float = 0.5) -> pd.DataFrame:
    """How tables of the same rows do where a row may have no label or many: one line a table.

    Args:
        tables: Tables by their names.
        threshold: a class is in the set if its probability reaches it.

    Columns: `table`, its `link`; `in_accuracy`, how often the most probable class of a row with a label is one; `mmc_with`
    and `mmc_without`, the mean largest probability of rows with and without a label, and how well it tells the two apart,
    `auroc` and `fpr_at_95` (Liao et al., Table II); of the sets at the threshold `micro_f1`, `macro_f1` and `exact_match`;
    `calibration_error` of the four most probable classes in ten bins (Liao et al., Table III). NaN where there are no rows
    of a kind.

    >>> labels = np.array([[True, True], [False, False]])
    >>> table = LogitTable(np.where(labels, 3.0, -3.0), labels, link="sigmoid")
    >>> zero_and_many({"sigmoids": table})[["mmc_with", "mmc_without", "auroc", "micro_f1"]].round(2).to_numpy().tolist()
    [[0.95, 0.05, 1.0, 1.0]]
    """
    records = []
    for name, table in tables.items():
        if not table.many_labels:
            raise ValueError(f"{name} has one label a row, or none; give tables whose rows may have many labels")
        inside, outside = (table.rows(rows) if rows.any() else None for rows in (table.labelled, ~table.labelled))
        known = inside is not None and outside is not None
        sets = Threshold(threshold).fit(table).sets(table)
        records.append(
            {
                "table": name,
                "link": table.link,
                "in_accuracy": top_classes(inside, 1)[2].mean() if inside is not None else np.nan,
                "mmc_with": max_confidence(inside) if inside is not None else np.nan,
                "mmc_without": max_confidence(outside) if outside is not None else np.nan,
                "auroc": auroc(inside, outside) if known else np.nan,
                "fpr_at_95": fpr_at_95(inside, outside) if known else np.nan,
                "micro_f1": micro_f1(sets),
                "macro_f1": macro_f1(sets),
                "exact_match": exact_match(sets),
                "calibration_error": top_k_calibration_error(table),
            }
        )
    return pd.DataFrame(records)


def disagreements(sets: Mapping[str, PredictionSets]) -> pd.DataFrame:
    """The rows that some get and others miss: `row`, and the `label` (where a row has one), and a true-or-false column per name.

    Args:
        sets: Sets of the same rows by their names.

    >>> from workbench.sets import TopK
    >>> labels = [0, 1]
    >>> a, b = LogitTable([[2.0, 1.0], [2.0, 1.0]], labels), LogitTable([[2.0, 1.0], [1.0, 2.0]], labels)
    >>> disagreements({"a": TopK(1).fit(a)(a), "b": TopK(1).fit(b)(b)}).to_dict("records")
    [{'row': 1, 'label': 1, 'a': False, 'b': True}]
    """
    tables = _checked({name: found.table for name, found in sets.items()})
    (first_name, one), *_ = sets.items()
    orders = [_order_of(one.table, first_name, found.table, name) for name, found in sets.items()]
    hits = np.column_stack([found.hits[order] for found, order in zip(sets.values(), orders, strict=True)])
    rows = np.flatnonzero(hits.any(1) & ~hits.all(1))
    first = next(iter(tables.values()))
    columns = {"row": rows}
    if not first.many_labels:
        columns["label"] = first.checked_labels()[rows]
    return pd.DataFrame(columns | {name: hits[rows, place] for place, name in enumerate(sets)})


def aligned(tables: Mapping[str, LogitTable]) -> dict[str, LogitTable]:
    """The tables with their rows in the order of the first, by their ids; without ids the order is taken as it is.

    Args:
        tables: Tables by their names, of the same rows.

    >>> one = LogitTable([[2.0, 0.0], [0.0, 1.0]], ids=["a", "b"])
    >>> aligned({"one": one, "other": one.rows([1, 0])})["other"].ids.tolist()
    ['a', 'b']
    """
    (first_name, first), *_ = tables.items()
    orders = {name: _order_of(first, first_name, table, name) for name, table in tables.items()}
    return {
        name: table if isinstance(orders[name], slice) else table.rows(orders[name]) for name, table in tables.items()
    }


def _order_of(first: LogitTable, first_name: str, table: LogitTable, name: str) -> slice | list[int]:
    """Where the rows of the first table stand in another, by their ids; as they are where one of them has none."""
    if first.ids is None or table.ids is None or np.array_equal(first.ids, table.ids):
        return slice(None)
    place = {row_id: row for row, row_id in enumerate(table.ids.tolist())}
    ids = first.ids.tolist()
    if len(place) < table.n or len(set(ids)) < first.n:
        raise ValueError(f"{first_name} and {name} have rows of the same id in another order; give each row its own id")
    missing = [row_id for row_id in ids if row_id not in place]
    if missing or table.n != first.n:
        raise ValueError(
            f"{first_name} has {first.n} rows and {name} {table.n}, {first.n - len(missing)} of them with the same ids; "
            "compare the same rows"
        )
    return [place[row_id] for row_id in ids]


def _checked(tables: Mapping[str, LogitTable]) -> dict[str, LogitTable]:
    """At least two tables of the same rows, paired by their ids."""
    if not isinstance(tables, Mapping):
        raise ValueError(f"give the tables by their names, {{name: table}}, not as {type(tables).__name__}")
    if len(tables) < 2:
        raise ValueError(f"a comparison needs two or more tables; there is {len(tables)}")
    tables = aligned({name: checked_table(table) for name, table in tables.items()})
    (first_name, first), *others = tables.items()
    for name, table in others:
        if table.scores.shape != first.scores.shape:
            raise ValueError(
                f"{first_name} is {first.scores.shape} and {name} is {table.scores.shape}; compare the same rows and classes"
            )
        if None not in (first.class_names, table.class_names) and first.class_names != table.class_names:
            tables[name] = table = with_classes_of(first, table)[0]
        if not np.array_equal(first.checked_labels(), table.checked_labels()):
            raise ValueError(
                f"{first_name} and {name} have different labels; compare the same rows in the same order, or give ids"
            )
    return dict(tables)


@dataclass(frozen=True, eq=False)
class Measured:
    """A metric of one of the tables, and what it is on the resamples that all of them share.

    Args:
        metric: What was measured.
        table: The name of the table.
        parts: Its sums over rows.
        drawn: Its values on the resamples; not needed for a share of rows.
        n: Number of rows.
    """

    metric: Metric
    table: str
    parts: Parts
    drawn: dict[str, np.ndarray]
    n: int

    @cached_property
    def found(self) -> dict[str, float]:
        """The value of each group."""
        return named(self.parts.value())

    def interval_of_difference(self, other: Measured, group: str, confidence: float) -> tuple[float, float]:
        """Interval of the difference to the other: shares by what each row says, others from paired resamples."""
        if self is other:
            return 0.0, 0.0
        if (split := self.split_rows(other)) is not None:
            return paired_share_interval(*split, self.n, confidence)
        width = self.metric.bounds[1] - self.metric.bounds[0]
        difference = self.found[group] - other.found[group]
        return bootstrap_interval(self.drawn[group] - other.drawn[group], difference, confidence, (-width, width))

    def p_value(self, other: Measured, group: str) -> tuple[float, bool]:
        """How often luck alone makes such a difference of two equal networks, and whether that is only an upper bound.

        McNemar's exact test for shares of rows, the paired t-test for means over rows, otherwise the share of resamples
        that move the difference by as much as it is away from 0.
        """
        if (split := self.split_rows(other)) is not None:
            from scipy import stats  # only here: it takes long to load

            return stats.binomtest(split[0], sum(split)).pvalue if sum(split) else 1.0, False
        if self.parts.is_mean:
            return paired_t_test(self.parts.columns[:, 1], other.parts.columns[:, 1])[1], False
        difference = self.found[group] - other.found[group]
        moved = np.abs(self.drawn[group] - other.drawn[group] - difference)
        if np.isnan(moved).any():
            return float("nan"), False
        n_extreme = np.count_nonzero(moved >= abs(difference))
        return float((1 + n_extreme) / (1 + len(moved))), not n_extreme

    def split_rows(self, other: Measured) -> tuple[int, int] | None:
        """How many rows only this one gets and how many only the other; None if the metric is not a share of rows."""
        if not self.parts.splits_rows:
            return None
        gained = self.parts.columns[:, 1] - other.parts.columns[:, 1]
        return int(np.count_nonzero(gained > 0)), int(np.count_nonzero(gained < 0))


def _measured(
    tables: Mapping[str, LogitTable],
    rule: Rule,
    metrics: Iterable[Metric],
    val: Mapping[str, LogitTable] | None,
    resamples: int,
    seed: int,
) -> list[list[Measured]]:
    """For each metric that all tables have, each table in turn. The rule is fitted for each on its own validation rows."""
    checked_rule(rule)
    tables = _checked(tables)
    if val is None and rule.needs_fit:
        one = next(filter(objects_of_rows, tables.values()), next(iter(tables.values())))  # the same rows in all
        fitting, judging = split_rows(one, 0.5, seed)
        val = {name: table.rows(fitting) for name, table in tables.items()}
        tables = {name: table.rows(judging) for name, table in tables.items()}
    if val is not None and not isinstance(val, Mapping):
        raise ValueError(f"val is a {type(val).__name__}; give {{name: table}}, one for each of the tables")
    if val is not None and set(val) != set(tables):
        raise ValueError(f"val has {', '.join(val)} and the tables are {', '.join(tables)}; give one val for each")
    sets = {name: rule.fit(table if val is None else val[name]).sets(table) for name, table in tables.items()}
    metrics = [
        metric.stated()
        for metric in checked_metrics(metrics)
        if metric.subject in ("sets", "table") and all(metric.applies(table) for table in tables.values())
    ]
    for name, table in tables.items():
        gather_for(metrics, table, [sets[name]])
    pairs = [(metric, name) for metric in metrics for name in tables]
    parts = [
        beside_coverage(metric, (sets if metric.subject == "sets" else tables)[name])
        for metric, name in slow("comparison", "metric", pairs)
    ]
    drawn = iter(resampled([part for part, _ in parts if not part.splits_rows], resamples, seed))
    lines = [
        Measured(metric, name, part, {} if part.splits_rows else next(drawn), n)
        for (metric, name), (part, n) in zip(pairs, parts, strict=True)
    ]
    return [lines[start : start + len(tables)] for start in range(0, len(lines), len(tables))]
