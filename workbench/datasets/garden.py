"""The garden: small photographs of plants drawn by a program, with P(y|x) known exactly.

Species of a genus share their flower and differ in leaf, fruit or bark; a photograph shows only some organs. So from the
flower alone the species *cannot* be told, and nobody can do better than the posterior that comes with every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.datasets.base import SPLITS, Dataset, Split, recipe_key
from workbench.datasets.drawn import drawn_once
from workbench.datasets.flora import BARKS, FRUITS, GENERA, HIDDEN, LARGEST_GENUS, LEAVES, ORGANS, Flora
from workbench.datasets.photographs import HALVES, SIZE, WHOLE, Organ, photographs, read, side_by_side
from workbench.knobs import Knobbed, knob

VERSION = 1  # of the law and of the drawings: a change of either makes other data, which must have another key
NOT_SHOWN = "not shown"


@dataclass(frozen=True)
class Plants(Knobbed):
    """What every dataset of drawn plants has: a flora, three splits drawn from one law, and a reader of photographs."""

    name: ClassVar[str]

    species: int = knob(
        60, low=20, high=120, minimum=2, maximum=LARGEST_GENUS * len(GENERA), symbol="S", meaning="number of species"
    )
    genera: int = knob(14, low=4, high=len(GENERA), minimum=2, symbol="G", meaning="number of genera of 1 to 8 species")
    tail: float = knob(13.6, low=0, high=20, meaning="strength of the long tail: 0 makes every species equally common")
    rho: float = knob(
        0.15, low=0, high=0.5, maximum=1, symbol="ρ", meaning="probability of the genus' second leaf, fruit or bark"
    )
    organs: tuple[float, ...] = knob((0.4, 0.25, 0.2, 0.15), meaning="share of flower, leaf, fruit and bark in photos")
    n_train: int = knob(8000, low=1000, high=20000, minimum=16, maximum=10**6, meaning="number of training photographs")
    n_val: int = knob(2000, low=500, high=10000, minimum=1, maximum=10**6, meaning="number of validation photographs")
    n_test: int = knob(6000, low=500, high=20000, minimum=1, maximum=10**6, meaning="number of test photographs")
    seed: int = knob(0, low=0, high=20, maximum=2**31 - 1, meaning="seed of the photographs; the plants are the same")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.flora  # noqa: B018  (species that do not fit in their genera are refused here and not while drawing)

    @cached_property
    def flora(self) -> Flora:
        """The plants: prior, laws, posterior, Bayes accuracies."""
        return Flora(self.species, self.genera, self.tail, self.rho, self._two_organs, self.organs, self.n_train)

    @property
    def _two_organs(self) -> float:
        return 0.0

    @property
    def key(self) -> str:
        """The sha256 of the recipe: name, version of the drawings, knobs. The data follows from it."""
        return recipe_key({"name": self.name, "version": VERSION, "knobs": self.settings()})

    @property
    def spec(self) -> dict[str, Any]:
        """What loads this dataset again."""
        return {"name": self.name, "knobs": self.settings()}

    def _generator(self, split_name: str, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, SPLITS.index(split_name), purpose])

    def _size(self, split_name: str) -> int:
        return {"train": self.n_train, "val": self.n_val, "test": self.n_test}[split_name]


@dataclass(frozen=True)
class Garden(Plants):
    """Photographs of one plant each; the label is its species.

    A plant is drawn in four steps: the species y from the long-tailed prior; the organs that are shown, whatever y is
    (one with probability 1 − two_organs, else two side by side); a form of each shown organ from its law given y; and
    a photograph of these forms with a random place, turn, size, light, background and grain that know nothing of y.
    `read` recovers organs and forms from the pixels of every photograph. Therefore

        P(y | x) = P(y | organs, forms) ∝ P(y) · Π_o P(form_o | y)

    is exact, and comes with every row as its `posterior`. Train, val and test are drawn from the same law (the training
    rows again, should a species be missing from them).

    >>> garden = Garden()
    >>> f"{garden.bayes_risk:.3f} {garden.bayes_top_k_accuracy(5):.3f} {garden.bayes_average_k_accuracy(5):.3f}"
    '0.270 0.965 0.987'
    """

    name: ClassVar[str] = "garden"

    two_organs: float = knob(0.4, low=0, high=1, meaning="probability that a photograph shows two organs and not one")

    @property
    def _two_organs(self) -> float:
        return self.two_organs

    @property
    def bayes_risk(self) -> float:
        """How often the best possible classifier is wrong on the population."""
        return self.flora.bayes_risk

    def bayes_top_k_accuracy(self, K: int) -> float:
        """The best possible accuracy of sets of exactly K species, on the population."""
        return self.flora.bayes_top_k_accuracy(K)

    def bayes_average_k_accuracy(self, K: float) -> float:
        """The best possible accuracy of sets of K species on average, on the population."""
        return self.flora.bayes_average_k_accuracy(K)

    def dataset(self) -> Dataset:
        """The three splits, with posterior and attributes."""
        plants = {split_name: self._plants(split_name) for split_name in SPLITS}

        def draw(split_name: str) -> np.ndarray:
            rng = self._generator(split_name, 1)
            scenes = [_scene(look, rng.random() < 0.5) for look in plants[split_name][1].tolist()]
            return photographs(scenes, (self.seed, SPLITS.index(split_name), 2))

        images = drawn_once(self.key, SPLITS, draw)
        splits = [
            Split(images[split_name], labels, self.flora.posterior(looks), self._attributes(looks))
            for split_name, (labels, looks) in plants.items()
        ]
        groups = tuple(GENERA[g] for g in self.flora.genus)
        return Dataset(self.name, *splits, self.flora.names, groups, self.spec, self.key)

    def read(self, images: np.ndarray) -> dict[str, np.ndarray]:
        """What photographs show, from their pixels alone: the attributes of their rows, (n,) words each."""
        images = checked_photographs(images)
        looks = np.full((len(images), len(ORGANS)), HIDDEN)
        two = side_by_side(images)
        for rows, cells in ((np.flatnonzero(~two), (WHOLE,)), (np.flatnonzero(two), HALVES)):
            for cell in cells:
                columns, forms = read(images[rows], cell, self.flora.n_forms).T
                looks[rows, columns] = forms
        return self._attributes(looks)

    def _plants(self, split_name: str) -> tuple[np.ndarray, np.ndarray]:
        """Species (n,) and looks (n, 4) of a split."""
        rng = self._generator(split_name, 0)
        while True:
            labels, looks = self.flora.drawn(self._size(split_name), rng)
            # One default garden in a hundred would miss a species in training: it could not be learnt, so draw again.
            if split_name != "train" or len(np.unique(labels)) == self.species:
                return labels, looks

    def _attributes(self, looks: np.ndarray) -> dict[str, np.ndarray]:
        """Which organs are shown, such as `leaf+fruit`, and the form of each in words."""
        names = (self.flora.genus_names, LEAVES, FRUITS, BARKS)
        shown = np.array(["+".join(np.array(ORGANS)[look != HIDDEN]) for look in looks])
        forms = {
            organ: np.array([*words, NOT_SHOWN])[looks[:, column]]  # HIDDEN is −1: the last word
            for column, (organ, words) in enumerate(zip(ORGANS, names, strict=True))
        }
        return {"organs": shown, **forms}


def checked_photographs(images: np.ndarray) -> np.ndarray:
    """The images, or an error if they cannot be photographs of ours."""
    images = np.asarray(images)
    if images.dtype != np.uint8 or images.shape[1:] != (SIZE, SIZE, 3):
        raise ValueError(
            f"images are {images.dtype} of shape {images.shape}; give photographs, uint8 (n, {SIZE}, {SIZE}, 3)"
        )
    return images


def _scene(look: Sequence[int], swapped: bool) -> list[Organ]:
    """The organs of a look, one in the whole photograph or two side by side."""
    shown = [(column, form) for column, form in enumerate(look) if form != HIDDEN]
    if len(shown) == 1:
        return [Organ(*shown[0], WHOLE)]
    return [Organ(*organ, half) for organ, half in zip(shown, HALVES[::-1] if swapped else HALVES, strict=True)]
