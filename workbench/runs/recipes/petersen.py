"""The protocols of Petersen et al. 2022; temperatures and relaxations are those of the authors' difftopk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.datasets import HorizontalFlip, Normalise, PaddedCrop
from workbench.losses import CrossEntropy, DifferentiableTopK, SmoothTopKHinge
from workbench.runs.recipes.base import Recipe, Settings, of

SORTS = ("neural_sort", "soft_sort", "sinkhorn_sort", "splitter")
RELAXED: dict[str, dict[str, Any]] = {"splitter": {"relaxation": "art", "art_lambda": 0.5}}  # DiffSortNets
TOP_5 = (0.0, 0.0, 0.0, 0.0, 1.0)
ALL_5 = (0.2, 0.2, 0.2, 0.2, 0.2)


def ends(first: float, last: float, k: int = 5) -> tuple[float, ...]:
    """P_K of Tables 2 to 6: so much for the first place, and so much for the top k."""
    return (first, *[0.0] * (k - 2), last)


HALVES, THREE_QUARTERS, NINE_TENTHS = (0.5, 0.5), (0.25, 0.75), (0.1, 0.9)
MIXTURES = (ends(*HALVES), ends(*THREE_QUARTERS), ends(*NINE_TENTHS), ALL_5)  # of Tables 3 and 4
LONGER = tuple(ends(*each, k) for k in (10, 20) for each in (HALVES, THREE_QUARTERS, NINE_TENTHS))  # of Table 6


def ranked(distributions: tuple[tuple[float, ...], ...], sorts: Mapping[str, float], **knobs: Any) -> Settings:
    """The losses of Tables 1 to 6: without ranks, and with every P_K and every sort, each with its steepness."""
    sorted_by = [
        DifferentiableTopK(p_k=p_k, operator=operator, steepness=steepness, **knobs, **RELAXED.get(operator, {}))
        for p_k in distributions
        for operator, steepness in sorts.items()
    ]
    return of([CrossEntropy(), SmoothTopKHinge(K=5, temperature=1.0), *sorted_by])


def steepness_grid(p_k: tuple[float, ...], **knobs: Any) -> Settings:
    """ "A grid search at a resolution of factor 2"; its ends are not stated."""
    return of(
        DifferentiableTopK(p_k=p_k, operator=operator, steepness=2.0**power, **knobs, **RELAXED.get(operator, {}))
        for operator in SORTS
        for power in range(-6, 7)
    )


def best(*Ks: int) -> tuple[str, ...]:
    """Early stopping as in the authors' code: top-1 accuracy of the epoch where it is best on val, and so on for each k."""
    return tuple(f"top_k_accuracy@K={K}" for K in Ks)


# Figure 2: other weights of top-5 than those of Table 3, and other numbers of ranked classes.
SHARES_OF_5, RANKED = (0.0, 0.25), (10, 20, 30, 40)
OF_FIGURE_2 = of(
    DifferentiableTopK(p_k=p_k, operator="sinkhorn_sort", steepness=100.0, m=m)
    for p_k, m in (
        *((ends(1 - share, share), 16) for share in SHARES_OF_5),
        *((ends(*THREE_QUARTERS), m) for m in RANKED),
    )
)
CIFAR_MEAN, CIFAR_DEVIATION = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
# All of the 100 classes are ranked, and the top-1 term is cross-entropy outside the logarithm (Eq. 4).
FROM_SCRATCH: dict[str, Any] = {"m": 100, "top1": "cross_entropy"}
# The heads of published backbones are trained on cached features.
HEAD: dict[str, Any] = {
    "features": "cached",
    "batch_size": 500,
    "optimizer": "adam",
    "schedule": "constant",
    "weight_decay": 0.0,
}
GIVE_A_MODEL = "give model=, a backbone that was trained before, or features=, a run: only the head is trained"
PUBLISHED = "steepness, relaxation, augmentation and what is watched are those of the code that the authors published"
UNSTATED = ("schedule", "steepness of SinkhornSort", "weight_decay")

OF_PETERSEN: dict[str, Recipe] = {
    "cifar100-resnet18-adam": Recipe(
        settings={
            "model": "resnet18-small",
            "epochs": 200,
            "batch_size": 100,
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "schedule": "constant",
            "weight_decay": 0.0,
            "monitor": best(1, 5),
            "transforms": (PaddedCrop(4), HorizontalFlip(), Normalise(CIFAR_MEAN, CIFAR_DEVIATION)),
        },
        compared=ranked(
            (TOP_5, *MIXTURES),
            {"neural_sort": 0.0625, "soft_sort": 0.0625, "sinkhorn_sort": 100.0, "splitter": 0.5},
            **FROM_SCRATCH,
        ),
        grid=steepness_grid(ALL_5, **FROM_SCRATCH),
        paper="Petersen et al. 2022",
        place="sections 3.3, 5.1, 5.2 and 5.4, Tables 1 and 4",
        note=f"{PUBLISHED}; the paper prints a batch size of 100, their code has 128",
        unstated=UNSTATED,
    ),
    "imagenet1k-head": Recipe(
        settings=HEAD | {"epochs": 100, "learning_rate": 10**-4.5, "monitor": best(1, 5)},
        compared=ranked(
            (TOP_5, *MIXTURES),
            {"neural_sort": 0.5, "soft_sort": 0.5, "sinkhorn_sort": 100.0, "splitter": 1.0},
            m=16,
        ),
        grid=(*steepness_grid(ends(*HALVES), m=16), *OF_FIGURE_2),
        paper="Petersen et al. 2022",
        place="sections 3.3, 5.1, 5.3, 5.4 and 5.5, Tables 2, 3 and 5, Figures 2 and 3",
        note=f"{GIVE_A_MODEL}; {PUBLISHED}",
        unstated=UNSTATED,
    ),
    "imagenet21k-head": Recipe(
        settings=HEAD | {"epochs": 40, "learning_rate": 1e-4, "monitor": best(1, 5, 10, 20)},
        compared=ranked(
            (TOP_5, *MIXTURES, *LONGER),
            {"neural_sort": 0.5, "soft_sort": 0.5, "sinkhorn_sort": 100.0, "splitter": 1.0},
            m=50,
        ),
        grid=steepness_grid(ends(*HALVES), m=50),
        paper="Petersen et al. 2022",
        place="sections 3.3, 5.1, 5.3 and 5.4, supplement A, Tables 2, 3 and 6",
        note=f"{GIVE_A_MODEL}; {PUBLISHED}",
        unstated=UNSTATED,
    ),
}
