"""Losses that read the training count of each class, and margins that grow as a class gets rarer."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from workbench.class_counts import checked_counts
from workbench.knobs import knob
from workbench.losses.base import Loss

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def largest_margin(default: float = 0.2) -> float:
    """The knob of the rarest class's margin."""
    return knob(
        default, low=0.05, high=5.0, minimum=0.0, scale="log", symbol="max m_y", meaning="margin of the rarest class"
    )


def cosine_scale(default: float) -> float:
    """The knob that a cosine in [−1, 1] is multiplied by."""
    return knob(default, low=1.0, high=100.0, scale="log", meaning="factor on the cosines")


class ClassCounted(Loss):
    """Base of losses with `class_counts`, which a run fills in from its training rows (`for_classes`)."""

    class_counts: tuple[int, ...] | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.class_counts is None:
            return
        counts = checked_counts(self.class_counts)
        if (counts == 0).any():
            empty = (counts == 0).nonzero()[0].tolist()
            raise ValueError(
                f"{type(self).__name__}: classes {empty[:10]} have no training image, so their margin would be infinite; "
                "give class_counts of 1 or more"
            )
        object.__setattr__(self, "class_counts", tuple(counts.tolist()))

    def for_classes(self, class_counts: Any) -> Self:
        filled: dict[str, Any] = {"class_counts": class_counts}
        return dataclasses.replace(self, **filled)

    def __repr__(self) -> str:
        shown = self.settings() if self.class_counts is None else {**self.settings(), "class_counts": self.class_counts}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def even(self) -> bool:
        """Whether all classes have the same count, or none is known."""
        return self.class_counts is None or len(set(self.class_counts)) == 1

    def _count_of_classes(self, scores: Tensor) -> tuple[int, ...] | None:
        """The counts, one for each class of the scores; None without any."""
        n_classes = scores.shape[-1]
        if self.class_counts is not None and len(self.class_counts) != n_classes:
            raise ValueError(
                f"{type(self).__name__}: {len(self.class_counts)} class_counts for scores of {n_classes} classes; "
                "call loss.for_classes(class_counts) with one count per class"
            )
        return self.class_counts


class UnevenMargins(ClassCounted):
    r"""Base of losses with one margin per class: $m_y = C / n_y^{1/4}$, with C such that the largest is `max_margin`.

    $n_y$ is the number of training images of class y. `for_classes(class_counts)` fills them in, as `train` does; without
    them every class counts as the rarest. Scores are cosines, which the loss multiplies by `scale`: so a margin means
    the same for every class.

    Paper: Garcin et al. 2022, Section 3.3 (after Cao et al. 2019).
    """

    head = "cosine"
    max_margin: float

    def margins(self, scores: Tensor) -> Tensor:
        """m_y of every class: (L,)."""
        counts = self._count_of_classes(scores)
        if counts is None:
            return scores.new_full((scores.shape[-1],), self.max_margin)
        return self.max_margin * rarest_over_count(counts, scores.dtype, scores.device) ** 0.25


@lru_cache(maxsize=16)
def rarest_over_count(class_counts: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The smallest count over that of each class: (L,). Kept, because counts that come from Python make a GPU wait."""
    import torch

    with torch.inference_mode(False):  # the cached tensors must also serve training
        counts = torch.tensor(class_counts, dtype=dtype, device=device)
        return counts.amin() / counts
