"""Label noise, long tails and rows that lose their labels; on CIFAR-100 with its real superclasses."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.datasets import (
    TRANSFORMS,
    Dataset,
    LabelNoise,
    LongTail,
    ParetoTail,
    SampledClasses,
    SampledGroups,
    SampledRows,
    Split,
    ZeroLabels,
    ambiguity_of_samples,
    load_dataset,
    load_spec,
)
from workbench.datasets.transforms import Transform, from_spec
from workbench.store import Store
from workbench.training import Run, TrainedRun, train

GROUPS = ("tree", "tree", "tree", "herb", "herb", "moss")


def dataset(counts=(60, 60, 60, 60, 60, 60), groups=GROUPS) -> Dataset:
    """Rows that know their own number."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return Dataset.from_arrays(np.arange(len(labels))[:, None], labels, groups=groups)


@pytest.fixture(scope="module")
def cifar(shared_data) -> Dataset:
    names = shared_data("cifar100_resnets_logits")
    groups = names["superclasses"][names["superclass"]]
    # A number stands for each image: these transforms read labels only.
    labels = np.repeat(np.arange(100), 100)
    return Dataset.from_arrays(np.arange(10_000)[:, None], labels, names["classes"].tolist(), groups.tolist())


@pytest.fixture(scope="module")
def garden() -> Dataset:
    return load_dataset("garden", n_train=2000, n_val=50, n_test=50)


def crossed(labels: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(L, L): how many rows have each pair of labels."""
    return np.array([np.bincount(others[labels == j], minlength=labels.max() + 1) for j in range(labels.max() + 1)])


# Label noise


def test_noisy_labels_are_other_classes_of_the_same_superclass_of_cifar_100(cifar):
    noisy = cifar.transformed(LabelNoise(0.4))
    clean, drawn = cifar.train.labels, noisy.train.labels
    groups = np.array(cifar.groups)
    assert np.array_equal(groups[clean], groups[drawn])
    assert abs(np.mean(clean != drawn) - 0.4) < 4 * np.sqrt(0.24 / len(clean))
    counts = crossed(clean, drawn)
    wrong = counts[(groups[:, None] == groups) & ~np.eye(100, dtype=bool)]
    assert len(wrong) == 100 * 4
    # Every other class of the superclass is drawn alike: 80 rows · 0.1 each, so the variance is that of a binomial.
    n = len(clean) / 100
    assert abs(wrong.mean() - 0.1 * n) < 0.3
    assert 0.8 < wrong.var() / (n * 0.1 * 0.9) < 1.25


def test_validation_and_test_stay_clean(cifar):
    noisy = cifar.transformed(LabelNoise(0.4))
    assert noisy.val is cifar.val
    assert noisy.test is cifar.test
    assert noisy.train.inputs is cifar.train.inputs


def test_a_class_alone_in_its_group_keeps_its_labels_and_all_others_change_at_probability_1():
    clean = dataset()
    noisy = clean.transformed(LabelNoise(1.0)).train.labels
    alone = clean.train.labels == 5
    assert np.array_equal(noisy == clean.train.labels, alone)
    assert set(noisy[clean.train.labels == 0]) == {1, 2}
    assert set(noisy[clean.train.labels == 3]) == {4}


def test_no_noise_changes_no_label_and_the_seed_decides():
    clean = dataset()
    assert np.array_equal(clean.transformed(LabelNoise(0.0)).train.labels, clean.train.labels)
    one, same, other = (clean.transformed(LabelNoise(0.3, seed)).train.labels for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_posterior_of_noisy_rows_is_that_of_their_noisy_labels(garden):
    noisy = garden.transformed(LabelNoise(0.4))
    assert noisy.val.posterior is garden.val.posterior
    before, after = garden.train.posterior, noisy.train.posterior
    # How often each class is drawn is what the posterior of the rows promises, and noise stays inside the group.
    deviation = np.sqrt((after * (1 - after)).sum(axis=0))
    assert np.all(np.abs(noisy.class_counts - after.sum(axis=0)) < 5 * deviation)
    for group in set(garden.groups):
        members = np.array(garden.groups) == group
        assert np.allclose(before[:, members].sum(axis=1), after[:, members].sum(axis=1))


def test_noise_does_not_follow_the_labels_of_data_drawn_from_the_same_seed(garden):
    noisy = garden.transformed(LabelNoise(0.4))
    wrong = noisy.train.labels != garden.train.labels
    often = [j for j in np.flatnonzero(garden.class_counts >= 50) if garden.groups.count(garden.groups[j]) > 1]
    assert len(often) >= 5
    for label in often:
        assert 0.1 < wrong[garden.train.labels == label].mean() < 0.7


# Long tail


@settings(max_examples=25, deadline=None)
@given(imbalance=st.floats(1, 500), n_classes=st.integers(2, 8), n=st.integers(30, 200), seed=st.integers(0, 9))
def test_a_long_tail_falls_exponentially_from_the_largest_class(imbalance, n_classes, n, seed):
    clean = dataset((n,) * n_classes, groups=None)
    tailed = clean.transformed(LongTail(imbalance, seed))
    largest = clean.class_counts.max()
    expected = [max(1, round(largest * imbalance ** (-rank / (n_classes - 1)))) for rank in range(n_classes)]
    assert sorted(tailed.class_counts.tolist(), reverse=True) == expected
    assert set(tailed.train.inputs[:, 0]) <= set(clean.train.inputs[:, 0])
    assert len(set(tailed.train.inputs[:, 0])) == tailed.train.n
    assert np.array_equal(tailed.train.labels, tailed.train.inputs[:, 0] // n)
    assert tailed.val is clean.val


def test_larger_classes_stay_larger_and_nothing_is_invented():
    clean = dataset((20, 200, 100, 50), groups=None)
    tailed = clean.transformed(LongTail(100))
    kept = tailed.class_counts
    assert np.all(kept <= clean.class_counts)
    assert kept[1] == clean.class_counts[1]
    assert kept[1] > kept[2] > kept[3] >= kept[0] >= 1


def test_equal_classes_are_ranked_from_the_seed():
    clean = dataset()
    orders = {tuple(np.argsort(clean.transformed(LongTail(50, seed)).class_counts)) for seed in range(5)}
    assert len(orders) > 1


def test_a_pareto_tail_of_a_thousand_classes_of_1280_images_has_the_sizes_of_imagenet_lt():
    labels = np.repeat(np.arange(1000), 1280)
    rows, few = np.zeros((len(labels), 1), dtype=np.float32), np.arange(1000)
    everything = Dataset("images", Split(rows, labels), *2 * [Split(rows[few], few)], [f"{j}" for j in range(1000)])
    sizes = np.sort(everything.transformed(ParetoTail()).class_counts)[::-1]
    assert (sizes[0], sizes[-1]) == (1280, 5)
    assert abs(sizes.sum() / 115_836 - 1) < 0.02  # Garcin et al. 2022, section 4.5.2; Liu et al. 2019 drew the sizes
    # The law itself: the share of classes that are larger than n is (1 + n / scale)^(−6); sizes are rounded.
    scale = 1280 / (1000 ** (1 / 6) - 1)
    for n in (50, 100, 200, 400, 800):
        assert abs((sizes > n).mean() - (1 + (n + 0.5) / scale) ** -6) < 0.002


@settings(max_examples=25, deadline=None)
@given(power=st.floats(0.5, 20), smallest=st.integers(1, 9), n_classes=st.integers(2, 8), seed=st.integers(0, 9))
def test_a_pareto_tail_keeps_the_largest_class_whole_and_at_least_so_many_rows_of_every_other(
    power, smallest, n_classes, seed
):
    clean = dataset((100,) * n_classes, groups=None)
    tailed = clean.transformed(ParetoTail(power, smallest, seed))
    sizes = np.sort(tailed.class_counts)[::-1]
    scale = n_classes ** (1 / power) - 1
    expected = [
        max(smallest, round(80 * ((n_classes / rank) ** (1 / power) - 1) / scale)) for rank in range(1, n_classes + 1)
    ]
    assert sizes.tolist() == expected
    assert sizes[0] == clean.class_counts.max()
    assert len(set(tailed.train.inputs[:, 0])) == tailed.train.n
    assert (tailed.val, tailed.test) == (clean.val, clean.test)


# Rows without a label


def test_cifar_60_40_unlabels_two_of_five_classes_of_every_superclass(cifar):
    open_set = cifar.transformed(ZeroLabels(2))
    assert open_set.n_classes == 60
    assert open_set.many_labels
    assert set(np.unique(open_set.groups, return_counts=True)[1]) == {3}
    for split in ("train", "val", "test"):
        before, after = getattr(cifar, split), getattr(open_set, split)
        assert after.labels.shape == (before.n, 60)
        names = np.array(cifar.class_names)[before.labels]
        unlabelled = ~np.isin(names, open_set.class_names)
        assert abs(unlabelled.mean() - 0.4) < 1e-9
        assert np.array_equal(after.labels.sum(axis=1), ~unlabelled)
        kept = np.array(open_set.class_names)[after.labels[~unlabelled].argmax(axis=1)]
        assert np.array_equal(kept, names[~unlabelled])
    group_of = dict(zip(cifar.class_names, cifar.groups, strict=True))
    assert all(group_of[name] == group for name, group in zip(open_set.class_names, open_set.groups, strict=True))
    assert cifar.transformed(ZeroLabels(2, seed=1)).class_names != open_set.class_names


def test_one_class_of_every_group_keeps_its_labels():
    open_set = dataset().transformed(ZeroLabels(2))
    assert sorted(open_set.groups) == ["herb", "moss", "tree"]


def test_the_posterior_of_unlabelled_classes_is_left_out(garden):
    open_set = garden.transformed(ZeroLabels(1))
    kept = [garden.class_names.index(name) for name in open_set.class_names]
    assert np.array_equal(open_set.test.posterior, garden.test.posterior[:, kept])


# Samples of groups and of classes


def test_groups_are_sampled_with_all_their_classes_and_rows(garden):
    sampled = garden.transformed(SampledGroups(0.3, smallest=1))
    genera = set(garden.groups)
    assert len(set(sampled.groups)) == round(0.3 * len(genera))
    assert sampled.class_names == tuple(
        name for name, genus in zip(garden.class_names, garden.groups, strict=True) if genus in sampled.groups
    )
    kept = [garden.class_names.index(name) for name in sampled.class_names]
    assert sampled.test.n == np.isin(garden.test.labels, kept).sum()
    assert [sampled.class_names[label] for label in sampled.test.labels[:20]] == [
        garden.class_names[label] for label in garden.test.labels[np.isin(garden.test.labels, kept)][:20]
    ]


def test_classes_with_four_rows_or_fewer_are_dropped():
    rows = np.repeat([0, 1, 2], [4, 5, 30])
    data = Dataset.from_arrays(np.zeros((39, 2), np.float32), rows, groups=["a", "a", "b"])
    assert data.transformed(SampledGroups(1.0)).class_names == data.class_names[1:]
    with pytest.raises(ValueError, match="leaves 1 class of arrays; two or more must stay"):
        data.transformed(SampledGroups(1.0, smallest=6))


def test_sampled_classes_are_so_many_and_genera_lose_species(garden):
    sampled = garden.transformed(SampledClasses(0.3, smallest=1))
    assert sampled.n_classes == round(0.3 * garden.n_classes)
    whole = [genus for genus in set(sampled.groups) if sampled.groups.count(genus) == garden.groups.count(genus)]
    assert len(whole) < len(set(sampled.groups))


def test_sampled_rows_keep_the_classes_that_have_enough_of_them(garden):
    sampled = garden.transformed(SampledRows(0.2, smallest=10))
    assert sampled.train.n + sampled.val.n + sampled.test.n <= 0.2 * (garden.train.n + garden.val.n + garden.test.n) + 3
    rows = np.bincount(np.concatenate([getattr(sampled, split).labels for split in ("train", "val", "test")]))
    assert rows.min() >= 10
    assert 1 < sampled.n_classes < garden.n_classes


def test_whole_groups_keep_the_ambiguity_that_single_classes_lose_and_single_rows_make_classes_rare(garden):
    frame = ambiguity_of_samples(garden, shares=[0.2, 1.0], draws=10, smallest=1)
    of = frame.set_index(["panel", "series", "x"])["value"]
    assert (
        (of["best possible top-1 error, %", "whole groups", 0.2])
        > of["best possible top-1 error, %", "single classes", 0.2]
    )
    assert (
        of["classes with a relative, %", "whole groups", 0.2] > of["classes with a relative, %", "single classes", 0.2]
    )
    assert of["median rows of a class", "single rows", 0.2] < of["median rows of a class", "whole groups", 0.2]
    for panel in frame["panel"].unique():  # all of it is all of it
        assert of[panel, "whole groups", 1.0] == of[panel, "single classes", 1.0] == of[panel, "single rows", 1.0]
    with pytest.raises(ValueError, match="has no groups of classes"):
        ambiguity_of_samples(load_dataset("digits"))


@pytest.mark.parametrize("kind", [SampledGroups, SampledClasses, SampledRows])
def test_the_posterior_is_that_of_the_classes_that_stay(garden, kind):
    sampled = garden.transformed(kind(0.5, smallest=1))
    assert sampled.test.posterior.shape == (sampled.test.n, sampled.n_classes)
    np.testing.assert_allclose(sampled.test.posterior.sum(1), 1, rtol=1e-5)


# What is true of all


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_a_transform_is_recorded_in_name_key_and_spec(kind, garden):
    spec = json.dumps(garden.spec)
    transform = kind(seed=3)
    changed = garden.transformed(transform)
    assert repr(transform) in changed.name
    assert changed.key not in (garden.key, garden.transformed(kind(seed=4)).key)
    assert from_spec(json.loads(json.dumps(transform.spec()))) == transform
    again = load_spec(json.loads(json.dumps(changed.spec)))
    assert again.key == changed.key
    assert np.array_equal(again.train.labels, changed.train.labels)
    assert json.dumps(garden.spec) == spec


def test_transforms_follow_one_another_in_their_order(garden):
    both = garden.transformed(LongTail(50), LabelNoise(0.2))
    assert [spec["transform"] for spec in both.spec["transforms"]] == ["LongTail", "LabelNoise"]
    assert both.key == garden.transformed(LongTail(50)).transformed(LabelNoise(0.2)).key
    assert both.key != garden.transformed(LabelNoise(0.2), LongTail(50)).key
    assert load_spec(both.spec).key == both.key
    assert garden.transformed() is garden


def test_a_run_on_changed_data_is_another_run_and_is_repeated_from_its_file(garden, tmp_path):
    noisy = Run(garden.transformed(LabelNoise(0.3)), model="linear", epochs=1, device="cpu")
    assert noisy.key != Run(garden, model="linear", epochs=1).key
    assert "LabelNoise(probability=0.3, seed=0)" in noisy.title
    train(noisy, store=Store(tmp_path), progress=False)
    again = TrainedRun.open(noisy.key, Store(tmp_path)).run
    assert again.key == noisy.key
    assert np.array_equal(again.data.train.labels, noisy.data.train.labels)


def test_arrays_without_a_spec_stay_without_one():
    assert dataset().transformed(LabelNoise(0.1)).spec is None


@dataclass(frozen=True)
class Reversed(Transform):
    """A custom transform: the last class comes first."""

    def changes(self, dataset):
        return {"class_names": tuple(reversed(dataset.class_names))}


def test_a_transform_of_somebody_else_is_stored_with_its_module_and_read_where_that_is_allowed():
    names = ["LabelNoise", "LongTail", "ParetoTail", "ZeroLabels", "SampledGroups", "SampledClasses", "SampledRows"]
    assert [kind().spec()["transform"] for kind in TRANSFORMS] == names
    changed = load_dataset("digits").transformed(Reversed())
    assert changed.spec["transforms"] == [{"transform": f"{__name__}:Reversed", "knobs": {}}]
    with pytest.raises(ValueError, match=f"'{__name__}:Reversed' is code from outside the workbench"):
        load_spec(changed.spec)
    assert load_spec(changed.spec, allowed=[__name__]).key == changed.key
    with pytest.raises(ValueError, match=f"'{__name__}:dataset' is not a workbench.datasets.Transform"):
        from_spec({"transform": f"{__name__}:dataset", "knobs": {}}, allowed=[__name__])


def test_what_a_transform_cannot_change_is_refused():
    with pytest.raises(ValueError, match="LabelNoise needs groups of classes, and arrays has none"):
        dataset(groups=None).transformed(LabelNoise(0.1))
    with pytest.raises(ValueError, match="ZeroLabels needs groups"):
        dataset(groups=None).transformed(ZeroLabels())
    for transform in (LabelNoise(), LongTail(), ParetoTail(), ZeroLabels()):
        with pytest.raises(ValueError, match="one label per row"):
            dataset().transformed(ZeroLabels(1), transform)
    with pytest.raises(ValueError, match="'LongTail' is not a transform; give some such as"):
        dataset().transformed("LongTail")
    with pytest.raises(ValueError, match="leaves 1 class"):
        dataset((20, 20), groups=("g", "g")).transformed(ZeroLabels(1))
    with pytest.raises(ValueError, match=r"probability = 1\.5 is outside"):
        LabelNoise(1.5)
    with pytest.raises(
        ValueError, match="there is no transform named 'Blur'; known: LabelNoise, LongTail, ParetoTail, ZeroLabels"
    ):
        from_spec({"transform": "Blur", "knobs": {}})
