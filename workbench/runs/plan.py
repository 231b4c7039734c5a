"""What a run sets beforehand for every epoch: its learning rate, and the knobs of its loss that follow a schedule."""

from __future__ import annotations

import pandas as pd

from workbench.runs.run import Run
from workbench.schedules import LEARNING_RATES


def planned(run: Run) -> pd.DataFrame:
    """The plan of a run, one row per epoch as in its history: `wb.figures.learning_curves` draws both.

    The learning rate is that at the beginning of an epoch, a knob of the loss that at its end.

    >>> from workbench.losses import NoisedTopK
    >>> from workbench.schedules import anneal
    >>> loss = NoisedTopK(K=5, epsilon=anneal(3, 0.2, over=0.5))
    >>> planned(Run("digits", loss=loss, epochs=2, learning_rate=0.1)).round(3).to_numpy().tolist()
    [[0.0, 0.1, 0.2], [1.0, 0.05, 0.2]]
    """
    factor, epochs = LEARNING_RATES[run.schedule], range(run.epochs)
    rates = [run.learning_rate * factor(epoch / run.epochs, run.milestones) for epoch in epochs]
    ends = [run.loss.at((epoch + 1) / run.epochs) for epoch in epochs]
    knobs = {f"loss.{name}": [getattr(loss, name) for loss in ends] for name in run.loss.scheduled()}
    return pd.DataFrame({"epoch": epochs, "learning_rate": rates, **knobs})
