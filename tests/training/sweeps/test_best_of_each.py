"""A sweep of several rules, of K for everything at once, and of losses that are each tuned on a grid of their own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

import workbench as wb
from workbench import metrics
from workbench.datasets import Dataset
from workbench.losses import CrossEntropy, DifferentiableTopK, NoisedTopK
from workbench.metrics.hierarchical import multiplicity
from workbench.runs.grid import every_setting
from workbench.sets import LAC, AverageK, TopK
from workbench.store import Store
from workbench.training import Run, many_runs
from workbench.training.sweeps import sweep

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run() -> Run:
    """Six classes, of which three have few training images."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), [12, 16, 20, 80, 90, 100])
    rows = rng.normal(size=(6, 5))[labels] + rng.normal(size=(len(labels), 5))
    data = Dataset.from_arrays(rows, labels, name="clouds")
    return Run(data, model="linear", epochs=2, batch_size=64, learning_rate=0.05, device="cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    return Store(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def at_each_K(run, store):
    over = {"K": [1, 2, 3], "loss": [CrossEntropy(), NoisedTopK(epsilon=0.5, n_samples=3)], "seed": range(2)}
    return sweep(run, over, rule=[TopK(), AverageK(), LAC(0.9)], store=store, progress=False)


@pytest.fixture(scope="module")
def tuned(run, store):
    over = [
        {"loss": [CrossEntropy()], "learning_rate": [1e-4, 0.05], "seed": range(3)},
        {"loss": [NoisedTopK(K=2, n_samples=3)], "loss.epsilon": [0.1, 1.0], "seed": range(3)},
    ]
    return sweep(run, over, rule=AverageK(2), store=store, progress=False)


def test_several_rules_are_judged_at_once_and_the_frame_says_which(run, store):
    found = sweep(run, {"seed": [0, 1]}, rule=[TopK(1), AverageK(2)], store=store, progress=False)
    of_sets = found.frame.query("metric == 'accuracy' and split == 'test'")
    assert of_sets["rule"].tolist() == ["TopK(K=1)", "AverageK(K=2)"] * 2
    tables = found.runs[1].tables
    expected = [metrics.accuracy(rule.fit(tables["val"])(tables["test"])) for rule in (TopK(1), AverageK(2))]
    assert of_sets["value"].tolist()[2:] == pytest.approx(expected)
    assert set(found.frame.query("metric == 'negative_log_likelihood'")["rule"]) == {""}
    assert found.best("accuracy", rule=TopK(1)).rule == found.best("accuracy", rule="TopK(K=1)").rule == "TopK(K=1)"
    assert found.best("negative_log_likelihood").test["seeds"] == 2
    with pytest.raises(ValueError, match=r"rule = None: accuracy is a number for each of TopK\(K=1\), AverageK\(K=2\)"):
        found.best("accuracy")


def test_one_rule_has_the_same_columns_as_several(tuned, at_each_K):
    names = ["run", "rule", "split", "metric", "group", "value", "n"]
    assert tuned.frame.columns.tolist()[-7:] == at_each_K.frame.columns.tolist()[-7:] == names


def test_top_k_accuracy_is_measured_at_several_K(run, store):
    judged = [metrics.top_k_accuracy.at(K=K) for K in (1, 3)]
    found = sweep(run, {"seed": [0, 1]}, metrics=judged, store=store, progress=False)
    assert set(found.frame["metric"]) == {"top_k_accuracy@K=1", "top_k_accuracy@K=3"}
    assert found.best("top_k_accuracy@K=3").test["mean"] > found.best("top_k_accuracy@K=1").test["mean"]


def test_groups_of_few_and_many_images_and_bins_of_counts_are_kept_without_asking(tuned):
    summary = tuned.summary().query("split == 'test'")
    assert summary.query("metric == 'shot_accuracy'")["group"].unique().tolist() == ["few", "medium", "many"]
    assert set(summary.query("metric == 'count_bin_accuracy'")["group"]) >= {"< 10", "10–49"}
    assert tuned.best("shot_accuracy", group="few").group == "few"
    assert set(tuned.best_of_each("loss", "count_bin_accuracy", group="10–49").frame["group"]) == {"10–49"}
    with pytest.raises(ValueError, match="count_bin_accuracy is a number for each of < 10, 10–49"):
        tuned.best("count_bin_accuracy", group="few")


def test_K_is_that_of_the_loss_and_of_the_rules_together(at_each_K):
    for trained, setting in zip(at_each_K.runs, at_each_K.settings, strict=True):
        if "K" in trained.run.loss.knobs():
            assert trained.run.loss.K == setting["K"]
    of_sets = at_each_K.frame.query("metric == 'mean_size' and split == 'val'")
    assert of_sets["rule"].unique().tolist() == ["TopK(K)", "AverageK(K)", "LAC(confidence=0.9)"]
    for name in ("TopK(K)", "AverageK(K)"):
        lines = of_sets[of_sets["rule"] == name]
        np.testing.assert_allclose(lines["value"], lines["K"], atol=0.02)
    assert of_sets["loss"].unique().tolist() == ["CrossEntropy()", "NoisedTopK(epsilon=0.5, n_samples=3)"]


def test_a_loss_without_K_is_trained_once_and_judged_at_each_K(at_each_K, run, tmp_path, monkeypatch):
    of_loss = at_each_K.frame[at_each_K.frame["loss"] == "CrossEntropy()"]
    assert of_loss.groupby("seed")["run"].nunique().tolist() == [1, 1]
    assert of_loss["K"].unique().tolist() == [1, 2, 3]
    real, trained = many_runs.train, []
    monkeypatch.setattr(many_runs, "train", lambda one, **options: trained.append(one.key) or real(one, **options))
    found = sweep(run, {"K": [1, 2, 3]}, store=Store(tmp_path), progress=False)
    assert (len(trained), len(found.runs)) == (1, 3)
    assert found.frame.query("metric == 'mean_size' and split == 'val'")["rule"].unique().tolist() == ["AverageK(K)"]


def test_K_is_that_of_the_monitors_too_and_then_a_loss_without_K_is_trained_for_each(run, store):
    watched = dataclasses.replace(run, monitor=("average_k_accuracy@K=5", "val_loss"))
    found = sweep(watched, {"K": [1, 2]}, store=store, progress=False)
    assert [trained.run.monitor for trained in found.runs] == [
        (f"average_k_accuracy@K={K}", "val_loss") for K in (1, 2)
    ]
    assert len({trained.run.key for trained in found.runs}) == 2
    column = found.runs[1].history["val_average_k_accuracy@K=2"]
    assert found.runs[1].stored.record.kept_epoch == column.idxmax()
    of_column = dataclasses.replace(run, monitor="val_accuracy")  # has no K, and stays
    assert len({trained.run.key for trained in sweep(of_column, {"K": [1, 2]}, store=store, progress=False).runs}) == 1


def test_sets_of_different_K_are_not_compared_and_each_K_has_its_best(at_each_K):
    with pytest.raises(ValueError, match=r"larger sets hit more.*best_of_each\(\('K',\), 'accuracy'\) takes the best"):
        at_each_K.best("accuracy", rule=TopK())
    assert at_each_K.best("negative_log_likelihood").settings["K"] in (1, 2, 3)  # of probabilities, not of sets
    each = at_each_K.best_of_each(("K", "loss"), "accuracy", rule=AverageK())
    assert list(each) == [(K, loss) for K in (1, 2, 3) for loss in at_each_K.frame["loss"].unique()]
    assert each[2, "CrossEntropy()"].settings == {"K": 2, "loss": CrossEntropy()}
    pairs = each.differences(resamples=50)
    assert pairs["comparisons"].tolist() == [3, 3, 3]  # one of each K
    assert pairs["first"].tolist() == [f"K = {K}, loss = CrossEntropy()" for K in (1, 2, 3)]


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({"K": [2, 6]}, "over: K = 6 with 6 classes; K must be smaller"),
        ({"K": [2, 0]}, "over: K = 0 is not a set; give a K above 0"),
        (
            {"K": [2], "loss.K": [2], "loss": [NoisedTopK()]},
            "K is that of the loss too; give K or loss.K, and not both",
        ),
        ({"K": [float("nan")]}, "K = nan is not allowed"),
        ([{"seed": []}, {"seed": 1}], "over is empty"),
    ],
)
def test_a_K_that_cannot_be_is_refused_before_anything_is_trained(run, tmp_path, over, message):
    with pytest.raises(ValueError, match=message):
        sweep(run, over, store=Store(tmp_path), progress=False)
    assert list(tmp_path.iterdir()) == []


def test_where_a_setting_says_no_K_it_is_that_of_the_loss(run, store):
    found = sweep(run, [{"K": 3}, {"loss": NoisedTopK(K=2)}], store=store, progress=False)
    assert [setting["K"] for setting in found.settings] == [3, 2]
    assert found.frame.query("metric == 'mean_size' and split == 'val'")["value"].tolist() == pytest.approx(
        [3, 2], abs=0.02
    )


def test_lists_in_a_listed_setting_are_a_grid_of_its_own_and_tuples_are_values():
    over = [{"loss.p_k": (0.5, 0.5), "seed": range(2)}, {"loss.p_k": [(1.0, 0.0), (0.0, 1.0)]}, {}]
    assert every_setting(over) == [
        {"loss.p_k": (0.5, 0.5), "seed": 0},
        {"loss.p_k": (0.5, 0.5), "seed": 1},
        {"loss.p_k": (1.0, 0.0)},
        {"loss.p_k": (0.0, 1.0)},
        {},
    ]


def test_each_loss_is_tuned_on_its_own_grid_and_the_best_of_each_is_reported_on_test_side_by_side(tuned):
    assert len(tuned.runs) == 2 * 3 + 2 * 3
    each = tuned.best_of_each("loss", "accuracy")
    assert list(each) == ["CrossEntropy()", "NoisedTopK(K=2, n_samples=3)"]
    frame = each.frame
    for loss, knob in (("CrossEntropy()", "learning_rate"), ("NoisedTopK(K=2, n_samples=3)", "loss.epsilon")):
        lines = tuned.summary().query("metric == 'accuracy' and loss == @loss")
        on_val = lines.query("split == 'val'")
        chosen = on_val.loc[on_val["mean"].idxmax(), knob]
        (line,) = frame[frame["loss"] == loss].to_dict("records")
        assert each[loss].settings[knob] == line[knob] == chosen
        expected = lines[(lines["split"] == "test") & (lines[knob] == chosen)]["mean"].item()
        assert line["test"] == each[loss].test["mean"] == pytest.approx(expected)
        assert line["low"] <= line["test"] <= line["high"]
        assert (line["seeds"], line["n"]) == (3, tuned.runs[0].tables["test"].n)
    with pytest.raises(
        ValueError, match=r"weight_decay was not varied; give some of loss, learning_rate, seed, loss\.eps"
    ):
        tuned.best_of_each("weight_decay", "accuracy")


def test_the_best_of_each_are_compared_by_seeds_and_rows_with_a_paired_test(tuned):
    each = tuned.best_of_each("loss", "accuracy")
    pairs = each.differences()
    (line,) = pairs.to_dict("records")
    values = [
        [metrics.accuracy(AverageK(2).fit(one.tables["val"])(one.tables["test"])) for one in best.runs]
        for best in each.values()
    ]
    assert (line["first"], line["second"]) == tuple(each)
    assert line["difference"] == pytest.approx(np.mean(values[0]) - np.mean(values[1]))
    assert line["low"] <= line["difference"] <= line["high"]
    expected = stats.ttest_rel(*values)
    assert (line["t"], line["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    assert (line["p_holm"], line["comparisons"]) == (line["p"], 1)
    assert "one comparison was made" in multiplicity(pairs)


def test_every_setting_has_an_interval_of_seeds_and_rows_shaped_as_the_summary(tuned):
    found = tuned.intervals("accuracy", resamples=200)
    of_seeds = tuned.summary().query("metric == 'accuracy' and split == 'test'").reset_index(drop=True)
    same = [name for name in of_seeds.columns if name not in ("low", "high")]
    assert found[same].equals(of_seeds[same])
    assert found.columns.tolist() == of_seeds.columns.tolist()
    assert ((found["low"] <= found["mean"]) & (found["mean"] <= found["high"])).all()
    figure = wb.figures.against_knob(found[found["loss.epsilon"] != ""].astype({"loss.epsilon": float}), "loss.epsilon")
    assert figure.frame["x"].tolist() == [0.1, 1.0]


def test_settings_judged_on_different_rows_are_not_paired(run, store):
    other = Dataset.from_arrays(np.random.default_rng(1).normal(size=(90, 5)), np.arange(90) % 6, name="other")
    found = sweep(run, {"dataset": [run.dataset, other]}, rule=AverageK(2), store=store, progress=False)
    with pytest.raises(ValueError, match="were evaluated on different rows, so nothing pairs them"):
        found.best_of_each("dataset", "accuracy").differences()


def test_the_distribution_over_ranks_is_swept_as_tuples(run, store):
    ranks = [(1.0, 0.0, 0.0), (0.5, 0.0, 0.5)]
    found = sweep(
        run, {"loss": [DifferentiableTopK(m=6)], "loss.p_k": ranks}, rule=TopK(2), store=store, progress=False
    )
    assert [trained.run.loss.p_k for trained in found.runs] == ranks
    assert found.frame["loss.p_k"].unique().tolist() == ["(1.0, 0.0, 0.0)", "(0.5, 0.0, 0.5)"]
    assert "p_k" not in found.frame["loss"][0]
