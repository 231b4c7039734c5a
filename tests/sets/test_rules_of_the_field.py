"""Every score with every fit, each held against its definition by brute force, and its promise by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import workbench as wb
from workbench.sets.base import Block
from workbench.sets.clustered import k_means
from workbench.sets.marginal import SCORED
from workbench.sets.per_group import OF_CLASSES
from workbench.sets.prevalence import AdjustedTable, class_weights
from workbench.sets.row_draws import row_draws

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
PRIOR = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
CENTRES = np.random.default_rng(7).normal(size=(6, 3)) * 1.3
FITS = (
    *(wb.Mondrian, wb.Clustered, wb.RC3P, wb.InterpQ, wb.Fuzzy),
    *(wb.MacroCoverage, wb.Weighted, wb.LabelShift, wb.VoteCalibrated),
)


def plants(n: int, seed: int = 0) -> wb.LogitTable:
    """Rows of six classes with a long tail; the probabilities are the posterior."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(6, n, p=PRIOR)
    x = CENTRES[labels] + rng.normal(size=(n, 3))
    posterior = np.log(PRIOR) - ((x[:, None] - CENTRES) ** 2).sum(-1) / 2
    return wb.LogitTable(
        posterior,
        labels,
        class_counts=(PRIOR * 1000).astype(int),
        groups=("a", "a", "a", "b", "b", "b"),
        attributes={
            "organ": np.where(x[:, 0] > 0, "leaf", "bark"),
            "weight": np.exp(x[:, 1] / 3),
            "object": np.arange(n),
        },
        votes=rng.multinomial(5, np.full(6, 0.02), n) + 5 * np.eye(6, dtype=int)[labels],
    )


VAL, TEST = plants(600, 1), plants(400, 2)


@pytest.mark.parametrize("fit", FITS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("score", [rule.__name__ for rule in SCORED])
def test_every_score_works_with_every_fit(fit, score):
    fitted = fit(0.8, score=score).fit(VAL)
    sets = fitted.sets(TEST)
    assert sets.hits.mean() > 0.7
    limit = np.broadcast_to(fitted.limit, 6) if fitted.row_values(TEST) is None else fitted.row_values(TEST)[:, None]
    scores = fitted.score.of_classes(Block(TEST))
    certain = np.abs(scores - np.where(np.isinf(limit), 1e9, limit)) > 1e-9
    expected = scores <= limit
    if fit is wb.RC3P:
        expected &= np.argsort(np.argsort(-TEST.probabilities(), axis=1), axis=1) < fitted.largest_rank
    assert np.array_equal(sets.matrix()[certain], expected[certain])


def test_a_score_is_named_written_with_its_knobs_or_ones_own():
    by_name = wb.Mondrian(0.8, score="RAPS(penalty=0.2)").fit(VAL).sets(TEST).matrix()
    assert np.array_equal(by_name, wb.Mondrian(0.8, score=wb.RAPS(penalty=0.2)).fit(VAL).sets(TEST).matrix())
    with pytest.raises(ValueError, match="no score named 'Nonsense'"):
        wb.Mondrian(score="Nonsense")
    with pytest.raises(ValueError, match="give one of LAC"):
        wb.Mondrian(score=len)


def test_PAS_at_tau_0_is_LAC_and_at_1_divides_by_the_class_share():
    assert np.array_equal(wb.PAS(0.8, tau=0).fit(VAL).sets(TEST).matrix(), wb.LAC(0.8).fit(VAL).sets(TEST).matrix())
    ratios = VAL.probabilities() / (VAL.class_counts / VAL.class_counts.sum())
    q = np.sort(-ratios[np.arange(VAL.n), VAL.labels])[math.ceil(0.8 * (VAL.n + 1)) - 1]
    new = TEST.probabilities() / (TEST.class_counts / TEST.class_counts.sum())
    expected, certain = -new <= q, np.abs(new + q) > 1e-9
    assert np.array_equal(wb.PAS(0.8).fit(VAL).sets(TEST).matrix()[certain], expected[certain])


def test_with_the_true_posterior_PAS_has_the_best_macro_coverage_of_its_size():
    """Ding, Fermanian & Salmon, Proposition 2: thresholding p/π is optimal for the mean over classes."""
    val, test = plants(4000, 3), plants(4000, 4)
    best = wb.PAS(0.8).fit(val).sets(test)
    K = float(best.sizes.mean().round(3))
    for rule in (wb.AverageK(K), wb.AverageK(K, tau=0.5), wb.TopK(round(K))):
        other = rule.fit(val).sets(test)
        macro = wb.metrics.macro_accuracy(other) - 0.2 * max(other.sizes.mean() - K, 0)
        assert wb.metrics.macro_accuracy(best) > macro - 0.005
    assert wb.metrics.macro_accuracy(best) > wb.metrics.macro_accuracy(wb.AverageK(K).fit(val).sets(test)) + 0.01


@pytest.mark.parametrize("tau", [0.3, 1.0])
def test_macro_average_K_is_the_midpoint_of_sorted_ratios_and_has_mean_size_K(tau):
    fitted = wb.AverageK(2.0, tau=tau).fit(VAL)
    ratios = np.sort((VAL.probabilities() * class_weights(VAL, tau)).ravel())[::-1]
    assert fitted.threshold == pytest.approx((ratios[2 * VAL.n - 1] + ratios[2 * VAL.n]) / 2)
    assert fitted.sets(VAL).sizes.mean() == 2.0
    index = wb.SetIndex(AdjustedTable.of(VAL, class_weights(VAL, tau)))
    assert index.threshold(2.0) == fitted.threshold
    assert np.array_equal(index.sizes(K=2.0), fitted.sets(VAL).sizes)


def test_average_K_prints_as_before_without_tau_and_can_be_read_back_with_it():
    from workbench.sets import rule_from_text

    assert repr(wb.AverageK(3)) == "AverageK(K=3.0, min_size=0)"
    assert rule_from_text(repr(wb.AverageK(3, tau=0.5))) == wb.AverageK(3, tau=0.5)


def test_importance_covers_what_matters_more():
    rare = wb.PAS(0.8, importance=(1, 1, 1, 1, 1, 5)).fit(VAL).sets(TEST)
    plain = wb.PAS(0.8).fit(VAL).sets(TEST)
    sixth = TEST.labels == 5
    assert rare.matrix()[:, 5].sum() > plain.matrix()[:, 5].sum()
    assert rare.hits[sixth].mean() >= plain.hits[sixth].mean()
    with pytest.raises(ValueError, match="one finite number above 0 for each of the 6 classes"):
        wb.PAS(importance=(1, 2)).fit(VAL)


def test_the_scores_are_those_of_their_papers():
    p = np.array([[0.5, 0.3, 0.15, 0.05]])
    table = wb.LogitTable(np.log(p), [0])
    u = 1 - wb.SAPS().scorer(table).share(Block(table))[0]
    saps = wb.SAPS(weight=0.2).scorer(table).of_classes(Block(table))[0]
    assert saps == pytest.approx([u * 0.5, 0.5 + u * 0.2, 0.5 + (1 + u) * 0.2, 0.5 + (2 + u) * 0.2])
    assert wb.Margin().scorer(table).of_classes(Block(table))[0] == pytest.approx([-0.2, 0.2, 0.35, 0.45])
    assert wb.Rank(randomized=False).scorer(table).of_classes(Block(table))[0].tolist() == [0, 1, 2, 3]
    z = np.log(p[0])
    assert wb.Sparse().scorer(table).of_classes(Block(table))[0] == pytest.approx(
        [sum(z[:k] - z[k]) for k in range(4)], abs=1e-12
    )


def test_sparse_sets_are_supports_of_sparsemax():
    from workbench.tables.links import sparsemax

    fitted = wb.Sparse(0.8).fit(VAL)
    support = sparsemax(TEST.scores / fitted.limit) > 0
    assert np.mean(fitted.sets(TEST).matrix() == support) > 0.999


@pytest.mark.parametrize("by", [*OF_CLASSES, "organ", lambda table: table.probabilities().max(1) > 0.7])
def test_mondrian_limits_are_the_conformal_limits_of_each_group_alone(by):
    fitted = wb.Mondrian(0.8, by=by).fit(VAL)
    sets = fitted.sets(TEST)
    if by in OF_CLASSES:
        codes = {"label": np.arange(6), "groups": np.array([0, 0, 0, 1, 1, 1])}.get(by, np.full(6, 2))
        codes = np.where(VAL.class_counts <= 100, 1, 2) if by == "shots" else codes
        for j in range(6):
            alone = VAL.rows(codes[VAL.labels] == codes[j])
            assert fitted.threshold[j] == wb.LAC(0.8).fit(alone).threshold
        return
    of_val, of_test = (by(VAL), by(TEST)) if callable(by) else (VAL.attributes[by], TEST.attributes[by])
    for group in np.unique(of_val):
        alone = wb.LAC(0.8).fit(VAL.rows(of_val == group)).sets(TEST.rows(of_test == group))
        assert np.array_equal(sets.matrix()[of_test == group], alone.matrix())


def test_a_group_of_two_rows_and_a_group_never_seen_say_what_they_cost():
    attributes = {"organ": np.array(["leaf"] * 598 + ["bark"] * 2)}
    val = wb.LogitTable(VAL.scores, VAL.labels, attributes=attributes)
    with pytest.warns(UserWarning, match=r"1 of 2 groups \(bark\) have fewer than 9 rows"):
        fitted = wb.Mondrian(by="organ").fit(val)
    new = wb.LogitTable(TEST.scores[:3], attributes={"organ": np.array(["leaf", "bark", "root"])})
    with pytest.warns(UserWarning, match="root had no rows to fit on"):
        sets = fitted.sets(new)
    assert sets.sizes[1:].tolist() == [6, 6]


def test_RC3P_cuts_at_the_smallest_rank_whose_error_is_below_alpha():
    fitted = wb.RC3P(0.8).fit(VAL)
    p = VAL.probabilities()
    for j in range(6):
        rows = np.flatnonzero(VAL.labels == j)
        ranks = (p[rows] > p[rows, j][:, None]).sum(1) + 1
        k = next(k for k in range(1, 7) if np.mean(ranks > k) < 0.2 - 1e-12)
        level = 0.8 + np.mean(ranks > k)
        scores = np.sort(-p[rows, j])
        place = math.ceil((len(rows) + 1) * level - 1e-9)
        assert fitted.largest_rank[j] == k
        assert fitted.limit[j] == (scores[place - 1] if place <= len(rows) else np.inf)


def test_interpolated_limits_lie_between_those_of_all_rows_and_of_the_classes():
    marginal, per_class = wb.LAC(0.8).fit(VAL).limit, wb.ClassConditionalLAC(0.8).fit(VAL).limit
    for weight in (0, 0.3, 1):
        limit = wb.InterpQ(0.8, weight=weight).fit(VAL).limit
        assert limit == pytest.approx(weight * np.minimum(per_class, 0) + (1 - weight) * marginal)


def test_fuzzy_limits_are_weighted_quantiles_at_the_level_of_the_held_out_rows():
    rule = wb.Fuzzy(0.8, bandwidth=0.5, held_out=0.3)
    fitted, p = rule.fit(VAL), VAL.probabilities()
    held = row_draws(VAL.scores, rule.seed) < 0.3
    scores, labels = -p[np.arange(VAL.n), VAL.labels], VAL.labels
    line = VAL.class_counts / VAL.class_counts.max()

    def share(j: int, score: float) -> float:
        """F_j by its definition."""
        precision = (np.sum(labels[~held] == j) + 1) / rule.bandwidth
        weights = np.exp(-precision * (line[labels[~held]] - line[j]) ** 2 / 2)
        return weights[scores[~held] <= score].sum() / (weights.sum() + 1)

    shares = np.sort([share(labels[i], scores[i]) for i in np.flatnonzero(held)])
    level = shares[math.ceil(0.8 * (len(shares) + 1)) - 1]
    new = TEST.rows(slice(60))
    expected = np.array([[share(j, -q) <= level + 1e-12 for j, q in enumerate(row)] for row in new.probabilities()])
    assert np.array_equal(fitted.sets(new).matrix(), expected)
    assert np.array_equal(fitted.p_values(new) > 0.2 + 1e-12, expected)


def test_fuzzy_limits_are_one_for_all_classes_with_a_wide_kernel_and_those_of_the_classes_with_a_narrow_one():
    wide, narrow = wb.Fuzzy(0.8, bandwidth=1e20).fit(VAL), wb.Fuzzy(0.8, bandwidth=1e-9).fit(VAL)
    assert np.ptp(wide.limit) == 0
    fitting = VAL.rows(row_draws(VAL.scores, 0) >= 0.2)
    own = wb.ClassConditionalLAC(0.8).fit(fitting)
    level = narrow.calibration.level(0.8)
    for j in range(6):
        rising = own.calibration.of_group(j)
        inside = rising[np.arange(1, len(rising) + 1) <= level * (len(rising) + 1) + 1e-9]
        assert narrow.limit[j] >= inside.max()


def test_a_class_that_no_row_is_like_is_in_every_fuzzy_set_and_a_warning_names_it():
    lone = wb.LogitTable(
        VAL.scores[VAL.labels < 5],
        VAL.labels[VAL.labels < 5],
        class_counts=[10, 9, 8, 7, 6, 500],
        class_names=list("abcdef"),
    )
    with pytest.warns(UserWarning, match=r"1 of 6 classes \(f\) have too few rows like theirs"):
        fitted = wb.Fuzzy(0.8, bandwidth=1e-3).fit(lone)
    assert fitted.sets(lone).matrix()[:, 5].all()
    with pytest.warns(UserWarning, match="0 were held out: every set holds every class"):
        wb.Fuzzy(0.8, seed=0).fit(lone.rows(row_draws(lone.scores, 0) > 0.5))


def test_macro_coverage_is_the_weighted_quantile_of_its_paper():
    fitted = wb.MacroCoverage(0.8, tau=0.0).fit(VAL)
    counts = np.bincount(VAL.labels, minlength=6)
    weights = 1 / (6 * counts[VAL.labels])
    scores = -VAL.probabilities()[np.arange(VAL.n), VAL.labels]
    order = np.argsort(scores)
    reached = np.cumsum(weights[order]) >= 1 - (0.2 - weights.max()) - 1e-12
    assert fitted.limit == scores[order][np.argmax(reached)]


def test_a_macro_promise_that_few_rows_cannot_keep_says_so():
    few = wb.LogitTable(VAL.scores[:12], [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5], class_counts=VAL.class_counts)
    with pytest.warns(UserWarning, match="cannot be promised"):
        assert (wb.MacroCoverage(0.9).fit(few).sets(TEST).sizes == 6).all()


def test_weights_of_one_are_the_marginal_rule_and_others_are_checked():
    ones = wb.Weighted(0.8, by=lambda table: np.ones(table.n)).fit(VAL)
    assert np.array_equal(ones.sets(TEST).matrix(), wb.LAC(0.8).fit(VAL).sets(TEST).matrix())
    for bad, said in (
        (-1.0, "numbers from 0"),
        (np.inf, "numbers from 0"),
        (1e308, "numbers from 0"),
        (0.0, "are all 0"),
    ):
        with pytest.raises(ValueError, match=said):
            wb.Weighted(by=lambda table, bad=bad: np.full(table.n, bad)).fit(VAL)
    with pytest.raises(ValueError, match="gives no weights"):
        wb.Weighted(by="nothing").fit(VAL)


def test_a_row_too_heavy_to_answer_for_gets_every_class_and_a_warning():
    fitted = wb.Weighted(0.8, by="weight").fit(VAL)
    heavy = wb.LogitTable(TEST.scores[:2], attributes={"weight": [1e9, 1.0]})
    with pytest.warns(UserWarning, match="1 of 2 rows weigh more"):
        assert fitted.sets(heavy).sizes[0] == 6


def test_risk_control_is_the_smallest_limit_that_keeps_the_corrected_risk():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(300, 6)) * 2
    many = wb.LogitTable(scores, rng.random((300, 6)) < 1 / (1 + np.exp(-scores)), link="sigmoid")
    many = many.rows(many.labelled)
    fitted = wb.RiskControl(0.2).fit(many)
    p, labels = many.probabilities(), many.labels

    def risk(threshold: float) -> float:
        missed = (labels & (p < threshold)).sum(1) / labels.sum(1)
        return (missed.sum() + 1) / (many.n + 1)

    larger = np.sort(p[labels])
    above = larger[larger > fitted.threshold][0]
    assert risk(fitted.threshold) <= 0.2 < risk(above)


def test_risk_of_a_wrong_genus_and_of_costs():
    genus = wb.RiskControl(0.1, loss="wrong group").fit(VAL).sets(TEST).matrix()
    groups = np.array([0, 0, 0, 1, 1, 1])
    right = (genus & (groups == groups[TEST.labels][:, None])).any(1)
    assert 0.85 < right.mean()
    assert genus.sum() < wb.RiskControl(0.1).fit(VAL).sets(TEST).sizes.sum()
    costly = wb.RiskControl(0.3, loss="cost", costs=(1, 1, 1, 1, 1, 4)).fit(VAL)
    assert costly.limit >= wb.RiskControl(0.3, loss="cost").fit(VAL).limit
    with pytest.warns(UserWarning, match="cannot be promised"):
        wb.RiskControl(1e-4).fit(VAL)


@pytest.mark.parametrize(
    "rule",
    [
        wb.PAS(0.8),
        wb.SAPS(0.8),
        wb.Margin(0.8),
        wb.Rank(0.8),
        wb.Sparse(0.8),
        wb.Mondrian(0.8, by="organ"),
        wb.RC3P(0.8),
        wb.Fuzzy(0.8, projection="quantile", held_out=0.5),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_over_500_splits_the_mean_coverage_is_what_was_promised(rule):
    """One new row a split: the number of hits is binomial."""
    both = plants(500 * 61, 9)
    hits = 0
    for split in range(500):
        rows = both.rows(slice(61 * split, 61 * split + 61))
        hits += int(rule.fit(rows.rows(slice(60))).sets(rows.rows([60])).hits[0])
    low = stats.binom(500, 0.8).ppf(1e-3)
    assert hits >= low
    if type(rule) not in (wb.Mondrian, wb.RC3P, wb.Fuzzy):
        assert hits <= stats.binom(500, 49 / 61).ppf(1 - 1e-3)


def test_over_splits_macro_coverage_is_kept_for_the_classes_on_average():
    macro = []
    for seed in range(60):
        fitted = wb.MacroCoverage(0.8).fit(plants(400, 100 + seed))
        sets = fitted.sets(plants(600, 500 + seed))
        macro.append(wb.metrics.macro_accuracy(sets))
    assert np.mean(macro) > 0.8 - 3 * np.std(macro) / math.sqrt(60)


def test_votes_calibrate_for_a_label_drawn_from_them():
    sets = wb.VoteCalibrated(0.8).fit(VAL).sets(TEST).matrix()
    votes = TEST.votes / TEST.votes.sum(1, keepdims=True)
    assert abs((votes * sets).sum(1).mean() - 0.8) < 0.06


@pytest.mark.parametrize(
    "rule",
    [
        *(
            wb.LAC(),
            wb.ClassConditionalLAC(),
            wb.APS(),
            wb.Mondrian(),
            wb.Mondrian(by="organ"),
            wb.Clustered(n_clusters=2),
        ),
        *(wb.MacroCoverage(), wb.Weighted(), wb.LabelShift(), wb.VoteCalibrated()),
    ],
    ids=lambda rule: rule.short(),
)
def test_p_values_give_the_sets_of_every_confidence(rule):
    fitted = rule.fit(VAL)
    p = fitted.p_values(TEST)
    for confidence in (0.6, 0.8, 0.9):
        assert np.mean(fitted.at(confidence).sets(TEST).matrix() == (p > 1 - confidence + 1e-12)) > 0.998


def test_p_values_follow_the_names_of_the_columns():
    names, order = tuple("abcdef"), np.array([3, 1, 5, 0, 2, 4])
    val = wb.LogitTable(VAL.scores, VAL.labels, class_names=names)
    new = wb.LogitTable(TEST.scores, class_names=names)
    moved = wb.LogitTable(TEST.scores[:, order], class_names=[names[j] for j in order])
    for rule in (wb.ClassConditionalLAC(), wb.Mondrian(), wb.LabelShift(shares=(1, 2, 3, 4, 5, 6)), wb.LAC()):
        fitted = rule.fit(val)
        assert np.array_equal(fitted.p_values(moved), fitted.p_values(new)[:, order])


def test_rules_without_p_values_say_so():
    for rule in (wb.RC3P(), wb.InterpQ()):
        with pytest.raises(ValueError, match="no p-values"):
            rule.fit(VAL).p_values(TEST)


def test_new_rows_fall_into_the_bins_of_a_number_that_the_fit_found():
    age = np.random.default_rng(3).random(VAL.n)
    val = wb.LogitTable(VAL.scores, VAL.labels, attributes={"age": age})
    fitted = wb.Mondrian(0.8, by="age").fit(val)
    cuts = np.quantile(age, [0.25, 0.5, 0.75])
    for one in (0.1, 0.3, 0.6, 0.9, 7.0):
        new = wb.LogitTable(TEST.scores[:1], attributes={"age": [one]})
        own = wb.LAC(0.8).fit(val.rows(np.searchsorted(cuts, age) == np.searchsorted(cuts, one)))
        assert np.array_equal(fitted.sets(new).matrix(), own.sets(new).matrix())
    with pytest.warns(UserWarning, match="nan had no rows to fit on"):
        assert (fitted.sets(wb.LogitTable(TEST.scores[:1], attributes={"age": [np.nan]})).sizes == 6).all()


def test_weighted_k_means_finds_separate_clusters():
    points = np.concatenate([np.zeros((5, 2)), np.ones((7, 2)) * 9, -np.ones((4, 2)) * 9])
    codes = k_means(points + np.random.default_rng(0).normal(size=points.shape) * 0.1, np.ones(16), 3)
    assert [len(set(codes[part])) for part in (slice(5), slice(5, 12), slice(12, 16))] == [1, 1, 1]
    assert len(set(codes)) == 3


def test_what_a_rule_needs_is_named():
    plain = wb.LogitTable(VAL.scores, VAL.labels)
    assert wb.PAS().missing(plain) == ["class_counts"]
    assert wb.Mondrian(by="groups").missing(plain) == ["groups"]
    assert wb.Weighted().missing(plain) == ["attributes['weight']"]
    assert wb.Clustered(score="PAS").missing(plain) == ["class_counts"]
    assert not wb.LAC().missing(plain)
    with pytest.raises(ValueError, match="training rows per class"):
        wb.PAS().fit(plain)


def test_a_report_of_all_rules_has_those_that_the_table_allows():
    from workbench.sets import RULES

    frame = wb.report(TEST, "all", val=VAL, metrics=[wb.metrics.coverage])
    assert len(frame) == len(RULES)
    plain = wb.LogitTable(TEST.scores, TEST.labels)
    assert "PAS" not in wb.report(plain, "all", metrics=[wb.metrics.coverage])["rule"].str.cat()
    with pytest.raises(ValueError, match="or 'all'"):
        wb.report(plain, "every")
