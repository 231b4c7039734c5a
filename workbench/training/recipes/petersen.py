"""The protocols of Petersen et al. 2022; temperatures and relaxations are those of the authors' difftopk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.losses import CrossEntropy, DifferentiableTopK, SmoothTopKHinge
from workbench.training.recipes.base import Recipe, Settings, of

SORTS = ("neural_sort", "soft_sort", "sinkhorn_sort", "splitter")
TOP_5 = (0.0, 0.0, 0.0, 0.0, 1.0)
ALL_5 = (0.2, 0.2, 0.2, 0.2, 0.2)


def ends(last: float, k: int = 5) -> tuple[float, ...]:
    """P_K of Tables 2 to 6: this much for the top k, and the rest for the first place."""
    return (1 - last, *[0.0] * (k - 2), last)


MIXTURES = (ends(0.5), ends(0.75), ends(0.9), ALL_5)  # of Tables 3 and 4
LONGER = tuple(ends(last, k) for k in (10, 20) for last in (0.5, 0.75, 0.9))  # of Table 6


def ranked(distributions: tuple[tuple[float, ...], ...], sorts: Mapping[str, float], **knobs: Any) -> Settings:
    """The losses of Tables 1 to 6: without ranks, and with every P_K and every sort, each with its steepness."""
    sorted_by = [
        DifferentiableTopK(p_k=p_k, operator=operator, steepness=steepness, **knobs)
        for p_k in distributions
        for operator, steepness in sorts.items()
    ]
    return of([CrossEntropy(), SmoothTopKHinge(K=5, temperature=1.0), *sorted_by])


def steepness_grid(p_k: tuple[float, ...], **knobs: Any) -> Settings:
    """ "A grid search at a resolution of factor 2"; where it starts and ends is not told."""
    powers = range(-3, 7)
    return of(DifferentiableTopK(p_k, each, steepness=2.0**power, **knobs) for each in SORTS for power in powers)


# All of the 100 classes are ranked, and the top-1 term is cross-entropy outside the logarithm (Eq. 4).
FROM_SCRATCH: dict[str, Any] = {"m": 100, "top1": "cross_entropy"}
# The heads of published backbones are trained on cached features.
HEAD: dict[str, Any] = {
    "features": "cached",
    "batch_size": 500,
    "optimizer": "adam",
    "schedule": "constant",
    "weight_decay": 0.0,
    "monitor": "val_accuracy",
}
GIVE_A_MODEL = "give model=, a backbone that was trained before, or features=, a run: only the head is trained"
PUBLISHED = "steepness and relaxation are those that the authors published with their code, but for SinkhornSort"
UNTOLD = ("monitor", "schedule", "steepness of SinkhornSort", "weight_decay")

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
            "monitor": "val_accuracy",
        },
        compared=ranked(
            (TOP_5, *MIXTURES),
            {"neural_sort": 0.1, "soft_sort": 0.1, "sinkhorn_sort": 100.0, "splitter": 0.5},
            **FROM_SCRATCH,
        ),
        grid=steepness_grid(ALL_5, **FROM_SCRATCH),
        paper="Petersen et al. 2022",
        place="sections 3.3, 5.1, 5.2 and 5.4, Tables 1 and 4",
        note=f"{PUBLISHED}; the paper prints a batch size of 100, their code has 128",
        untold=UNTOLD,
    ),
    "imagenet1k-head": Recipe(
        settings=HEAD | {"epochs": 100, "learning_rate": 10**-4.5},
        compared=ranked(
            (TOP_5, *MIXTURES),
            {"neural_sort": 0.5, "soft_sort": 0.5, "sinkhorn_sort": 100.0, "splitter": 1.0},
            m=16,
        ),
        grid=steepness_grid(ends(0.5), m=16),
        paper="Petersen et al. 2022",
        place="sections 3.3, 5.1, 5.3 and 5.4, Tables 2, 3 and 5",
        note=f"{GIVE_A_MODEL}; {PUBLISHED}",
        untold=UNTOLD,
    ),
    "imagenet21k-head": Recipe(
        settings=HEAD | {"epochs": 40, "learning_rate": 1e-4},
        compared=ranked(
            (TOP_5, *MIXTURES, *LONGER),
            {"neural_sort": 0.5, "soft_sort": 0.5, "sinkhorn_sort": 100.0, "splitter": 1.0},
            m=50,
        ),
        grid=steepness_grid(ends(0.5), m=50),
        paper="Petersen et al. 2022",
        place="sections 3.3, 5.1, 5.3 and 5.4, supplement A, Tables 2, 3 and 6",
        note=f"{GIVE_A_MODEL}; {PUBLISHED}",
        untold=UNTOLD,
    ),
}
