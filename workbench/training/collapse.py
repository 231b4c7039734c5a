"""Detection of collapse: a network that predicts the same classes for every row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from workbench.exact_arithmetic import classes_of_rows
from workbench.losses.target_size import target_K
from workbench.operators.order import largest
from workbench.tables import LogitTable
from workbench.warning_capture import warn

if TYPE_CHECKING:
    from workbench.runs.run import Run
    from workbench.training.loggers import OnEpoch

# An answer is constant if so many rows have the same classes in front, unless it is right so much more often than the best
# constant answer. Runs that are stuck have 1 and 0, others soon less than a half.
SAME, BETTER = 0.9, 0.02
EPOCHS, STEPS = 2, 100  # that a run must have behind it: a network begins with any answer


def answers(scores: Tensor, val: LogitTable, K: float) -> dict[str, float]:
    """Measures of how constant the predictions of validation logits (n, L) are.

    `val_same_set` is the largest share of rows with a label that have the same K classes in front, `val_over_constant` the
    share of labels among these classes minus that of the best constant answer, the K commonest classes.
    """
    rows, classes = val.positives()
    if not len(rows):
        return {"val_same_set": math.nan, "val_over_constant": math.nan}
    K = classes_of_rows(K, 1)
    in_front = largest(scores, K).numpy()
    right = (in_front[rows] == classes[:, None]).any(1).mean()
    right_if_constant = np.sort(np.bincount(classes, minlength=val.n_classes))[-K:].sum() / len(rows)
    # A set is identified by the sum of a random number for each of its classes; two sets rarely share a sum.
    numbers = np.random.default_rng(0).integers(2**62, size=val.n_classes)
    _, times = np.unique(numbers[in_front[val.labelled]].sum(1), return_counts=True)
    return {
        "val_same_set": float(times.max() / times.sum()),
        "val_over_constant": float(right - right_if_constant),
    }


def constant_answer(run: Run, row: Mapping[Any, float]) -> str:
    """Return advice if the model predicts the same for every row of an epoch, given its history; else "".

    The first epochs and the first steps are not checked.
    """
    epochs = int(row["epoch"]) + 1
    if epochs < min(EPOCHS, run.epochs) or epochs * _steps(run) < STEPS:
        return ""
    if not (row.get("val_same_set", 0) >= SAME and row["val_over_constant"] < BETTER):
        return ""
    K = classes_of_rows(target_K(run.loss.settings(), run.data.n_classes), 1)
    classes = f"{K} classes" if K > 1 else "class"
    return (
        f"{run.title} gives a constant answer after epoch {epochs}: {row['val_same_set']:.0%} of the validation rows have the "
        f"same {classes} in front, and that is right no more often than naming the commonest {classes} always. {_advice(run)}"
    )


def _steps(run: Run) -> int:
    """Steps of an epoch."""
    return math.ceil(run.data.train.n / run.batch_size)


def _advice(run: Run) -> str:
    """Return advice by the kind of the loss."""
    knobs = run.loss.settings()
    if "epsilon" in knobs:
        return (
            f"With little noise the common classes stay a margin above the others (epsilon = {knobs['epsilon']}). Try a "
            "schedule such as epsilon=wb.schedules.anneal(3, 0.2), a larger epsilon such as 1, CrossEntropy() first and then "
            "this loss on its features (features=), or a model whose scores are normalised"
        )
    rate = run.learning_rate
    return (
        f"Try learning_rate={rate / 10:g} (it is {rate:g}; {rate * 10:g} if the loss hardly moves), more epochs or a larger "
        "model; inputs that say nothing of their class have no better answer"
    )


class CollapseMonitor:
    """Gets the row of each epoch, warns once if the first epochs end in a constant answer, and passes the row on."""

    def __init__(self, run: Run, on_epoch: OnEpoch | None) -> None:
        self.run, self.on_epoch, self.warned = run, on_epoch, False
        self.first = max(EPOCHS, math.ceil(STEPS / _steps(run)))  # epochs after which it looks

    def __call__(self, row: dict[str, float]) -> None:
        if row["epoch"] + 1 == self.first:
            self.warn(constant_answer(self.run, row))
        if self.on_epoch is not None:
            self.on_epoch(row)

    def warn(self, message: str) -> None:
        """Says it, unless there is nothing to say or it was said."""
        if message and not self.warned:
            self.warned = True
            warn(message, stacklevel=3)
