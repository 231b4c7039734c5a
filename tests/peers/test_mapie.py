"""Agreement with MAPIE on real probabilities: conformal sets and class-wise calibration.

MAPIE fits an estimator on features; here the features are row numbers and the estimator looks its probabilities up.
"""

from __future__ import annotations

import numpy as np
import pytest
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin

import workbench as wb
from workbench.sets.masses import PREDICTING

pytestmark = pytest.mark.filterwarnings("ignore")


class Looked(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose input is the number of a row."""

    def __init__(self, probabilities: np.ndarray):
        self.probabilities = probabilities
        self.classes_ = np.arange(probabilities.shape[1])
        self.n_features_in_ = 1
        self.is_fitted_ = True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return self.probabilities[np.asarray(X)[:, 0].astype(int)]

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


@pytest.fixture(scope="module")
def halves(shared_data) -> tuple[wb.LogitTable, wb.LogitTable]:
    real = shared_data("news20_cv_probs")
    p = np.exp(real["logp"].astype("float64"))
    table = wb.LogitTable.from_probabilities(p / p.sum(1, keepdims=True), real["y"])
    n_val, n_both = 2 * table.n // 5, 2 * table.n // 3
    return table.rows(slice(0, n_val)), table.rows(slice(n_val, n_both))


SEED = 7


class WithTheirDraws(wb.APS):
    """MAPIE always draws when it fits, and draws nothing when it predicts without the last label."""

    def draws(self, rows: slice, purpose: int) -> np.ndarray:
        if purpose == PREDICTING:
            return np.zeros(rows.stop - rows.start)
        return np.random.RandomState(SEED).uniform(size=rows.stop)[rows]


def their_sets(halves, score: str, confidence: float, **predict) -> np.ndarray:
    val, test = halves
    both = np.concatenate([val.probabilities(), test.probabilities()])
    conformal = SplitConformalClassifier(
        Looked(both), confidence_level=confidence, conformity_score=score, prefit=True, random_state=SEED
    )
    conformal.conformalize(np.arange(val.n)[:, None], val.labels)
    return conformal.predict_set(np.arange(val.n, val.n + test.n)[:, None], **predict)[1][:, :, 0]


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
def test_LAC_gives_the_sets_of_mapie(halves, confidence):
    val, test = halves
    ours = wb.LAC(confidence).fit(val).sets(test).matrix()
    # Theirs rounds 1 − p twice, so a class within 1e-8 of the threshold may differ.
    near = np.abs(test.probabilities() - wb.LAC(confidence).fit(val).threshold) < 1e-7
    assert np.array_equal(ours[~near], their_sets(halves, "lac", confidence)[~near])


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
def test_APS_with_the_same_draws_gives_the_sets_of_mapie(halves, confidence):
    val, test = halves
    ours = WithTheirDraws(confidence, min_size=1).fit(val).sets(test).matrix()  # theirs never returns an empty set
    theirs = their_sets(halves, "aps", confidence, conformity_score_params={"include_last_label": False})
    falling = -np.sort(-test.probabilities(), axis=1)
    untied = ((np.diff(falling, axis=1) < 0) | (falling[:, 1:] < 1e-6)).all(
        1
    )  # with a tie theirs lets both in, ours none
    assert untied.mean() > 0.95
    assert np.array_equal(ours[untied], theirs[untied])


def test_randomised_APS_agrees_in_distribution(halves):
    val, test = halves
    ours = wb.APS(0.9).fit(val).sets(test)
    theirs = their_sets(halves, "aps", 0.9, conformity_score_params={"include_last_label": "randomized"})
    assert ours.sizes.mean() == pytest.approx(theirs.sum(1).mean(), rel=0.05)
    assert ours.hits.mean() == pytest.approx(theirs[np.arange(test.n), test.labels].mean(), abs=0.015)


def test_top_label_calibration_error_is_close_to_mapies(halves):
    """MAPIE bins within each predicted class by its own equal-frequency rule, so only the size agrees."""
    from mapie.metrics.calibration import top_label_ece

    _, test = halves
    theirs = top_label_ece(test.labels, test.probabilities(), num_bins=10, split_strategy="uniform")
    assert wb.metrics.top_label_calibration_error(test, bins=10) == pytest.approx(theirs, rel=0.35)
