"""Garcin, thesis: set-valued classification (Chapter 2), the expert and the votes (Chapter 3), the threshold (Chapter 5).

One test per equation, table or algorithm, named after it.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench import bayes
from workbench.metrics.crowd_labels import validated_labels

rng = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def posterior_table(n: int = 500, n_classes: int = 9, seed: int = 0) -> wb.LogitTable:
    """Rows of unequal ambiguity with a known posterior, which is also what the network says."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(n, n_classes)) * np.exp(generator.normal(size=(n, 1)))
    table = wb.LogitTable(scores)
    p = table.probabilities()
    labels = (p.cumsum(1) < generator.random((n, 1))).sum(1)
    return wb.LogitTable(scores, labels, posterior=p)


def test_equations_2_1_to_2_4_size_and_error_of_a_set_valued_classifier():
    table = posterior_table()
    sets = wb.AverageK(2).fit(table).sets(table)
    members = sets.matrix()
    assert np.array_equal(sets.sizes, members.sum(1))  # (2.1)
    assert wb.metrics.mean_size(sets) == members.sum() / table.n  # (2.2)
    pointwise_error = 1 - (members * table.posterior).sum(1)  # (2.3)
    assert bayes.expected_accuracy(sets) == pytest.approx(1 - pointwise_error.mean())  # (2.4)


def test_equation_2_5_conformal_coverage_lies_between_confidence_and_confidence_plus_one_over_n_plus_1():
    n, confidence, covered = 24, 0.8, []
    for seed in range(300):
        table = posterior_table(n + 50, 5, seed)
        sets = wb.LAC(confidence).fit(table.rows(slice(n))).sets(table.rows(slice(n, None)))
        covered.append(sets.hits.mean())
    error = np.std(covered) / math.sqrt(len(covered))
    assert confidence - 3 * error <= np.mean(covered) <= confidence + 1 / (n + 1) + 3 * error


def test_equations_2_11_to_2_14_the_top_k_bayes_classifier_takes_the_K_most_probable_classes():
    table = posterior_table()
    for K in (1, 3):
        best = -np.sort(-table.posterior, axis=1)[:, :K].sum(1).mean()
        assert bayes.top_k_accuracy(table, K) == pytest.approx(best)
        assert bayes.expected_accuracy(bayes.sets(table, wb.TopK(K))) == pytest.approx(best)
        hits = [label in np.argsort(-p)[:K] for p, label in zip(table.probabilities(), table.labels, strict=True)]
        assert wb.metrics.top_k_accuracy(table, K=K) == np.mean(hits)  # (2.14)


def test_equations_2_17_to_2_23_thresholding_minimises_error_plus_lambda_times_size():
    table = posterior_table(40, 6)
    p, price = table.posterior, 0.12
    threshold_sets = wb.Threshold(price).fit(table).sets(table).matrix()

    def cost(members: np.ndarray) -> float:
        return float((1 - (members * p).sum(1) + price * members.sum(1)).mean())

    best = cost(threshold_sets)
    for _ in range(200):
        flipped = threshold_sets ^ (rng.random(p.shape) < 0.05)
        assert cost(flipped) >= best - 1e-12


def test_equations_2_24_to_2_26_G_counts_the_classes_above_a_threshold():
    table = posterior_table()
    index = wb.SetIndex(table)
    for threshold in (0.9, 0.3, 0.05, 0.001):
        above = table.probabilities() >= threshold
        assert index.mean_size(threshold) == above.sum(1).mean()  # (2.24)
        assert index.mean_size(threshold) == pytest.approx(above.mean(0).sum())  # (2.25)–(2.26)


def test_equation_2_27_the_threshold_is_where_G_falls_to_K_and_only_the_midpoint_returns_K_n():
    table = posterior_table()
    index = wb.SetIndex(table)
    for K in (1, 2.5, 4):
        threshold = index.threshold(K)
        assert index.mean_size(threshold) == K
        # The infimum of {λ : G(λ) ≤ K} is the next smaller probability; there G exceeds K: it is not attained.
        below = table.probabilities()[table.probabilities() < threshold].max()
        assert index.mean_size(below) > K
        assert index.mean_size(np.nextafter(below, 1)) == K


def test_equation_2_28_the_average_k_bayes_classifier_is_a_threshold_on_the_posterior():
    table = posterior_table()
    for K in (1, 2, 3.4):
        sets = bayes.sets(table, wb.AverageK(K))
        assert sets.sizes.mean() == K
        assert bayes.expected_accuracy(sets) == pytest.approx(bayes.average_k_accuracy(table, K))


def test_equations_2_29_to_2_31_the_plug_in_classifier_needs_no_labels():
    table = posterior_table()
    unlabelled = wb.LogitTable(table.scores)
    fitted = wb.AverageK(2).fit(unlabelled)
    assert fitted.threshold == wb.AverageK(2).fit(table).threshold
    assert np.array_equal(fitted.sets(table).matrix(), table.probabilities() >= fitted.threshold)


def test_equation_2_32_average_k_accuracy_is_the_share_of_labels_above_the_threshold():
    val, test = posterior_table(seed=1), posterior_table(seed=2)
    fitted = wb.AverageK(2).fit(val)
    above = test.probabilities()[np.arange(test.n), test.labels] >= fitted.threshold
    assert wb.metrics.accuracy(fitted.sets(test)) == above.mean()
    assert wb.metrics.mean_size(fitted.sets(test)) == pytest.approx(2, abs=0.3)  # close to K, not equal


@pytest.mark.parametrize(
    ("rule", "constraint"),
    [
        (wb.TopK(3), "point-wise size"),
        (wb.AverageK(3), "average size"),
        (wb.PointwiseError(0.7), "point-wise error"),
        (wb.LAC(0.7), "average error"),
    ],
)
def test_table_2_1_each_formulation_has_its_rule_whose_bayes_form_keeps_the_constraint_best(rule, constraint):
    assert rule.formulation == constraint
    table = posterior_table()
    sets = bayes.sets(table, rule)
    held = (sets.matrix() * table.posterior).sum(1)
    kept = {
        "point-wise size": (sets.sizes <= 3).all(),
        "average size": sets.sizes.mean() <= 3,
        "point-wise error": (held >= 0.7 - 1e-9).all(),
        "average error": held.mean() >= 0.7,
    }
    assert kept[constraint]
    # Among the four, the looser the constraint the better the objective: averages beat point-wise ones.
    if constraint == "average size":
        assert held.mean() >= bayes.expected_accuracy(bayes.sets(table, wb.TopK(3)))
    if constraint == "average error":
        assert sets.sizes.mean() <= bayes.sets(table, wb.PointwiseError(0.7)).sizes.mean()


def test_section_2_2_5_average_k_gains_most_over_top_k_when_ambiguity_is_heterogeneous():
    gaps = []
    for spread in (0.0, 0.5, 1.0, 1.5):
        generator = np.random.default_rng(0)
        plausible = np.clip(np.round(4 + spread * generator.normal(size=2000) * 2), 1, 10).astype(int)
        rows = (np.arange(12) < plausible[:, None]) / plausible[:, None]
        gaps.append(bayes.top_k_against_average_k(rows, [4])["gap"].iloc[0])
    assert gaps[0] == pytest.approx(0, abs=1e-12)
    assert (np.diff(gaps) > 0.02).all()


def test_section_3_3_3_models_are_judged_at_the_mean_size_of_the_expert():
    table = posterior_table(83, 12)
    people = rng.random((83, 12)) < 4.1 / 12
    people[np.arange(83), table.labels] |= rng.random(83) < 0.7
    expert = wb.PredictionSets.from_matrix(table, people)
    frame = bayes.against_expert({"network": table}, expert, "botanist")
    assert frame["mean_size"].iloc[1] == pytest.approx(frame["mean_size"].iloc[0])
    assert frame["error"].iloc[0] == pytest.approx(1 - expert.hits.mean())


def test_table_3_1_accuracy_by_number_of_training_images():
    table = posterior_table(2000, 6)
    counted = wb.LogitTable(table.scores, table.labels, class_counts=[5, 10, 49, 50, 1999, 2000])
    sets = wb.TopK(1).fit(counted).sets(counted)
    per_class = wb.metrics.class_accuracy(sets)
    assert wb.metrics.count_bin_accuracy(sets) == pytest.approx(
        {
            "< 10": per_class[0],
            "10–49": per_class[1:3].mean(),
            "50–499": per_class[3],
            "500–1999": per_class[4],
            "≥ 2000": per_class[5],
        }
    )


def test_section_3_8_1_a_label_is_valid_when_the_weights_of_its_voters_exceed_theta():
    votes = pd.DataFrame(
        [("p", "u", "a"), ("p", "v", "b"), ("p", "w", "b"), ("q", "u", "c"), ("r", "u", "d"), ("r", "w", "d")],
        columns=["item", "user", "label"],
    )
    b0, theta = 2.0, 4.1
    found = validated_labels(votes, b0=b0, threshold=theta)
    n = {"u": 3, "v": 1, "w": 2}  # distinct labels proposed; there are no authors here
    weight = {user: n[user] ** 0.5 - n[user] ** 0.2 + b0 for user in n}
    assert found.users.set_index("user")["weight"].to_dict() == pytest.approx(weight)
    lines = found.labels.set_index("item")
    assert lines["label"].to_dict() == {"p": "b", "q": "c", "r": "d"}
    assert lines["weight"].to_dict() == pytest.approx(
        {"p": weight["v"] + weight["w"], "q": weight["u"], "r": weight["u"] + weight["w"]}
    )
    assert lines["valid"].to_dict() == {"p": True, "q": False, "r": True}


def test_algorithm_1_of_chapter_5_sorts_all_probabilities_and_takes_the_midpoint():
    val = posterior_table(37, 8)
    batches = [val.probabilities(slice(start, start + 10)) for start in range(0, 37, 10)]  # ⌈n / |B|⌉ of them
    flat = np.sort(np.concatenate(batches).ravel())[::-1]
    for K in (1, 3):
        assert wb.AverageK(K).fit(val).threshold == (flat[K * 37 - 1] + flat[K * 37]) / 2
