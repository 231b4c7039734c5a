"""A custom conformal rule is one method; the built-in ones are quicker ways to the same sets."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import workbench as wb
from workbench.exact_arithmetic import exact
from workbench.knobs import knob
from workbench.sets import ConformalRule
from workbench.sets.base import Block


@dataclass(frozen=True)
class Behind(ConformalRule):
    """How far a class lies behind the most probable one."""

    def class_scores(self, probabilities):
        return probabilities.max(axis=1, keepdims=True) - probabilities


@dataclass(frozen=True)
class Power(ConformalRule):
    """A score with a knob of its own."""

    power: float = knob(2.0, low=1, high=5, meaning="power of the improbability")
    min_size: int = knob(0, low=0, high=5, meaning="number of classes a set has at least")

    def class_scores(self, probabilities):
        return (1 - probabilities) ** self.power


@dataclass(frozen=True)
class Alphabetical(ConformalRule):
    """A score that knows nothing: the promise holds even so."""

    def class_scores(self, probabilities):
        return np.broadcast_to(np.arange(probabilities.shape[1]), probabilities.shape)


OWN = (Behind, Power, Alphabetical)


def rows(n: int, seed: int = 0, n_classes: int = 6, link: str = "softmax") -> wb.LogitTable:
    """Exchangeable rows, whose labels the scores know something about."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(n, n_classes)) * 2
    return wb.LogitTable(scores, (scores + 2 * generator.gumbel(size=scores.shape)).argmax(1), link=link)


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("link", ["softmax", "sparsemax"])
def test_one_method_makes_a_rule_that_keeps_its_promise(kind, link):
    n_fit, confidence = 39, 0.8
    hits = []
    for seed in range(150):
        both = rows(2 * n_fit, seed, link=link)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels of probability 0 may leave nothing but every class
            fitted = kind(confidence=confidence).fit(both.rows(slice(n_fit)))
        hits.append(fitted.sets(both.rows(slice(n_fit, None))).hits.mean())
    assert np.mean(hits) > confidence - 3 * np.std(hits) / math.sqrt(len(hits))


@pytest.mark.parametrize("kind", OWN)
def test_the_sets_of_ones_own_rule_are_those_of_the_definition(kind):
    val, test = rows(199, 1), rows(300, 2)
    for confidence in (0.5, 0.9):
        of_labels = np.sort(kind().class_scores(val.probabilities())[np.arange(val.n), val.labels])
        worst = of_labels[math.ceil(200 * exact(confidence)) - 1]
        fitted = kind(confidence=confidence).fit(val)
        assert fitted.threshold == worst
        assert np.array_equal(fitted.sets(test).matrix(), kind().class_scores(test.probabilities()) <= worst)
        assert kind().fit(val).at(confidence).threshold == worst


def test_ones_own_rule_that_is_monotone_in_the_probability_gives_the_sets_of_LAC():
    val, test = rows(200, 1), rows(300, 2)
    assert np.array_equal(Power(0.9).fit(val)(test).matrix(), wb.LAC(0.9).fit(val)(test).matrix())


def test_ones_own_rule_is_reported_and_filled_and_read_with_many_labels():
    val, test = rows(100, 1), rows(100, 2)
    assert (Power(confidence=0.5, min_size=2).fit(val)(test).sizes >= 2).all()
    frame = wb.report(test, rules=[Behind(), Power(power=3)], val=val, metrics=[wb.metrics.accuracy])
    assert frame["rule"].tolist() == [repr(Behind()), repr(Power(power=3.0))]
    many = wb.LogitTable(val.scores, val.probabilities() > 0.3, link="sigmoid")
    assert wb.metrics.accuracy(Power(0.9).fit(many).sets(many)) >= 0.9


def test_too_few_rows_for_ones_own_rule_give_every_class_and_a_warning():
    with pytest.warns(UserWarning, match="needs 9 rows to fit on and there are 5"):
        assert (Behind(0.9).fit(rows(5)).sets(rows(9)).sizes == 6).all()


@pytest.mark.parametrize("base", [wb.LAC, wb.RAPS, Behind])
def test_a_score_of_ones_own_holds_whatever_rule_one_derives_from(base):
    @dataclass(frozen=True)
    class Other(base):
        def class_scores(self, probabilities):
            return Alphabetical.class_scores(self, probabilities)

    val, test = rows(100, 1), rows(50, 2)
    expected = Alphabetical(confidence=0.8).fit(val).sets(test).matrix()
    assert np.array_equal(Other(confidence=0.8).fit(val).sets(test).matrix(), expected)


def test_a_rule_without_a_score_cannot_be_made():
    @dataclass(frozen=True)
    class Nothing(ConformalRule):
        pass

    for kind in (Nothing, ConformalRule):
        with pytest.raises(TypeError, match="has no score yet: define class_scores"):
            kind()


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (lambda p: p[:, 0], r"must give one number for each of the \(40, 6\) probabilities; their shape is \(40,\)"),
        (lambda p: np.where(p > 0.1, p, np.nan), "some are NaN"),
    ],
)
def test_scores_that_are_not_one_number_per_class_are_refused(scores, said):
    wrong = type("Wrong", (ConformalRule,), {"class_scores": lambda self, probabilities: scores(probabilities)})
    with pytest.raises(ValueError, match=said):
        wrong().fit(rows(40))


@pytest.mark.parametrize(
    "rule",
    [
        wb.LAC(0.8),
        wb.ClassConditionalLAC(0.8),
        wb.APS(0.8),
        wb.APS(0.8, randomized=False),
        wb.RAPS(0.8, penalty=0.1, free_rank=2),
    ],
    ids=lambda rule: type(rule).__name__,
)
@pytest.mark.parametrize("link", ["softmax", "sparsemax"])
def test_the_quicker_ways_to_scores_and_sets_lead_to_those_of_all_classes(rule, link):
    val, test = rows(300, 3, link=link), rows(200, 4, link=link)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = rule.fit(val)
    score, where = fitted.score, val.positives()
    assert np.array_equal(score.of_labels(Block(val), *where), score.of_classes(Block(val))[where])
    scores, limit = score.of_classes(Block(test)), np.broadcast_to(fitted.limit, 6)
    certain = np.abs(scores - np.where(np.isinf(limit), 0, limit)) > 1e-9  # masses are compared with a little slack
    assert np.array_equal(fitted.sets(test).matrix()[certain], (scores <= limit)[certain])
