"""How the papers trained, as named settings of a run; and settings that finish on a laptop.

>>> RECIPES["cifar100-resnet18-adam"].run("digits", epochs=1).optimizer
'adam'
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.datasets import Dataset
from workbench.losses import (
    AssumeNegative,
    AverageKTwoHead,
    BinaryCrossEntropy,
    CrossEntropy,
    ExpectedPositive,
    Loss,
    NoisedTopK,
    Quasibinary,
)
from workbench.training import Run


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Fields of a run as a paper gives them, the losses with the knobs it settled on, and what differs here.

    `sweep(recipe.run(dataset), over={"loss": recipe.losses})` is the paper's comparison.
    """

    settings: Mapping[str, Any]
    losses: tuple[Loss, ...] = ()
    paper: str = ""
    place: str = ""  # in the paper
    note: str = ""

    def run(self, dataset: str | os.PathLike[str] | Dataset, **changes: Any) -> Run:
        """The run of this recipe on a dataset; `changes` replace some of its fields."""
        return Run(dataset, **{**self.settings, **changes})


# Petersen et al. 2022 fine-tune the heads of published backbones.
HEAD: dict[str, Any] = {
    "batch_size": 500,
    "optimizer": "adam",
    "schedule": "constant",
    "weight_decay": 0.0,
    "monitor": "val_accuracy",
}

RECIPES: dict[str, Recipe] = {
    "quick-photographs": Recipe(
        settings={"model": "cnn", "epochs": 10, "batch_size": 64, "learning_rate": 3e-3},
        note="small photographs such as the garden: about a minute on one core",
    ),
    "quick-rows": Recipe(
        settings={"model": "mlp", "epochs": 10, "batch_size": 128, "learning_rate": 3e-3},
        note="rows of numbers such as letters: seconds",
    ),
    "cifar100-densenet": Recipe(
        settings={
            "model": "densenet40-40",
            "epochs": 300,
            "batch_size": 64,
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "schedule": "steps",
            "weight_decay": 1e-4,
        },
        losses=(
            CrossEntropy(),
            AverageKTwoHead(alpha=0.3),
            AssumeNegative(),
            ExpectedPositive(beta=0.01),
            NoisedTopK(epsilon=0.2),
        ),
        paper="Garcin et al. 2022; Garcin et al. 2023; Garcin, thesis",
        place="section 4.4; section 6.2; Table 5.3",
        note="5 000 training images are the validation rows; images are not augmented here",
    ),
    "cifar100-resnet18-adam": Recipe(
        settings={
            "model": "resnet18-small",
            "epochs": 200,
            "batch_size": 100,
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "schedule": "constant",
            "weight_decay": 0.0,
            "monitor": "val_accuracy",
        },
        paper="Petersen et al. 2022",
        place="section 5.1",
        note="early stopping keeps the epoch with the best validation accuracy; weight decay is not given there",
    ),
    "imagenet1k-head": Recipe(
        settings=HEAD | {"epochs": 100, "learning_rate": 10**-4.5},
        paper="Petersen et al. 2022",
        place="section 5.1",
        note="give model= and features=: only the head is trained, on the features of a backbone that was trained before",
    ),
    "imagenet21k-head": Recipe(
        settings=HEAD | {"epochs": 40, "learning_rate": 1e-4},
        paper="Petersen et al. 2022",
        place="section 5.1",
        note="as imagenet1k-head",
    ),
    "quasibinary-resnet18": Recipe(
        settings={
            "model": "resnet18-small",
            "epochs": 200,
            "batch_size": 64,
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "schedule": "steps",
            "weight_decay": 1e-4,
        },
        losses=(Quasibinary(), BinaryCrossEntropy(), CrossEntropy()),
        paper="Liao et al.",
        place="section V, common training protocol",
        note="the paper prints a momentum of 1e-4, which we read as weight decay; the momentum here is 0.9",
    ),
}
