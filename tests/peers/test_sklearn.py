"""Agreement with scikit-learn on real networks and on real many-label data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    recall_score,
    roc_auc_score,
    top_k_accuracy_score,
)
from sklearn.multiclass import OneVsRestClassifier

import workbench as wb

M = wb.metrics


@pytest.fixture(scope="module")
def cifar(shared_data) -> wb.LogitTable:
    real = shared_data("cifar100_resnets_logits")
    return wb.LogitTable(real["logits"][0], real["y"])


@pytest.fixture(scope="module")
def emotions(shared_data) -> wb.LogitTable:
    """A real many-label problem: probabilities of one logistic regression per label, on rows it has not seen."""
    real = shared_data("ml_emotions")
    seen = 2 * len(real["X"]) // 3
    model = OneVsRestClassifier(LogisticRegression(max_iter=200)).fit(real["X"][:seen], real["Y"][:seen])
    return wb.LogitTable.from_probabilities(model.predict_proba(real["X"][seen:]), real["Y"][seen:].astype(bool))


@pytest.mark.parametrize("K", [1, 3, 5])
def test_top_k_accuracy_is_that_of_scikit_learn_without_ties(cifar, K):
    untied = wb.LogitTable(
        cifar.scores.astype("float64") + np.random.default_rng(0).random(cifar.scores.shape) * 1e-6, cifar.labels
    )
    theirs = top_k_accuracy_score(untied.labels, untied.scores, k=K, labels=np.arange(100))
    assert M.top_k_accuracy(untied, K=K) == theirs
    assert M.accuracy(wb.TopK(K).fit(untied).sets(untied)) == theirs


def test_macro_accuracy_of_top_1_is_balanced_accuracy(cifar):
    sets = wb.TopK(1).fit(cifar).sets(cifar)
    predicted = cifar.probabilities().argmax(1)
    assert M.accuracy(sets) == accuracy_score(cifar.labels, predicted)
    assert M.macro_accuracy(sets) == pytest.approx(balanced_accuracy_score(cifar.labels, predicted))


def test_log_likelihood_is_the_log_loss_of_float64_probabilities(cifar):
    p = wb.LogitTable(cifar.scores.astype("float64")).probabilities()
    assert M.negative_log_likelihood(cifar) == pytest.approx(log_loss(cifar.labels, p), abs=1e-9)


def test_the_reliability_curve_is_that_of_scikit_learn(cifar):
    p = cifar.probabilities().astype(np.float64)
    right = p.argmax(1) == cifar.labels
    accuracy, confidence = calibration_curve(right, p.max(1), n_bins=15)
    frame = M.reliability_bins(cifar).dropna()
    assert frame["accuracy"].to_numpy() == pytest.approx(accuracy)
    assert frame["confidence"].to_numpy() == pytest.approx(confidence)


def test_isotonic_functions_are_those_of_scikit_learn(cifar):
    val, test = cifar.split()
    mended = wb.IsotonicScaling().fit(val)(test).probabilities()
    known, new = (table.probabilities().astype(np.float64) for table in (val, test))
    fitted = np.stack(
        [
            IsotonicRegression(out_of_bounds="clip").fit(known[:, j], val.labels == j).predict(new[:, j])
            for j in range(cifar.n_classes)
        ],
        axis=1,
    )
    expected = (val.n * fitted + new) / (val.n + 1)
    np.testing.assert_allclose(mended, expected / expected.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


def test_auroc_is_that_of_scikit_learn(cifar):
    n = 2 * cifar.n // 5
    inside, outside = cifar.rows(slice(0, n)), cifar.rows(slice(n, cifar.n))
    confidence = np.concatenate([M.confidences(inside), M.confidences(outside)])
    theirs = roc_auc_score(np.repeat([1, 0], [inside.n, outside.n]), confidence)
    assert M.auroc(inside, outside) == pytest.approx(theirs)


def test_many_label_scores_are_those_of_scikit_learn(emotions):
    for threshold in (0.2, 0.5):
        sets = wb.Threshold(threshold).fit(emotions).sets(emotions)
        predicted, truth = sets.matrix(), emotions.labels
        assert M.micro_f1(sets) == pytest.approx(f1_score(truth, predicted, average="micro"))
        assert M.macro_f1(sets) == pytest.approx(f1_score(truth, predicted, average="macro", zero_division=0))
        assert M.recall(sets) == pytest.approx(recall_score(truth, predicted, average="micro"))
        assert M.exact_match(sets) == pytest.approx(accuracy_score(truth, predicted))


def test_real_many_label_tables_pass_through_index_rules_and_report(emotions):
    val, test = emotions.split()
    index = wb.SetIndex(test)
    assert index.mean_size(index.threshold(2)) == pytest.approx(2)
    frame = wb.report(test, rules=[wb.AverageK(2), wb.LAC(0.8)], val=val)
    assert {"macro_f1", "micro_f1", "exact_match", "cardinality", "top_k_calibration_error@K=4"} <= set(frame["metric"])
    assert wb.metrics.accuracy(wb.LAC(0.8).fit(val).sets(test)) == pytest.approx(0.8, abs=0.12)
