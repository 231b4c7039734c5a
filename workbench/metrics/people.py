"""People beside a model: sets that people gave, against sets of the model of the same mean size."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.metrics.crowd_labels import ValidatedLabels, validated_labels
from workbench.metrics.intervals import wilson_interval
from workbench.sets import AverageK
from workbench.tables import LogitTable
from workbench.warning_capture import captured_warnings

MODEL = "model, sets of the same mean size"


def people_against_model(answers: pd.DataFrame, table: LogitTable) -> pd.DataFrame:
    """The error rate of each person, and of the model with sets as large on average, on the rows that the person answered.

    Args:
        answers: Columns `person`, `row` and `classes` (names of classes), as `SetAnswers.frame()` gives them.
        table: The scores and labels of all rows; a row of the answers is a row of the table.

    Returns:
        A frame of `person`, `n`, `mean_size`, and for person and model `error`, `low`, `high` (Wilson's 95 % interval);
        `wb.figures.with_intervals(figure_frame(frame), y="error rate")` draws it.

    Paper: Garcin, thesis, Fig. 3.7: the model's threshold gives the person's mean size on these very rows.
    """
    index = {name: j for j, name in enumerate(table.named_classes())}
    labels, lines = table.checked_labels(), []
    for person, part in answers.groupby("person", sort=False):
        rows = part["row"].to_numpy(dtype=int)
        _check_rows(rows, table, str(person))
        known = [{index[name] for name in classes if name in index} for classes in part["classes"]]
        sizes = np.array([len(classes) for classes in part["classes"]])
        missed = np.array([int(labels[row]) not in classes for row, classes in zip(rows, known, strict=True)])
        lines += [
            {"person": person, "who": "person", **_error(missed, sizes.mean())},
            {
                "person": person,
                "who": MODEL,
                **_error(_missed_by_model(table.rows(rows), float(sizes.mean())), sizes.mean()),
            },
        ]
    return pd.DataFrame(lines, columns=["person", "who", "n", "mean_size", "error", "low", "high"])


def figure_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame of `people_against_model` as `wb.figures.with_intervals` takes it."""
    sized = [f"{person} ({size:.1f} classes)" for person, size in zip(frame["person"], frame["mean_size"], strict=True)]
    return pd.DataFrame(
        {"series": frame["who"], "x": sized, "value": frame["error"], "low": frame["low"], "high": frame["high"]}
    )


def labels_by_vote(answers: pd.DataFrame, *, b0: float = 1.0, threshold: float = 2.0) -> ValidatedLabels:
    """Labels by Pl@ntNet's weighted majority vote, from answers of one class: a set of several classes is not a vote.

    Paper: Garcin, thesis, Sec. 3.8.1.
    """
    single = answers[[len(classes) == 1 for classes in answers["classes"]]]
    votes = pd.DataFrame(
        {"item": single["row"], "user": single["person"], "label": [names[0] for names in single["classes"]]}
    )
    return validated_labels(votes, b0=b0, threshold=threshold)


def _check_rows(rows: np.ndarray, table: LogitTable, person: str) -> None:
    if len(rows) and (rows.min() < 0 or rows.max() >= table.n):
        raise ValueError(f"{person} answered row {rows.max()}, and the table has rows 0 to {table.n - 1}")
    if table.many_labels or not table.labelled[rows].all():
        raise ValueError(f"some rows that {person} answered have no label, or several; an error needs one label a row")


def _missed_by_model(part: LogitTable, size: float) -> np.ndarray:
    with captured_warnings():  # of few rows: ties
        sets = AverageK(min(max(size, 1 / part.n), part.n_classes)).fit(part)(part)
    return np.asarray(~sets.hits)


def _error(missed: np.ndarray, size: float) -> dict[str, float]:
    low, high = wilson_interval(np.array([missed.sum()]), np.array([len(missed)]))
    return {
        "n": len(missed),
        "mean_size": float(size),
        "error": float(missed.mean()),
        "low": float(low[0]),
        "high": float(high[0]),
    }
