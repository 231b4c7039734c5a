"""The set of a network beside the Bayes set of the same row: is it large because the row is ambiguous?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.metrics import bayes
from workbench.sets.prediction_sets import PredictionSets, checked_sets

# Name of a quadrant → whether the set of the network is large in it, and whether the Bayes set is.
CLEAR, AMBIGUOUS, NOT_LEARNT, OVERCONFIDENT = "both small", "both large", "network large", "network small"
QUADRANTS = {
    CLEAR: (False, False),
    AMBIGUOUS: (True, True),
    NOT_LEARNT: (True, False),
    OVERCONFIDENT: (False, True),
}
MEANING = {
    CLEAR: "clear",
    AMBIGUOUS: "truly ambiguous",
    NOT_LEARNT: "not learnt yet",
    OVERCONFIDENT: "overconfident",
}


class Sizes(NamedTuple):
    """The sizes of both sets of each row, and the size above which a set is large: the mean of the Bayes sets."""

    network: np.ndarray  # (n,)
    bayes: np.ndarray  # (n,)
    cut: float

    def quadrants(self) -> np.ndarray:
        """(n,) the place of each row in `QUADRANTS`."""
        corners = np.stack([self.network > self.cut, self.bayes > self.cut], axis=1)
        known = np.array(list(QUADRANTS.values()))  # (4, 2)
        found: np.ndarray = (corners[:, None] == known).all(axis=2).argmax(axis=1)
        return found


def sizes_against_bayes(sets: PredictionSets) -> Sizes:
    """The size of each set and of the Bayes set that the same rule gives with the true posterior, or the votes of people.

    Args:
        sets: sets that a rule made, of a table with a `posterior` or `votes`.

    Example:
        >>> from workbench.sets import PointwiseError
        >>> from workbench.tables import LogitTable
        >>> p, truth = [[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]], [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
        >>> table = LogitTable.from_probabilities(p, posterior=truth)
        >>> found = sizes_against_bayes(PointwiseError(0.8).fit(table)(table))
        >>> [list(QUADRANTS)[place] for place in found.quadrants()]
        ['both small', 'network small', 'both large']
    """
    if checked_sets(sets).rule is None:
        raise ValueError(
            f"these sets are by {sets.source}; the Bayes set is that of a rule: give sets that a rule made"
        )
    best = bayes.sets(sets.table, sets.rule.rule).sizes
    return Sizes(sets.sizes, best, float(best.mean()))
