"""The meadow: none to three plants in one photograph, labelled with all their genera: the garden's many-label sister."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.datasets.plants.base import Plants
from workbench.datasets.plants.flora import HIDDEN, ORGANS
from workbench.datasets.plants.photographs import QUARTERS, Organ, organ_in
from workbench.knobs import knob

MOST_PLANTS = 3
NO_PLANT = "none"


@dataclass(frozen=True)
class Meadow(Plants):
    """Photographs of 0 to 3 plants; the labels are their genera, so a row may have no label or several.

    Plants come to a photograph independently, each with one organ, drawn as in the garden. With P(g | look_i) the
    posterior of the genus of plant i given its organ and form,

        P(genus g is in the photograph | x) = 1 − Π_i (1 − P(g | look_i))

    is exact, because `read` recovers every organ and form from the pixels. It comes with every row as its `posterior`:
    one probability per genus; they need not sum to 1.
    """

    name: ClassVar[str] = "meadow"

    plants: tuple[float, ...] = knob((0.1, 0.3, 0.3, 0.3), meaning="probability of 0, 1, 2 and 3 plants in a photo")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.plants) != MOST_PLANTS + 1:
            raise ValueError(f"plants has {len(self.plants)} weights; give one for each of 0, 1, 2 and 3 plants")
        if self.plants[0] > 0.9:
            raise ValueError(f"plants leaves {self.plants[0]:g} of the photographs empty; at most 0.9 may be")

    def classes(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        """The genera."""
        return self.flora.genus_names, None

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Labels (n, G) and the looks (n, 3, 4) of the plants; a plant that is not there shows nothing."""
        numbers = rng.choice(MOST_PLANTS + 1, size=n, p=self.plants)
        present = (np.arange(MOST_PLANTS) < numbers[:, None])[..., None]  # (n, 3, 1)
        species, looks = self.flora.sample(n * MOST_PLANTS, rng)
        genus = np.eye(self.genera, dtype=bool)[self.flora.genus[species]].reshape(n, MOST_PLANTS, -1)
        return (genus & present).any(axis=1), np.where(present, looks.reshape(n, MOST_PLANTS, -1), HIDDEN)

    def posterior(self, looks: np.ndarray) -> np.ndarray:
        """(n, G): P(genus g is in the photograph | x), for the looks (n, plants, 4) of its plants."""
        members = np.eye(self.genera)[self.flora.genus]  # (S, G)
        present = (looks != HIDDEN).any(axis=2, keepdims=True)
        of_plants = (self.flora.posterior(looks.reshape(-1, len(ORGANS))) @ members).reshape(*looks.shape[:2], -1)
        posterior: np.ndarray = np.clip(1 - np.prod(1 - of_plants * present, axis=1), 0, 1)
        return posterior

    def attributes(self, looks: np.ndarray) -> dict[str, np.ndarray]:
        """Number of plants shown, and the organ of each in words, such as `Caelora flower, oak leaf`."""
        words = [[f"{form} {organ}" for form in forms] for organ, forms in self.flora.forms.items()]
        shown = [
            ", ".join(
                sorted(words[column][form] for look in plants for column, form in enumerate(look) if form != HIDDEN)
            )
            for plants in looks.tolist()
        ]
        numbers = (looks != HIDDEN).any(axis=2).sum(axis=1)
        return {"plants": numbers, "organs": np.array([text or NO_PLANT for text in shown])}

    def scene(self, look: np.ndarray, rng: np.random.Generator) -> list[Organ]:
        """The organ of each plant that is there, in a quarter of its own."""
        plants, columns = np.nonzero(look != HIDDEN)
        cells = rng.permutation(len(QUARTERS))[: len(plants)]
        return [
            Organ(int(column), int(look[plant, column]), QUARTERS[cell])
            for plant, column, cell in zip(plants, columns, cells, strict=True)
        ]

    def looks(self, images: np.ndarray) -> np.ndarray:
        """(n, 4, 4): the form of the organ in each quarter of each photograph, or HIDDEN, from pixels alone."""
        looks = np.full((len(images), len(QUARTERS), len(ORGANS)), HIDDEN)
        for place, cell in enumerate(QUARTERS):
            columns, forms = organ_in(cell, images, self.flora.n_forms)
            there = np.flatnonzero(forms != HIDDEN)
            looks[there, place, columns[there]] = forms[there]
        return looks
