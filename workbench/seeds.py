"""How much training varies: the mean over seeds, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

CONFIDENCE = 0.95


def mean_over_seeds(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    r"""Mean over seeds with its 95 % interval: one line per setting of `names`, split and metric.

    $$ \bar v \pm t_{0.975,\, n-1} \, s / \sqrt n $$

    is Student's interval of the mean over n seeds (`low`, `high`), with s the standard deviation of the n values. It
    tells how much training varies, not how much test rows do; with one seed there is none (NaN).

    >>> frame = pd.DataFrame({"epsilon": 0.1, "seed": [0, 1], "split": "test", "metric": "accuracy", "value": [0.5, 0.7]})
    >>> mean_over_seeds(frame, ["epsilon"]).round(2).to_dict("records")
    [{'epsilon': 0.1, 'split': 'test', 'metric': 'accuracy', 'mean': 0.6, 'seeds': 2, 'low': -0.67, 'high': 1.87}]
    """
    from scipy import stats  # only here: it takes longer to load than all other modules of the app

    groups = frame.groupby([*names, "split", "metric"], sort=False, dropna=False)["value"]
    found = groups.agg(mean="mean", deviation="std", seeds="size").reset_index()
    n = found["seeds"].to_numpy()
    half = stats.t.ppf((1 + CONFIDENCE) / 2, np.maximum(n - 1, 1)) * found["deviation"] / np.sqrt(n)
    return found.assign(low=found["mean"] - half, high=found["mean"] + half).drop(columns="deviation")
