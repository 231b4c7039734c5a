"""Networks on the same rows: paired differences and the rows on which they differ."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.metrics.comparison import compare, disagreements

M = wb.metrics
rng = np.random.default_rng(0)


def pair(n: int = 400, n_classes: int = 6) -> dict[str, wb.LogitTable]:
    scores = rng.normal(size=(n, n_classes))
    labels = rng.integers(0, n_classes, n)
    scores[np.arange(n), labels] += 2
    facts = {"class_counts": [5, 50, 500] * 2}
    noisy = scores + rng.normal(size=scores.shape) * 0.8
    return {"good": wb.LogitTable(scores, labels, **facts), "noisy": wb.LogitTable(noisy, labels, **facts)}


def test_a_comparison_holds_every_value_and_its_difference_from_the_first():
    tables = pair()
    frame = compare(tables, wb.TopK(2), [M.accuracy, M.shot_accuracy, M.expected_calibration_error], resamples=50)
    sets = {name: wb.TopK(2).fit(table).sets(table) for name, table in tables.items()}
    for line in frame.itertuples():
        if line.metric == "expected_calibration_error":
            value = M.expected_calibration_error(tables[line.table])
        else:
            value = getattr(M, line.metric)(sets[line.table])
            value = value[line.group] if line.group else value
        assert line.value == pytest.approx(value)
        assert line.low <= line.high
        assert line.n == 400
    noisy = frame[frame["table"] == "noisy"].set_index(["metric", "group"])
    good = frame[frame["table"] == "good"].set_index(["metric", "group"])
    assert (good[["difference", "difference_low", "difference_high"]] == 0).all(axis=None)
    assert noisy["difference"].to_numpy() == pytest.approx((noisy["value"] - good["value"]).to_numpy())
    assert {group for metric, group in noisy.index if metric == "shot_accuracy"} == {"few", "medium", "many"}


def test_paired_differences_are_known_better_than_those_of_different_rows():
    good, noisy = compare(pair(2000), wb.TopK(1), [M.accuracy], resamples=300).to_dict("records")
    unpaired = np.hypot(good["high"] - good["low"], noisy["high"] - noisy["low"])
    assert noisy["difference_high"] - noisy["difference_low"] < 0.9 * unpaired
    assert noisy["difference_high"] < 0


def test_a_val_that_is_one_table_is_refused_in_words():
    tables = pair()
    with pytest.raises(ValueError, match=r"val is a LogitTable; give \{name: table\}"):
        compare(tables, wb.AverageK(2), val=tables["good"])


def test_the_interval_of_a_difference_covers_zero_for_equal_networks():
    table = pair()["good"]
    twin = wb.LogitTable(table.scores + rng.normal(size=table.scores.shape) * 1e-3, table.labels)
    line = compare({"one": table, "twin": twin}, wb.TopK(2), [M.accuracy], resamples=200).iloc[1]
    assert line["difference_low"] <= 0 <= line["difference_high"]


def test_rules_are_fitted_on_val_or_on_the_same_half_of_every_table():
    tables, val = pair(), pair()
    fitted = compare(tables, wb.AverageK(2), [M.mean_size], val=val, resamples=20)
    assert fitted["n"].tolist() == [400, 400]
    expected = wb.AverageK(2).fit(val["noisy"]).sets(tables["noisy"]).sizes.mean()
    assert fitted["value"].iloc[1] == pytest.approx(expected)
    halved = compare(tables, wb.AverageK(2), [M.mean_size], resamples=20)
    assert halved["n"].tolist() == [200, 200]
    assert halved["value"].to_numpy() == pytest.approx(2, abs=0.3)


def test_all_metrics_can_be_compared_at_once():
    frame = compare(pair(), wb.AverageK(2), resamples=20)
    assert {"accuracy", "macro_accuracy", "shot_accuracy", "brier_score"} <= set(frame["metric"])
    assert not frame.duplicated(["metric", "group", "table"]).any()


def test_disagreements_are_the_rows_that_one_gets_and_the_other_misses():
    tables = pair()
    sets = {name: wb.TopK(1).fit(table).sets(table) for name, table in tables.items()}
    frame = disagreements(sets)
    expected = np.flatnonzero(sets["good"].hits != sets["noisy"].hits)
    assert frame["row"].tolist() == expected.tolist()
    assert (frame["good"] != frame["noisy"]).all()
    assert frame["label"].tolist() == tables["good"].labels[expected].tolist()


def test_only_tables_of_the_same_rows_are_compared():
    tables = pair()
    with pytest.raises(ValueError, match="two or more"):
        compare({"good": tables["good"]}, wb.TopK(1))
    with pytest.raises(ValueError, match="same rows and classes"):
        compare({"good": tables["good"], "half": tables["noisy"].rows(slice(200))}, wb.TopK(1))
    other = wb.LogitTable(tables["noisy"].scores, np.roll(tables["noisy"].labels, 1))
    with pytest.raises(ValueError, match="different labels"):
        compare({"good": tables["good"], "other": other}, wb.TopK(1))
    with pytest.raises(ValueError, match="by their names"):
        compare(list(tables.values()), wb.TopK(1))
    with pytest.raises(TypeError, match="expected a LogitTable"):
        compare({**tables, "noisy": tables["noisy"].scores}, wb.TopK(1))
    with pytest.raises(ValueError, match="such as AverageK"):
        compare(tables, wb.TopK)
    with pytest.raises(ValueError, match="one val for each"):
        compare(tables, wb.AverageK(2), val={"good": tables["good"]})


def test_two_real_networks_differ_less_than_they_vary(shared_data):
    real = shared_data("cifar100_resnets_logits")
    tables = {str(name): wb.LogitTable(real["logits"][place], real["y"]) for place, name in enumerate(real["models"])}
    line = compare(tables, wb.TopK(1), [M.accuracy], resamples=200).iloc[1]
    few = (10_000 / len(real["y"])) ** 0.5  # by how much chance is larger in a part of the rows
    assert line["difference_low"] < 0.02 < line["difference_high"]  # .697 and .717 of all rows
    assert line["difference_high"] - line["difference_low"] == pytest.approx(0.016 * few, rel=0.25)
    if len(real["y"]) == 10_000:
        assert line["difference"] == pytest.approx(0.02, abs=0.002)


def with_ids(table, names=None):
    return wb.LogitTable(table.scores, table.labels, ids=np.arange(table.n), class_names=names)


def test_rows_on_which_sets_differ_are_found_by_their_ids():
    good, noisy = (with_ids(table) for table in pair(50).values())
    shuffled = noisy.rows(np.random.default_rng(1).permutation(50))
    rule = wb.TopK(1)
    found = disagreements({"good": rule.fit(good)(good), "noisy": rule.fit(noisy)(noisy)})
    assert len(found) > 5
    assert disagreements({"good": rule.fit(good)(good), "noisy": rule.fit(shuffled)(shuffled)}).equals(found)


def test_tables_whose_classes_stand_in_another_order_are_compared_by_their_names():
    good, noisy = (with_ids(table, list("abcdef")) for table in pair(60).values())
    order = [3, 0, 5, 1, 2, 4]
    moved = wb.LogitTable(
        noisy.scores[:, order],
        np.argsort(order)[noisy.labels],
        ids=noisy.ids,
        class_names=[list("abcdef")[j] for j in order],
    )
    rule, metrics = wb.LAC(0.8), [M.accuracy, M.macro_accuracy, M.mean_size]
    same = compare({"good": good, "noisy": noisy}, rule, metrics, resamples=20)
    assert compare({"good": good, "noisy": moved}, rule, metrics, resamples=20).equals(same)
    others = wb.LogitTable(noisy.scores, noisy.labels, ids=noisy.ids, class_names=list("uvwxyz"))
    with pytest.raises(ValueError, match="the tables have other classes"):
        compare({"good": good, "noisy": others}, rule, metrics)
