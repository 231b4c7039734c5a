"""A model card: what a stored run is, what its sets promise, and which classes are missed, in Markdown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import numpy as np
import pandas as pd

from workbench.metrics import coverage, macro_accuracy, mean_size
from workbench.metrics.reporting import report
from workbench.sets import LAC, AverageK, PredictionSets, Rule
from workbench.sets.coverage_band import coverage_band
from workbench.store import StoredRun
from workbench.tables import LogitTable
from workbench.tables.groups import means, rows_by
from workbench.warning_capture import captured_warnings

WORST = 5  # classes that are named
METRICS = {"accuracy": "coverage", "macro_accuracy": "coverage, mean over classes", "mean_size": "mean size"}
UNSTATED = ("None", "[]", "")  # settings at nothing
ENOUGH = 5  # test rows of a class before its coverage is named


def model_card(run: StoredRun, confidence: float = 0.9, level: float = 0.95) -> str:
    """The model card of a run: data, training, sets, promise with its band, and who pays.

    Args:
        run: A stored run with tables `val` and `test`.
        confidence: Promised coverage of LAC, fitted on `val`.
        level: Probability of the intervals and of the band.

    Returns:
        Markdown. A section whose numbers are not known says so.
    """
    val, test = run.tables["val"], run.tables["test"]
    parts = [f"# Model card: {run.name}", f"Run `{run.key[:12]}`.", *_data(run, val, test), *_training(run)]
    if test.labels is None or val.labels is None:
        return "\n\n".join([*parts, "## Sets", "The rows have no labels: coverage is not known."]) + "\n"
    with captured_warnings():  # the card says itself what a fit warns of
        rules = [LAC(confidence), AverageK(min(run.record.K, test.n_classes - 1) or 1)]
        fitted = rules[0].fit(val)(test)
        sets = _sets(rules, val, test, level)
    return (
        "\n\n".join([*parts, *sets, *_promise(val, confidence, level), *_who_pays(fitted), *_code(run, confidence)])
        + "\n"
    )


def _data(run: StoredRun, val: LogitTable, test: LogitTable) -> list[str]:
    lines = {
        "Data": run.record.data_name or "a table that was imported",
        "Rows": f"{val.n} calibration (val), {test.n} test",
        "Classes": f"{test.n_classes}" + (f" in {len(set(test.groups))} groups" if test.groups is not None else ""),
    }
    if test.class_counts is not None:
        counts = test.class_counts
        lines["Training rows of a class"] = f"{counts.min()} to {counts.max()}, median {np.median(counts):g}"
    lines["True probabilities"] = "known" if test.posterior is not None else "not known"
    return ["## Data", _table(("", ""), lines.items())]


def _training(run: StoredRun) -> list[str]:
    settings = {
        name: value
        for name, value in run.record.settings.items()
        if str(value) not in UNSTATED and name != "dataset_key"
    }
    if not settings:
        return ["## Model", "The scores were imported; how the model was trained is not known here."]
    return ["## Model and training", _table(("setting", "value"), settings.items())]


def _sets(rules: list[Rule], val: LogitTable, test: LogitTable, level: float) -> list[str]:
    frame = report(test, rules=rules, metrics=(coverage, macro_accuracy, mean_size), val=val, interval=level)
    lines = [
        (
            f"`{line['rule']}`",
            METRICS.get(line["metric"], line["metric"]),
            f"{line['value']:.3f}",
            f"{line['low']:.3f} to {line['high']:.3f}",
        )
        for line in pd.DataFrame(frame).to_dict("records")
        if not line["group"]  # of all rows
    ]
    return ["## Sets", _table(("rule", "metric", "value", f"{level:.0%} interval"), lines)]


def _promise(val: LogitTable, confidence: float, level: float) -> list[str]:
    n = int(val.labelled.sum())
    low, high = coverage_band(n, confidence, level)
    text = (
        f"LAC promises that the set of a new row contains its label with probability at least {confidence:.0%}. The promise is "
        f"an average over calibration sets: with {n} rows, the coverage of one fit lies between {low:.1%} and {high:.1%} with "
        f"probability {level:.0%}. It is about rows like the calibration rows, and not about each class."
    )
    if val.chose_model:
        text += " These rows also chose the model, so the promise is void: fit on rows that chose nothing."
    return ["## Promise", text]


def _who_pays(sets: PredictionSets) -> list[str]:
    """Coverage and size by groups of classes, and the classes that are missed most."""
    table = sets.table
    text = ["## Who pays", "An average hides the classes that are missed. Of the sets by LAC:"]
    if table.many_labels:
        return [*text, "Rows have several labels: coverage by class is not one number."]
    for by in ("shots", "groups"):
        with contextlib.suppress(ValueError):
            text.append(_by_group(sets, by))
    labels = table.checked_labels()
    rows = np.flatnonzero(sets.labelled)
    of_classes = means(sets.hits[rows], labels[rows], table.n_classes)
    counts = np.bincount(labels[rows], minlength=table.n_classes)
    worst = sorted(np.flatnonzero(counts >= ENOUGH).tolist(), key=lambda j: (of_classes[j], j))[:WORST]
    names = table.named_classes()
    lines = [(names[j], f"{of_classes[j]:.2f}", str(counts[j])) for j in worst]
    return [
        *text,
        f"Classes missed most (with at least {ENOUGH} test rows):",
        _table(("class", "coverage", "n"), lines),
    ]


def _by_group(sets: PredictionSets, by: str) -> str:
    codes, names = rows_by(sets.table, by)
    lines = []
    for code, name in enumerate(names):
        rows = (codes == code) & sets.labelled
        if rows.any():
            lines.append(
                (name, f"{sets.hits[rows].mean():.3f}", f"{sets.sizes[rows].mean():.2f}", str(int(rows.sum())))
            )
    few = lines if len(lines) <= 2 * WORST else sorted(lines, key=lambda line: line[1])[:WORST]
    head = by if few is lines else f"{by}, the {WORST} covered least"
    return _table((head, "coverage", "mean size", "n"), few)


def _code(run: StoredRun, confidence: float) -> list[str]:
    lines = [
        "import workbench as wb",
        "from workbench.store import Store",
        f'run = Store().open("{run.key[:12]}")',
        f'sets = wb.LAC({confidence}).fit(run.tables["val"])(run.tables["test"])',
        "wb.metrics.coverage(sets), wb.metrics.mean_size(sets)",
    ]
    return ["## Code", "```python\n" + "\n".join(lines) + "\n```"]


def _table(head: tuple[str, ...], lines: Iterable[tuple[object, ...]]) -> str:
    """A table in Markdown."""
    cells = [head, ("---",) * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in cells)
