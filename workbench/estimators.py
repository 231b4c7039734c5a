"""Sets from any classifier of scikit-learn: `SetClassifier`, an estimator like any other."""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from workbench.metrics.set_metrics import utility_of_rows
from workbench.sets import LAC, FittedRule, PredictionSets, Rule, checked_rule
from workbench.tables import LogitTable
from workbench.tables.checks import NO_LABEL


class SetClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier of scikit-learn that also answers with sets: `predict_set`.

    Args:
        estimator: Any classifier with `predict_proba`, or a pipeline that ends in one.
        rule: What makes sets of its probabilities, such as `AverageK(K=5)`; without one `LAC(confidence=0.9)`.
        calibration: The share of the training rows, of every class the same, that the estimator does not see: the rule is
            fitted on them, so that what it promises holds. Each class leaves the estimator one row at least.
        random_state: Which rows these are; a number gives the same ones in every `fit`.

    After `fit`, `estimator_` is the fitted classifier, `rule_` the fitted rule, `classes_` the labels as they were given
    and `calibration_rows_` where in the training rows the calibration rows stand. `predict` and `predict_proba` are those
    of `estimator_`; `score` judges the sets.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from workbench.sets import AverageK
    >>> X, y = load_iris(return_X_y=True)
    >>> flowers = SetClassifier(LogisticRegression(max_iter=1000), AverageK(K=1.2)).fit(X, y)
    >>> sets = flowers.predict_set(X)
    >>> sets.matrix().shape, len(flowers.calibration_rows_)
    ((150, 3), 30)
    """

    def __init__(
        self,
        estimator: Any,
        rule: Rule | None = None,
        *,
        calibration: float = 0.2,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.estimator = estimator
        self.rule = rule
        self.calibration = calibration
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fits the estimator on most rows, and the rule on the others."""
        if y is None:
            raise ValueError("SetClassifier requires y to be passed, but the target y is None")
        rule = LAC() if self.rule is None else checked_rule(self.rule)
        if not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"{type(self.estimator).__name__} has no predict_proba, and sets are made of probabilities; give a "
                "classifier that has it, such as CalibratedClassifierCV(estimator)"
            )
        X, y = indexable(X, column_or_1d(y, warn=True))
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        held_out = self._held_out(labels)
        rest = np.setdiff1d(np.arange(len(labels)), held_out)
        self.estimator_ = clone(self.estimator).fit(_safe_indexing(X, rest), _safe_indexing(y, rest))
        self.calibration_rows_ = held_out
        self.rule_: FittedRule = rule.fit(self._table(_safe_indexing(X, held_out), labels[held_out]))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(n,) the most probable class of each row."""
        check_is_fitted(self)
        predicted: np.ndarray = self.estimator_.predict(X)
        return predicted

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, L) the probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        probabilities: np.ndarray = self.estimator_.predict_proba(X)
        return probabilities

    def predict_set(self, X: Any) -> PredictionSets:
        """The set of each row: `.matrix()` is (n, L) bool in the order of `classes_`, `.to_frame()` names the classes."""
        check_is_fitted(self)
        return self.rule_(self._table(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean utility of the sets (`metrics.utility`), so that `GridSearchCV` over `rule` chooses one.

        A set is worth 0 without the label, else $1.6 / |S| - 0.6 / |S|^2$; with sets of one class it is the accuracy. For
        another aim give `scoring=`, a function of the estimator, X and y that calls `predict_set`.
        """
        check_is_fitted(self)
        y = column_or_1d(y, warn=True)
        known = np.isin(y, self.classes_)  # a class that was not there in training is in no set
        labels = np.where(known, np.searchsorted(self.classes_, np.where(known, y, self.classes_[0])), NO_LABEL)
        worth = utility_of_rows(self.rule_(self._table(X, labels)))
        return float(np.average(worth, weights=sample_weight))

    @property
    def n_features_in_(self) -> int:
        """Number of columns that the estimator was fitted on."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns, if they had names."""
        names: np.ndarray = self.estimator_.feature_names_in_
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags  # what it takes is what the estimator takes
        return tags

    def _table(self, X: Any, labels: np.ndarray | None = None) -> LogitTable:
        names = [str(each) for each in self.classes_]
        return LogitTable.from_probabilities(self.estimator_.predict_proba(X), labels, class_names=names)

    def _held_out(self, labels: np.ndarray) -> np.ndarray:
        """The rows that the rule is fitted on, rising: of each class its share, drawn at random."""
        share = self.calibration
        if not isinstance(share, numbers.Real) or not 0 < share < 1:
            raise ValueError(f"calibration = {share!r}; give the share of rows that the rule is fitted on, such as 0.2")
        shuffled = check_random_state(self.random_state).permutation(len(labels))
        counts = np.bincount(labels)
        held = np.minimum(np.round(float(share) * counts), counts - 1)
        by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
        place = np.arange(len(labels)) - np.repeat(
            np.cumsum(counts) - counts, counts
        )  # of a row among those of its class
        held_out = np.sort(by_class[place < held[labels[by_class]]])
        if len(held_out) == 0:
            raise ValueError(
                f"n_samples = {len(labels)} in {len(counts)} classes: calibration = {share} leaves no row to fit the rule "
                "on; give more rows, or a larger share"
            )
        return held_out
