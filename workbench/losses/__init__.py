"""Losses, each declared once. `LOSSES` is the ordered tuple of all of them; consumers take `losses=` to widen it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench import schedules
from workbench.lookup import named
from workbench.losses.average_k import ROLE, AssumeNegative, AverageKTwoHead, ExpectedPositive
from workbench.losses.base import PAPERS, Loss
from workbench.losses.baselines import LDAM, CrossEntropy, Focal, TopKError
from workbench.losses.many_labels import BinaryCrossEntropy, Quasibinary, SoftmaxMaxConfidence, SoftmaxUniform
from workbench.losses.noised import ExactNoisedTopK, NoisedTopK, NoisedTopKImbalanced
from workbench.losses.ranked import DifferentiableTopK
from workbench.losses.sparse import Sparsemax, SparseTop
from workbench.losses.top_k import CalibratedTopKHinge, ConvexTopKHinge, SmoothTopKHinge, TopKHinge

LOSSES: tuple[type[Loss], ...] = (
    TopKError,
    CrossEntropy,
    Focal,
    LDAM,
    TopKHinge,
    ConvexTopKHinge,
    CalibratedTopKHinge,
    SmoothTopKHinge,
    NoisedTopK,
    ExactNoisedTopK,
    NoisedTopKImbalanced,
    DifferentiableTopK,
    AssumeNegative,
    ExpectedPositive,
    ROLE,
    AverageKTwoHead,
    BinaryCrossEntropy,
    Quasibinary,
    SoftmaxUniform,
    SoftmaxMaxConfidence,
    Sparsemax,
    SparseTop,
)

__all__ = [
    "LDAM",
    "LOSSES",
    "PAPERS",
    "ROLE",
    "AssumeNegative",
    "AverageKTwoHead",
    "BinaryCrossEntropy",
    "CalibratedTopKHinge",
    "ConvexTopKHinge",
    "CrossEntropy",
    "DifferentiableTopK",
    "ExactNoisedTopK",
    "ExpectedPositive",
    "Focal",
    "Loss",
    "NoisedTopK",
    "NoisedTopKImbalanced",
    "Quasibinary",
    "SmoothTopKHinge",
    "SoftmaxMaxConfidence",
    "SoftmaxUniform",
    "SparseTop",
    "Sparsemax",
    "TopKError",
    "TopKHinge",
    "class_named",
    "from_spec",
]


def class_named(
    name: str, losses: Iterable[type[Loss]] | None = None, *, allowed: Iterable[str] | None = None
) -> type[Loss]:
    """The loss class of that name; `module:Class` finds one that lives elsewhere. Unknown names list the known ones.

    - `name`: a bare name, or `module:Class`.
    - `losses`: those that are known by their bare name; `LOSSES` without it.

    `allowed` are the modules that a name which is only data may make import (`lookup.named`).

    >>> class_named("CrossEntropy").title
    'Cross-entropy'
    """
    known = {loss.__name__: loss for loss in (LOSSES if losses is None else losses)}
    found = named(name, known, "loss", others="; or give module:Class for one of yours", allowed=allowed)
    if not (isinstance(found, type) and issubclass(found, Loss)):
        raise ValueError(f"{name!r} is not a workbench.losses.Loss")
    return found


def from_spec(spec: dict[str, Any], *, allowed: Iterable[str] = ()) -> Loss:
    """The loss that `loss.spec()` described. A foreign one must live in one of the `allowed` modules."""
    kind = class_named(spec["loss"], allowed=allowed)
    declared = kind.knobs()
    knobs = {name: tuple(value) if isinstance(value, list) else value for name, value in spec["knobs"].items()}
    return kind(**{name: schedules.read(declared.get(name), value) for name, value in knobs.items()})
