"""The meadow: none to three plants in one photograph, labelled with all their genera; the many-label sister of the garden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.datasets.base import SPLITS, Dataset, Split
from workbench.datasets.drawn import drawn_once
from workbench.datasets.flora import BARKS, FRUITS, HIDDEN, LEAVES, ORGANS
from workbench.datasets.garden import Plants, checked_photographs
from workbench.datasets.photographs import QUARTERS, Organ, photographs, read
from workbench.knobs import knob

MOST_PLANTS = 3


@dataclass(frozen=True)
class Meadow(Plants):
    """Photographs of 0 to 3 plants; the labels are their genera, so a row may have no label or several.

    Plants come to a photograph independently, each with one organ, drawn as in the garden. With P(g | look_i) the
    posterior of the genus of plant i given its organ and form,

        P(genus g is in the photograph | x) = 1 − Π_i (1 − P(g | look_i))

    is exact, because `read` recovers every organ and form from the pixels. It comes with every row as `posterior`: one
    probability per genus, which need not sum to 1.
    """

    name: ClassVar[str] = "meadow"

    plants: tuple[float, ...] = knob((0.1, 0.3, 0.3, 0.3), meaning="probability of 0, 1, 2 and 3 plants in a photo")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.plants) != MOST_PLANTS + 1:
            raise ValueError(f"plants has {len(self.plants)} weights; give one for each of 0, 1, 2 and 3 plants")
        if self.plants[0] == 1:
            raise ValueError("plants gives every photograph 0 plants; give some weight to 1, 2 or 3")

    def dataset(self) -> Dataset:
        """The three splits, with posterior and attributes."""
        rows = {split_name: self._rows(split_name) for split_name in SPLITS}

        def draw(split_name: str) -> np.ndarray:
            rng = self._generator(split_name, 1)
            scenes = [_scene(looks, rng.permutation(len(QUARTERS))) for looks in rows[split_name][1]]
            return photographs(scenes, (self.seed, SPLITS.index(split_name), 2))

        images = drawn_once(self.key, SPLITS, draw)
        splits = [
            Split(images[split_name], labels, self.posterior(looks), self._attributes(looks))
            for split_name, (labels, looks) in rows.items()
        ]
        return Dataset(self.name, *splits, self.flora.genus_names, spec=self.spec, key=self.key)

    def posterior(self, looks: np.ndarray) -> np.ndarray:
        """(n, G): P(genus g is in the photograph | x), for the looks (n, plants, 4) of its plants."""
        belongs = np.eye(self.genera)[self.flora.genus]  # (S, G)
        of_plants = self.flora.posterior(looks.reshape(-1, len(ORGANS))) @ belongs
        present = (looks != HIDDEN).any(axis=2)
        of_plants = of_plants.reshape(*present.shape, -1) * present[..., None]
        return np.clip(1 - np.prod(1 - of_plants, axis=1), 0, 1)

    def read(self, images: np.ndarray) -> dict[str, np.ndarray]:
        """What photographs show, from their pixels alone: the attributes of their rows."""
        images = checked_photographs(images)
        looks = np.full((len(images), len(QUARTERS), len(ORGANS)), HIDDEN)
        for place, cell in enumerate(QUARTERS):
            columns, forms = read(images, cell, self.flora.n_forms).T
            there = np.flatnonzero(columns >= 0)
            looks[there, place, columns[there]] = forms[there]
        return self._attributes(looks)

    def _rows(self, split_name: str) -> tuple[np.ndarray, np.ndarray]:
        """Labels (n, G) and the looks (n, 3, 4) of the plants of each photograph; a plant that is not there shows nothing."""
        rng, n = self._generator(split_name, 0), self._size(split_name)
        while True:
            numbers = rng.choice(MOST_PLANTS + 1, size=n, p=self.plants)
            present = np.arange(MOST_PLANTS) < numbers[:, None]  # (n, 3)
            species, looks = self.flora.drawn(n * MOST_PLANTS, rng)
            looks = np.where(present[..., None], looks.reshape(n, MOST_PLANTS, -1), HIDDEN)
            genus = np.eye(self.genera, dtype=bool)[self.flora.genus[species]].reshape(n, MOST_PLANTS, -1)
            labels = (genus & present[..., None]).any(axis=1)
            if split_name != "train" or labels.any(axis=0).all():
                return labels, looks

    def _attributes(self, looks: np.ndarray) -> dict[str, np.ndarray]:
        """How many plants are shown, and each organ in words, such as `Caelora flower, oak leaf`."""
        words = [
            [f"{form} {organ}" for form in forms]
            for organ, forms in zip(ORGANS, (self.flora.genus_names, LEAVES, FRUITS, BARKS), strict=True)
        ]
        shown = [
            ", ".join(
                sorted(words[column][form] for look in plants for column, form in enumerate(look) if form != HIDDEN)
            )
            for plants in looks.tolist()
        ]
        return {
            "plants": (looks != HIDDEN).any(axis=2).sum(axis=1),
            "organs": np.array([text or "none" for text in shown]),
        }


def _scene(looks: np.ndarray, cells: np.ndarray) -> list[Organ]:
    """One organ of each plant that is there, each in a quarter of its own."""
    plants, columns = np.nonzero(looks != HIDDEN)
    return [
        Organ(int(column), int(looks[plant, column]), QUARTERS[cell])
        for plant, column, cell in zip(plants, columns, cells, strict=False)
    ]
