"""Names on a map of rows: each says what the rows below it share and the others do not."""

import numpy as np
import pytest

from workbench.metrics.islands import islands
from workbench.metrics.row_map import positions
from workbench.store import Store
from workbench.store.imported_tables import keep_tables
from workbench.tables import LogitTable

N = 60  # rows of each island
CENTRES = [(0.1, 0.1), (0.5, 0.9), (0.9, 0.2)]


def mapped(values, seed=0):
    """Three islands, far apart, whose rows have these values of an attribute."""
    random = np.random.default_rng(seed)
    places = np.concatenate([centre + random.uniform(-0.05, 0.05, (N, 2)) for centre in CENTRES])
    table = LogitTable(np.zeros((3 * N, 2)), attributes={"fruit": values, "photograph": ["p"] * 3 * N})
    return table, places


def test_an_island_is_called_by_what_its_rows_share_and_stands_where_they_are():
    table, places = mapped(["cone"] * N + ["pear"] * N + ["cherry"] * N)
    found = {island.name: island for island in islands(table, places)}
    assert found.keys() == {"fruit: cone", "fruit: pear", "fruit: cherry"}
    for name, centre, first in zip(("cone", "pear", "cherry"), CENTRES, range(0, 3 * N, N), strict=True):
        island = found[f"fruit: {name}"]
        assert island.rows.tolist() == list(range(first, first + N))
        assert (island.x, island.y) == pytest.approx((centre[0], centre[1] + 0.05), abs=0.03)


def test_islands_of_one_name_are_one_and_what_all_rows_share_is_no_name():
    table, places = mapped(["cone"] * 2 * N + ["pear"] * N)
    assert {(island.name, len(island.rows)) for island in islands(table, places)} == {
        ("fruit: cone", 2 * N),
        ("fruit: pear", N),
    }


def test_a_mixture_and_a_value_that_says_nothing_are_no_names():
    mixed = [["cone", "pear", "cherry"][row % 3] for row in range(2 * N)]
    table, places = mapped(mixed + ["not shown"] * N)
    assert islands(table, places) == []


def test_a_label_and_its_group_are_names_too_and_the_more_telling_one_is_taken():
    labels = np.repeat([0, 1, 2], N)
    table = LogitTable(np.zeros((3 * N, 3)), labels, class_names=["a", "b", "c"], groups=["G", "G", "H"])
    _, places = mapped(["cone"] * 3 * N)
    assert {island.name for island in islands(table, places)} == {"a", "b", "c"}


def test_a_map_that_is_kept_is_read_and_not_computed_again(tmp_path, monkeypatch):
    store = Store(tmp_path)
    run = keep_tables(
        LogitTable(np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 3), title="scores", store=store
    )
    first = positions(run, "t-SNE", store)
    monkeypatch.setitem(positions.__globals__["PROJECTIONS"], "t-SNE", None)
    assert np.array_equal(positions(run, "t-SNE", store), first)
