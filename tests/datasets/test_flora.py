"""The garden as probabilities: prior, laws, posterior, Bayes accuracies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from workbench.class_counts import lorenz_curve, shot_groups
from workbench.datasets.plants.flora import HIDDEN, LARGEST_GENUS, ORGANS, RAREST, Flora

DEFAULT = Flora(species=60, genera=14, tail=13.6, rho=0.15, two_organs=0.4, organs=(0.4, 0.25, 0.2, 0.15), n_train=8000)
SMALL = Flora(species=9, genera=3, tail=6.0, rho=0.3, two_organs=0.5, organs=(0.1, 0.2, 0.3, 0.4), n_train=400)


@pytest.mark.parametrize(("species", "genera"), [(60, 14), (20, 20), (192, 24), (9, 2), (30, 12)])
def test_genera_have_one_to_eight_species_and_are_of_unequal_size(species, genera):
    flora = Flora(species, genera, 0.0, 0.15, 0.4, DEFAULT.organs, 8000)
    sizes = np.bincount(flora.genus, minlength=genera)
    assert sizes.sum() == species
    assert sizes.min() >= 1
    assert sizes.max() <= LARGEST_GENUS
    if genera < species < LARGEST_GENUS * genera:
        assert len(set(sizes)) > 1


def test_the_default_has_genera_of_every_size_from_one_to_eight():
    assert set(np.bincount(DEFAULT.genus)) == set(range(1, 9))


def test_species_names_are_two_words_and_all_different():
    for flora in (DEFAULT, Flora(192, 24, 0.0, 0.15, 0.4, DEFAULT.organs, 8000)):
        assert len(set(flora.names)) == flora.species
        assert all(name.split()[0] == flora.genus_names[g] for name, g in zip(flora.names, flora.genus, strict=True))
        assert {len(name.split()) for name in flora.names} == {2}


def test_the_flower_is_that_of_the_genus_and_of_no_other():
    assert np.array_equal(DEFAULT.laws["flower"].argmax(axis=1), DEFAULT.genus)
    assert set(np.unique(DEFAULT.laws["flower"])) == {0.0, 1.0}


@pytest.mark.parametrize("organ", ["leaf", "fruit", "bark"])
def test_an_organ_has_its_own_form_or_the_second_form_of_the_genus(organ):
    laws = DEFAULT.laws[organ]
    assert laws.shape == (60, {"leaf": 8, "fruit": 6, "bark": 4}[organ])
    assert np.allclose(np.sort(laws, axis=1)[:, -2:], [0.15, 0.85])
    assert np.allclose(laws.sum(axis=1), 1)
    for g in range(14):
        second = {int(np.flatnonzero(np.isclose(law, 0.15))[0]) for law in laws[DEFAULT.genus == g]}
        assert len(second) == 1


def test_triples_of_own_forms_are_unique_inside_a_genus_and_come_again_in_others():
    flora = Flora(120, 24, 0.0, 0.15, 0.4, DEFAULT.organs, 8000)
    triples = list(zip(*(flora.laws[organ].argmax(axis=1) for organ in ORGANS[1:]), strict=True))
    for g in range(24):
        of_genus = [triple for triple, own in zip(triples, flora.genus, strict=True) if own == g]
        assert len(set(of_genus)) == len(of_genus)
    assert len(set(triples)) < len(triples)


def test_the_prior_leaves_every_species_eight_expected_training_photographs():
    for flora in (DEFAULT, SMALL):
        assert flora.prior.sum() == pytest.approx(1)
        assert flora.prior.min() * flora.n_train >= RAREST


def test_without_a_tail_all_species_are_equally_common():
    assert np.allclose(Flora(60, 14, 0.0, 0.15, 0.4, DEFAULT.organs, 8000).prior, 1 / 60)


def test_the_default_passes_near_80_and_11_percent_and_has_all_shot_groups():
    expected = np.round(DEFAULT.prior * DEFAULT.n_train)
    share_of_classes, share_of_images = lorenz_curve(expected)
    assert np.interp(0.8, share_of_classes, share_of_images) == pytest.approx(0.11, abs=0.01)
    assert set(shot_groups(expected)) == {"few", "medium", "many"}


def test_one_organ_is_shown_with_probability_0_6_and_two_with_0_4():
    chances = {1: 0.0, 2: 0.0}
    for organs, chance in DEFAULT.organ_shares.items():
        chances[len(organs)] += chance
    assert chances == pytest.approx({1: 0.6, 2: 0.4})
    assert DEFAULT.organ_shares[0, 1] / DEFAULT.organ_shares[2, 3] == pytest.approx(0.4 * 0.25 / (0.2 * 0.15))


def test_the_posterior_is_bayes_rule_written_out():
    for look, posterior in zip(SMALL.looks, SMALL.posterior(SMALL.looks), strict=True):
        weights = []
        for y in range(SMALL.species):
            weight = SMALL.prior[y]
            for column, organ in enumerate(ORGANS):
                if look[column] != HIDDEN:
                    weight *= SMALL.laws[organ][y, look[column]]
            weights.append(weight)
        assert np.allclose(posterior, np.array(weights) / sum(weights), rtol=1e-12, atol=0)


def test_the_looks_are_all_there_and_their_probabilities_sum_to_one():
    assert SMALL.joint.sum() == pytest.approx(1, abs=1e-12)
    assert np.allclose(SMALL.joint.sum(axis=0), SMALL.prior)
    assert len(np.unique(SMALL.looks, axis=0)) == len(SMALL.looks)
    assert 200 <= len(DEFAULT.looks) <= 500


def test_species_given_a_look_are_as_frequent_as_the_posterior_says():
    labels, looks = SMALL.sample(200_000, np.random.default_rng(0))
    kinds, kind = np.unique(looks, axis=0, return_inverse=True)
    for k in np.flatnonzero(np.bincount(kind) > 1000):
        of_kind = labels[kind == k]
        frequency = np.bincount(of_kind, minlength=SMALL.species) / len(of_kind)
        posterior = SMALL.posterior(kinds[[k]])[0]
        deviation = np.sqrt(posterior * (1 - posterior) / len(of_kind))
        assert np.all(np.abs(frequency - posterior) <= 5 * deviation)
        assert not np.any(frequency[posterior == 0])


def test_looks_are_drawn_with_their_probabilities():
    _, looks = SMALL.sample(200_000, np.random.default_rng(1))
    numbers = {tuple(look): k for k, look in enumerate(SMALL.looks)}
    counts = np.bincount([numbers[tuple(look)] for look in looks], minlength=len(numbers))
    chances = SMALL.joint.sum(axis=1)
    assert np.all(np.abs(counts / 200_000 - chances) <= 5 * np.sqrt(chances * (1 - chances) / 200_000))


@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_bayes_top_K_accuracy_is_what_the_posterior_achieves_on_a_large_draw(K):
    labels, looks = DEFAULT.sample(100_000, np.random.default_rng(2))
    posterior = DEFAULT.posterior(looks)
    hits = np.mean(np.any(np.argsort(-posterior, axis=1)[:, :K] == labels[:, None], axis=1))
    assert hits == pytest.approx(DEFAULT.bayes_top_k_accuracy(K), abs=0.006)


@pytest.mark.parametrize("K", [0.7, 1, 2.5, 5])
def test_bayes_average_K_accuracy_is_the_sum_of_the_K_n_largest_posteriors(K):
    n = 20_000
    _, looks = DEFAULT.sample(n, np.random.default_rng(3))
    largest = np.sort(DEFAULT.posterior(looks), axis=None)[::-1][: round(K * n)]
    assert largest.sum() / n == pytest.approx(DEFAULT.bayes_average_k_accuracy(K), abs=0.006)


def test_bayes_average_K_accuracy_takes_a_fraction_of_the_last_tie():
    # One species a genus, flowers only, no tail: every look names its species, and K = 0.5 can afford half of them.
    flora = Flora(4, 4, 0.0, 0.15, 0.0, (1.0, 0.0, 0.0, 0.0), 400)
    assert [flora.bayes_average_k_accuracy(K) for K in (0.3, 0.5, 1, 4)] == pytest.approx([0.3, 0.5, 1, 1])


def test_flowers_alone_leave_the_species_of_a_genus_open():
    flora = Flora(8, 2, 0.0, 0.15, 0.0, (1.0, 0.0, 0.0, 0.0), 400)
    sizes = np.bincount(flora.genus)
    assert flora.bayes_risk == pytest.approx(1 - 2 / 8)  # one species of each of two genera can be named
    assert flora.bayes_top_k_accuracy(int(sizes.max())) == pytest.approx(1)


def test_average_K_never_loses_to_top_K_and_both_grow_to_one():
    top = [DEFAULT.bayes_top_k_accuracy(K) for K in range(1, 61)]
    average = [DEFAULT.bayes_average_k_accuracy(K) for K in range(1, 61)]
    assert all(a >= t - 1e-12 for a, t in zip(average, top, strict=True))
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(average))
    assert top[-1] == pytest.approx(1)
    assert average[-1] == pytest.approx(1)
    assert top[0] == pytest.approx(1 - DEFAULT.bayes_risk)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"species": 200}, "200 species do not fit in 14 genera"),
        ({"genera": 61}, "do not fit"),
        ({"n_train": 479}, "give n_train ≥ 480"),
        ({"organs": (0.5, 0.5)}, "organs has 2 weights"),
        ({"organs": (1.0, 0.0, 0.0, 0.0)}, "give two_organs=0"),
    ],
)
def test_plants_that_cannot_be_are_refused(change, message):
    facts = {**vars(DEFAULT), **change}
    names = ("species", "genera", "tail", "rho", "two_organs", "organs", "n_train")
    with pytest.raises(ValueError, match=message):
        Flora(**{name: facts[name] for name in names})


@pytest.mark.parametrize("K", [0, 61, 1.5])
def test_bayes_top_K_wants_a_whole_number_of_species(K):
    with pytest.raises(ValueError, match="whole number from 1 to 60"):
        DEFAULT.bayes_top_k_accuracy(K)


@pytest.mark.parametrize("K", [0, 60.1, float("nan")])
def test_bayes_average_K_wants_a_size_that_sets_can_have(K):
    with pytest.raises(ValueError, match="above 0 and up to 60"):
        DEFAULT.bayes_average_k_accuracy(K)
