"""Agreement with TorchCP 1.2.1 on real probabilities, by sets that `benchmarks/record_torchcp.py` recorded with it.

TorchCP cannot be installed beside us: it requires torchvision. Where it is wrong or differs, the test says so.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.exact_arithmetic import exact
from workbench.sets.base import Block
from workbench.sets.clustered import clusters
from workbench.sets.scores import IMPROBABILITY, LostMargin, Mass, Position, Score, SortedMass

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
DATA = Path(__file__).resolve().parents[1] / "data"
NEAR = 1e-6  # of a limit: theirs are in single precision where there is one a class


def none_of_the_own_mass(block: Block) -> np.ndarray:
    """U = 0 in every row: theirs without draws counts the whole mass of a class, ours none of it."""
    return np.zeros(len(block.scores))


SCORES: dict[str, Score] = {
    "LAC": IMPROBABILITY,
    "APS": Mass(none_of_the_own_mass),
    "RAPS": Mass(none_of_the_own_mass, penalty=0.05, free_rank=2),
    "SAPS": SortedMass(none_of_the_own_mass, weight=0.15),
    "Margin": LostMargin(),
    "Rank": Position(none_of_the_own_mass),
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, np.ndarray]:
    with np.load(DATA / "torchcp_sets.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def halves() -> tuple[wb.LogitTable, wb.LogitTable]:
    with np.load(DATA / "news20_cv_probs.npz") as real:
        table = wb.LogitTable(real["logp"].astype(np.float64), real["y"].astype(np.int64))
    return table.rows(slice(0, table.n // 2)), table.rows(slice(table.n // 2, None))


def their_sets(recorded: dict[str, np.ndarray], name: str, test: wb.LogitTable) -> np.ndarray:
    return np.unpackbits(recorded[f"{name} sets"], axis=1, count=test.n_classes).astype(bool)


def shown(name: str, limit: np.ndarray) -> np.ndarray:
    """A limit of ours as theirs: our score of LAC is −p, theirs 1 − p."""
    return np.asarray(limit) + (name == "LAC")


def assert_same(ours: np.ndarray, theirs: np.ndarray, distance: np.ndarray) -> None:
    """The same sets, but for classes that lie on a limit up to rounding; there no more than a few differ."""
    certain = np.abs(distance) > NEAR
    assert np.array_equal(ours[certain], theirs[certain])
    assert (ours != theirs).mean() < 0.002


@pytest.mark.parametrize("name", SCORES)
def test_every_score_gives_the_limit_and_the_sets_of_torchcp(name, halves, recorded):
    val, test = halves
    confidence = 1 - float(recorded["alpha"])
    scores = [SCORES[name].of_classes(Block(table)) for table in halves]
    limit = np.sort(scores[0][np.arange(val.n), val.labels])[math.ceil((val.n + 1) * exact(confidence)) - 1]
    assert shown(name, limit) == pytest.approx(float(recorded[f"{name} of all threshold"]), abs=1e-9)
    p = test.probabilities()
    tied = (p[:, :, None] == p[:, None]).sum(-1) > 1  # equal ones share the last rank; theirs are ranked by position
    distance = np.where(tied, 0, scores[1] - limit)
    assert_same(SCORES[name].mask(Block(test), limit), their_sets(recorded, f"{name} of all", test), distance)


def test_without_draws_the_saps_of_torchcp_calibrates_one_score_and_predicts_another(halves, recorded):
    """Its score of a label at rank 1 is u·p_max, that of all classes p_max − u·p_max: alike in law, not at u = 0."""
    _, test = halves
    assert float(recorded["SAPS threshold"]) != pytest.approx(float(recorded["SAPS of all threshold"]), abs=1e-3)
    covered = [
        their_sets(recorded, name, test)[np.arange(test.n), test.labels].mean() for name in ("SAPS", "SAPS of all")
    ]
    assert covered[0] != covered[1]
    for name in set(SCORES) - {"SAPS"}:
        assert recorded[f"{name} threshold"] == recorded[f"{name} of all threshold"]


@pytest.mark.parametrize("name", ["LAC", "APS"])
def test_class_conditional_limits_and_sets_are_those_of_torchcp(name, halves, recorded):
    val, test = halves
    rule = wb.Mondrian(1 - float(recorded["alpha"]), by="label", score=own_rule(name))
    fitted = rule.fit(val)
    expected = recorded[f"class-conditional {name} threshold"]
    assert shown(name, fitted.limit) == pytest.approx(expected, abs=NEAR)
    distance = SCORES[name].of_classes(Block(test)) - fitted.limit
    assert_same(fitted.sets(test).matrix(), their_sets(recorded, f"class-conditional {name}", test), distance)


@pytest.mark.parametrize("name", ["LAC", "APS"])
def test_rc3p_limits_ranks_and_sets_are_those_of_torchcp(name, halves, recorded):
    val, test = halves
    fitted = wb.RC3P(1 - float(recorded["alpha"]), score=own_rule(name)).fit(val)
    assert np.array_equal(fitted.largest_rank, recorded[f"RC3P {name} ranks"])
    assert shown(name, fitted.limit) == pytest.approx(recorded[f"RC3P {name} threshold"], abs=NEAR)
    distance = SCORES[name].of_classes(Block(test)) - fitted.limit
    assert_same(fitted.sets(test).matrix(), their_sets(recorded, f"RC3P {name}", test), distance)


def test_clusters_and_their_limits_are_those_of_torchcp(halves, recorded):
    """Its `doubledip` clusters and calibrates on the same rows. A class without a cluster has an infinite limit there, the
    limit of all rows here and in Ding et al. 2023; on these data every class has a cluster.
    """
    val, test = halves
    confidence, theirs = 1 - float(recorded["alpha"]), recorded["clusters"]
    scores = -val.probabilities()[np.arange(val.n), val.labels]
    ours = clusters(scores, np.asarray(val.labels), val.n_classes, int(theirs.max()) + 1, 5)
    assert (theirs >= 0).all()
    assert (
        len(set(zip(ours.tolist(), theirs.tolist(), strict=True))) == theirs.max() + 1
    )  # the same but for their numbers
    fitted = wb.Mondrian(confidence, by=lambda table: theirs[table.labels]).fit(val)
    limits = np.array([fitted.limit[list(fitted.calibration.names).index(str(cluster))] for cluster in theirs])
    assert shown("LAC", limits) == pytest.approx(recorded["clustered threshold"], abs=NEAR)
    expected = their_sets(recorded, "clustered", test)
    assert_same(-test.probabilities() <= limits, expected, test.probabilities() + limits)


def weights(table: wb.LogitTable) -> np.ndarray:
    return np.exp(table.scores[:, 0]) + 0.1


def test_weighted_sets_are_those_of_torchcp_only_where_all_weights_are_equal(halves, recorded):
    """It sorts the weights by themselves, so that they no longer belong to the scores; ours are the definition's."""
    val, test = halves
    confidence = 1 - float(recorded["alpha"])
    equal = wb.Weighted(confidence, by=lambda table: np.ones(table.n)).fit(val).sets(test)
    limit = wb.LAC(confidence).fit(val).limit
    assert_same(equal.matrix(), their_sets(recorded, "equal weights", test), test.probabilities() + limit)
    scores = -val.probabilities()[np.arange(val.n), val.labels]
    order = np.argsort(scores)
    mass = np.cumsum(weights(val)[order])
    enough = mass >= confidence * (mass[-1] + weights(test)[:, None])
    limits = np.where(enough.any(1), scores[order][enough.argmax(1)], np.inf)
    ours = wb.Weighted(confidence, by=weights).fit(val).sets(test).matrix()
    assert_same(ours, -test.probabilities() <= limits[:, None], test.probabilities() + limits[:, None])
    assert not np.array_equal(ours, their_sets(recorded, "weights", test))


def own_rule(name: str) -> wb.sets.ConformalRule:
    """The rule whose score is one of `SCORES`."""

    class OfTheirs(wb.LAC):
        def scorer(self, table: wb.LogitTable) -> Score:
            return SCORES[name]

    return OfTheirs()
