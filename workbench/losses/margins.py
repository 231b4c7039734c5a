"""Margins that grow as a class gets rarer."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, Self

import torch
from torch import Tensor

from workbench.counts import checked_counts
from workbench.knobs import knob
from workbench.losses.base import Loss


def largest_margin(default: float = 0.2) -> float:
    """The knob of the rarest class's margin."""
    return knob(
        default, low=0.05, high=5.0, minimum=0.0, scale="log", symbol="max m_y", meaning="margin of the rarest class"
    )


def cosine_scale(default: float) -> float:
    """The knob that a cosine in [−1, 1] is multiplied by."""
    return knob(default, low=1.0, high=100.0, scale="log", meaning="factor on the cosines")


class UnevenMargins(Loss):
    r"""What losses with one margin per class share: $m_y = C / n_y^{1/4}$, with C such that the largest is `max_margin`.

    $n_y$ is the number of training images of class y. `for_classes(class_counts)` fills them in, as `train` does; without
    them every class counts as the rarest. Scores are cosines, which the loss multiplies by `scale`: so a margin means
    the same for every class.

    Paper: Garcin et al. 2022, Section 3.3 (after Cao et al. 2019).
    """

    head = "cosine"
    max_margin: float
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

    def margins(self, scores: Tensor) -> Tensor:
        """m_y of every class: (L,)."""
        n_classes = scores.shape[-1]
        if self.class_counts is None:
            return scores.new_full((n_classes,), self.max_margin)
        if len(self.class_counts) != n_classes:
            raise ValueError(
                f"{type(self).__name__}: {len(self.class_counts)} class_counts for scores of {n_classes} classes; "
                "call loss.for_classes(class_counts) with one count per class"
            )
        return self.max_margin * _relative_margins(self.class_counts, scores.dtype, scores.device)

    @property
    def even(self) -> bool:
        """Whether all margins are the same."""
        return self.class_counts is None or len(set(self.class_counts)) == 1


@lru_cache(maxsize=16)
def _relative_margins(class_counts: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """m_y over the largest of them: (L,). Kept, because counts that come from Python make a GPU wait."""
    with torch.inference_mode(False):  # what is kept must also serve training, whoever asks first
        counts = torch.tensor(class_counts, dtype=dtype, device=device)
        return (counts.amin() / counts) ** 0.25
