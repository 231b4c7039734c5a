"""Every rule on every bad input: right, or a clear error or warning; never a set of all classes without a word."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import workbench as wb
from workbench.sets import RULES

rng = np.random.default_rng(0)


def table(scores: np.ndarray, labels: object, **given: object) -> wb.LogitTable:
    """A table with all that some rule may want to know."""
    n, n_classes = scores.shape
    known = {
        "class_counts": np.arange(1, n_classes + 1) * 10,
        "groups": [f"genus {j // 2}" for j in range(n_classes)],
        "attributes": {"weight": np.ones(n), "object": np.arange(n), "organ": np.array(["leaf"] * n)},
        "votes": np.ones((n, n_classes), int),
    }
    return wb.LogitTable(scores, labels, **known | given)


def random_table(n: int = 80, n_classes: int = 6) -> wb.LogitTable:
    """Rows whose labels are drawn from the softmax of their scores."""
    scores = rng.normal(size=(n, n_classes)) * 3
    return table(scores, (scores + rng.gumbel(size=scores.shape)).argmax(1))


PLAIN, NEW = random_table(), random_table(40)
ABSENT = PLAIN.rows(PLAIN.labels != 5)
TABLES = {
    "one row": table(PLAIN.scores[:1], PLAIN.labels[:1]),
    "one class": table(np.zeros((20, 1)), [0] * 20),
    "labels unknown": table(PLAIN.scores, np.full(PLAIN.n, -1)),
    "no labels": table(PLAIN.scores, None),
    "class without rows": ABSENT,
    "ties": table(np.zeros((80, 6)), PLAIN.labels),
    "underflow": table(PLAIN.scores * 1e4, rng.permutation(PLAIN.labels)),
}
BELIEVING = (wb.TopK, wb.AverageK, wb.Threshold, wb.Backward, wb.PointwiseError)  # they promise no coverage
SPOKEN = r"every class|every set holds|every set|in the set of every|too few|cannot be promised|no label"


def predict(rule: wb.sets.Rule, val: wb.LogitTable, new: wb.LogitTable) -> tuple[wb.PredictionSets | None, str]:
    """The sets of a rule, or None, and the text of its warnings or of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            sets = rule.fit(val)(new)
        except ValueError as error:
            return None, str(error)
    return sets, " ".join(str(warning.message) for warning in caught)


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", TABLES)
def test_no_rule_gives_every_class_without_a_word(kind, name):
    val = TABLES[name]
    new = val if name in ("one class", "ties") else NEW
    sets, message = predict(kind(), val, new)
    if sets is None:
        assert len(message) > 20
        return
    always = sets.matrix().all(axis=0)
    if val.n_classes > 1 and kind not in BELIEVING and always.any():
        assert any(word in message for word in SPOKEN.split("|")), (
            f"{kind.__name__}: {always.sum()} classes are in all sets"
        )


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_tied_rows_are_answered_alike(kind):
    tied = table(np.zeros((30, 6)), rng.integers(0, 6, 30))
    sets, _ = predict(kind(), tied, tied)
    assert sets is None or len(np.unique(sets.matrix(), axis=0)) == 1


@pytest.mark.parametrize("rule", [wb.TopK(6), wb.AverageK(6), wb.Backward(6), wb.Hierarchical(0.9, n_nodes=6)])
def test_as_many_as_there_are_classes_is_allowed(rule):
    sets, said = predict(rule, PLAIN, NEW)
    assert sets is not None
    if not isinstance(rule, wb.Hierarchical):
        assert (sets.sizes == 6).all()
        assert "K = 6 with 6 classes: every set holds every class" in said


def test_the_promise_of_a_class_without_calibration_rows_is_stated():
    for rule, message in (
        (wb.ClassConditionalLAC(), "class 5"),
        (wb.Mondrian(), "class 5"),
        (wb.MacroCoverage(0.5), "1 of 6 classes have no rows to fit on: the promise is about the others"),
        (wb.Aggregated(), "class 5"),
    ):
        assert message in predict(rule, ABSENT, NEW)[1]


def test_a_group_of_two_rows_is_named():
    organ = np.array(["leaf"] * (PLAIN.n - 2) + ["bark"] * 2)
    attributes = {"organ": organ}
    val = wb.LogitTable(PLAIN.scores, PLAIN.labels, attributes=attributes)
    new = wb.LogitTable(NEW.scores, attributes={"organ": np.array(["leaf"] * NEW.n)})
    assert "bark" in predict(wb.Mondrian(by="organ"), val, new)[1]


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
@pytest.mark.parametrize(
    "make",
    [
        lambda bad: wb.Weighted(by=lambda rows: np.full(rows.n, bad)),
        lambda bad: wb.LabelShift(shares=(bad,) * 6),
        lambda bad: wb.PAS(importance=(bad,) + (1,) * 5),
        lambda bad: wb.MacroCoverage(importance=(bad,) + (1,) * 5),
        lambda bad: wb.RiskControl(loss="cost", costs=(bad,) + (1,) * 5),
    ],
    ids=["Weighted", "LabelShift", "PAS", "MacroCoverage", "RiskControl"],
)
def test_weights_that_are_zero_negative_or_not_finite_are_refused(make, bad):
    sets, message = predict(make(bad), PLAIN, NEW)
    assert sets is None
    assert "give" in message or "must be" in message or "all 0" in message


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_no_warning_blames_few_rows_where_labels_have_probability_zero(kind):
    labels = np.repeat(np.arange(6), 40)
    scores = -1e4 * np.eye(6)[labels]
    message = predict(kind(), table(scores, labels), table(scores, labels))[1]
    assert not any(reason in message for reason in ("rows to fit on and there are", "weighs", "weigh more", "too few"))


def test_a_cluster_without_classes_is_not_said_to_be_in_every_set():
    assert predict(wb.Clustered(), PLAIN, NEW)[1] == ""


def test_classes_without_a_cluster_have_no_promise_of_their_own():
    labels = np.repeat(np.arange(6), (100, 100, 60, 60, 5, 5))
    val = wb.LogitTable(np.eye(6)[labels] + rng.normal(size=(len(labels), 6)), labels)
    fitted = wb.Clustered(0.8, n_clusters=2).fit(val)
    assert (fitted.calibration.class_codes == 2).any()
    assert set(fitted.calibration_rows()) == {"cluster 1", "cluster 2"}
    assert set(wb.Clustered(0.8, n_clusters=1).fit(val).calibration_rows()) == {""}


def test_rows_without_votes_are_an_error_that_says_so():
    no_votes = wb.LogitTable(PLAIN.scores, PLAIN.labels, votes=np.zeros((PLAIN.n, 6), int))
    sets, message = predict(wb.VoteCalibrated(), no_votes, NEW)
    assert sets is None
    assert "votes" in message


@pytest.mark.parametrize("kind", [kind for kind in RULES if "by" in kind.knobs()], ids=lambda kind: kind.__name__)
def test_groups_weights_or_objects_that_a_table_lacks_are_an_error_that_names_what_there_is(kind):
    sets, message = predict(kind(by="nothing"), PLAIN, NEW)
    assert sets is None
    assert "nothing" in message
    assert "organ" in message or "give one of" in message or "label" in message


def test_an_id_that_joins_rows_of_two_labels_is_named():
    ids = {"object": np.zeros(PLAIN.n, int)}
    sets, message = predict(wb.Aggregated(), table(PLAIN.scores, PLAIN.labels, attributes=ids), NEW)
    assert sets is None
    assert "'0' joins rows of two labels" in message
