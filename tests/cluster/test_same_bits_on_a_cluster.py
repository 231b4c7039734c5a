"""Whoever computes, on however many workers and out of however many shards, not a bit is different."""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cluster import connected, on
from workbench.cluster.clients import MEMORY
from workbench.sets import RULES, order_statistics
from workbench.tables.map_reduce import over_parts, parts_of

N, L = 3300, 20


@pytest.fixture(scope="module")
def one_file() -> wb.LogitTable:
    rng = np.random.default_rng(0)
    scores = (rng.normal(size=(N, L)) * 3).astype(np.float32).round(1)  # rounded: some probabilities are equal
    labels = np.where(rng.random(N) < 0.95, (scores + rng.gumbel(size=(N, L))).argmax(1), -1)
    return wb.LogitTable(scores, labels, class_counts=np.arange(L) * 9)


@pytest.fixture(scope="module")
def in_shards(one_file, tmp_path_factory) -> dict[int, str]:
    """Number of shards → where they are."""
    found = {}
    for shards in (1, 2, 7):
        found[shards] = str(tmp_path_factory.mktemp("shards") / "table")
        one_file.save_shards(found[shards], rows=-(-N // shards))
    return found


def everything(table: wb.LogitTable) -> dict[str, Any]:
    """All that is read of a table, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        val, test = table.split()
        index = wb.SetIndex(test, K_max=8)
        rules = [wb.TopK(2), wb.AverageK(2.5), wb.LAC(0.8), wb.APS(0.8), wb.RAPS(0.8), wb.ClassConditionalLAC(0.8)]
        fitted = [rule.fit(val) for rule in rules]
        return {
            "thresholds": [np.asarray(rule.threshold) for rule in fitted if rule.threshold is not None],
            "many thresholds": [wb.AverageK(K).fit(val).threshold for K in (1, 3.3, 12, 19.9)],
            "index": [index.thresholds, index.label_ranks, index._largest.positions, index._label_probabilities],
            "below the index": index.sizes(threshold=1e-4),
            "histogram": index.size_histogram("shots", K=3),
            "hits of classes": index.class_accuracy(K=3),
            "compact": index.compact(),
            "members": [rule.sets(test).classes for rule in fitted],
            "bins": wb.metrics.reliability_bins(test).to_csv(),
            "report": wb.report(test, fitted, val=val, interval=0.9, resamples=30).to_csv(),
            "temperature": wb.TemperatureScaling().fit(val).temperature,
        }


def bits(value: Any) -> bytes:
    return pickle.dumps(value)


@pytest.fixture(scope="module")
def expected(one_file) -> dict[str, Any]:
    return everything(one_file)


@pytest.mark.parametrize(("shards", "workers"), [(1, 7), (2, 1), (7, 2)])
def test_every_reading_has_the_bits_of_one_file_and_one_machine(shards, workers, in_shards, expected, threads):
    found = wb.LogitTable.load(in_shards[shards])
    if workers == 2:
        with on(threads):
            told = everything(found)
    else:
        with connected("threads", workers) as client, on(client):
            told = everything(found)
    for name, value in expected.items():
        assert bits(told[name]) == bits(value), name


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_every_rule_is_fitted_and_makes_sets_on_workers_with_the_bits_of_one_machine(kind, every_field, threads):
    alone, table = every_field
    table = alone if kind().missing(table) else table  # shards keep no votes
    expected = kind().fit(alone)
    sets = expected.sets(alone)
    with on(threads):
        fitted = kind().fit(table)
        found = fitted.sets(table)
        assert bits([found.offsets, found.classes]) == bits([sets.offsets, sets.classes])
    assert bits(fitted.threshold) == bits(expected.threshold)


@pytest.fixture(scope="module")
def every_field(tmp_path_factory) -> tuple[wb.LogitTable, wb.LogitTable]:
    """A table with all that some rule may want to know, in memory and in shards."""
    rng = np.random.default_rng(1)
    n, n_classes = 700, 6
    scores = (rng.normal(size=(n, n_classes)) * 3).astype(np.float32)
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(1)
    table = wb.LogitTable(
        scores,
        labels,
        class_counts=np.arange(1, n_classes + 1) * 10,
        groups=[f"genus {j // 2}" for j in range(n_classes)],
        attributes={"weight": rng.uniform(0.5, 2, n), "object": np.arange(n)},
        votes=rng.multinomial(5, np.ones(n_classes) / n_classes, n),
    )
    folder = str(tmp_path_factory.mktemp("every field") / "table")
    replace(table, votes=None).save_shards(folder, rows=300)
    return table, wb.LogitTable.load(folder)


def test_a_table_in_memory_is_sent_to_the_workers(one_file, threads):
    for rule in (wb.AverageK(2.5), wb.LAC(0.8)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert rule.fit(one_file, client=threads).threshold == rule.fit(one_file).threshold
    fitted = wb.TemperatureScaling().fit(one_file, client=threads)
    assert fitted.temperature == wb.TemperatureScaling().fit(one_file).temperature


def test_parts_depend_on_the_shape_alone_and_cover_every_row_once():
    for n, n_classes in ((1, 2), (512, 3), (100_000, 5), (50_000, 10_450), (10**9, 10**5)):
        parts = parts_of(n, n_classes, 256)
        assert parts[0].start == 0
        assert parts[-1].stop == n
        assert all(one.stop == two.start for one, two in pairwise(parts))
        assert len(parts) <= 4096


def dying_once(part: wb.LogitTable, first_row: int, *given: Any) -> Any:
    """Counts, but the first who comes here is killed."""
    mark = Path(given[-1])
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return order_statistics.counted(part, first_row, *given[:-1])
    return os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_costs_time_and_changes_no_bit(one_file, in_shards, processes, monkeypatch, tmp_path):
    table, mark = wb.LogitTable.load(in_shards[7]), tmp_path / "a worker died"
    before = {worker["pid"]: address for address, worker in processes.run(lambda: {"pid": os.getpid()}).items()}

    def passing(table: wb.LogitTable, function: Any, *given: Any) -> Any:
        if function is order_statistics.counted:
            return over_parts(table, dying_once, *given, str(mark))
        return over_parts(table, function, *given)

    monkeypatch.setattr(order_statistics, "over_parts", passing)
    assert wb.AverageK(2.5).fit(table, client=processes).threshold == wb.AverageK(2.5).fit(one_file).threshold
    assert mark.exists()
    processes.wait_for_workers(2)
    after = {worker["pid"] for worker in processes.run(lambda: {"pid": os.getpid()}).values()}
    assert len(after & before.keys()) == 1


def test_processes_that_we_start_keep_the_memory_that_a_pass_will_want_again(processes):
    for name, value in MEMORY.items():
        assert set(processes.run(os.getenv, name).values()) == {str(value)}
