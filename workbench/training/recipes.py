"""How the papers trained, as named settings of a run; and settings that finish on a laptop.

>>> recipe = RECIPES["cifar100-resnet18-adam"]
>>> recipe.run("digits", epochs=1).optimizer
'adam'
>>> recipe.compared[0]  # one of the settings that the paper compares: sweep(recipe.run(data), over=recipe.compared)
{'loss': CrossEntropy()}
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.datasets import Dataset, LabelNoise
from workbench.losses import (
    LDAM,
    ROLE,
    AssumeNegative,
    AverageKTwoHead,
    BinaryCrossEntropy,
    CrossEntropy,
    DifferentiableTopK,
    ExpectedPositive,
    Focal,
    Loss,
    NoisedTopK,
    NoisedTopKImbalanced,
    Quasibinary,
    SmoothTopKHinge,
    SoftmaxMaxConfidence,
    SoftmaxUniform,
)
from workbench.training.trainer import Run

Settings = tuple[Mapping[str, Any], ...]  # of a sweep: fields of a run, one mapping per run


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Fields of a run as a paper gives them, what it compares and what it searched, and what differs here.

    `sweep(recipe.run(dataset), over=recipe.compared)` is the paper's comparison, each loss with the knobs the paper
    settled on; `over=recipe.grid` is the search before it, as far as the paper tells.
    """

    settings: Mapping[str, Any]
    compared: Settings = ()
    grid: Settings = ()
    paper: str = ""
    place: str = ""  # in the paper
    note: str = ""

    def run(self, dataset: str | os.PathLike[str] | Dataset, **changes: Any) -> Run:
        """The run of this recipe on a dataset; `changes` replace some of its fields."""
        return Run(dataset, **{**self.settings, **changes})


def of(losses: Iterable[Loss]) -> Settings:
    """One setting for each loss."""
    return tuple({"loss": loss} for loss in losses)


def sgd(
    learning_rate: float, *, epochs: int, drop_after: tuple[int, ...], batch_size: int, **rest: Any
) -> dict[str, Any]:
    """SGD with Nesterov's momentum of 0.9 and a learning rate that is divided by ten after some of the epochs."""
    return {
        "optimizer": "sgd",
        "learning_rate": learning_rate,
        "epochs": epochs,
        "schedule": "steps",
        "drops": tuple(epoch / epochs for epoch in drop_after),
        "batch_size": batch_size,
        "weight_decay": 1e-4,
        **rest,
    }


# On CIFAR-100 both papers of Garcin et al. train alike.
CIFAR = sgd(0.1, epochs=300, drop_after=(150, 225), batch_size=64, model="densenet40-40")
# Liao et al. have one protocol for CIFAR and its like.
SMALL_IMAGES = sgd(0.1, epochs=200, drop_after=(100, 150), batch_size=64, model="resnet18-small")
NO_AUGMENTATION = "no augmentation of the images is told of, and none is done"
PRETRAINED = "ImageNet's weights come by model=with_weights('{name}', file) or model='torchvision:{name}:DEFAULT'"
NOT_MACRO = "the papers stop early by macro-average top-K accuracy, which a run cannot monitor"

EPSILONS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)

# Garcin et al. 2022, appendix E: what was searched on data with a long tail.
MARGINS = (0.2, 0.3, 0.4, 0.5)
LONG_TAIL_GRID = of(
    [
        *(Focal(gamma=gamma) for gamma in (0.5, 1.0, 2.0, 5.0)),
        *(SmoothTopKHinge(temperature=temperature) for temperature in (0.1, 1.0)),
        *(LDAM(max_margin=margin) for margin in MARGINS),
        *(
            NoisedTopKImbalanced(epsilon=epsilon, max_margin=margin)
            for epsilon, margin in itertools.product((0.01, 0.05, 0.1), MARGINS)
        ),
    ]
)
# Petersen et al. 2022 fine-tune the heads of published backbones.
HEAD: dict[str, Any] = {
    "batch_size": 500,
    "optimizer": "adam",
    "schedule": "constant",
    "weight_decay": 0.0,
    "monitor": "val_accuracy",
}
SORTS = ("neural_sort", "soft_sort", "sinkhorn_sort", "splitter")
TOP_5 = (0.0, 0.0, 0.0, 0.0, 1.0)
ALL_5, ENDS = (
    (0.2, 0.2, 0.2, 0.2, 0.2),
    (0.5, 0.0, 0.0, 0.0, 0.5),
)  # P_K of Table 1, on CIFAR-100, and of Table 2, of heads


def ranked(p_k: tuple[float, ...]) -> Settings:
    """The losses of Tables 1 and 2 of Petersen et al. 2022: without ranks, with the top 5 alone, and with this P_K."""
    sorted_by = [DifferentiableTopK(p_k=each, operator=operator) for each in (TOP_5, p_k) for operator in SORTS]
    return of([CrossEntropy(), SmoothTopKHinge(), *sorted_by])


def steepness(p_k: tuple[float, ...]) -> Settings:
    """ "A grid search at a resolution of factor 2"; where it starts and ends is not told."""
    powers = range(-2, 6)
    return of(DifferentiableTopK(p_k, operator, steepness=2.0**power) for operator in SORTS for power in powers)


RECIPES: dict[str, Recipe] = {
    "quick-photographs": Recipe(
        settings={"model": "cnn", "epochs": 10, "batch_size": 64, "learning_rate": 3e-3},
        note="small photographs such as the garden: about a minute on one core",
    ),
    "quick-rows": Recipe(
        settings={"model": "mlp", "epochs": 10, "batch_size": 128, "learning_rate": 3e-3},
        note="rows of numbers such as letters: seconds",
    ),
    "quick-head": Recipe(
        settings={"epochs": 20, "batch_size": 256, "learning_rate": 3e-3},
        note="a head on cached features, in seconds: give model= and features=",
    ),
    "cifar100-densenet": Recipe(
        settings=CIFAR,
        compared=of(
            [
                CrossEntropy(),
                AverageKTwoHead(alpha=0.3),
                AssumeNegative(),
                ExpectedPositive(beta=0.01),
                NoisedTopK(epsilon=0.2),
                ROLE(beta=0.0, estimate_rate=1.0),
            ]
        ),
        paper="Garcin et al. 2023; Garcin, thesis",
        place="section 6.2; Table 5.3",
        note="5 000 training images are the validation rows; the papers keep the epoch of the best validation average-K "
        f"accuracy, here it is the last; {NO_AUGMENTATION}; the grids of the search are not printed",
    ),
    "cifar100-label-noise": Recipe(
        settings=CIFAR | {"monitor": "val_average_K_accuracy"},
        compared=tuple(
            {"transforms": (LabelNoise(probability),), "loss": loss}
            for probability in (0.0, 0.1, 0.2, 0.3, 0.4)
            for loss in (CrossEntropy(), SmoothTopKHinge(temperature=1.0), NoisedTopK(epsilon=0.2, n_samples=10))
        ),
        grid=of(
            [
                *(NoisedTopK(epsilon=epsilon, n_samples=10) for epsilon in EPSILONS),
                *(NoisedTopK(epsilon=0.2, n_samples=n) for n in (1, 2, 3, 5, 10, 50, 100)),
            ]
        ),
        paper="Garcin et al. 2022",
        place="section 4.4, Tables 2, 3 and 4",
        note="the best epoch is that of the average-K accuracy here, of the top-5 accuracy there; " + NO_AUGMENTATION,
    ),
    "plantnet300k-resnet50": Recipe(
        settings=sgd(2e-3, epochs=30, drop_after=(20, 25), batch_size=32, model="resnet50"),
        compared=of(
            [
                CrossEntropy(),
                SmoothTopKHinge(temperature=0.1),
                NoisedTopK(epsilon=1.0),
                Focal(gamma=2.0),
                LDAM(max_margin=0.2, scale=40.0),
                NoisedTopKImbalanced(epsilon=0.01, max_margin=0.2, scale=60.0),
            ]
        ),
        grid=LONG_TAIL_GRID,
        paper="Garcin et al. 2022",
        place="section 4.5.1, Table 5, appendix E",
        note=f"for K = 1, 3 and 5; {PRETRAINED.format(name='resnet50')}; {NOT_MACRO}",
    ),
    "plantnet300k-resnet18": Recipe(
        settings=sgd(2e-3, epochs=30, drop_after=(25,), batch_size=32, model="resnet18"),
        compared=of(
            [
                CrossEntropy(),
                NoisedTopK(epsilon=1.0),
                AverageKTwoHead(alpha=5.0),
                AssumeNegative(),
                ExpectedPositive(beta=0.001),
            ]
        ),
        paper="Garcin et al. 2023; Garcin, thesis",
        place="section 6.3; Table 5.4",
        note="for K = 2, 3, 5 and 10; the papers keep the epoch of the best validation average-K accuracy, here it is the "
        f"last; {PRETRAINED.format(name='resnet18')}",
    ),
    "plantnet300k-cross-entropy": Recipe(
        settings=sgd(1e-2, epochs=30, drop_after=(20, 25), batch_size=32, model="resnet50"),
        grid=tuple({"model": model} for model in ("resnet18", "resnet34", "resnet50")),
        paper="Garcin, thesis",
        place="section 3.3.2, Table 3.3, first line",
        note="also for DenseNets, Inception, MobileNet V2 and Wide ResNets; " + PRETRAINED.format(name="resnet50"),
    ),
    "plantnet300k-cross-entropy-slow": Recipe(
        settings=sgd(1e-3, epochs=30, drop_after=(20, 25), batch_size=32),
        paper="Garcin, thesis",
        place="section 3.3.2, Table 3.3, second line",
        note="for VGG-11, AlexNet, small MobileNet V3 and SqueezeNet: give model='torchvision:vgg11:DEFAULT'",
    ),
    "plantnet300k-efficientnet": Recipe(
        settings=sgd(1e-2, epochs=20, drop_after=(10, 15), batch_size=32),
        paper="Garcin, thesis",
        place="section 3.3.2, Table 3.3, third line",
        note="for EfficientNets B0 to B4: give model='torchvision:efficientnet_b0:DEFAULT' or 'efficientnet-lite0'",
    ),
    "plantnet300k-vit": Recipe(
        settings=sgd(5e-4, epochs=20, drop_after=(15,), batch_size=32),
        paper="Garcin, thesis",
        place="section 3.3.2, Table 3.3, last line",
        note="for a vision transformer: give model='torchvision:vit_b_16:DEFAULT' and images of 224 pixels",
    ),
    "imagenet-lt-resnet34": Recipe(
        settings=sgd(1e-2, epochs=100, drop_after=(60, 80), batch_size=128, weight_decay=2e-3, model="resnet34"),
        compared=of(
            [
                CrossEntropy(),
                SmoothTopKHinge(temperature=0.1),
                Focal(gamma=1.0),
                LDAM(max_margin=0.4),
                NoisedTopKImbalanced(epsilon=0.1, max_margin=0.4),
            ]
        ),
        grid=LONG_TAIL_GRID,
        paper="Garcin et al. 2022",
        place="section 4.5.2, Table 6, appendix E",
        note="for K = 1, 3 and 5; the optimizer is not told, we take theirs for Pl@ntNet-300K",
    ),
    "imagenet-resnet18": Recipe(
        settings=sgd(0.1, epochs=120, drop_after=(30, 60, 90), batch_size=120, model="resnet18"),
        compared=(
            {"loss": CrossEntropy(), "learning_rate": 0.1, "weight_decay": 1e-4},
            {"loss": SmoothTopKHinge(temperature=0.1), "learning_rate": 1.0, "weight_decay": 2.5e-5},
            {"loss": NoisedTopK(epsilon=0.5, n_samples=10), "learning_rate": 0.1, "weight_decay": 1.5e-4},
        ),
        paper="Garcin et al. 2022",
        place="appendix D, Table 9",
        note="for K = 1 and 5; the paper keeps the epoch of the best validation top-K accuracy, here it is the last; it "
        "prints 'a batch size of 120 epochs'",
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
        compared=ranked(ALL_5),
        grid=steepness(ALL_5),
        paper="Petersen et al. 2022",
        place="section 5.1, Table 1",
        note="early stopping keeps the epoch with the best validation accuracy; weight decay is not given there, and "
        "neither are the temperatures: those of the losses here are their defaults",
    ),
    "imagenet1k-head": Recipe(
        settings=HEAD | {"epochs": 100, "learning_rate": 10**-4.5},
        compared=ranked(ENDS),
        grid=steepness(ENDS),
        paper="Petersen et al. 2022",
        place="section 5.1, Table 2",
        note="give model= and features=: only the head is trained, on the features of a backbone that was trained before",
    ),
    "imagenet21k-head": Recipe(
        settings=HEAD | {"epochs": 40, "learning_rate": 1e-4},
        compared=ranked(ENDS),
        grid=steepness(ENDS),
        paper="Petersen et al. 2022",
        place="section 5.1, Table 2",
        note="as imagenet1k-head",
    ),
    "quasibinary-resnet18": Recipe(
        settings=SMALL_IMAGES,
        compared=of([CrossEntropy(), BinaryCrossEntropy(), Quasibinary()]),
        paper="Liao et al.",
        place="section V, common training protocol; Table I",
        note="the paper prints a momentum of 1e-4, which we read as weight decay; the momentum here is 0.9",
    ),
    "quasibinary-zero-labels": Recipe(
        settings=SMALL_IMAGES | {"loss": Quasibinary()},
        compared=of([SoftmaxUniform(), SoftmaxMaxConfidence(), BinaryCrossEntropy(), Quasibinary()]),
        paper="Liao et al.",
        place="section V, common training protocol; section V-B, Table II",
        note="for data with rows without a label, such as transforms=(ZeroLabels(),); as quasibinary-resnet18",
    ),
}
