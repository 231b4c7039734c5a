"""Base of garden and meadow: knobs, a flora, three splits of one distribution, photographs cached on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.datasets.base import SPLITS, Dataset, Split, recipe_key
from workbench.datasets.plants.flora import GENERA, LARGEST_GENUS, Flora
from workbench.datasets.plants.photographs import SIZE, Organ, photographs
from workbench.files.cache import PHOTOGRAPHS
from workbench.files.home import Home
from workbench.knobs import Knobbed, knob
from workbench.warning_capture import warn

VERSION = 2  # of the law and of the drawings: a change of either makes other data, which must have another key


@dataclass(frozen=True)
class Plants(Knobbed, ABC):
    """A dataset of drawn plants: knobs, and the law that photographs are drawn from."""

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
    n_train: int = knob(
        8000, low=1000, high=20000, minimum=16, maximum=200_000, meaning="number of training photographs"
    )
    n_val: int = knob(2000, low=500, high=10000, minimum=1, maximum=200_000, meaning="number of validation photographs")
    n_test: int = knob(6000, low=500, high=20000, minimum=1, maximum=200_000, meaning="number of test photographs")
    seed: int = knob(0, low=0, high=20, maximum=2**31 - 1, meaning="seed of the photographs; the plants stay the same")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.flora  # noqa: B018  (species that do not fit in their genera are refused here, not while drawing)

    @cached_property
    def flora(self) -> Flora:
        """The plants as probabilities: prior, laws, posterior, Bayes accuracies."""
        two_organs = self.settings().get("two_organs", 0.0)
        return Flora(self.species, self.genera, self.tail, self.rho, two_organs, self.organs, self.n_train)

    @property
    def key(self) -> str:
        """The sha256 of the recipe (name, version of the drawings, knobs), which fixes the data."""
        return recipe_key({"version": VERSION, **self.spec})

    @property
    def spec(self) -> dict[str, Any]:
        """Return the arguments that load this dataset again."""
        return {"name": self.name, "knobs": self.settings()}

    @abstractmethod
    def classes(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        """The names of the classes, and their groups if they have any."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Labels and looks of n photographs, drawn independently from the law."""

    @abstractmethod
    def posterior(self, looks: np.ndarray) -> np.ndarray:
        """(n, L): the probability of each class given what a photograph shows."""

    @abstractmethod
    def attributes(self, looks: np.ndarray) -> dict[str, np.ndarray]:
        """Return the visible attributes of photographs as text: (n,) each."""

    @abstractmethod
    def scene(self, look: np.ndarray, rng: np.random.Generator) -> list[Organ]:
        """The organs of one photograph, each in a cell of its own."""

    @abstractmethod
    def looks(self, images: np.ndarray) -> np.ndarray:
        """Read the visible attributes of photographs from their pixels."""

    def read(self, images: np.ndarray) -> dict[str, np.ndarray]:
        """Read the visible attributes from pixels as text: equal to the attributes of the rows."""
        images = np.asarray(images)
        if images.dtype != np.uint8 or images.shape[1:] != (SIZE, SIZE, 3):
            raise ValueError(
                f"images are {images.dtype} of shape {images.shape}; give photographs, uint8 (n, {SIZE}, {SIZE}, 3)"
            )
        return self.attributes(self.looks(images))

    def dataset(self) -> Dataset:
        """The three splits, with the posterior and the attributes of their rows."""
        rows = {split_name: self._rows(split_name) for split_name in SPLITS}

        def draw(split_name: str) -> np.ndarray:
            rng = self._generator(split_name, 1)
            scenes = [self.scene(look, rng) for look in rows[split_name][1]]
            return photographs(scenes, (self.seed, SPLITS.index(split_name), 2))

        images = drawn_once(self.key, SPLITS, draw)
        train, val, test = (
            Split(images[split_name], labels, self.posterior(looks), self.attributes(looks))
            for split_name, (labels, looks) in rows.items()
        )
        names, groups = self.classes()
        return Dataset(self.name, train, val, test, names, groups, self.spec, self.key)

    def _rows(self, split_name: str) -> tuple[np.ndarray, np.ndarray]:
        """Labels and looks of one split."""
        rng = self._generator(split_name, 0)
        n = {"train": self.n_train, "val": self.n_val, "test": self.n_test}[split_name]
        n_classes = len(self.classes()[0])
        while True:
            labels, looks = self.sample(n, rng)
            seen = labels.any(axis=0).sum() if labels.ndim == 2 else len(np.unique(labels))
            # About one default garden in a hundred would lack a species in training.
            if split_name != "train" or seen == n_classes:
                return labels, looks

    def _generator(self, split_name: str, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, SPLITS.index(split_name), purpose])


def drawn_once(key: str, names: tuple[str, ...], draw: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """Name → `draw(name)`, from the disk where the same key was drawn before.

    A folder that cannot be written costs only the time to draw again; a damaged file is drawn anew.
    """
    home = Home()
    if (kept := PHOTOGRAPHS.arrays(home, key, names)) is not None:
        return kept
    arrays = {name: draw(name) for name in names}
    try:
        with PHOTOGRAPHS.writing(home, key) as folder:
            for name, array in arrays.items():
                np.save(folder / f"{name}.npy", array)
    except OSError as error:
        warn(f"drawn photographs are not kept and will be drawn again next time: {error}", stacklevel=3)
    return arrays
