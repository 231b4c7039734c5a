"""What the papers print of how they trained, each with its place: the one source that recipes are held against.

Numbers are as printed, in the papers' own terms: the epochs at which the learning rate is divided by ten, losses with the
knobs that are told. `UNSTATED` is what a paper does not tell. Losses: (name, knobs), in the order of the recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UNSTATED = "the paper does not tell"
FACTOR_2 = "a grid search at a resolution of factor 2"  # of the steepness; where it begins and ends is not told
NONE: tuple[Any, ...] = ()
Losses = tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The settings of one experiment."""

    place: str
    model: str | None  # as a run names it; None: one of those in `models`, as printed
    epochs: int
    batch_size: int | str
    optimizer: str
    momentum: float | str | None
    learning_rate: float | str
    divided_at: tuple[int, ...] | str  # epochs
    weight_decay: float | str
    monitor: tuple[str, ...] | str
    K: tuple[int, ...]
    compared: Losses
    grid: Losses | str = NONE
    models: tuple[str, ...] = NONE
    pretrained: bool = False
    augmentation: tuple[str, ...] | str = UNSTATED
    also_unstated: tuple[str, ...] = NONE  # of a loss, or of the search


CIFAR_OF_GARCIN = {
    "model": "densenet40-40",
    "epochs": 300,
    "batch_size": 64,
    "optimizer": "sgd",
    "momentum": 0.9,
    "learning_rate": 0.1,
    "divided_at": (150, 225),
    "weight_decay": 1e-4,
    "K": (5,),
    "augmentation": ("PaddedCrop", "HorizontalFlip", "Normalise"),  # the authors' code, dataloader/get_data.py
}
FINE_TUNED: dict[str, Any] = {
    "batch_size": 32,
    "optimizer": "sgd",
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "pretrained": True,
}
# Garcin et al. 2022, appendix E; 30 and 50 are its good default scales, and five draws those of Tables 5 and 6.
LONG_TAIL_GRID: Losses = (
    *(("Focal", {"gamma": gamma}) for gamma in (0.5, 1.0, 2.0, 5.0)),
    *(("SmoothTopKHinge", {"temperature": tau}) for tau in (0.1, 1.0)),
    *(("LDAM", {"max_margin": margin, "scale": 30}) for margin in (0.2, 0.3, 0.4, 0.5)),
    *(
        ("NoisedTopKImbalanced", {"epsilon": epsilon, "max_margin": margin, "scale": 50, "n_samples": 5})
        for epsilon in (0.01, 0.05, 0.1)
        for margin in (0.2, 0.3, 0.4, 0.5)
    ),
)
# Thesis, section 3.3.2, and 3.8.3: "the same as in Section 4 … the smoothing parameter τ of the top-K loss is set to 1.0".
OF_TABLE_3_3: dict[str, Any] = {
    **FINE_TUNED,
    "augmentation": NONE,  # "resized to 256 and a random crop of size 224": what the readers of files do
    "monitor": UNSTATED,
    "K": (5,),
    "compared": (("CrossEntropy", {}), ("SmoothTopKHinge", {"temperature": 1.0})),
}
# Petersen et al. 2022, Tables 1 to 4 and 6: P_K with the sorts in their order, each with the steepness that difftopk's
# README gives for the tables (none for SinkhornSort), by ART with λ = 0.5 for the sorting networks.
TOP_5, ALL_5 = (0, 0, 0, 0, 1), (0.2, 0.2, 0.2, 0.2, 0.2)
MIXTURES = ((0.5, 0, 0, 0, 0.5), (0.25, 0, 0, 0, 0.75), (0.1, 0, 0, 0, 0.9), ALL_5)
LONGER = tuple((first, *[0] * (k - 2), last) for k in (10, 20) for first, *_, last in MIXTURES[:3])


def ranked(distributions: tuple[Any, ...], steepness: dict[str, float], **knobs: Any) -> Losses:
    return (
        ("CrossEntropy", {}),
        ("SmoothTopKHinge", {"temperature": 1.0}),
        *(
            (
                "DifferentiableTopK",
                {"p_k": p_k, "operator": sort, **knobs}
                | ({"steepness": steepness[sort]} if sort in steepness else {})
                | ({"relaxation": "art", "art_lambda": 0.5} if sort == "splitter" else {}),
            )
            for p_k in distributions
            for sort in ("neural_sort", "soft_sort", "sinkhorn_sort", "splitter")
        ),
    )


QUASIBINARY = ("Quasibinary", {"averaging_rate": 0.1})  # "the momentum of the moving average … as 0.9"
OF_LIAO: dict[str, Any] = {
    "model": "resnet18-small",
    "epochs": 200,
    "batch_size": 64,
    "optimizer": "sgd",
    "momentum": UNSTATED,  # "momentum set to 1e-4" stands there
    "learning_rate": 0.1,
    "divided_at": (100, 150),  # "after 50 % and 75 % of the epochs"
    "weight_decay": UNSTATED,
    "monitor": UNSTATED,
    "K": NONE,
}

PRINTED: dict[str, Printed] = {
    "cifar100-densenet": Printed(
        place="Garcin et al. 2023, sections 6.1 and 6.2, Table 1; thesis, section 5.6.2, Table 5.3",
        **CIFAR_OF_GARCIN,
        monitor=("average_k_accuracy@K=5",),
        compared=(
            ("CrossEntropy", {}),
            ("AverageKTwoHead", {"alpha": 0.3}),
            ("AssumeNegative", {}),
            ("ExpectedPositive", {"beta": 0.01}),
            ("NoisedTopK", {"epsilon": 0.2}),
            ("ROLE", {"beta": 0.0, "estimate_rate": 1.0}),
        ),
        also_unstated=("grids of the search", "n_samples"),
    ),
    "cifar100-alpha": Printed(
        place="thesis, section 5.9.1, Figure 5.5: the decades of its axis",
        **CIFAR_OF_GARCIN,
        monitor=("average_k_accuracy@K=5",),
        compared=tuple(
            ("AverageKTwoHead", {"alpha": alpha}) for alpha in (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
        ),
    ),
    "cifar100-batch-size": Printed(
        place="thesis, section 5.9.1, Figure 5.6",
        **CIFAR_OF_GARCIN,
        monitor=("average_k_accuracy@K=5",),
        compared=tuple(
            (loss, knobs | {"batch_size": n, "learning_rate": 0.1 * n / 64})
            for loss, knobs in (("CrossEntropy", {}), ("AverageKTwoHead", {"alpha": 0.3}))
            for n in (16, 32, 64, 128, 256, 512, 1024)  # ours
        ),
        also_unstated=("batch sizes of the sweep",),
    ),
    "cifar100-gradients": Printed(
        place="thesis, section 4.4.1, Figure 4.2; Garcin et al. 2022, section 4.1, Figure 2",
        **(CIFAR_OF_GARCIN | {"epochs": 1, "divided_at": ()}),
        monitor=UNSTATED,
        compared=tuple(
            ("NoisedTopK", {"epsilon": epsilon, "n_samples": 3})
            for epsilon in (0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)  # of Table 4.2
        ),
        also_unstated=("values of ε",),
    ),
    "cifar100-label-noise": Printed(
        place="Garcin et al. 2022, section 4.4, Tables 2 (ε), 3 (B) and 4",
        **CIFAR_OF_GARCIN,
        monitor=("top_k_accuracy@K=5",),
        compared=tuple(
            (loss, knobs | {"label noise": p})
            for p in (0.0, 0.1, 0.2, 0.3, 0.4)
            for loss, knobs in (
                ("CrossEntropy", {}),
                ("SmoothTopKHinge", {"temperature": 1.0}),
                ("NoisedTopK", {"epsilon": 0.2, "n_samples": 10}),
            )
        ),
        grid=(
            *(("NoisedTopK", {"epsilon": e, "n_samples": 10}) for e in (0, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100)),
            *(("NoisedTopK", {"epsilon": 0.2, "n_samples": B}) for B in (1, 2, 3, 5, 10, 50, 100)),
        ),
    ),
    "plantnet300k-resnet50": Printed(
        place="Garcin et al. 2022, section 4.5.1, Table 5, appendix E",
        **FINE_TUNED,
        model="resnet50",
        epochs=30,
        learning_rate=2e-3,
        divided_at=(20, 25),
        monitor=("macro_top_k_accuracy@K=5",),
        K=(1, 3, 5),
        compared=(
            ("CrossEntropy", {}),
            ("SmoothTopKHinge", {"temperature": 0.1}),
            ("NoisedTopK", {"epsilon": 1.0, "n_samples": 5}),
            ("Focal", {"gamma": 2.0}),
            ("LDAM", {"max_margin": 0.2, "scale": 40}),
            ("NoisedTopKImbalanced", {"epsilon": 0.01, "n_samples": 5, "max_margin": 0.2, "scale": 60}),
        ),
        grid=LONG_TAIL_GRID,
    ),
    "plantnet300k-resnet18": Printed(
        place="Garcin et al. 2023, sections 6.1 and 6.3, Table 2; thesis, section 5.6.3, Table 5.4",
        **FINE_TUNED,
        model="resnet18",
        epochs=30,
        learning_rate=0.002,
        divided_at=(25,),
        monitor=("average_k_accuracy@K=5",),
        K=(2, 3, 5, 10),
        compared=(
            ("CrossEntropy", {}),
            ("NoisedTopK", {"epsilon": 1.0}),
            ("AverageKTwoHead", {"alpha": 5.0}),
            ("AssumeNegative", {}),
            ("ExpectedPositive", {"beta": 0.001}),
        ),
        also_unstated=("grids of the search", "n_samples"),
    ),
    "plantnet300k-cross-entropy": Printed(
        place="thesis, sections 3.3.2 and 3.8.3, Table 3.3, first line",
        **OF_TABLE_3_3,
        model="resnet50",
        epochs=30,
        learning_rate=0.01,
        divided_at=(20, 25),
        models=(
            *("mobilenet_v2", "mobilenet_v3_large", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
            *("densenet121", "densenet161", "densenet169", "densenet201"),
            *("inception_v3", "inception_v4", "inception_resnet_v2"),
            *("wide_resnet50_2", "wide_resnet101_2", "shufflenet"),
        ),
    ),
    "plantnet300k-cross-entropy-slow": Printed(
        place="thesis, sections 3.3.2 and 3.8.3, Table 3.3, second line",
        **OF_TABLE_3_3,
        model=None,
        epochs=30,
        learning_rate=0.001,
        divided_at=(20, 25),
        models=("vgg11", "alexnet", "mobilenet_v3_small", "squeezenet"),
    ),
    "plantnet300k-efficientnet": Printed(
        place="thesis, sections 3.3.2 and 3.8.3, Table 3.3, third line",
        **OF_TABLE_3_3,
        model=None,
        epochs=20,
        learning_rate=0.01,
        divided_at=(10, 15),
        models=("efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4"),
    ),
    "plantnet300k-vit": Printed(
        place="thesis, sections 3.3.2 and 3.8.3, Table 3.3, last line",
        **OF_TABLE_3_3,
        model=None,
        epochs=20,
        learning_rate=5e-4,
        divided_at=(15,),
        models=("vit",),
    ),
    "imagenet-lt-resnet34": Printed(
        place="Garcin et al. 2022, section 4.5.2, Table 6, appendix E",
        model="resnet34",
        epochs=100,
        batch_size=128,
        optimizer=UNSTATED,
        momentum=UNSTATED,
        learning_rate=1e-2,
        divided_at=(60, 80),
        weight_decay=2e-3,
        monitor=UNSTATED,
        K=(1, 3, 5),
        compared=(
            ("CrossEntropy", {}),
            ("SmoothTopKHinge", {"temperature": 0.1}),
            ("Focal", {"gamma": 1.0}),
            ("LDAM", {"max_margin": 0.4, "scale": 30}),
            ("NoisedTopKImbalanced", {"epsilon": 0.1, "n_samples": 5, "max_margin": 0.4, "scale": 50}),
        ),
        grid=LONG_TAIL_GRID,
    ),
    "imagenet-resnet18": Printed(
        place="Garcin et al. 2022, appendix D, Table 9",
        model="resnet18",
        epochs=120,
        batch_size=120,
        optimizer="sgd",
        momentum=UNSTATED,
        learning_rate=0.1,  # of cross-entropy; those of the other losses stand beside them
        divided_at=(30, 60, 90),
        weight_decay=1e-4,
        monitor=("top_k_accuracy@K=5",),
        K=(1, 5),
        compared=(
            ("CrossEntropy", {"learning_rate": 0.1, "weight_decay": 0.0001}),
            ("SmoothTopKHinge", {"temperature": 0.1, "learning_rate": 1.0, "weight_decay": 0.000025}),
            ("NoisedTopK", {"epsilon": 0.5, "n_samples": 10, "learning_rate": 0.1, "weight_decay": 0.00015}),
        ),
    ),
    "cifar100-resnet18-adam": Printed(
        place="Petersen et al. 2022, sections 3.3, 5.1, 5.2 and 5.4, Tables 1 and 4; difftopk, experiments/train_cifar100.py",
        model="resnet18-small",
        epochs=200,
        batch_size=100,
        optimizer="adam",
        momentum=None,
        learning_rate=1e-3,
        divided_at=UNSTATED,
        weight_decay=UNSTATED,
        monitor=("top_k_accuracy@K=1", "top_k_accuracy@K=5"),
        augmentation=("PaddedCrop", "HorizontalFlip", "Normalise"),
        K=NONE,
        # "For training models from scratch", Eq. 4; of 100 classes all are ranked.
        compared=ranked(
            (TOP_5, *MIXTURES),
            {"neural_sort": 0.0625, "soft_sort": 0.0625, "splitter": 0.5},
            m=100,
            top1="cross_entropy",
        ),
        grid=FACTOR_2,
        also_unstated=("steepness of SinkhornSort",),
    ),
    "imagenet1k-head": Printed(
        place="Petersen et al. 2022, sections 3.3, 5.1, 5.3 and 5.4, Tables 2, 3 and 5; difftopk, README",
        model=None,
        epochs=100,
        batch_size=500,
        optimizer="adam",
        momentum=None,
        learning_rate=10**-4.5,
        divided_at=UNSTATED,
        weight_decay=UNSTATED,
        monitor=("top_k_accuracy@K=1", "top_k_accuracy@K=5"),
        augmentation=NONE,  # features are extracted once
        K=NONE,
        compared=ranked(
            (TOP_5, *MIXTURES), {"neural_sort": 0.5, "soft_sort": 0.5, "splitter": 1.0}, m=16, top1="softmax"
        ),
        grid=FACTOR_2,
        also_unstated=("steepness of SinkhornSort",),
    ),
    "imagenet21k-head": Printed(
        place="Petersen et al. 2022, sections 3.3, 5.1, 5.3 and 5.4, supplement A, Tables 2, 3 and 6; difftopk, README",
        model=None,
        epochs=40,
        batch_size=500,
        optimizer="adam",
        momentum=None,
        learning_rate=1e-4,
        divided_at=UNSTATED,
        weight_decay=UNSTATED,
        monitor=tuple(f"top_k_accuracy@K={k}" for k in (1, 5, 10, 20)),
        augmentation=NONE,  # features are extracted once
        K=NONE,
        compared=ranked(
            (TOP_5, *MIXTURES, *LONGER), {"neural_sort": 0.5, "soft_sort": 0.5, "splitter": 1.0}, m=50, top1="softmax"
        ),
        grid=FACTOR_2,
        also_unstated=("steepness of SinkhornSort",),
    ),
    "quasibinary-resnet18": Printed(
        place="Liao et al., section V, common training protocol, and V-A, Table I",
        **OF_LIAO,
        compared=(("CrossEntropy", {}), ("BinaryCrossEntropy", {}), QUASIBINARY),
        models=("resnet18-small", "vgg16"),  # "similar results were obtained with VGG16 and DenseNets"
    ),
    "quasibinary-zero-labels": Printed(
        place="Liao et al., section V, common training protocol, and V-B, Table II",
        **OF_LIAO,
        compared=(
            ("SoftmaxUniform", {}),
            ("SoftmaxMaxConfidence", {}),
            ("BinaryCrossEntropy", {}),
            QUASIBINARY,
        ),
    ),
    "quasibinary-vgg16": Printed(
        place="Liao et al., section V-C, Table III",
        model=None,
        epochs=20,
        batch_size=UNSTATED,
        optimizer=UNSTATED,
        momentum=UNSTATED,
        learning_rate=UNSTATED,
        divided_at=UNSTATED,
        weight_decay=UNSTATED,
        monitor=UNSTATED,
        K=NONE,
        compared=(("BinaryCrossEntropy", {}), ("CrossEntropy", {}), QUASIBINARY),
        models=("vgg16",),
        pretrained=True,
    ),
}
