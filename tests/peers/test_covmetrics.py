"""Agreement with covmetrics on real networks: gaps of coverage by class and by size, and the worst slab."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from covmetrics import FSC, SSC, CovGap
from covmetrics.slab_metrics import wsc_all_numpy

import workbench as wb
from workbench.metrics.conformal_metrics import Slabs

M = wb.metrics
ALPHA = 0.2


@pytest.fixture(scope="module")
def sets(shared_data) -> wb.PredictionSets:
    real = shared_data("cifar100_resnets_logits")
    table = wb.LogitTable(real["logits"][0], real["y"])
    val, test = table.split()
    return wb.LAC(1 - ALPHA, min_size=1).fit(val).sets(test)


def test_the_coverage_gap_of_classes_is_that_of_covmetrics(sets):
    theirs = CovGap(ALPHA).evaluate(np.asarray(sets.table.labels), sets.hits.astype(float))
    assert M.coverage_gap(sets) == pytest.approx(theirs)


def test_the_coverage_of_the_worst_size_is_that_of_covmetrics(sets):
    edges = tuple(range(sets.sizes.max() + 2))  # theirs has one group for each size, if there are few
    hits, n_sizes = sets.hits.astype(float), len(np.unique(sets.sizes))
    theirs = SSC(ALPHA).evaluate_FSC(sets.sizes, hits, number_max_groups=n_sizes + 1)
    assert M.size_stratified_coverage(sets, edges=edges) == pytest.approx(theirs)
    assert FSC().evaluate(sets.sizes, hits) == pytest.approx(theirs)


def test_the_worst_slab_of_a_direction_is_near_that_of_covmetrics(sets):
    """Our slabs end on a grid of twenty, so the worst is no worse than theirs, nor better than theirs with two cells more.

    covmetrics 0.1.2 leaves the last row of its slab out of the ends that it returns: `best_end - 1`, of the last row already.
    """
    direction = np.random.default_rng(0).normal(size=sets.table.n_classes)
    along = np.asarray(sets.table.scores, dtype=np.float64) @ direction
    slabs = Slabs.of(replace(sets.table, features=along[:, None]), seed=0)
    values, hits = along[slabs.first], sets.hits[slabs.first].astype(float)
    (theirs,), (low,), (high,) = wsc_all_numpy(values[:, None], hits, 0.1, np.ones((1, 1)))
    v, *ends = slabs.worst(sets.hits)
    first, last = sorted(end / v.item() for end in ends)
    tiny = 1e-9 * np.abs(values).max()  # the ends were multiplied by v
    ours = hits[(values >= first - tiny) & (values <= last + tiny)].mean()
    least, cell = 0.1 * len(values), np.ceil(len(values) / 20)  # rows of a slab, and of a cell of the grid
    assert theirs <= ours <= (least * theirs + 2 * cell) / (least + 2 * cell)
    inside = (values >= low) & (values <= high)
    assert hits[inside].mean() != pytest.approx(theirs, abs=1e-9)
