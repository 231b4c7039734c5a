"""One tidy frame with every metric of every rule, and the same as a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.cards import report_card
from workbench.conformal import rule_from_text
from workbench.groups import WITHOUT_LABEL
from workbench.metrics import METRICS, Metric, Parts, auroc, empty_share, max_confidence, mean_size
from workbench.metrics.base import checked_metrics, intervals, named
from workbench.progress import slow
from workbench.sets import AverageK, FittedRule, Rule, TopK, checked_rule
from workbench.tables import LogitTable, checked_table


class Report(pd.DataFrame):
    """The frame that `report` returns; a notebook shows it with one column per rule. Parts of it are plain frames."""

    def _repr_html_(self) -> str:
        return report_card(self.assign(rule=_headings(self)))


def report(
    table: LogitTable,
    rules: Iterable[Rule | FittedRule] | None = None,
    metrics: Iterable[Metric] = METRICS,
    interval: float | None = None,
    *,
    val: LogitTable | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Report:
    """Every metric that the table has the fields for, of every rule: one line each.

    Columns: `rule` ("" for metrics of the probabilities alone), `metric`, `group` ("" or what the value is of: few,
    medium, a size, …), `value`, with `interval=0.95` also `low` and `high`, and the number of rows `n`. What needs a label
    is of the rows that have one; beside it stand, in the group "without a label", the mean size, the share of empty sets
    and the mean maximum confidence of the others, and the AU-ROC that tells the two apart.

    The interval says where the value of all such rows may lie: Wilson's for shares and means of shares over classes, from
    the bootstrap for others; it holds the value. Few rows inflate a calibration error or a gap per class: there most of
    the interval lies below the value (`workbench.metrics.intervals`).

    A rule that is not fitted yet is fitted on `val`. Without `val` the table is split in two halves: rules are fitted
    on one and everything is reported on the other, with a warning that says so. Without `rules`: top-1, top-5 and
    average-5.

    >>> import numpy as np
    >>> scores = np.random.default_rng(0).normal(size=(200, 8))
    >>> table = LogitTable(scores, labels=scores.argmax(1))
    >>> frame = report(table, rules=[TopK(2)])
    >>> frame[frame.metric == "accuracy"].to_dict("records")
    [{'rule': 'TopK(K=2, min_size=0)', 'metric': 'accuracy', 'group': '', 'value': 1.0, 'n': 200}]
    """
    checked_table(table)
    if rules is None:
        K = min(5, max(1, table.n_classes - 1))
        rules = [TopK(1), *([TopK(K), AverageK(float(K))] if K > 1 else [])]
    if isinstance(rules, (Rule, FittedRule)):
        rules = [rules]
    rules = [rule if isinstance(rule, FittedRule) else checked_rule(rule) for rule in dict.fromkeys(rules)]
    if val is None and any(isinstance(rule, Rule) and rule.needs_fit for rule in rules):
        val, table = table.split(seed=seed)
        warnings.warn(
            f"rules were fitted on {val.n} rows drawn from this table and judged on the other {table.n}; "
            "give val= to fit them on rows of your own",
            stacklevel=2,
        )
    fitted = [rule.fit(table if val is None else val) if isinstance(rule, Rule) else rule for rule in rules]
    metrics = [metric.stated() for metric in checked_metrics(metrics) if metric.applies(table)]
    subjects = [("sets", repr(rule.rule), rule.sets(table)) for rule in fitted] + [("table", "", table)]
    wanted = [(metric, *rest) for kind, *rest in subjects for metric in metrics if metric.subject == kind]
    n_labelled = int(np.count_nonzero(table.labelled))
    lines = [
        Line(rule, metric, metric.parts(subject), table.n if metric.labels == "none" else n_labelled)
        for metric, rule, subject in slow("report", "metric", wanted)
    ]
    if table.labels is not None and n_labelled < table.n:
        lines += _without_a_label(subjects, metrics, table)
    return _frame(lines, interval, resamples, seed)


class Line(NamedTuple):
    """A metric of a rule, taken apart, and of how many rows it is."""

    rule: str
    metric: Metric
    parts: Parts
    n: int
    group: str = ""  # of the rows, where it is not the metric that has groups


def _without_a_label(subjects: list[Any], metrics: list[Metric], table: LogitTable) -> list[Line]:
    """The rows without a label beside the others: how large their sets are, how sure the network is of them."""
    rows, n = np.flatnonzero(~table.labelled), table.n
    wanted = [metric for metric in (mean_size, empty_share, max_confidence) if metric in metrics]
    lines = [
        Line(rule, metric, metric.parts(subject.rows(rows)).among(rows, n), len(rows), WITHOUT_LABEL)
        for kind, rule, subject in subjects
        for metric in wanted
        if metric.subject == kind
    ]
    if auroc in metrics and len(rows) < n:
        inside = np.flatnonzero(table.labelled)
        parts = auroc.parts(table.rows(inside), table.rows(rows)).among(np.concatenate([inside, rows]), n)
        lines.append(Line("", auroc, parts, n, f"with against {WITHOUT_LABEL}"))
    return lines


def _frame(lines: list[Line], interval: float | None, resamples: int, seed: int) -> Report:
    bands: list[dict[str, Any]] = [{} for _ in lines]
    if interval is not None and lines:
        bands = list(intervals([(line.metric, line.parts) for line in lines], interval, resamples, seed))
    columns = ["rule", "metric", "group", "value", *(["low", "high"] if interval is not None else []), "n"]
    records = []
    for line, band in zip(lines, bands, strict=True):
        for group, value in named(line.parts.value()).items():
            record = {"rule": line.rule, "metric": line.metric.name, "group": group or line.group, "value": value}
            if interval is not None:
                record["low"], record["high"] = band[group]
            records.append(record | {"n": line.n})
    return Report(records, columns=columns)


def _headings(frame: pd.DataFrame) -> pd.Series:
    """The rules as people name them; one of a user's own as Python prints it."""

    def short(rule: str) -> str:
        try:
            return rule_from_text(rule).short() if rule else ""
        except ValueError:
            return rule

    return frame["rule"].map(short)


def _as_markdown(frame: pd.DataFrame) -> str:
    """A Markdown table; numbers with four digits."""
    lines = [frame.columns.tolist(), ["---"] * frame.shape[1]]
    lines += [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in frame.to_numpy()]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _as_text(frame: pd.DataFrame) -> str:
    """For reading: one line per metric, one column per rule; metrics of the probabilities alone follow."""
    lines = frame["metric"] + frame["group"].map(lambda group: f" ({group})" if group else "")
    cells = [
        f"{row.value:.4g}" + (f" [{row.low:.4g}, {row.high:.4g}]" if pd.notna(getattr(row, "low", None)) else "")
        for row in frame.itertuples()
    ]
    tidy = pd.DataFrame({"line": lines, "rule": _headings(frame), "cell": cells})[frame["value"].notna()]
    parts = []
    for of_sets in (True, False):
        part = tidy[(tidy["rule"] != "") == of_sets]
        if len(part):
            wide = part.pivot(index="line", columns="rule", values="cell")  # noqa: PD010
            wide = wide.loc[part["line"].unique(), part["rule"].unique()]  # in the order of the report
            parts.append(wide.rename_axis(index=None, columns=None).fillna("").to_string())
    return "\n\n".join([*parts, f"n = {frame['n'].iloc[0]} rows"]) + "\n"


# How a report is written out: format → text. NaN is an empty cell or null.
FORMATS: dict[str, Callable[[pd.DataFrame], str]] = {
    "text": _as_text,
    "json": lambda frame: frame.to_json(orient="records", indent=1, force_ascii=False) + "\n",
    "csv": lambda frame: frame.to_csv(index=False),
    "markdown": _as_markdown,
}
