"""`SetClassifier` is an estimator of scikit-learn, and its rule is fitted on rows that the estimator has not seen."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import workbench as wb

X, NUMBERS = load_iris(return_X_y=True)
NAMES = load_iris().target_names[NUMBERS]
# What scikit-learn does not check, and why: other array libraries are asked for in the environment (SCIPY_ARRAY_API).
# Checks of sample weights are never asked for, because `fit` takes none.
DOES_NOT_APPLY = {"check_array_api_input"}


@pytest.mark.parametrize("rule", [None, wb.AverageK(1.5)], ids=repr)
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()], ids=repr)
def test_it_passes_the_checks_of_scikit_learn(estimator, rule):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks fit on a handful of rows, too few for a promise
        checks = check_estimator(wb.SetClassifier(estimator, rule), on_skip=None, on_fail=None)
    wrong = {each["check_name"]: each["exception"] for each in checks if each["status"] == "failed"}
    assert wrong == {}
    assert {each["check_name"] for each in checks if each["status"] == "skipped"} <= DOES_NOT_APPLY
    assert sum(each["status"] == "passed" for each in checks) > 50


def test_predictions_are_those_of_the_estimator_and_sets_those_of_the_rule():
    flowers = wb.SetClassifier(LogisticRegression(max_iter=1000), wb.AverageK(K=1.2)).fit(X, NAMES)
    np.testing.assert_array_equal(flowers.predict(X), flowers.estimator_.predict(X))
    np.testing.assert_array_equal(flowers.predict_proba(X), flowers.estimator_.predict_proba(X))
    sets = flowers.predict_set(X)
    np.testing.assert_array_equal(sets.matrix(), flowers.predict_proba(X) >= flowers.rule_.threshold)
    assert set(sets.to_frame()["classes"][0]) <= set(flowers.classes_)
    assert flowers.predict_set(X[flowers.calibration_rows_]).sizes.mean() == 1.2


def test_the_score_depends_on_the_rule_so_a_grid_search_over_rules_chooses_one():
    noisy = X + np.random.default_rng(0).normal(size=X.shape)
    rules = [wb.TopK(1), wb.TopK(2), wb.LAC(0.9), wb.AverageK(1.2)]
    search = GridSearchCV(wb.SetClassifier(GaussianNB()), {"rule": rules}, cv=3).fit(noisy, NAMES)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores.round(6))) == len(rules)
    assert search.best_params_["rule"] == rules[scores.argmax()]
    assert scores[0] == pytest.approx(
        cross_val_score(wb.SetClassifier(GaussianNB(), wb.TopK(1)), noisy, NAMES, cv=3, scoring="accuracy").mean()
    )


def test_a_set_of_two_is_worth_65_per_cent_of_the_right_class_alone():
    flowers = wb.SetClassifier(GaussianNB(), wb.TopK(2)).fit(X, NAMES)
    held = flowers.predict_set(X).matrix()[np.arange(150), NUMBERS]
    assert flowers.score(X, NAMES) == pytest.approx(0.65 * held.mean())
    weights = np.arange(150.0)
    assert flowers.score(X, NAMES, weights) == pytest.approx(0.65 * np.average(held, weights=weights))


class Witness(GaussianNB):
    """Remembers the rows that it was shown."""

    def fit(self, X, y):
        self.seen_ = np.asarray(X)
        return super().fit(X, y)


def test_the_rule_is_fitted_on_its_share_of_every_class_which_the_estimator_never_sees():
    rows = np.arange(150.0)[:, None]
    fitted = wb.SetClassifier(Witness(), wb.AverageK(2), calibration=0.3).fit(rows, NAMES)
    held_out = fitted.calibration_rows_
    assert sorted([*held_out, *fitted.estimator_.seen_[:, 0]]) == list(range(150))
    assert np.bincount(NUMBERS[held_out]).tolist() == [15, 15, 15]
    again = wb.SetClassifier(Witness(), wb.AverageK(2), calibration=0.3).fit(rows, NAMES)
    np.testing.assert_array_equal(again.calibration_rows_, held_out)
    other = wb.SetClassifier(Witness(), wb.AverageK(2), calibration=0.3, random_state=1).fit(rows, NAMES)
    assert not np.array_equal(other.calibration_rows_, held_out)


def test_a_class_with_a_single_row_leaves_it_to_the_estimator():
    fitted = wb.SetClassifier(GaussianNB(), wb.TopK(1)).fit(X[:101], NAMES[:101])
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert 100 not in fitted.calibration_rows_


def test_without_a_rule_the_sets_hold_the_label_nine_times_in_ten():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 4000)
    rows = np.eye(4)[labels] + rng.normal(size=(4000, 4))
    fitted = wb.SetClassifier(LogisticRegression(), calibration=0.5).fit(rows[:2000], labels[:2000])
    assert fitted.rule_.rule == wb.LAC(0.9)
    inside = fitted.predict_set(rows[2000:]).matrix()[np.arange(2000), labels[2000:]]
    assert 0.87 < inside.mean() < 0.93


def test_it_works_inside_pipelines_cross_validation_and_searches_over_rules():
    flowers = wb.SetClassifier(LogisticRegression(), wb.AverageK(1.2))
    piped = make_pipeline(StandardScaler(), flowers)
    assert cross_val_score(piped, X, NAMES, cv=3).mean() > 0.9
    assert piped.fit(X, NAMES)[-1].predict_set(StandardScaler().fit_transform(X)).sizes.mean() > 1
    frame = pd.DataFrame(X, columns=list("abcd"))
    around = wb.SetClassifier(make_pipeline(StandardScaler(), LogisticRegression()), wb.AverageK(1.2)).fit(frame, NAMES)
    assert (around.feature_names_in_.tolist(), around.n_features_in_) == (list("abcd"), 4)

    def hits(fitted: BaseEstimator, rows, labels):
        return fitted.predict_set(rows).matrix()[np.arange(len(rows)), np.searchsorted(fitted.classes_, labels)].mean()

    rules = [wb.TopK(1), wb.TopK(2)]
    search = GridSearchCV(flowers, {"rule": rules, "estimator__C": [1.0]}, scoring=hits, cv=3).fit(X, NAMES)
    assert search.best_params_["rule"] == wb.TopK(2)


def test_an_estimator_may_read_what_is_no_array():
    words = ["rose is red", "rose is a rose", "grass is green", "green grass"] * 10
    fitted = wb.SetClassifier(make_pipeline(CountVectorizer(), MultinomialNB()), wb.TopK(1))
    sets = fitted.fit(words, ["rose", "rose", "grass", "grass"] * 10).predict_set(["a red rose"])
    assert sets.to_frame()["classes"][0] == ["rose"]


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"rule": "AverageK"}, "rule = 'AverageK'; give a rule such as AverageK"),
        ({"estimator": LinearSVC()}, "LinearSVC has no predict_proba"),
        ({"calibration": 1.5}, "calibration = 1.5; give the share of rows"),
        ({"calibration": 0.001}, "n_samples = 150 in 3 classes: calibration = 0.001 leaves no row to fit the rule on"),
    ],
)
def test_wrong_parts_are_refused_when_it_is_fitted(parts, error):
    with pytest.raises(ValueError, match=error):
        wb.SetClassifier(**{"estimator": GaussianNB(), **parts}).fit(X, NAMES)
