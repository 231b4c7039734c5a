"""Tables of set rules: judged on the files that authors publish, or on the garden."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.claims import TABLES
from workbench.claims.checks.long_tail import best_macro_coverage, macro_coverage
from workbench.claims.rule_table import authors_tables

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
NAME = "005 Table Pl@ntNet-300K"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files as Ding, Fermanian & Salmon publish them, of a few classes."""
    folder, rng = tmp_path_factory.mktemp("softmax"), np.random.default_rng(0)
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    np.save(folder / "plantnet_train_labels.npy", rng.choice(4, 500, p=prior))
    for part in ("cal", "test"):
        labels = rng.choice(4, 400, p=prior)
        scores = np.eye(4)[labels] * 2 + rng.normal(size=(400, 4)) + np.log(prior)
        softmax = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        np.save(folder / f"best-plantnet-model_{part}_softmax.npy", softmax.astype(np.float32))
        np.save(folder / f"best-plantnet-model_{part}_labels.npy", labels)
    return folder


def test_the_printed_table_is_judged_on_the_files_of_its_authors(folder, store):
    val, test = authors_tables(folder)
    assert (val.n, test.n, val.n_classes, int(val.class_counts.sum())) == (400, 400, 4, 500)
    found = TABLES[NAME].reproduce(folder, store=store)
    ours = found.frame.set_index(["row", "column"])["ours"]
    sets = wb.LAC(0.9).fit(val).sets(test)
    shares = wb.metrics.class_accuracy(sets)
    assert ours["Standard", "coverage"] == sets.hits.mean()
    assert ours["Standard", "mean size"] == sets.sizes.mean()
    assert ours["Standard", "macro-coverage"] == pytest.approx(shares.mean())
    assert ours["Standard", "classes below 50 %"] == np.mean(shares < 0.5)
    assert ours["Standard", "undercoverage gap"] == pytest.approx(np.maximum(0.9 - shares, 0).mean())
    assert ours["PAS", "macro-coverage"] > ours["Standard", "macro-coverage"]
    assert found.frame["run"].all()
    assert len(TABLES[NAME].reproductions(store)) == 1


def test_a_folder_without_the_files_names_what_is_missing(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no file \*_cal_softmax.npy"):
        TABLES[NAME].reproduce(tmp_path)
    with pytest.raises(ValueError, match=r"give data=FOLDER .* or small=True"):
        TABLES[NAME].reproduce()


def test_the_printed_pareto_front_has_PAS_below_every_rule_of_a_larger_macro_coverage_in_size():
    printed = {(row, column): number.value for (row, column, _), number in TABLES[NAME].printed.items()}
    for row in TABLES[NAME].rules:
        if printed[row, "macro-coverage"] > printed["PAS", "macro-coverage"]:
            assert printed[row, "mean size"] > printed["PAS", "mean size"]


def test_no_sets_cover_the_classes_better_than_the_best_of_their_size():
    rng = np.random.default_rng(0)
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    posterior = rng.dirichlet(8 * prior, 200)
    members = posterior / prior >= np.quantile(posterior / prior, 0.6)
    size = members.sum(1).mean()
    assert macro_coverage(posterior, prior, members) == pytest.approx(best_macro_coverage(posterior, prior, size))
    for _ in range(20):
        other = rng.random(posterior.shape) * posterior ** rng.uniform(0, 2)
        other = other >= np.sort(other.ravel())[::-1][int(size * 200) - 1]
        assert (
            macro_coverage(posterior, prior, other)
            <= best_macro_coverage(posterior, prior, other.sum(1).mean()) + 1e-12
        )
