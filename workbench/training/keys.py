"""The key of a run: sha256 of all that decides its result, and of nothing else, such as where a class of ours lives."""

from __future__ import annotations

import hashlib
import inspect
import json
from typing import TYPE_CHECKING, Any

from torch import nn

from workbench.datasets import ImageTransform
from workbench.losses import DifferentiableTopK, Quasibinary
from workbench.networks.network import backbone_named

if TYPE_CHECKING:
    from workbench.losses import Loss
    from workbench.training.run import Run

FORMAT = 1  # of the key; a change makes every run a new one
NOT_IN_KEY = ("device", "devices", "nodes")  # where a run is trained does not change what it is
LATER_IN_KEY = (
    "accumulate",
    "drops",
    "compile",
    "channels_last",
)  # younger than the format: in the key unless at their default, for older runs
LATER_KNOBS = {DifferentiableTopK: ("relaxation", "art_lambda", "n_iterations"), Quasibinary: ("averaging_rate",)}
# Where the losses lived when their place entered the key, and run.json was of format 1.
FORMER_PLACES = {
    "average_k": ("AssumeNegative", "ExpectedPositive", "ROLE", "AverageKTwoHead"),
    "baselines": ("TopKError", "CrossEntropy", "Focal", "LDAM"),
    "many_labels": ("BinaryCrossEntropy", "Quasibinary", "SoftmaxUniform", "SoftmaxMaxConfidence"),
    "noised": ("NoisedTopK", "ExactNoisedTopK", "NoisedTopKImbalanced"),
    "ranked": ("DifferentiableTopK",),
    "sparse": ("Sparsemax", "SparseTop"),
    "top_k": ("TopKHinge", "ConvexTopKHinge", "CalibratedTopKHinge", "SmoothTopKHinge"),
}


def key_of(run: Run) -> str:
    """sha256 of the dataset's content, the model, the loss and every setting.

    A loss or a model that lives outside the workbench enters with its source, so that an edited one is a new run.
    """
    return _key(run, run.loss.spec())


def former_key_of(run: Run) -> str:
    """The key that an earlier version gave the same run: there, the place of a loss of ours was part of it."""
    spec = run.loss.spec()
    places = {name: f"workbench.losses.{module}:{name}" for module, names in FORMER_PLACES.items() for name in names}
    return _key(run, {**spec, "loss": places.get(spec["loss"], spec["loss"])})


def _key(run: Run, loss: dict[str, Any]) -> str:
    at_default = [name for name in LATER_IN_KEY if getattr(run, name) == getattr(type(run), name)]
    left_out = (*NOT_IN_KEY, *at_default, "dataset")
    described = {name: value for name, value in run.described().items() if name not in left_out}
    # The key of the dataset tells of the transforms that change it.
    of_images = [each.spec() for each in run.transforms if isinstance(each, ImageTransform)]
    described |= {"loss": {**loss, "knobs": _knobs(run.loss, loss["knobs"])}, "transforms": of_images}
    described |= {"format": FORMAT, "sources": [_source(type(run.loss)), _model_source(run.model)]}
    canonical = json.dumps(described, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _knobs(loss: Loss, stored: dict[str, Any]) -> dict[str, Any]:
    """The stored knobs of a loss without those that are younger than the key and stand at their default."""
    later = {name for kind, names in LATER_KNOBS.items() if isinstance(loss, kind) for name in names}
    declared = loss.knobs()
    return {name: value for name, value in stored.items() if name not in later or value != declared[name].default}


def _model_source(model: str | nn.Module) -> str | None:
    return _source(backbone_named(model)) if isinstance(model, str) else _source(type(model))


def _source(thing: Any) -> str | None:
    """The source of a class or function that lives outside the workbench, where it can be read."""
    if thing.__module__.split(".")[0] in ("workbench", "torch"):
        return None
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return None
