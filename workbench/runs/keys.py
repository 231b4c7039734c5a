"""The key of a run: sha256 of all that decides its result, and of nothing else."""

from __future__ import annotations

import hashlib
import inspect
import json
from typing import TYPE_CHECKING, Any

from workbench.datasets import ImageTransform
from workbench.networks.base import TORCHVISION
from workbench.networks.by_name import backbone_named

if TYPE_CHECKING:
    from torch import nn

    from workbench.runs.run import Run

FORMAT = 1  # of the key; a change makes every run a new one
NOT_IN_KEY = ("device", "devices", "nodes")  # where a run is trained does not change what it is


def key_of(run: Run) -> str:
    """sha256 of the dataset's content, the model, the loss and every setting.

    A loss or a model that lives outside the workbench enters with its source, so that an edited one is a new run.
    """
    described = {name: value for name, value in run.to_json().items() if name not in (*NOT_IN_KEY, "dataset")}
    # The key of the dataset stands for the transforms that change it.
    of_images = [each.spec() for each in run.transforms if isinstance(each, ImageTransform)]
    described |= {"transforms": of_images, "format": FORMAT}
    described |= {"sources": [_source(type(run.loss)), _model_source(run.model)]}
    canonical = json.dumps(described, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _model_source(model: str | nn.Module) -> str | None:
    if isinstance(model, str):
        return None if model.startswith(TORCHVISION) else _source(backbone_named(model))
    return _source(type(model))


def _source(thing: Any) -> str | None:
    """The source of a class or function that lives outside the workbench, where it can be read."""
    if thing.__module__.split(".")[0] in ("workbench", "torch"):
        return None
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return None
