"""The meadow: no label, one or several, and the probability of each known."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.datasets import Meadow, load_dataset
from workbench.datasets.plants.flora import HIDDEN


@pytest.fixture(scope="module")
def meadow() -> Meadow:
    return Meadow(n_train=2000, n_val=500, n_test=500)


@pytest.fixture(scope="module")
def data(meadow):
    return meadow.dataset()


def test_every_photograph_of_the_meadow_is_read_right(meadow, data):
    for part in (data.train, data.val, data.test):
        read = meadow.read(part.inputs)
        for name, values in part.attributes.items():
            assert np.array_equal(read[name], values)


def test_a_photograph_has_none_to_three_plants_and_at_most_as_many_labels(meadow, data):
    plants = data.train.attributes["plants"]
    assert set(plants) == {0, 1, 2, 3}
    assert np.all(data.train.labels.sum(axis=1) <= plants)
    assert np.array_equal(data.train.labels.any(axis=1), plants > 0)
    assert np.bincount(plants) / len(plants) == pytest.approx(meadow.plants, abs=0.05)


def test_labels_are_genera_and_training_has_all_of_them(data):
    assert data.many_labels
    assert data.train.labels.dtype == bool
    assert data.n_classes == 14
    assert data.class_counts.min() > 0


def test_the_posterior_of_one_plant_is_that_of_its_genus(meadow):
    flora = meadow.flora
    look = np.array([[[HIDDEN, 3, HIDDEN, HIDDEN], [HIDDEN] * 4, [HIDDEN] * 4]])
    of_species = flora.posterior(look[0, :1])[0]
    assert meadow.posterior(look)[0] == pytest.approx([of_species[flora.genus == g].sum() for g in range(14)])


def test_the_posterior_of_several_plants_is_that_of_a_union(meadow):
    one = np.array([HIDDEN, 3, HIDDEN, HIDDEN])
    two = np.array([HIDDEN, HIDDEN, 2, HIDDEN])
    none = np.full(4, HIDDEN)
    alone = [meadow.posterior(np.array([[look, none, none]]))[0] for look in (one, two)]
    both = meadow.posterior(np.array([[one, two, none]]))[0]
    assert both == pytest.approx(alone[0] + alone[1] - alone[0] * alone[1])
    assert meadow.posterior(np.array([[none, none, none]])).max() == 0


def test_a_genus_is_present_as_often_as_the_posterior_says(meadow):
    labels, looks = meadow.sample(100_000, np.random.default_rng(0))
    posterior = meadow.posterior(looks)
    assert not np.any(labels[posterior == 0])
    assert np.all(labels[posterior == 1])
    bins = np.clip((posterior * 20).astype(int), 0, 19)
    for k in range(20):
        inside = bins == k
        expected, variance = posterior[inside].sum(), (posterior[inside] * (1 - posterior[inside])).sum()
        # Genera of one photograph are not independent, but at most three of them are present: 5 → 8 deviations.
        assert abs(labels[inside].sum() - expected) <= 8 * np.sqrt(variance) + 1e-6


def test_weights_that_make_no_meadow_are_refused():
    with pytest.raises(ValueError, match="plants has 2 weights"):
        load_dataset("meadow", plants=(0.5, 0.5))
    with pytest.raises(ValueError, match=r"at most 0\.9"):
        load_dataset("meadow", plants=(1.0, 0.0, 0.0, 0.0))
