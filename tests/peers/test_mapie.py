"""Agreement with MAPIE on real probabilities: conformal sets and class-wise calibration.

MAPIE fits an estimator on features; here the features are row numbers and the estimator looks its probabilities up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from mapie.classification import SplitConformalClassifier
from mapie.conformity_scores import RAPSConformityScore
from mapie.risk_control import MultiLabelClassificationController
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.multiclass import OneVsRestClassifier

import workbench as wb
from workbench.calibration.isotonic import Steps
from workbench.exact_arithmetic import exact
from workbench.sets.base import Block, filled
from workbench.sets.scores import Mass

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


@dataclass(frozen=True)
class GivenShares:
    """The shares of the rows of a whole table, given: MAPIE draws when it fits, and without the last label not after."""

    shares: np.ndarray

    def __call__(self, block: Block) -> np.ndarray:
        return self.shares[block.rows]


def with_their_draws(val: wb.LogitTable, test: wb.LogitTable, confidence: float, **penalty: float) -> np.ndarray:
    """The sets of APS, or of RAPS with a penalty, with MAPIE's draws; theirs are never empty."""
    drawn = GivenShares(np.random.RandomState(SEED).uniform(size=val.n))
    scores = Mass(drawn, **penalty).of_labels(Block(val), *val.positives())
    limit = np.sort(scores)[math.ceil((val.n + 1) * exact(confidence)) - 1]
    block = Block(test)
    mask = Mass(GivenShares(np.zeros(test.n)), **penalty).mask(block, limit)
    return filled(mask, block.probabilities, block.scores, 1)


def fitted_classifier(halves, score: object, confidence: float, seed: int = SEED) -> SplitConformalClassifier:
    val, test = halves
    both = np.concatenate([val.probabilities(), test.probabilities()])
    conformal = SplitConformalClassifier(
        Looked(both), confidence_level=confidence, conformity_score=score, prefit=True, random_state=seed
    )
    return conformal.conformalize(np.arange(val.n)[:, None], val.labels)


def their_sets(halves, score: str, confidence: float, seed: int = SEED, **predict) -> np.ndarray:
    val, test = halves
    conformal = fitted_classifier(halves, score, confidence, seed)
    return conformal.predict_set(np.arange(val.n, val.n + test.n)[:, None], **predict)[1][:, :, 0]


def untied_rows(table: wb.LogitTable) -> np.ndarray:
    """The rows without ties, which theirs lets in together and ours not."""
    falling = -np.sort(-table.probabilities(), axis=1)
    untied: np.ndarray = ((np.diff(falling, axis=1) < 0) | (falling[:, 1:] < 1e-6)).all(1)
    assert untied.mean() > 0.95
    return untied


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
    ours = with_their_draws(val, test, confidence)
    theirs = their_sets(halves, "aps", confidence, conformity_score_params={"include_last_label": False})
    untied = untied_rows(test)
    assert np.array_equal(ours[untied], theirs[untied])


@pytest.mark.parametrize("confidence", [0.8, 0.9])
def test_RAPS_with_the_same_draws_and_penalty_gives_the_sets_of_mapie(halves, confidence):
    """MAPIE chooses penalty and free rank on a fifth of the rows, and tries penalties λ with a free rank of λ, not k
    (`k_star = cast(int, lambda_)`); the sets that follow from its choice are ours.
    """
    val, test = halves
    conformal = fitted_classifier(halves, RAPSConformityScore(), confidence)
    rows = np.arange(val.n, val.n + test.n)[:, None]
    params = {"conformity_score_params": {"include_last_label": False}}
    theirs = conformal.predict_set(rows, **params)[1][:, :, 0]
    score = conformal._mapie_classifier.conformity_score_function_
    held_out = set(np.asarray(score.X_raps)[:, 0].tolist())
    raps_split = StratifiedShuffleSplit(n_splits=1, test_size=score.size_raps, random_state=SEED)
    calibration, _ = next(raps_split.split(np.zeros(val.n), val.labels))  # in its order, for the draws are
    assert held_out.isdisjoint(calibration.tolist())
    penalty, free_rank = float(np.ravel(score.lambda_star)[0]), int(np.ravel(score.k_star)[0])
    fitting = wb.LogitTable.from_probabilities(val.probabilities()[calibration], np.asarray(val.labels)[calibration])
    ours = with_their_draws(fitting, test, confidence, penalty=penalty, free_rank=free_rank)
    untied = untied_rows(test)
    assert np.array_equal(ours[untied], theirs[untied])


def test_risk_control_of_missing_labels_has_the_threshold_of_mapie(shared_data):
    """MAPIE takes the largest threshold of a grid whose corrected risk is below the level; ours is the exact one."""
    real = shared_data("ml_emotions")
    seen = len(real["X"]) // 2
    truth = real["Y"].astype(bool)
    model = OneVsRestClassifier(LogisticRegression(max_iter=200)).fit(real["X"][:seen], truth[:seen])
    p, truth = model.predict_proba(real["X"][seen:]), truth[seen:]
    p, truth = p[truth.any(1)], truth[truth.any(1)]
    step, level = 0.02, 0.2
    controller = MultiLabelClassificationController(
        lambda rows: p[np.asarray(rows)[:, 0].astype(int)],
        risk="recall",
        method="crc",
        target_level=1 - level,
        predict_params=np.arange(0, 1, step),
    )
    controller.calibrate(np.arange(len(p))[:, None], truth)
    table = wb.LogitTable.from_probabilities(p, truth)
    exactly = wb.RiskControl(level).fit(table).threshold
    assert controller.best_predict_param[0] < exactly <= controller.best_predict_param[0] + step + 1e-12


def test_randomised_APS_agrees_in_distribution(halves):
    val, test = halves
    params = {"conformity_score_params": {"include_last_label": "randomized"}}
    ours = np.mean([wb.APS(0.9, seed=seed).fit(val).sets(test).matrix() for seed in range(8)], axis=0)
    theirs = np.mean([their_sets(halves, "aps", 0.9, seed, **params) for seed in range(8)], axis=0)
    assert ours.sum(1).mean() == pytest.approx(theirs.sum(1).mean(), rel=0.05)
    own = np.arange(test.n), test.labels
    assert ours[own].mean() == pytest.approx(theirs[own].mean(), abs=0.015)


def test_top_label_calibration_error_is_close_to_mapies(halves):
    """MAPIE bins within each predicted class by its own equal-frequency rule, so only the size agrees."""
    from mapie.metrics.calibration import top_label_ece

    _, test = halves
    theirs = top_label_ece(test.labels, test.probabilities(), num_bins=10, split_strategy="uniform")
    assert wb.metrics.top_label_calibration_error(test, bins=10) == pytest.approx(theirs, rel=0.35)


@pytest.mark.parametrize("which", [0, 3])
def test_the_venn_abers_pairs_of_a_class_are_those_of_mapie(halves, which):
    """MAPIE carries the code of the `venn-abers` package."""
    from mapie._venn_abers import VennAbers

    val, test = halves
    p, new = val.probabilities()[:, which], test.probabilities()[:, which]
    calibrator = VennAbers()
    calibrator.fit(np.column_stack([1 - p, p]), (val.labels == which).astype(int))
    _, pairs = calibrator.predict_proba(np.column_stack([1 - new, new]))
    ours = wb.VennAbers().class_map(Steps.of(p, (val.labels == which).astype(float))).pair(new)
    np.testing.assert_allclose(np.column_stack(ours), pairs, atol=1e-12)
