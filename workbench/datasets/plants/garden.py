"""The garden: small photographs of plants drawn by a program, with P(y|x) known exactly.

Species of a genus share their flower and differ in leaf, fruit or bark; a photograph shows only some organs. So from the
flower alone the species *cannot* be determined; the posterior of every row is the best possible prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.datasets.plants.base import Plants
from workbench.datasets.plants.flora import GENERA, HIDDEN, ORGANS
from workbench.datasets.plants.photographs import HALVES, WHOLE, Organ, organ_in, side_by_side
from workbench.knobs import knob

NOT_SHOWN = "not shown"


@dataclass(frozen=True)
class Garden(Plants):
    """Photographs of one plant each; the label is its species.

    A row is drawn in four steps: the species y from the long-tailed prior; the organs that are shown, whatever y is
    (one with probability 1 − two_organs, else two side by side); a form of each shown organ from its law given y; and
    a photograph of these forms, with a place, turn, size, light, background and grain that know nothing of y. `read`
    recovers organs and forms from the pixels of every photograph. Therefore

        P(y | x) = P(y | organs, forms) ∝ P(y) · Π_o P(form_o | y)

    is exact, and comes with every row as its `posterior`. Train, val and test are drawn from the same law (the training
    rows once more, should they lack a species).

    >>> garden = Garden()
    >>> f"{garden.bayes_risk:.3f} {garden.bayes_top_k_accuracy(5):.3f} {garden.bayes_average_k_accuracy(5):.3f}"
    '0.270 0.965 0.987'
    """

    name: ClassVar[str] = "garden"

    two_organs: float = knob(0.4, low=0, high=1, meaning="probability that a photograph shows two organs and not one")

    @property
    def bayes_risk(self) -> float:
        """Bayes error on the population."""
        return self.flora.bayes_risk

    def bayes_top_k_accuracy(self, K: int) -> float:
        """The best possible accuracy of sets of exactly K species, on the population."""
        return self.flora.bayes_top_k_accuracy(K)

    def bayes_average_k_accuracy(self, K: float) -> float:
        """The best possible accuracy of sets of K species on average, on the population."""
        return self.flora.bayes_average_k_accuracy(K)

    def classes(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        """The species, grouped by genus."""
        return self.flora.names, tuple(GENERA[g] for g in self.flora.genus)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Species (n,) and looks (n, 4) of n photographs."""
        return self.flora.sample(n, rng)

    def posterior(self, looks: np.ndarray) -> np.ndarray:
        """(n, S): P(y | x) of photographs that show these looks."""
        return self.flora.posterior(looks)

    def attributes(self, looks: np.ndarray) -> dict[str, np.ndarray]:
        """The organs shown, such as `leaf+fruit`, and the form of each in words."""
        shown = np.array(["+".join(np.array(ORGANS)[look != HIDDEN]) for look in looks])
        # HIDDEN is −1, the last word.
        forms = {
            organ: np.array([*words, NOT_SHOWN])[looks[:, column]]
            for column, (organ, words) in enumerate(self.flora.forms.items())
        }
        return {"organs": shown, **forms}

    def scene(self, look: np.ndarray, rng: np.random.Generator) -> list[Organ]:
        """One organ in the middle, or two side by side in either order."""
        columns = np.flatnonzero(look != HIDDEN).tolist()
        cells = [WHOLE] if len(columns) == 1 else [HALVES[half] for half in rng.permutation(2)]
        return [Organ(column, int(look[column]), cell) for column, cell in zip(columns, cells, strict=True)]

    def looks(self, images: np.ndarray) -> np.ndarray:
        """(n, 4): the form of each organ in each photograph, or HIDDEN, from pixels alone."""
        looks = np.full((len(images), len(ORGANS)), HIDDEN)
        two = side_by_side(images)
        for rows, cells in ((np.flatnonzero(~two), (WHOLE,)), (np.flatnonzero(two), HALVES)):
            for cell in cells:
                columns, forms = organ_in(cell, images[rows], self.flora.n_forms)
                looks[rows, columns] = forms
        return looks
