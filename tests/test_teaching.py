"""The plants and the photograph that notebooks and lessons share are what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.datasets.plants.garden import Garden
from workbench.store import DEMO, Store
from workbench.teaching.story import PHOTOGRAPH, THIRD, TWINS


@pytest.fixture(scope="module")
def tables() -> dict[str, wb.LogitTable]:
    return {run.title: run.tables["test"] for run in Store(DEMO).runs() if run.title.startswith("garden")}


def test_the_twins_are_of_one_genus_and_only_leaf_and_fruit_tell_them_apart():
    flora = Garden().flora
    one, other = map(flora.names.index, TWINS)
    alike = {organ: np.array_equal(law[one], law[other]) for organ, law in flora.laws.items()}
    assert alike == {"flower": True, "leaf": False, "fruit": False, "bark": True}


def test_the_third_is_the_only_species_with_its_flower():
    flora = Garden().flora
    genus = flora.genus[flora.names.index(THIRD)]
    assert (flora.genus == genus).sum() == 1


def test_the_photograph_shows_a_flower_of_the_rarer_twin_and_all_that_is_known_is_the_genus(tables):
    for table in tables.values():
        common, rare = (table.class_names.index(name) for name in TWINS)
        assert table.attributes["organs"][PHOTOGRAPH] == "flower"
        assert table.labels[PHOTOGRAPH] == rare
        posterior = table.posterior[PHOTOGRAPH]
        assert posterior[[common, rare]].sum() > 0.99
        assert posterior[common] > 2 * posterior[rare] > 0.4
        assert np.argmax(table.scores[PHOTOGRAPH]) == common  # the other twin is every network's first answer
