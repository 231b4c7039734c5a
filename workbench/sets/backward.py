"""Size first, promise second: the size of a set is fixed, and each row has the coverage that can be promised for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.knobs import knob
from workbench.sets.base import Block, FittedRule, Rule, min_size_knob
from workbench.sets.basic_rules import warn_if_everything
from workbench.sets.conformal import check_promise, row_scores
from workbench.sets.scores import IMPROBABILITY
from workbench.tables import LogitTable


@dataclass(frozen=True, eq=False, repr=False)
class FittedBackward(FittedRule):
    """The sum of the scores of the fitting rows, from which the promise of every row follows."""

    total: float
    n: int

    def promises(self, table: LogitTable) -> np.ndarray:
        """(n,) the coverage 1 − α̃ that is promised for the set of each row; its mean is promised of all rows."""
        K = self.for_table(table).rule.K  # type: ignore[attr-defined]
        if table.n_classes <= K:
            return np.ones(table.n)
        next_largest = [-np.partition(-block, K, axis=1)[:, K].astype(np.float64) for block in table.blocks()]
        score = 1 - np.concatenate(next_largest)  # of the best class outside
        e_value = score * (self.n + 1) / np.maximum(self.total + score, 1e-300)
        promises: np.ndarray = 1 - 1 / np.maximum(e_value, 1)
        return promises


@dataclass(frozen=True)
class Backward(Rule):
    r"""The K most probable classes of every row, and the coverage that can be promised for each.

    $$\tilde\alpha(x) = 1 / E_{[K+1]}(x), \qquad
    E_j(x) = \frac{(n + 1)\, s(x, j)}{\sum_i s(x_i, y_i) + s(x, j)}, \quad s = 1 - p$$

    E is an e-value, so that the label is outside with probability at most α̃ on average. `fitted.promises(table)` gives
    1 − α̃ of every row. Classes that tie with the (K+1)-th are left out.

    >>> table = LogitTable.from_probabilities([[0.9, 0.06, 0.04]] * 9 + [[0.4, 0.3, 0.3]], labels=[0] * 10)
    >>> Backward(K=1).fit(table).promises(table)[[0, 9]].round(2).tolist()
    [0.76, 0.71]

    Gauthier, Bach & Jordan 2025 (arXiv 2505.13732).
    """

    title = "Backward sets: size first"
    formulation = "point-wise size"
    guarantee = "size"
    promise = "sets have K classes; the coverage that holds for each row is reported"
    requires = ("labels",)

    K: int = knob(3, low=1, high=20, maximum=math.inf, symbol="K", meaning="largest number of classes in a set")
    min_size: int = min_size_knob()

    def _fit(self, table: LogitTable) -> FittedBackward:
        check_promise(table)
        warn_if_everything(self.K, table)
        scores = row_scores(IMPROBABILITY, table)[table.labelled]
        total = float(np.sum(1 + np.where(np.isinf(scores), 0, scores)))
        return FittedBackward(self, None, table.n_classes, table.class_names, total, len(scores))

    def mask(self, fitted: Any, block: Block) -> np.ndarray:
        p = block.probabilities
        if p.shape[1] <= self.K:
            return np.ones(p.shape, bool)
        outside = -np.partition(-p, self.K, axis=1)[:, self.K]
        mask: np.ndarray = p > outside[:, None]
        return mask
