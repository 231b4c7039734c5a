"""Losses, each declared once. `LOSSES` is the ordered tuple of all of them; consumers take `losses=` to widen it."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable
from typing import Any

from workbench import schedules
from workbench.losses.average_k import ROLE, AssumeNegative, AverageKTwoHead, ExpectedPositive
from workbench.losses.base import PAPERS, Loss
from workbench.losses.baselines import LDAM, CrossEntropy, Focal, LogitAdjustment, TopKError
from workbench.losses.formula import Formula
from workbench.losses.many_labels import BinaryCrossEntropy, Quasibinary, SoftmaxMaxConfidence, SoftmaxUniform
from workbench.losses.noised import ExactNoisedTopK, NoisedTopK, NoisedTopKImbalanced
from workbench.losses.ranked import DifferentiableTopK
from workbench.losses.set_sizes import CardinalityAware, ConformalTraining
from workbench.losses.sparse import Sparsemax, SparseTop
from workbench.losses.top_k import CalibratedTopKHinge, ConvexTopKHinge, SmoothTopKHinge, TopKHinge
from workbench.trusted_imports import resolve

LOSSES: tuple[type[Loss], ...] = (
    TopKError,
    CrossEntropy,
    Focal,
    LDAM,
    LogitAdjustment,
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
    ConformalTraining,
    CardinalityAware,
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
    "CardinalityAware",
    "ConformalTraining",
    "ConvexTopKHinge",
    "CrossEntropy",
    "DifferentiableTopK",
    "ExactNoisedTopK",
    "ExpectedPositive",
    "Focal",
    "Formula",
    "LogitAdjustment",
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
    "by_name",
    "class_named",
    "from_spec",
    "of_modules",
]


def by_name() -> dict[str, type[Loss]]:
    """Name → class of every loss in `LOSSES`."""
    return {loss.__name__: loss for loss in LOSSES}


def class_named(
    name: str, losses: Iterable[type[Loss]] | None = None, *, allowed: Iterable[str] | None = None
) -> type[Loss]:
    """The loss class of that name; `module:Class` finds one that lives elsewhere. Unknown names list the known ones.

    Args:
        name: a bare name, or `module:Class`.
        losses: Those that are known by their bare name; `LOSSES` without it.

    `allowed` are the modules that a name which is only data may make import (`trusted_imports.resolve`).

    >>> class_named("CrossEntropy").title
    'Cross-entropy'
    """
    known = by_name() | {Formula.__name__: Formula} if losses is None else {loss.__name__: loss for loss in losses}
    found = resolve(name, known, "loss", others="; or give module:Class for one of yours", allowed=allowed)
    if not (isinstance(found, type) and issubclass(found, Loss)):
        raise ValueError(f"{name!r} is not a workbench.losses.Loss")
    return found


def of_modules(modules: Iterable[str]) -> dict[str, type[Loss]]:
    """`module:Class` → class of the losses that these modules define; what cannot be imported has none.

    - `modules`: names of modules.

    >>> list(of_modules(["workbench.losses.sparse"]))
    ['workbench.losses.sparse:Sparsemax', 'workbench.losses.sparse:SparseTop']
    """
    found = {}
    for name in modules:
        with contextlib.suppress(ImportError):
            for member in vars(importlib.import_module(name)).values():
                if isinstance(member, type) and issubclass(member, Loss) and member.__module__ == name:
                    found[f"{name}:{member.__name__}"] = member
    return found


def from_spec(spec: dict[str, Any], *, allowed: Iterable[str] = ()) -> Loss:
    """The loss that `loss.spec()` described. A foreign one must live in one of the `allowed` modules."""
    kind = class_named(spec["loss"], allowed=allowed)
    declared = kind.knobs()
    knobs = {name: tuple(value) if isinstance(value, list) else value for name, value in spec["knobs"].items()}
    return kind(**{name: schedules.from_spec(declared.get(name), value) for name, value in knobs.items()})
