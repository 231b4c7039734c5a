"""Every pair of several networks on the same rows, in Python and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

import workbench as wb
from workbench.cli.main import main
from workbench.metrics.comparison import matrices, pairwise
from workbench.metrics.significance import holm

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(400, 6))
LABELS = SCORES.argmax(1)
NOISE = rng.normal(size=(3, 400, 6))
TABLES = {f"noise {level}": wb.LogitTable(SCORES + level * NOISE[level], LABELS) for level in range(3)}


def test_every_pair_has_its_difference_and_mcnemars_p_value_corrected_by_holm():
    frame = pairwise(TABLES, wb.TopK(1))
    assert frame[["first", "second"]].to_numpy().tolist() == [
        ["noise 0", "noise 1"],
        ["noise 0", "noise 2"],
        ["noise 1", "noise 2"],
    ]
    hits = {name: wb.TopK(1).fit(table).sets(table).hits for name, table in TABLES.items()}
    for row in frame.itertuples():
        one, other = hits[row.first], hits[row.second]
        only_one, only_other = int((one & ~other).sum()), int((other & ~one).sum())
        assert row.difference == pytest.approx(one.mean() - other.mean())
        assert row.low <= row.difference <= row.high
        assert row.p == pytest.approx(stats.binomtest(only_one, only_one + only_other).pvalue)
    assert frame["p_holm"].tolist() == pytest.approx(holm(frame["p"].to_numpy()).tolist())
    assert (frame["p_holm"] >= frame["p"]).all()


def test_a_metric_that_is_no_share_of_rows_is_tested_by_the_paired_bootstrap():
    metrics = [wb.metrics.macro_accuracy, wb.metrics.negative_log_likelihood]
    frame = pairwise(TABLES, wb.TopK(1), metrics, resamples=200)
    assert frame["metric"].tolist() == ["macro_accuracy"] * 3 + ["negative_log_likelihood"] * 3
    assert (frame["p"] < 0.05).all()
    same = pairwise({"a": TABLES["noise 1"], "b": TABLES["noise 1"]}, wb.TopK(1), metrics, resamples=50)
    assert same["p"].tolist() == [1, 1]


def test_a_mean_over_rows_is_tested_by_the_paired_t_test_whose_p_value_has_no_floor():
    frame = pairwise(TABLES, wb.AverageK(2), [wb.metrics.mean_size, wb.metrics.brier_score], val=TABLES, resamples=50)
    brier = frame[frame.metric == "brier_score"].iloc[1]
    values = [wb.metrics.brier_score.parts(TABLES[name]).columns[:, 1] for name in ("noise 0", "noise 2")]
    assert brier["p"] == pytest.approx(stats.ttest_rel(*values).pvalue)
    assert brier["p_holm"] < 1e-6
    assert not frame["p_is_bound"].any()


def test_of_eleven_runs_a_difference_can_still_be_significant():
    tables = {f"run {i}": wb.LogitTable(SCORES * (1 + 4 * (i == 10)), LABELS) for i in range(11)}
    frame = pairwise(tables, wb.TopK(1), [wb.metrics.expected_calibration_error])
    far = frame[frame.second == "run 10"]
    assert len(frame) == 55
    assert (far["p_holm"] < 0.05).all()
    assert far["p_is_bound"].all()
    assert f"p < {far['p_holm'].max():.3f}" in matrices(frame)
    assert "p = 1.000" in matrices(frame)


def test_the_matrix_says_how_it_is_corrected_and_is_antisymmetric():
    text = matrices(pairwise(TABLES, wb.TopK(1)))
    assert "accuracy, line minus column, n = 400 rows" in text
    assert "corrected for the 3 pairs of a metric by Holm's method" in text
    assert "p < 0.001" in text


@pytest.fixture
def files(tmp_path):
    paths = []
    for name, table in TABLES.items():
        path = tmp_path / f"{name.replace(' ', '_')}.npz"
        np.savez(path, scores=table.scores, labels=table.labels)
        paths.append(str(path))
    return paths


def test_the_command_line_compares_files_of_the_same_rows_pair_by_pair(files, capsys):
    assert main(["compare", *files, "--K", "2", "--metric", "accuracy", "--metric", "mean_size"]) == 0
    text = capsys.readouterr().out
    assert "sets by AverageK(K=2" in text
    assert "Holm" in text
    assert "mean_size, line minus column" in text
    assert main(["compare", *files, "--rule", "TopK(K=1)", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["correction"] == "Holm"
    assert len(told["pairs"]) == 3
    tables = {path: table.split() for path, table in zip(files, TABLES.values(), strict=True)}
    expected = pairwise({path: test for path, (_, test) in tables.items()}, wb.TopK(1))
    assert [pair["difference"] for pair in told["pairs"]] == pytest.approx(expected["difference"].tolist())


def test_a_comparison_that_cannot_be_made_says_why(files, capsys, tmp_path):
    assert main(["compare", files[0]]) == 2
    assert "two or more" in capsys.readouterr().err
    assert main(["compare", *files, "--metric", "precision"]) == 2
    assert "there is no metric named 'precision'; known: accuracy" in capsys.readouterr().err
    np.savez(tmp_path / "other.npz", scores=SCORES, labels=LABELS[::-1])
    assert main(["compare", files[0], str(tmp_path / "other.npz")]) == 2
    assert "different labels" in capsys.readouterr().err
