"""Datasets: three named splits, class names, groups, counts, and P(y|x) where it is known.

load_dataset("garden")      plants drawn by a program, with an exactly known posterior
load_dataset("meadow")      their many-label sister
load_dataset("letters")     UCI Letter Recognition, 26 confusable classes
load_dataset("digits")      handwritten digits of scikit-learn
Dataset.from_arrays(X, y)   your own
"""

from __future__ import annotations

from typing import Any

from workbench.datasets.base import Dataset, Split
from workbench.datasets.bundled import Digits, Letters
from workbench.datasets.garden import Garden
from workbench.datasets.meadow import Meadow

__all__ = ["DATASETS", "Dataset", "Digits", "Garden", "Letters", "Meadow", "Split", "load_dataset"]

# Name → the frozen dataclass of its knobs; `.dataset()` makes it.
DATASETS: dict[str, type[Garden] | type[Meadow] | type[Letters] | type[Digits]] = {
    "garden": Garden,
    "meadow": Meadow,
    "letters": Letters,
    "digits": Digits,
}


def load_dataset(name_or_path: str, **knobs: Any) -> Dataset:
    """A dataset by its name, with its knobs set.

    >>> load_dataset("letters")
    Dataset('letters': 15 974 / 2 013 / 2 013 rows of 16, 26 classes)
    >>> load_dataset("letter")
    Traceback (most recent call last):
        ...
    ValueError: there is no dataset 'letter'; there are garden, meadow, letters, digits (your own: Dataset.from_arrays)
    """
    name = str(name_or_path)
    known = ", ".join(DATASETS)
    if name not in DATASETS:
        raise ValueError(f"there is no dataset {name!r}; there are {known} (your own: Dataset.from_arrays)")
    recipe = DATASETS[name]
    if unknown := [knob for knob in knobs if knob not in recipe.knobs()]:
        raise ValueError(f"{name} has no knob {', '.join(unknown)}; it has {', '.join(recipe.knobs())}")
    return recipe(**knobs).dataset()
