"""Real data that is always there: letters ship with the package, digits come with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files

import numpy as np

from workbench.datasets.base import Dataset
from workbench.knobs import Knobbed, knob
from workbench.optional_dependencies import check_installed

# How a capital is drawn. A linear model confuses two letters of one shape about twice as often as two others.
SHAPES = {"round": "CGOQ", "bowls": "BDPRS", "bars": "EFIJLTZ", "crossed": "AHKX", "zigzag": "MNUVWY"}


@dataclass(frozen=True)
class Letters(Knobbed):
    """UCI Letter Recognition: 20 000 printed capitals, each described by 16 whole numbers; 26 confusable classes.

    The numbers (position, size, moments and edge counts of the letter's pixels, 0 to 15) are given as they are. The
    benchmark's usual cut (first 16 000 rows to train, 4 000 to test) has no validation rows, so rows are split inside
    each class by the rule of all real data here: about 16 000 / 2 000 / 2 000.

    D. Slate, UCI Machine Learning Repository, 1991, doi:10.24432/C5ZP40, CC BY 4.0.
    """

    seed: int = knob(0, low=0, high=20, maximum=2**31 - 1, meaning="seed of the split into train, val and test")
    groups: str = knob("none", choices=("none", "shape"), meaning="groups of the classes; shape: letters drawn alike")

    def dataset(self) -> Dataset:
        """The rows, split."""
        with (
            as_file(files("workbench.datasets") / "data" / "letters.npz") as path,
            np.load(path, allow_pickle=False) as arrays,
        ):
            X, y, names = arrays["X"], arrays["y"], arrays["classes"]
        spec = {"name": "letters", "knobs": self.settings()}
        group_of = {letter: shape for shape, letters in SHAPES.items() for letter in letters}
        groups = group_of if self.groups == "shape" else None
        return Dataset.from_arrays(X, y, names, groups, seed=self.seed, name="letters", spec=spec)


@dataclass(frozen=True)
class Digits(Knobbed):
    """Handwritten digits of scikit-learn: 1 797 grey images of 8 × 8 pixels, split inside each class.

    E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.
    """

    seed: int = knob(0, low=0, high=20, maximum=2**31 - 1, meaning="seed of the split into train, val and test")

    def dataset(self) -> Dataset:
        """The images, split."""
        check_installed("sklearn")
        from sklearn.datasets import load_digits  # slow to import

        images, labels = load_digits(return_X_y=True)
        grey = np.round(images.reshape(-1, 8, 8, 1) * (255 / 16)).astype(np.uint8)  # 0 … 16 to 0 … 255
        names = [str(digit) for digit in range(10)]
        spec = {"name": "digits", "knobs": self.settings()}
        return Dataset.from_arrays(grey, labels, class_names=names, seed=self.seed, name="digits", spec=spec)
