"""Sets made from the true posterior cannot be beaten, and what people said is a set too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench import bayes

rng = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def posteriors(n: int = 60, n_classes: int = 7, seed: int = 0, spread: float = 2.0) -> np.ndarray:
    """Rows of unequal ambiguity, each occurring several times, so that entries tie."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(n // 4, n_classes)) * np.exp(generator.normal(size=(n // 4, 1)) * spread / 2)
    p = np.exp(scores - scores.max(1, keepdims=True))
    return np.repeat(p / p.sum(1, keepdims=True), 4, axis=0)


def table(p: np.ndarray, scores: np.ndarray | None = None) -> wb.LogitTable:
    labels = (p.cumsum(1) < rng.random((len(p), 1))).sum(1)
    return wb.LogitTable(np.log(p) if scores is None else scores, labels, posterior=p)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), K=st.integers(1, 6))
def test_average_k_is_at_least_as_accurate_as_top_k(seed, K):
    p = posteriors(seed=seed)
    assert bayes.average_k_accuracy(p, K) >= bayes.top_k_accuracy(p, K) - 1e-12


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), K=st.integers(1, 5))
def test_the_gap_is_at_least_its_lower_bound_and_the_sum_over_all_ranks(seed, K):
    p = posteriors(seed=seed)
    gap = bayes.average_k_accuracy(p, K) - bayes.top_k_accuracy(p, K)
    assert 0 <= bayes.gap_lower_bound(p, K) <= gap + 1e-12
    falling = -np.sort(-p, axis=1)
    last = np.sort(p.ravel())[::-1][K * len(p) - 1]  # of the best sets of mean size K
    whole = np.maximum(last - falling[:, :K], 0).sum(1) + np.maximum(falling[:, K:] - last, 0).sum(1)
    assert whole.mean() == pytest.approx(gap, abs=1e-12)


def test_they_are_equal_when_all_rows_are_equally_ambiguous():
    row = np.array([0.5, 0.3, 0.15, 0.05])
    p = np.array([rng.permutation(row) for _ in range(50)])
    frame = bayes.top_k_against_average_k(p, range(1, 5))
    assert frame["gap"].to_numpy() == pytest.approx(np.zeros(4), abs=1e-12)
    assert frame["heterogeneity"].to_numpy() == pytest.approx(np.zeros(4), abs=1e-9)


def test_the_gap_grows_with_the_heterogeneity_of_ambiguity():
    """Half the rows ever clearer, half ever more ambiguous, the number of plausible classes the same on average."""
    gaps, spreads = [], []
    for more in range(4):  # 4 ± more plausible classes
        rows = np.zeros((100, 8))
        rows[:50, : 4 - more], rows[50:, : 4 + more] = 1, 1
        line = bayes.top_k_against_average_k(rows / rows.sum(1, keepdims=True), [4]).iloc[0]
        gaps.append(line["gap"])
        spreads.append(line["heterogeneity"])
    assert gaps == pytest.approx([0, 0.1, 1 / 6, 3 / 14])  # half of the rows miss (4 + more − 4) / (4 + more)
    assert (np.diff(gaps) > 0).all()
    assert spreads == pytest.approx([0, 1, 2, 3])


def test_the_best_average_k_accuracy_counts_the_last_tie_in_part():
    p = np.full((10, 4), 0.25)  # every threshold set holds everything or nothing
    assert [bayes.average_k_accuracy(p, K) for K in (0.5, 1, 2.6, 4)] == pytest.approx([0.125, 0.25, 0.65, 1])
    assert bayes.top_k_accuracy(p, 3) == pytest.approx(0.75)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), size=st.floats(0.2, 6.5))
def test_size_at_a_confidence_is_the_inverse_of_average_k_accuracy(seed, size):
    p = posteriors(seed=seed)
    confidence = bayes.average_k_accuracy(p, size)
    assert bayes.mean_size_at_confidence(p, confidence) == pytest.approx(size, rel=1e-6, abs=1e-6)


def test_weights_stand_for_repeated_rows():
    p = posteriors(40)
    times = rng.integers(1, 5, 40)
    repeated = np.repeat(p, times, axis=0)
    for K in (1, 2.5, 4):
        assert bayes.average_k_accuracy(p, K, times) == pytest.approx(bayes.average_k_accuracy(repeated, K))
    assert bayes.top_k_accuracy(p, 2, times) == pytest.approx(bayes.top_k_accuracy(repeated, 2))
    weighted, plain = bayes.top_k_against_average_k(p, [2], times), bayes.top_k_against_average_k(repeated, [2])
    assert weighted.to_numpy() == pytest.approx(plain.to_numpy())


@pytest.mark.parametrize("rule", [wb.TopK(2), wb.AverageK(2.5), wb.LAC(0.8), wb.APS(0.8), wb.PointwiseError(0.8)])
def test_bayes_sets_have_no_regret_and_a_models_sets_have(rule):
    p = posteriors(400, spread=1.0)
    p /= p.sum(1, keepdims=True)
    known = table(p)
    best = bayes.sets(known, rule)
    if rule.formulation in ("point-wise size", "average size", "average error"):
        assert bayes.regret(best) == pytest.approx(0, abs=1e-9)
    poor = table(p, np.log(p) + rng.normal(size=p.shape) * 2)
    assert bayes.regret(rule.fit(poor).sets(poor)) > 0.005


def test_the_bayes_set_of_each_formulation_keeps_its_constraint_and_no_smaller_one_does():
    p = posteriors(400)
    known = table(p)
    assert (bayes.sets(known, wb.TopK(3)).sizes == 3).all()
    pointwise = bayes.sets(known, wb.PointwiseError(0.8))
    mass = (pointwise.matrix() * p).sum(1)
    assert (mass >= 0.8 - 1e-9).all()
    without_last = mass - np.array([values[-1] for values in (pointwise.members(i)[1] for i in range(400))])
    assert (without_last < 0.8).all()
    average = bayes.sets(known, wb.LAC(0.8))
    assert bayes.expected_accuracy(average) >= 0.8
    smaller = np.where(average.matrix(), p, 0) > average.rule.threshold * (1 + 1e-9)
    assert (smaller * p).sum() / 400 < 0.8
    with pytest.raises(ValueError, match="no Bayes form"):
        bayes.sets(known, wb.ClassConditionalLAC())


def test_expected_accuracy_is_what_labels_give_on_average():
    p = posteriors(200)
    known = table(p)
    sets = wb.AverageK(2).fit(known).sets(known)
    drawn = [(p.cumsum(1) < rng.random((200, 1))).sum(1) for _ in range(300)]
    observed = np.mean([sets.matrix()[np.arange(200), labels].mean() for labels in drawn])
    assert bayes.expected_accuracy(sets) == pytest.approx(observed, abs=0.01)


def votes_table() -> wb.LogitTable:
    votes = np.array([[9, 1, 0], [5, 5, 0], [0, 2, 8], [10, 0, 0]])
    return wb.LogitTable(np.array([[3.0, 0, 0], [2, 1, 0], [1, 0, 2], [3, 0, 0]]), [0, 1, 2, 0], votes=votes)


def test_votes_are_an_estimate_of_the_posterior():
    assert bayes.posterior_of(votes_table())[1].tolist() == [0.5, 0.5, 0]
    with pytest.raises(ValueError, match="neither the true posterior nor human votes"):
        bayes.posterior_of(wb.LogitTable(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="row 1 has no votes"):
        bayes.posterior_of(wb.LogitTable(np.zeros((2, 2)), votes=[[1, 0], [0, 0]]))


def test_human_sets_and_whether_a_model_contains_them():
    known = votes_table()
    people = bayes.human_sets(known, min_votes=2)
    assert [members.tolist() for members in people] == [[0], [0, 1], [2, 1], [0]]
    model = wb.TopK(2).fit(known).sets(known)
    assert bayes.contains(model, people).tolist() == [True, True, False, True]
    with pytest.raises(ValueError, match="has no votes"):
        bayes.human_sets(wb.LogitTable(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="same rows"):
        bayes.contains(model, bayes.human_sets(known.rows([0, 1])))


def test_models_are_compared_with_an_expert_at_equal_mean_size():
    known = votes_table()
    frame = bayes.against_expert({"model": known}, bayes.human_sets(known, 2), "people")
    assert frame["who"].tolist() == ["people", "model"]
    assert frame["mean_size"].tolist() == [1.5, 1.5]
    assert frame["error"].tolist() == [0, 0]
    with pytest.raises(ValueError, match="the expert saw 4"):
        bayes.against_expert({"model": known.rows([0])}, bayes.human_sets(known))


def test_real_networks_against_real_people_on_cifar10(shared_data):
    """Sec. 3.3.3 on data we have: 51 people an image are a strong expert, and good networks come close."""
    people, networks = shared_data("cifar10h_counts"), shared_data("cifar10_models_logp")
    tables = {
        str(name): wb.LogitTable(networks["logp"][place], networks["y"], votes=people["counts"])
        for place, name in enumerate(networks["models"][:4])
    }
    first = next(iter(tables.values()))
    frame = bayes.against_expert(tables, bayes.human_sets(first, min_votes=2), "people")
    assert frame["error"].iloc[0] < 0.01
    assert frame["mean_size"].to_numpy() == pytest.approx(frame["mean_size"].iloc[0], abs=0.01)
    assert (frame["error"].iloc[1:] < 0.1).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bayes.top_k_accuracy(np.ones((2, 2)), 1.5), "whole number"),
        (lambda: bayes.average_k_accuracy(np.ones((2, 2)), 3), "there are 2 classes"),
        (lambda: bayes.average_k_accuracy(-np.ones((2, 2)), 1), "≥ 0"),
        (lambda: bayes.average_k_accuracy(np.ones((2, 2)), 1, [1]), "each of the 2 rows"),
        (lambda: bayes.mean_size_at_confidence(np.ones((2, 2)), 0), r"\(0, 1\]"),
    ],
)
def test_bad_input_is_refused_with_a_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_garden_knows_its_own_bayes_accuracies_and_they_are_ours():
    from workbench.datasets import Garden

    garden = Garden()
    looks = garden.flora.joint.sum(1)  # P(look); the looks are all photographs can show
    p = garden.flora.joint / looks[:, None]
    for K in (1, 2, 5):
        assert bayes.top_k_accuracy(p, K, looks) == pytest.approx(garden.bayes_top_k_accuracy(K))
        assert bayes.average_k_accuracy(p, K, looks) == pytest.approx(garden.bayes_average_k_accuracy(K))
    frame = bayes.top_k_against_average_k(p, [2, 3, 5], looks)
    assert (frame["gap"] > 0.01).all()  # flower-only photographs are far more ambiguous than others


@pytest.mark.parametrize("asked", [bayes.posterior_of, bayes.posterior_table, bayes.human_sets])
def test_what_is_asked_of_a_table_wants_one(asked):
    with pytest.raises(TypeError, match="expected a LogitTable, got list"):
        asked([[0.5, 0.5]])


@pytest.mark.parametrize("asked", [bayes.expected_accuracy, bayes.regret])
def test_what_is_asked_of_sets_wants_some(asked):
    with pytest.raises(TypeError, match="expected PredictionSets, got list"):
        asked([[True, False]])


@pytest.mark.parametrize("K", [0, 1.5, np.inf, "3"])
def test_top_k_wants_a_whole_number_of_classes(K):
    for ask in (wb.bayes.top_k_accuracy, lambda p, K: wb.metrics.top_k_accuracy(wb.LogitTable(p, [0]), K)):
        with pytest.raises(ValueError, match="give a whole number ≥ 1"):
            ask(np.array([[0.5, 0.25, 0.25]]), K)


def test_sets_made_larger_by_min_size_are_compared_with_the_best_of_that_size():
    posterior = np.array([[0.5, 0.3, 0.1, 0.1]])
    reversed_model = wb.LogitTable(-np.log(posterior), [0], posterior=posterior)
    sets = wb.TopK(1, min_size=3).fit(reversed_model)(reversed_model)
    assert sets.sizes.tolist() == [3]
    assert bayes.regret(sets) == pytest.approx(0.9 - bayes.expected_accuracy(sets))
    assert bayes.regret(sets) > 0.2
