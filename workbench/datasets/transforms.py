"""Transforms of a dataset: label noise within groups, long tails, classes without labels, samples of groups.

A transform is a frozen dataclass of knobs that takes a dataset and returns another. The result carries it in its name,
its key and its spec, so a run that was trained on it says so and can be repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.datasets.base import SPLITS, Dataset, Split, recipe_key
from workbench.knobs import Knobbed, knob
from workbench.trusted_imports import resolve, stored_name


@dataclass(frozen=True)
class Transform(Knobbed, ABC):
    """A change of a dataset, from its knobs and nothing else."""

    def __call__(self, dataset: Dataset) -> Dataset:
        changes = self.changes(dataset)
        spec = dataset.spec
        if spec is not None:
            spec = {**spec, "transforms": [*spec.get("transforms", ()), self.spec()]}
        return replace(
            dataset,
            name=f"{dataset.name} · {self!r}",
            key=recipe_key({"dataset": dataset.key, **self.spec()}),
            spec=spec,
            **changes,
        )

    @abstractmethod
    def changes(self, dataset: Dataset) -> dict[str, Any]:
        """The fields of the dataset that become others."""

    def generator(self, seed: int) -> np.random.Generator:
        """The source of a transform's randomness: another one for each kind, and none that drew the data.

        For NumPy the seeds 0 and [0, 0, 0] are the same; with the former, noise would follow the labels of the garden.
        """
        return np.random.default_rng([seed, *type(self).__name__.encode()])

    def spec(self) -> dict[str, Any]:
        """Return the description stored with a run; `from_spec` creates the transform again."""
        return {"transform": stored_name(type(self)), "knobs": self.settings()}


def _seed(what: str) -> Any:
    return knob(0, low=0, high=20, maximum=2**31 - 1, meaning=f"seed of {what}")


@dataclass(frozen=True)
class LabelNoise(Transform):
    r"""Training labels that are another class of the same group with probability p; val and test stay clean.

    $$ P(\tilde y = j \mid y) = \frac{p}{|g(y)| - 1} \text{ for } j \ne y \text{ in the group } g(y) $$

    A set of all classes of the group still holds every label, so a perfect top-5 classifier of CIFAR-100, whose groups
    have five classes, stays perfect, while the label itself gets hard to tell. A class alone in its group keeps its
    labels. Where P(y|x) is known, that of the training rows becomes the one of the noisy labels.

    Garcin et al. 2022, section 4.4. We follow the text, with the real groups; the authors' code draws among all classes
    of a block of five ids, the true one included, and those blocks are not the superclasses of CIFAR-100.
    """

    probability: float = knob(
        0.2, low=0.0, high=0.5, maximum=1.0, symbol="p", meaning="probability that a training label is a wrong one"
    )
    seed: int = _seed("the wrong labels")

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        _refuse_many_labels(self, dataset)
        groups = _groups(self, dataset)
        others = (groups[:, None] == groups) & ~np.eye(len(groups), dtype=bool)  # (L, L): another class of the group
        n_others = others.sum(axis=1)
        rng = self.generator(self.seed)
        train = dataset.train
        wrong = (rng.random(train.n) < self.probability) & (n_others[train.labels] > 0)
        which = (rng.random(train.n) * n_others[train.labels]).astype(np.int64)  # of the others, counted from 0
        in_order = np.argsort(~others, axis=1, kind="stable")  # row j: first the others of j, then the rest
        labels = np.where(wrong, in_order[train.labels, which], train.labels)
        posterior = train.posterior
        if posterior is not None:
            share = np.where(n_others > 0, self.probability, 0) / np.maximum(n_others, 1)
            noise = others * share[:, None]
            posterior = posterior @ (noise + np.diag(1 - noise.sum(axis=1)))
        return {"train": replace(train, labels=labels, posterior=posterior)}


@dataclass(frozen=True)
class LongTail(Transform):
    r"""Training rows left out until the classes form a long tail; val and test stay as they are.

    $$ n_r = \mathrm{round}\bigl(n_0 \cdot \rho^{-r / (L - 1)}\bigr) $$

    is what the class of rank r = 0, …, L − 1 keeps at most, and one row at least, with n_0 the size of the largest class
    and ρ the imbalance. Larger classes have smaller ranks; classes of equal size are ranked at random. This is the
    exponential profile of Cao et al. 2019 (the loss LDAM), which gives CIFAR-100-LT.
    """

    imbalance: float = knob(
        100.0, low=1.0, high=500.0, maximum=1e6, scale="log", symbol="ρ", meaning="largest class over the smallest one"
    )
    seed: int = _seed("the ranks and of the rows that stay")

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        shares = self.imbalance ** (-np.arange(dataset.n_classes) / max(dataset.n_classes - 1, 1))
        return _tail(self, dataset, self.seed, shares, smallest=1)


@dataclass(frozen=True)
class ParetoTail(Transform):
    r"""Training rows left out until the sizes of the classes follow a Pareto law; val and test stay as they are.

    $$ n_r = \mathrm{round}\Bigl(n_0 \cdot \frac{(L / (r + 1))^{1/\alpha} - 1}{L^{1/\alpha} - 1}\Bigr) $$

    is what the class of rank r = 0, …, L − 1 keeps at most, and `smallest` rows at least, with n_0 the size of the largest
    class: the quantiles of a Pareto law of power α that begins at zero (as `numpy.random.pareto` draws it), so scaled that
    the largest class stays whole. Larger classes have smaller ranks; classes of equal size are ranked at random.

    Liu et al. 2019 made ImageNet-LT so, with α = 6, from 1 280 images to 5. They drew the sizes and have 115.8 thousand
    images; our quantiles of 1 000 classes give 117.5 thousand.
    """

    power: float = knob(
        6.0, low=0.5, high=10.0, minimum=0.1, maximum=100.0, meaning="power of the law; less is steeper"
    )
    smallest: int = knob(5, low=1, high=20, maximum=10**6, meaning="number of rows that a class keeps at least")
    seed: int = _seed("the ranks and of the rows that stay")

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        quantiles = (dataset.n_classes / np.arange(1, dataset.n_classes + 1)) ** (1 / self.power) - 1
        return _tail(self, dataset, self.seed, quantiles / (quantiles[0] or 1), self.smallest)


@dataclass(frozen=True)
class ZeroLabels(Transform):
    """Some classes of each group are not classes any more: their rows stay, in all splits, as rows without a label.

    Labels become (n, L') bool, all False for these rows, and only the L' other classes remain. Of every group
    `per_group` classes lose their labels, drawn from the seed, but one class always stays. With two of the five classes
    of each superclass of CIFAR-100 this is CIFAR60+40, where what a model should not know looks much like what it knows.

    Liao et al., section V.B. Their choice of classes is not published; ours is drawn.
    """

    per_group: int = knob(2, low=1, high=4, maximum=1000, meaning="number of classes of each group without labels")
    seed: int = _seed("the choice of classes")

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        _refuse_many_labels(self, dataset)
        groups, L = _groups(self, dataset), dataset.n_classes
        shuffled = self.generator(self.seed).permutation(L)
        stays = np.ones(L, dtype=bool)
        for group in np.unique(groups):
            members = shuffled[groups[shuffled] == group]
            stays[members[: min(self.per_group, len(members) - 1)]] = False
        kept = np.flatnonzero(stays)
        if len(kept) < 2:
            raise ValueError(f"{self!r} leaves {len(kept)} class of {dataset.name}; two or more must stay")

        def relabelled(split: Split) -> Split:
            posterior = None if split.posterior is None else split.posterior[:, kept]
            return replace(split, labels=split.labels[:, None] == kept, posterior=posterior)

        return {
            "class_names": tuple(dataset.class_names[j] for j in kept),
            "groups": tuple(groups[kept].tolist()),
            **{name: relabelled(getattr(dataset, name)) for name in SPLITS},
        }


@dataclass(frozen=True)
class SampledGroups(Transform):
    """Some groups with all their classes, of those only the ones with enough rows; other classes and their rows are gone.

    A share of the groups is drawn, one at least. A class stays if it has `smallest` rows or more in all splits together.
    Classes that look alike stay together, and with them the ambiguity, which a sample of single classes loses.

    Garcin, thesis, section 3.2.2: Pl@ntNet-300K keeps a tenth of the genera, and species with more than 4 images.
    """

    share: float = knob(0.5, low=0.1, high=1.0, minimum=0.0, maximum=1.0, meaning="share of the groups that stay")
    smallest: int = knob(5, low=1, high=20, maximum=10**6, meaning="number of rows that a class needs to stay")
    seed: int = _seed("the choice of groups")

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        _refuse_many_labels(self, dataset)
        groups = _groups(self, dataset)
        names = np.unique(groups)
        drawn = self.generator(self.seed).permutation(names)[: max(1, round(self.share * len(names)))]
        enough = _rows_of_classes(_splits(dataset).values(), dataset.n_classes) >= self.smallest
        return _with_classes(self, dataset, np.flatnonzero(np.isin(groups, drawn) & enough))


@dataclass(frozen=True)
class SampledClasses(Transform):
    """Some classes, drawn one by one whatever their group, each with enough rows; the others and their rows are gone.

    Sampling species, against which Garcin's thesis (section 3.2.2) samples genera.
    """

    share: float = knob(0.5, low=0.1, high=1.0, minimum=0.0, maximum=1.0, meaning="share of the classes that stay")
    smallest: int = knob(5, low=1, high=20, maximum=10**6, meaning="number of rows that a class needs to stay")
    seed: int = _seed("the choice of classes")

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        _refuse_many_labels(self, dataset)
        enough = np.flatnonzero(_rows_of_classes(_splits(dataset).values(), dataset.n_classes) >= self.smallest)
        drawn = self.generator(self.seed).permutation(enough)[: max(2, round(self.share * dataset.n_classes))]
        return _with_classes(self, dataset, np.sort(drawn))


@dataclass(frozen=True)
class SampledRows(Transform):
    """Some rows of every split, drawn one by one; classes that are left with few rows are gone with them.

    Sampling images, against which Garcin's thesis (section 3.2.2) samples genera: the ambiguity stays, and every class
    gets rarer.
    """

    share: float = knob(0.5, low=0.1, high=1.0, minimum=0.0, maximum=1.0, meaning="share of the rows that stay")
    smallest: int = knob(5, low=1, high=20, maximum=10**6, meaning="number of rows that a class needs to stay")
    seed: int = _seed("the choice of rows")

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        _refuse_many_labels(self, dataset)
        rng = self.generator(self.seed)
        fewer = {
            split: part.rows(np.sort(rng.permutation(part.n)[: max(1, round(self.share * part.n))]))
            for split, part in _splits(dataset).items()
        }
        counts = np.array([_rows_of_classes([part], dataset.n_classes) for part in fewer.values()])
        enough = (counts.sum(axis=0) >= self.smallest) & (counts[SPLITS.index("train")] > 0)
        return _with_classes(self, dataset, np.flatnonzero(enough), fewer)


def _rows_of_classes(parts: Iterable[Split], n_classes: int) -> np.ndarray:
    """(L,) rows of each class in some splits together."""
    labels = np.concatenate([part.labels for part in parts])
    return np.bincount(labels[labels >= 0], minlength=n_classes)


def _splits(dataset: Dataset) -> dict[str, Split]:
    return {split: getattr(dataset, split) for split in SPLITS}


def _with_classes(
    transform: Transform, dataset: Dataset, kept: np.ndarray, parts: Mapping[str, Split] | None = None
) -> dict[str, Any]:
    """The dataset, or these rows of it, with some classes alone. P(y|x) becomes that given that y is one of them."""
    if len(kept) < 2:
        raise ValueError(f"{transform!r} leaves {len(kept)} class of {dataset.name}; two or more must stay")
    place = np.full(dataset.n_classes, -1)
    place[kept] = np.arange(len(kept))

    def reduced(split: Split) -> Split:
        rows = split.rows(np.flatnonzero(np.isin(split.labels, kept)))
        if rows.posterior is None:
            return replace(rows, labels=place[rows.labels])
        posterior = rows.posterior[:, kept]
        return replace(rows, labels=place[rows.labels], posterior=posterior / posterior.sum(axis=1, keepdims=True))

    return {
        "class_names": tuple(dataset.class_names[j] for j in kept),
        "groups": None if dataset.groups is None else tuple(dataset.groups[j] for j in kept),
        **{name: reduced(part) for name, part in (parts or _splits(dataset)).items()},
    }


@dataclass(frozen=True)
class Groups(Transform):
    """Classes put into groups, one for each class in their order: what `dataset.with_groups` does."""

    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "groups", tuple(self.groups))

    def __call__(self, dataset: Dataset) -> Dataset:
        return replace(super().__call__(dataset), name=dataset.name)  # the rows are what they were

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        return {"groups": self.groups}

    def spec(self) -> dict[str, Any]:
        return {"transform": "Groups", "knobs": {"groups": list(self.groups)}}


TRANSFORMS: tuple[type[Transform], ...] = (  # with knobs to turn
    *(LabelNoise, LongTail, ParetoTail, ZeroLabels),
    *(SampledGroups, SampledClasses, SampledRows),
)


def from_spec(spec: Mapping[str, Any], *, allowed: Iterable[str] = ()) -> Transform:
    """The transform that `transform.spec()` described. A foreign one must live in one of the `allowed` modules.

    >>> from_spec(LabelNoise(0.3, seed=1).spec())
    LabelNoise(probability=0.3, seed=1)
    """
    from workbench.datasets.augmentations import AUGMENTATIONS  # which are transforms, too

    kinds: tuple[type[Transform], ...] = (*TRANSFORMS, *AUGMENTATIONS, Groups)
    known = {kind.__name__: kind for kind in kinds}
    found = resolve(spec["transform"], known, "transform", allowed=allowed)
    if not (isinstance(found, type) and issubclass(found, Transform)):
        raise ValueError(f"{spec['transform']!r} is not a workbench.datasets.Transform")
    return found(**spec["knobs"])


def _groups(transform: Transform, dataset: Dataset) -> np.ndarray:
    if dataset.groups is None:
        raise ValueError(
            f"{type(transform).__name__} needs groups of classes, and {dataset.name} has none; give it some, "
            "dataset.with_groups(['group of the first class', …]) or {class: group}"
        )
    return np.array(dataset.groups)


def _tail(transform: Transform, dataset: Dataset, seed: int, shares: np.ndarray, smallest: int) -> dict[str, Any]:
    """The training rows that stay if the class of each rank keeps such a share of the size of the largest class."""
    _refuse_many_labels(transform, dataset)
    counts, L = dataset.class_counts, dataset.n_classes
    rng = transform.generator(seed)
    of_rank = np.maximum(np.round(counts.max() * shares), smallest).astype(int)
    kept = np.empty(L, dtype=int)
    kept[np.lexsort((rng.random(L), -counts))] = of_rank
    shuffled = rng.permutation(dataset.train.n)
    by_class = shuffled[np.argsort(dataset.train.labels[shuffled], kind="stable")]
    classes = np.split(by_class, np.cumsum(counts)[:-1])
    rows = np.concatenate([members[:n] for members, n in zip(classes, kept, strict=True)])
    return {"train": dataset.train.rows(np.sort(rows))}


def _refuse_many_labels(transform: Transform, dataset: Dataset) -> None:
    if dataset.many_labels:
        raise ValueError(
            f"{type(transform).__name__} changes data with one label per row; the rows of {dataset.name} have many"
        )
