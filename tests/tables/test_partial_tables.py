"""Rows that list some of their classes: bounds that hold, exact above the cut, and a word where nothing is known."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.cli.main import main
from workbench.sets.bounds import Bounds, UnknownThreshold, bounded_sets, threshold_bounds

NAMES = ["oak", "elm", "fir", "ash", "yew", "box"]


def whole(n: int = 120, n_classes: int = 6, seed: int = 0) -> wb.LogitTable:
    """Probabilities of all classes, sharper in some rows than in others."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    scores = rng.normal(size=(n, n_classes)) * rng.gamma(2, 1, (n, 1)) + 2 * np.eye(n_classes)[labels]
    p = np.exp(scores - scores.max(1, keepdims=True))
    return wb.LogitTable.from_probabilities(p / p.sum(1, keepdims=True), labels, class_names=NAMES[:n_classes])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 6),
    rule=st.sampled_from([wb.TopK(2), wb.AverageK(1), wb.AverageK(1.7), wb.Threshold(0.05), wb.LAC(0.8), wb.LAC(0.6)]),
    cut=st.sampled_from([None, 0.02, 0.2]),
)
def test_size_and_coverage_of_all_scores_lie_within_the_bounds_of_some(seed, m, rule, cut):
    val, test = whole(80, seed=seed).split()
    some = [wb.PartialTable.of_table(each, **({"m": m} if cut is None else {"cut": cut})) for each in (val, test)]
    try:
        bounds = bounded_sets(rule, *some)
    except UnknownThreshold:
        return
    fitted = rule.fit(val)
    sets = fitted.sets(test)
    low, high = bounds.sizes
    assert (low <= sets.sizes).all()
    assert (sets.sizes <= high).all()
    assert not (bounds.hits[0] & ~sets.hits).any()
    assert not (sets.hits & ~bounds.hits[1]).any()
    if bounds.threshold is not None:
        assert bounds.threshold.low <= fitted.threshold <= bounds.threshold.high


@pytest.mark.parametrize("rule", [wb.AverageK(1.2), wb.LAC(0.7), wb.Threshold(0.3), wb.TopK(2)])
def test_above_the_cut_everything_is_exact(rule):
    val, test = whole().split()
    sets = rule.fit(val).sets(test)
    bounds = bounded_sets(rule, *(wb.PartialTable.of_table(each, m=5) for each in (val, test)))
    if bounds.threshold is not None:
        assert bounds.threshold == Bounds(sets.rule.threshold, sets.rule.threshold)
    assert bounds.coverage == Bounds(wb.metrics.coverage(sets), wb.metrics.coverage(sets))
    assert bounds.macro_coverage.low == pytest.approx(wb.metrics.macro_accuracy(sets))
    assert bounds.mean_size.exact
    assert bounds.exact.all()
    for row in range(5):
        assert bounds.members(row).tolist() == sets.members(row)[0].tolist()


def test_a_threshold_at_the_cut_is_exact_and_one_below_is_not():
    cut = wb.PartialTable.of_table(whole(), cut=0.1)
    assert bounded_sets(wb.Threshold(0.1), cut, cut).exact.all()
    below = bounded_sets(wb.Threshold(0.05), cut, cut)
    assert not below.exact.all()
    assert "to" in str(below.mean_size)


def test_where_too_few_classes_are_listed_the_threshold_is_unknown_and_no_number_is_given():
    one = wb.PartialTable.of_table(whole(), m=1)
    with pytest.raises(UnknownThreshold, match=r"AverageK\(K=3\): the threshold is unknown.*1 classes on average"):
        bounded_sets(wb.AverageK(3.0), one, one)
    with pytest.raises(UnknownThreshold, match="of the labels are among the listed classes"):
        bounded_sets(wb.LAC(0.95), one, one)


def test_rules_that_need_every_probability_are_refused():
    some = wb.PartialTable.of_table(whole(), m=2)
    with pytest.raises(ValueError, match="needs the probabilities of all classes"):
        threshold_bounds(wb.APS(0.9), some)


def test_of_sigmoids_and_of_an_unknown_number_of_classes_the_size_has_no_upper_bound():
    some = wb.PartialTable.from_rows([{"oak": 0.9, "elm": 0.8}, {"fir": 0.7}], ["oak", "elm"])
    assert not some.sums_to_one
    assert str(bounded_sets(wb.Threshold(0.5), some, some).mean_size) == "at least 1.5"


@pytest.mark.parametrize(
    ("rows", "said", "match"),
    [
        ([{0: 3.1, 1: 2.0}], {}, "give probabilities in"),
        ([{0: 0.5, 7: 0.2}], {"n_classes": 3}, "n_classes = 3, and the rows name 8 classes"),
        ([{"oak": 0.5}], {"class_names": ["elm"]}, "rows list oak, not among the classes"),
        ([{0: 0.5}], {"cut": 2.0}, "cut = 2.0"),
        ([{}], {"n_classes": 3}, "no row lists a class"),
    ],
)
def test_rows_that_cannot_be_are_refused_in_words(rows, said, match):
    with pytest.raises(ValueError, match=match):
        wb.PartialTable.from_rows(rows, **said)


def answers(table: wb.LogitTable, m: int) -> list[dict]:
    p, order = table.scores, np.argsort(-table.scores, axis=1)[:, :m]
    return [
        {
            "id": f"q{i}",
            "truth": NAMES[table.labels[i]],
            "answer": [{"label": NAMES[j], "score": float(p[i, j])} for j in best],
        }
        for i, best in enumerate(order)
    ]


def files(table: wb.LogitTable, folder) -> dict[str, wb.PartialTable]:
    """The best three classes of each row, in every shape that is read."""
    rows, order = answers(table, 3), np.argsort(-table.scores, axis=1)[:, :3]
    best = np.take_along_axis(table.scores, order, 1)
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "a.json").write_text(json.dumps({"results": rows}))
    flat = {"id": [row["id"] for row in rows], "label": [row["truth"] for row in rows]}
    pairs = {f"class_{k}": [NAMES[j] for j in order[:, k]] for k in range(3)}
    pairs |= {f"score_{k}": best[:, k] for k in range(3)}
    pd.DataFrame(flat | pairs).to_csv(folder / "wide.csv", index=False)
    cells = {
        "classes": [";".join(NAMES[j] for j in line) for line in order],
        "probabilities": [";".join(map(repr, line.tolist())) for line in best],
    }
    pd.DataFrame(flat | cells).to_csv(folder / "cells.csv", index=False)
    lines = [(row["id"], row["truth"], each["label"], each["score"]) for row in rows for each in row["answer"]]
    pd.DataFrame(lines, columns=["id", "label", "class", "score"]).to_csv(folder / "long.csv", index=False)
    np.savez(folder / "topk.npz", indices=order, values=best, labels=table.labels, class_names=NAMES, n_classes=6)
    return {path.name: wb.import_any(path, n_classes=6, class_names=NAMES) for path in sorted(folder.iterdir())}


def test_the_best_classes_are_read_from_every_shape_and_give_the_same_sets(tmp_path):
    table = whole(60)
    expected = bounded_sets(wb.AverageK(1.5), *[wb.PartialTable.of_table(table, m=3)] * 2)
    found = files(table, tmp_path)
    assert sorted(found) == ["a.json", "a.jsonl", "cells.csv", "long.csv", "topk.npz", "wide.csv"]
    for name, some in found.items():
        assert isinstance(some, wb.PartialTable), name
        sets = bounded_sets(wb.AverageK(1.5), some, some)
        np.testing.assert_allclose(
            [*sets.threshold, *sets.coverage], [*expected.threshold, *expected.coverage], atol=1e-9
        )
        with pytest.raises(ValueError, match=r"import_partial|read the best few"):
            wb.import_table(tmp_path / name)


def test_services_name_classes_and_scores_in_their_own_words(tmp_path):
    species = [(0.7, "Quercus"), (0.2, "Ulmus")]
    plantnet = {"results": [{"score": score, "species": {"scientificName": name}} for score, name in species]}
    azure = [[{"tagName": "oak", "probability": 0.6}], [{"tagName": "elm", "probability": 0.4}]]
    by_id = {"a.jpg": {"oak": 0.6, "elm": 0.3}, "b.jpg": {"fir": 0.9}}
    cases = (plantnet, 1, {"Quercus", "Ulmus"}), (azure, 2, {"oak", "elm"}), (by_id, 2, {"oak", "elm", "fir"})
    for content, rows, names in cases:
        (tmp_path / "a.json").write_text(json.dumps(content))
        some = wb.import_partial(tmp_path / "a.json")
        assert (some.n, set(some.class_names)) == (rows, names)


def test_the_command_line_says_bounds_as_such_and_unknown_in_a_word(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, answers(whole(60), 2))))
    assert main(["evaluate", str(tmp_path / "a.jsonl"), "--classes", "6", "--K", "1", "1.9", "5"]) == 0
    out, err = capsys.readouterr()
    assert "exact" in out
    assert " to " in out
    assert "unknown" in out
    assert "the threshold is unknown" in err
    assert main(["data", str(tmp_path / "a.jsonl")]) == 0
    assert "label is listed" in capsys.readouterr().out


def test_the_picture_is_a_line_as_far_as_coverage_is_known():
    val, test = (wb.PartialTable.of_table(each, m=2) for each in whole().split())
    figure = wb.figures.coverage_bounds(val, test)
    exact = figure.frame["exact"]
    assert exact.iloc[0]
    assert not exact.iloc[-1]
    assert (figure.frame["coverage_low"] <= figure.frame["coverage_high"]).all()
    assert "the threshold is unknown" in figure.text
