r"""Seeds and rows together: where a metric of a setting, or the difference of two, may lie for other seeds and other rows.

Every seed of a setting is evaluated on the same rows. A resample therefore draws rows once, for all seeds and all settings, and
seeds with replacement; its value is the mean over the seeds that it drew:

$$ v^* = \bar v^*_\text{rows} + c \, (\bar v^*_\text{seeds, rows} - \bar v^*_\text{rows}), \qquad
c = \sqrt{\tfrac{S}{S-1}} \; t_{S-1} / z $$

S seeds drawn from S scatter too little, and three to five are too few for quantiles of the normal law: c makes up for both, so
that the interval is Student's where the rows are known by heart, and the bootstrap of rows where seeds make no difference.
`benchmarks/intervals.py` measures how often it holds the truth, with c and without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench.metrics.base import Metric, Parts, named, resampled
from workbench.metrics.intervals import Pair, bootstrap_interval, normal_quantile
from workbench.metrics.significance import holm, paired_t_test

RESAMPLES = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Repeated:
    """A metric of one setting: its value for each seed, and for each seed its values on resamples of the rows."""

    seeds: tuple[int, ...]
    found: np.ndarray  # (seeds,)
    drawn: np.ndarray  # (seeds, resamples)
    n: int  # rows

    def of(self, seeds: Sequence[int]) -> Repeated:
        """The same of some of the seeds, in their order."""
        places = [self.seeds.index(seed) for seed in seeds]
        return Repeated(tuple(seeds), self.found[places], self.drawn[places], self.n)


def repeated(
    settings: Mapping[Any, Mapping[int, Parts]], group: str = "", *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[Any, Repeated]:
    """A metric of several settings of the same rows, on the same resamples of them.

    Args:
        settings: Setting → seed → parts of the metric (`metric.parts(sets)`).
        group: Which value of a metric that has one for each group.
    """
    parts = [one for seeds in settings.values() for one in seeds.values()]
    drawn = iter(resampled(parts, resamples, seed))
    return {
        name: Repeated(
            tuple(seeds),
            np.array([named(one.value()).get(group, np.nan) for one in seeds.values()]),
            np.stack([next(drawn).get(group, np.full(resamples, np.nan)) for _ in seeds]),
            next(iter(seeds.values())).n_rows,
        )
        for name, seeds in settings.items()
    }


def seeds_and_rows_interval(
    values: np.ndarray,
    drawn: np.ndarray,
    bounds: Pair = (-np.inf, np.inf),
    inflated: str = "",
    *,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Pair:
    """Interval of the mean over all seeds on all rows; of one seed, its value on all rows.

    Args:
        values: (seeds,) the metric of each seed.
        drawn: (seeds, resamples) the same on resamples of the rows, those of all seeds alike.

    >>> drawn = np.array([[0.5, 0.6, 0.7], [0.6, 0.7, 0.8]])
    >>> low, high = seeds_and_rows_interval(drawn.mean(axis=1), drawn)
    >>> low <= 0.65 <= high
    True
    """
    from scipy import stats  # only here: it takes long to load

    S, resamples = drawn.shape
    of_rows = drawn.mean(axis=0)
    if S == 1:
        return bootstrap_interval(of_rows, float(values.mean()), confidence, bounds, inflated)
    times = np.random.default_rng(seed).multinomial(S, np.full(S, 1 / S), size=resamples).T
    stretch = np.sqrt(S / (S - 1)) * stats.t.ppf((1 + confidence) / 2, S - 1) / normal_quantile(confidence)
    both = of_rows + stretch * ((times * drawn).mean(axis=0) - of_rows)
    return bootstrap_interval(both, float(values.mean()), confidence, bounds, inflated)


def interval_of(metric: Metric, one: Repeated, *, confidence: float = CONFIDENCE, seed: int = 0) -> Pair:
    """Interval of a metric of a setting over seeds and rows."""
    return seeds_and_rows_interval(
        one.found, one.drawn, metric.bounds, metric.inflated, confidence=confidence, seed=seed
    )


def differences(
    metric: Metric,
    settings: Mapping[str, Repeated],
    pairs: Iterable[tuple[str, str]],
    *,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> pd.DataFrame:
    """Pairs of settings, evaluated on the same rows: first minus second, over the seeds that both have.

    Columns: `first`, `second`, `difference`, `low`, `high` (seeds and rows, of this pair alone), `t` and `p` of the paired
    t-test over seeds, `p_holm` (corrected for all of these pairs), `comparisons` (how many there are), `seeds`, `n`.
    `multiplicity` says so in words.
    """
    width = metric.bounds[1] - metric.bounds[0]
    records = []
    for first, second in pairs:
        seeds = [one for one in settings[first].seeds if one in settings[second].seeds]
        if not seeds:
            raise ValueError(
                f"{first} and {second} share no seed, so nothing pairs them; train both with the same seeds"
            )
        one, other = settings[first].of(seeds), settings[second].of(seeds)
        gained = one.found - other.found
        t, p = paired_t_test(one.found, other.found)
        low, high = seeds_and_rows_interval(
            gained, one.drawn - other.drawn, (-width, width), confidence=confidence, seed=seed
        )
        record = {"first": first, "second": second, "difference": float(gained.mean()), "low": low, "high": high}
        records.append(record | {"t": t, "p": p, "seeds": len(seeds), "n": one.n})
    columns = ["first", "second", "difference", "low", "high", "t", "p", "seeds", "n"]
    frame = pd.DataFrame(records, columns=columns)
    corrected = holm(frame["p"].to_numpy(float))
    frame.insert(columns.index("p") + 1, "p_holm", corrected)
    frame.insert(columns.index("p") + 2, "comparisons", len(frame))
    frame.attrs["interval"] = confidence
    return frame


def multiplicity(frame: pd.DataFrame) -> str:
    """How the p-values and intervals of `differences` are to be read, in words."""
    interval = f"Intervals are of {frame.attrs['interval']:.0%}, over seeds and rows, of each pair alone"
    if frame["p"].isna().all():
        return f"{interval}; one seed has no p-value."
    if len(frame) == 1:
        return f"{interval}; p is of the paired t-test over seeds: one comparison was made, so nothing is corrected."
    return (
        f"{interval}; p is of the paired t-test over seeds, p_holm is corrected for all {len(frame)} comparisons that were "
        "made (Holm's method)."
    )
