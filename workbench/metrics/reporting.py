"""One tidy frame with every metric of every rule, and the same as a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.cards import report_card
from workbench.metrics import METRICS, Metric, Parts, auroc, empty_share, max_confidence, mean_size
from workbench.metrics.base import checked_metrics, in_full, intervals, named
from workbench.progress import slow
from workbench.sets import AverageK, FittedRule, Rule, TopK, checked_rule, rule_from_text
from workbench.tables import LogitTable, checked_table
from workbench.tables.groups import WITHOUT_LABEL

PROBABILITIES = "probabilities"  # the column of metrics that need no rule


class Report(pd.DataFrame):
    """The frame that `report` returns; a notebook shows it with one column per rule. Parts of it are plain frames."""

    def to_markdown(self) -> str:  # type: ignore[override]
        """A short Markdown table with one column per rule; that of pandas needs another package."""
        return _as_markdown(self)

    def to_latex(self) -> str:  # type: ignore[override]
        """The same as a LaTeX table, for a document that loads booktabs; every text is escaped."""
        return _as_latex(self)

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

    - `table`: the rows to judge on.
    - `resamples`: number of bootstrap resamples where `interval` is given.
    - `seed`: of the resamples, so that the same call gives the same numbers.

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
    """A short Markdown table: one line per metric, one column per rule, numbers with four digits."""
    wide = _wide(frame)
    lines = [["metric", *wide.columns], ["---"] + ["---:"] * wide.shape[1]]
    lines += [[name, *row] for name, row in zip(wide.index, wide.to_numpy().tolist(), strict=True)]
    table = "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
    return f"{table}\n{_how_many(frame)}\n"


# What LaTeX would take for a command; the backslash first is no matter, for each letter is looked at once.
LATEX = {**{sign: f"\\{sign}" for sign in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX |= {
    "\\": r"\textbackslash{}",
    "≥": r"$\geq$",
    "–": "--",
    "−": "$-$",
    "ε": r"$\varepsilon$",
    "α": r"$\alpha$",
    "λ": r"$\lambda$",
}


def _as_latex(frame: pd.DataFrame) -> str:
    """A table for a paper that loads booktabs: one line per metric, one column per rule; every text is escaped."""

    def escaped(text: str) -> str:
        return "".join(LATEX.get(letter, letter) for letter in text)

    wide = _wide(frame)
    lines = [[name, *row] for name, row in zip(wide.index, wide.to_numpy().tolist(), strict=True)]
    rows = ["    " + " & ".join(map(escaped, line)) + r" \\" for line in (["metric", *wide.columns], *lines)]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{l{'r' * wide.shape[1]}}}  % {_how_many(frame)}",
            r"    \toprule",
            rows[0],
            r"    \midrule",
            *rows[1:],
            r"    \bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _as_text(frame: pd.DataFrame) -> str:
    """For reading: one line per metric, one column per rule; metrics of the probabilities alone follow."""
    wide = _wide(frame)
    of_rules = wide[wide.columns[wide.columns != PROBABILITIES]]
    parts = [of_rules[(of_rules != "").any(axis=1)].to_string()] if of_rules.shape[1] else []
    if PROBABILITIES in wide:
        alone = wide.loc[wide[PROBABILITIES] != "", [PROBABILITIES]].rename(columns={PROBABILITIES: ""})
        parts.append(alone.to_string())
    return "\n\n".join([*parts, _how_many(frame)]) + "\n"


def _wide(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per metric and group, one column per rule and a last one for the probabilities alone; "" for no value."""
    cells: dict[str, dict[str, str]] = {}
    rules = dict.fromkeys(
        [*(rule for rule in _headings(frame) if rule), *([PROBABILITIES] if "" in set(frame["rule"]) else [])]
    )
    for row, rule in zip(frame.to_dict("records"), _headings(frame), strict=True):
        if pd.notna(row["value"]):
            interval = f" [{row['low']:.4g}, {row['high']:.4g}]" if pd.notna(row.get("low")) else ""
            cells.setdefault(in_full(row["metric"], row["group"]), {})[rule or PROBABILITIES] = (
                f"{row['value']:.4g}{interval}"
            )
    return pd.DataFrame.from_dict(cells, orient="index", columns=list(rules)).fillna("")


def _how_many(frame: pd.DataFrame) -> str:
    """Of how many rows the numbers are: all, and those with a label where they are fewer."""
    most, labelled = frame["n"].max(), frame.loc[frame["group"] != WITHOUT_LABEL, "n"].min()
    beside = f", {labelled} of them with a label" if labelled < most else ""
    return f"n = {most} rows{beside}"


# How a report is written out: format → text. NaN is an empty cell or null.
FORMATS: dict[str, Callable[[pd.DataFrame], str]] = {
    "text": _as_text,
    "json": lambda frame: frame.to_json(orient="records", indent=1, force_ascii=False) + "\n",
    "csv": lambda frame: frame.to_csv(index=False),
    "markdown": _as_markdown,
    "latex": _as_latex,
}
