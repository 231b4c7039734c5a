"""One tidy frame with every metric of every rule, and the same as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.html_repr import report_card
from workbench.metric_spec import MetricSpec
from workbench.metrics import METRICS, Metric, Parts, auroc, empty_share, max_confidence, mean_size
from workbench.metrics.base import K_of_rule, beside_coverage, checked_metrics, gather_for, intervals, named
from workbench.progress import slow
from workbench.sets import RULES, AverageK, FittedRule, Rule, TopK, checked_rule, rule_from_text
from workbench.tables import LogitTable, checked_table
from workbench.tables.groups import WITHOUT_LABEL, rows_by
from workbench.tables.objects import objects_of_rows
from workbench.warning_capture import warn

PROBABILITIES = "probabilities"  # the column of metrics that need no rule


class Report(pd.DataFrame):
    """The frame that `report` returns; a notebook shows it with one column per rule. Parts of it are plain frames."""

    def to_markdown(self, buf: Any = None, **options: Any) -> Any:
        """A short Markdown table with one column per rule; with arguments, the whole frame as pandas writes it."""
        return _as_markdown(self) if buf is None and not options else super().to_markdown(buf, **options)

    def to_latex(self, buf: Any = None, **options: Any) -> Any:
        """The short table for LaTeX with booktabs, every text escaped; with arguments, as pandas writes the frame."""
        return _as_latex(self) if buf is None and not options else super().to_latex(buf, **options)

    def _repr_html_(self) -> str:
        return report_card(self.assign(rule=_headings(self)))


def report(
    table: LogitTable,
    rules: Iterable[Rule | FittedRule] | str | None = None,
    metrics: Iterable[Metric] = METRICS,
    interval: float | None = None,
    *,
    by: Any = None,
    val: LogitTable | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Report:
    """Every metric that the table has the fields for, of every rule: one line each.

    Args:
        table: The rows to judge on.
        by: Slices of the rows that are reported beside all of them, in a column `slice`: a row attribute ("organ"), "shots",
            "groups", "label", an array with one entry per row, or {name: mask or rows}.
        resamples: Number of bootstrap resamples where `interval` is given.
        seed: Of the resamples, so that the same call gives the same numbers.

    Columns: `rule` ("" for metrics of the probabilities alone), `metric`, `K` (of the metric, else of the rule; NaN where
    neither has one), `group` ("" or what the value is of: few, medium, a size, …), `value`, with `interval=0.95` also `low`
    and `high`, and the number of rows `n`. Coverage, and
    sizes and confidences beside it, are of the rows that have a label; in the group "without a label" stand the mean size,
    the share of empty sets and the mean maximum confidence of the others, and the AU-ROC that tells the two apart. With
    many labels a row F1, exact match, Brier score, likelihood and calibration errors count those others too: "none of
    these" is a truth.

    The interval says where the value of all such rows may lie: Wilson's for shares and means of shares over classes, from
    the bootstrap for others; it holds the value. Few rows inflate a calibration error or a gap per class: there most of
    the interval lies below the value (`workbench.metrics.intervals`).

    A rule that is not fitted yet is fitted on `val`. Without `val` the table is split in two halves: rules are fitted
    on one and everything is reported on the other, with a warning that says so. Without `rules`: top-1, top-5 and
    average-5. With "all": every rule of `workbench.sets.RULES` for which the table has what it needs.

    `frame.attrs["notes"]`, shown below the table, has the promise of each rule with the band in which the coverage of one
    fit lies, and the price of `min_size`.

    >>> import numpy as np
    >>> scores = np.random.default_rng(0).normal(size=(200, 8))
    >>> table = LogitTable(scores, labels=scores.argmax(1))
    >>> frame = report(table, rules=[TopK(2)])
    >>> frame[frame.metric == "accuracy"].to_dict("records")
    [{'rule': 'TopK(K=2, min_size=0)', 'metric': 'accuracy', 'K': 2.0, 'group': '', 'value': 1.0, 'n': 200}]
    """
    checked_table(table)
    if rules is None:
        K = min(5, max(1, table.n_classes - 1))
        rules = [TopK(1), *([TopK(K), AverageK(float(K))] if K > 1 else [])]
    if isinstance(rules, str):
        rules = _rules_for(rules, table if val is None else val)
    if isinstance(rules, (Rule, FittedRule)):
        rules = [rules]
    rules = [rule if isinstance(rule, FittedRule) else checked_rule(rule) for rule in dict.fromkeys(rules)]
    if val is None and any(isinstance(rule, Rule) and rule.needs_fit for rule in rules):
        objects = objects_of_rows(table)
        val, table = table.split(seed=seed)
        warn(
            f"rules were fitted on {val.n} rows drawn from this table and evaluated on the other {table.n}"
            + (f" (rows of one object stay together, by {objects.by})" if objects else "")
            + "; give val= to fit them on rows of your own",
            stacklevel=2,
        )
    fitted = [rule.fit(table if val is None else val) if isinstance(rule, Rule) else rule for rule in rules]
    metrics = [metric.stated() for metric in checked_metrics(metrics) if metric.applies(table)]
    of_rules = [rule.sets(table) for rule in fitted]
    subjects: list[Any] = [("sets", repr(sets.rule.rule), sets) for sets in of_rules] + [("table", "", table)]
    lines = _lines(subjects, metrics, table)
    for name, rows in _slices(table, by).items():
        inside = [(kind, rule, subject.rows(rows)) for kind, rule, subject in subjects]
        lines += [line.of_slice(name, rows, table.n) for line in _lines(inside, metrics, table.rows(rows))]
    K_of = {repr(sets.rule.rule): K_of_rule(sets.rule.rule) for sets in of_rules}
    frame = _frame(lines, K_of, interval, resamples, seed, sliced=by is not None)
    frame.attrs["notes"] = [f"{sets.rule.rule.short()}: {note}" for sets in of_rules for note in sets.notes()]
    return frame


def _rules_for(text: str, table: LogitTable) -> list[Rule]:
    """Every rule that a table allows, at its defaults."""
    if text != "all":
        raise ValueError(f"rules = {text!r}; give rules such as [LAC(0.9)], or 'all'")
    return [rule for rule in (kind() for kind in RULES) if not rule.missing(table)]


def _lines(subjects: list[Any], metrics: list[Metric], table: LogitTable) -> list[Line]:
    """Every metric of every rule on the rows of a table, and what is known of those without a label."""
    cells = [(metric, *rest) for kind, *rest in subjects for metric in metrics if metric.subject == kind]
    of_rules = [subject for kind, _, subject in subjects if kind == "sets"]
    for judged in (subject for kind, _, subject in subjects if kind == "table"):
        gather_for(metrics, judged, of_rules)
    lines = [
        Line(rule, metric, *beside_coverage(metric, subject))
        for metric, rule, subject in slow("report", "metric", cells)
    ]
    if table.labels is not None and not table.labelled.all():
        lines += _without_a_label(subjects, metrics, table)
    return lines


def _slices(table: LogitTable, by: Any) -> dict[str, np.ndarray]:
    """The rows of each slice, by its name; slices without a row are left out."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        slices = {str(name): np.arange(table.n)[rows] for name, rows in by.items()}
    else:
        codes, names = rows_by(table, by)
        slices = {name: np.flatnonzero(codes == code) for code, name in enumerate(names)}
    return {name: rows for name, rows in slices.items() if len(rows)}


class Line(NamedTuple):
    """A metric of a rule, taken apart, and of how many rows it is."""

    rule: str
    metric: Metric
    parts: Parts
    n: int
    group: str = ""  # of the rows, where it is not the metric that has groups
    slice: str = ""  # of which rows of the table; "" for all

    def of_slice(self, name: str, rows: np.ndarray, n_rows: int) -> Line:
        """The line as one of these rows among all, so that resamples are shared."""
        return self._replace(parts=self.parts.among(rows, n_rows), slice=name)


def _without_a_label(subjects: list[Any], metrics: list[Metric], table: LogitTable) -> list[Line]:
    """The rows without a label beside the others: how large their sets are, how sure the network is of them."""
    rows, n = np.flatnonzero(~table.labelled), table.n
    of_unlabelled = [metric for metric in (mean_size, empty_share, max_confidence) if metric in metrics]
    lines = [
        Line(rule, metric, metric.parts(subject.rows(rows)).among(rows, n), len(rows), WITHOUT_LABEL)
        for kind, rule, subject in subjects
        for metric in of_unlabelled
        if metric.subject == kind
    ]
    if auroc in metrics and len(rows) < n:
        inside = np.flatnonzero(table.labelled)
        parts = auroc.parts(table.rows(inside), table.rows(rows)).among(np.concatenate([inside, rows]), n)
        lines.append(Line("", auroc, parts, n, f"with against {WITHOUT_LABEL}"))
    return lines


def _frame(
    lines: list[Line], K_of: Mapping[str, float], interval: float | None, resamples: int, seed: int, sliced: bool
) -> Report:
    bands: list[dict[str, Any]] = [{} for _ in lines]
    if interval is not None and lines:
        bands = list(intervals([(line.metric, line.parts) for line in lines], interval, resamples, seed))
    columns = [
        *(["slice"] if sliced else []),
        "rule",
        "metric",
        "K",
        "group",
        "value",
        *(["low", "high"] if interval is not None else []),
        "n",
    ]
    records = []
    for line, band in zip(lines, bands, strict=True):
        for group, value in named(line.parts.value()).items():
            record = {
                "slice": line.slice,
                "rule": line.rule,
                "metric": line.metric.name,
                "K": line.metric.K(K_of.get(line.rule, np.nan)),
                "group": group or line.group,
                "value": value,
            }
            if interval is not None:
                record["low"], record["high"] = band[group]
            records.append(record | {"n": line.n})
    return Report(records, columns=columns)


def _headings(frame: pd.DataFrame) -> pd.Series:
    """The rules as people name them; one of a user's own as Python writes it."""

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
    return "\n\n".join([table.rstrip("\n"), _how_many(frame), *_notes(frame)]) + "\n"


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
            *(f"% {note}" for note in _notes(frame)),
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
    return "\n\n".join([*parts, "\n".join([_how_many(frame), *_notes(frame)])]) + "\n"


def _wide(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per metric and group, one column per rule and a last one for the probabilities alone; "" for no value."""
    cells: dict[str, dict[str, str]] = {}
    rules = dict.fromkeys(
        [*(rule for rule in _headings(frame) if rule), *([PROBABILITIES] if "" in set(frame["rule"]) else [])]
    )
    for row, rule in zip(frame.to_dict("records"), _headings(frame), strict=True):
        if pd.notna(row["value"]):
            interval = f" [{row['low']:.4g}, {row['high']:.4g}]" if pd.notna(row.get("low")) else ""
            heading = " · ".join(filter(None, (row.get("slice"), str(MetricSpec.parse(row["metric"], row["group"])))))
            cells.setdefault(heading, {})[rule or PROBABILITIES] = f"{row['value']:.4g}{interval}"
    return pd.DataFrame.from_dict(cells, orient="index", columns=list(rules)).fillna("")


def _notes(frame: pd.DataFrame) -> list[str]:
    """The promise of each rule with its band, and the price of `min_size`."""
    notes: list[str] = frame.attrs.get("notes", [])
    return notes


def _how_many(frame: pd.DataFrame) -> str:
    """Of how many rows the numbers are: those with a label, and all where they are more; slices have fewer."""
    frame = frame[frame["slice"] == ""] if "slice" in frame else frame
    most, labelled = frame["n"].max(), frame.loc[frame["group"] != WITHOUT_LABEL, "n"].min()
    beside = f", {labelled} of them with a label (coverage and size are of these)" if labelled < most else ""
    return f"n = {most} rows{beside}"


# How a report is written out: format → text. NaN is an empty cell or null.
FORMATS: dict[str, Callable[[pd.DataFrame], str]] = {
    "text": _as_text,
    "json": lambda frame: frame.to_json(orient="records", indent=1, force_ascii=False) + "\n",
    "csv": lambda frame: frame.to_csv(index=False),
    "markdown": _as_markdown,
    "latex": _as_latex,
}
