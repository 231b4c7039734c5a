"""Two or more networks on the same rows: paired differences with intervals, and the rows on which they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from workbench.metrics import (
    METRICS,
    Metric,
    Parts,
    auroc,
    exact_match,
    fpr_at_95,
    macro_f1,
    max_confidence,
    micro_f1,
    top_k_calibration_error,
)
from workbench.metrics.base import checked_metrics, interval_of, named, resampled
from workbench.prediction_sets import PredictionSets
from workbench.progress import slow
from workbench.sets import Rule, Threshold, checked_rule
from workbench.tables import LogitTable, checked_table


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
    """Every metric of every table, and its difference from the first table with a paired bootstrap interval.

    The rule is fitted for each table on its own `val[name]`; without `val`, all tables are split into the same two
    halves, one to fit on and one to judge on. The tables must have the same rows in the same order. Because both
    networks see the same rows, a difference is known far better than the two values.

    Columns: `metric`, `group` ("" or few, medium, many, …), `table`, `value`, `low`, `high`, `difference` (value minus
    that of the first table), `difference_low`, `difference_high`, `n`.

    >>> from workbench.sets import TopK
    >>> scores = np.random.default_rng(0).normal(size=(500, 4))
    >>> labels = scores.argmax(1)
    >>> noisy = scores + np.random.default_rng(1).normal(size=scores.shape)
    >>> frame = compare({"clean": LogitTable(scores, labels), "noisy": LogitTable(noisy, labels)}, TopK(1))
    >>> frame[(frame.metric == "accuracy") & (frame.table == "noisy")].difference_high.item() < 0
    True
    """
    checked_rule(rule)
    tables = _checked(tables)
    if val is None and rule.needs_fit:
        halves = {name: table.split(seed=seed) for name, table in tables.items()}
        val = {name: first for name, (first, _) in halves.items()}
        tables = {name: second for name, (_, second) in halves.items()}
    if val is not None and not isinstance(val, Mapping):
        raise ValueError(f"val is a {type(val).__name__}; give {{name: table}}, one for each of the tables")
    if val is not None and set(val) != set(tables):
        raise ValueError(f"val has {', '.join(val)} and the tables are {', '.join(tables)}; give one val for each")
    sets = {name: rule.fit(table if val is None else val[name]).sets(table) for name, table in tables.items()}
    metrics = [metric for metric in checked_metrics(metrics) if all(metric.applies(table) for table in tables.values())]
    wanted = [(metric, name) for metric in metrics if metric.subject in ("sets", "table") for name in tables]
    measured = [
        (metric, name, metric.parts((sets if metric.subject == "sets" else tables)[name]))
        for metric, name in slow("comparison", "metric", wanted)
    ]
    return _frame(measured, len(tables), interval, resamples, seed)


def zero_and_many(tables: Mapping[str, LogitTable], threshold: float = 0.5) -> pd.DataFrame:
    """How tables of the same rows do where a row may have no label or many: one line a table.

    Columns: `table`, its `link`; `mmc_with` and `mmc_without`, the mean largest probability of rows with and without a
    label, and how well it tells the two apart, `auroc` and `fpr_at_95` (Liao et al., Table II); of the sets at the
    threshold `micro_f1`, `macro_f1` and `exact_match`; `calibration_error` of the four most probable classes in ten bins
    (Liao et al., Table III). NaN where there are no rows of a kind.

    >>> labels = np.array([[True, True], [False, False]])
    >>> table = LogitTable(np.where(labels, 3.0, -3.0), labels, link="sigmoid")
    >>> zero_and_many({"sigmoids": table})[["mmc_with", "mmc_without", "auroc", "micro_f1"]].round(2).to_numpy().tolist()
    [[0.95, 0.05, 1.0, 1.0]]
    """
    records = []
    for name, table in tables.items():
        if not table.many_labels:
            raise ValueError(f"{name} has one label a row, or none; give tables whose rows may have many labels")
        labelled = table.checked_labels().any(axis=1)
        inside, outside = (table.rows(rows) if rows.any() else None for rows in (labelled, ~labelled))
        known = inside is not None and outside is not None
        sets = Threshold(threshold).fit(table).sets(table)
        records.append(
            {
                "table": name,
                "link": table.link,
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

    >>> from workbench.sets import TopK
    >>> labels = [0, 1]
    >>> a, b = LogitTable([[2.0, 1.0], [2.0, 1.0]], labels), LogitTable([[2.0, 1.0], [1.0, 2.0]], labels)
    >>> disagreements({"a": TopK(1).fit(a)(a), "b": TopK(1).fit(b)(b)}).to_dict("records")
    [{'row': 1, 'label': 1, 'a': False, 'b': True}]
    """
    tables = _checked({name: found.table for name, found in sets.items()})
    hits = np.column_stack([found.hits for found in sets.values()])
    rows = np.flatnonzero(hits.any(1) & ~hits.all(1))
    first = next(iter(tables.values()))
    columns = {"row": rows}
    if not first.many_labels:
        columns["label"] = first.checked_labels()[rows]
    return pd.DataFrame(columns | {name: hits[rows, place] for place, name in enumerate(sets)})


def _checked(tables: Mapping[str, LogitTable]) -> dict[str, LogitTable]:
    """At least two tables of the same rows."""
    if not isinstance(tables, Mapping):
        raise ValueError(f"give the tables by their names, {{name: table}}, not as {type(tables).__name__}")
    if len(tables) < 2:
        raise ValueError(f"a comparison needs two or more tables; there is {len(tables)}")
    (first_name, first), *others = ((name, checked_table(table)) for name, table in tables.items())
    for name, table in others:
        if table.scores.shape != first.scores.shape:
            raise ValueError(
                f"{first_name} is {first.scores.shape} and {name} is {table.scores.shape}; compare the same rows and classes"
            )
        if not np.array_equal(first.checked_labels(), table.checked_labels()):
            raise ValueError(f"{first_name} and {name} have different labels; compare the same rows in the same order")
    return dict(tables)


def _frame(
    measured: list[tuple[Metric, str, Parts]], n_tables: int, interval: float, resamples: int, seed: int
) -> pd.DataFrame:
    """`measured` holds the tables of one metric after the other, the first table first."""
    drawn = resampled([parts for _, _, parts in measured], resamples, seed) if measured else []
    records = []
    for place, (metric, name, parts) in enumerate(measured):
        reference = place - place % n_tables
        values, first = named(parts.value()), named(measured[reference][2].value())
        width = metric.bounds[1] - metric.bounds[0]
        for group in [group for group in values if group in first]:
            low, high = interval_of(drawn[place][group], values[group], interval, metric.bounds)
            record = {"metric": metric.name, "group": group, "table": name, "value": values[group]}
            record |= {"low": low, "high": high, "difference": values[group] - first[group]}
            differences = drawn[place][group] - drawn[reference][group]
            record["difference_low"], record["difference_high"] = interval_of(
                differences, record["difference"], interval, (-width, width)
            )
            records.append(record | {"n": parts.n_rows})
    names = ["metric", "group", "table", "value", "low", "high", "difference", "difference_low", "difference_high", "n"]
    frame = pd.DataFrame(records, columns=names)
    frame.attrs["interval"] = interval  # for those who draw it
    return frame
