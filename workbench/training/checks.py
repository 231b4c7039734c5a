"""What a run accepts: the parts it is made of, how it goes on, and where, each with an error that says what to do."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.nn.parameter import is_lazy

from workbench.counts import whole
from workbench.datasets import AUGMENTATIONS, TRANSFORMS, Dataset, ImageTransform, Normalise, Transform
from workbench.losses import Loss
from workbench.networks import BACKBONES
from workbench.networks.network import backbone_named, foreign
from workbench.training.features import check_weights
from workbench.training.monitors import monitors_named

if TYPE_CHECKING:
    from workbench.training.run import Run


def check_parts(run: Run) -> None:
    """A loss that trains, a model, a dataset and its transforms."""
    if not isinstance(run.loss, Loss):
        raise ValueError(f"loss = {run.loss!r} is not a loss; give one such as CrossEntropy(), with the brackets")
    if not run.loss.trains:
        raise ValueError(f"{run.loss!r} has a zero gradient almost everywhere: nothing can be trained with it")
    if isinstance(run.model, str):
        backbone_named(run.model)
    elif not isinstance(run.model, nn.Module):
        raise ValueError(f"model = {run.model!r}; give {', '.join(BACKBONES)}, module:factory or a torch Module")
    elif any(is_lazy(weights) for weights in (*run.model.parameters(), *run.model.buffers())):
        raise ValueError(f"model = {run.model!r} has weights without a shape yet; send some inputs through it first")
    if run.head == "own" and not foreign(run.model):
        raise ValueError(f"head = 'own', but {run.model} returns features and no scores; leave head out")
    if not isinstance(run.dataset, (str, os.PathLike, Dataset)):
        raise ValueError(f"dataset = {run.dataset!r}; give a name, a path or a Dataset")
    if not isinstance(run.transforms, (tuple, list)) or not all(isinstance(t, Transform) for t in run.transforms):
        known = ", ".join(f"{kind.__name__}()" for kind in (*TRANSFORMS, *AUGMENTATIONS))
        raise ValueError(f"transforms = {run.transforms!r}; give a tuple of some of {known}")
    if sum(isinstance(each, Normalise) for each in run.transforms) > 1:
        raise ValueError(f"transforms = {run.transforms!r} normalise images twice; give one Normalise")


def check_course(run: Run) -> None:
    """What is watched, how long, and when the learning rate drops."""
    names = tuple(monitor.name for monitor in monitors_named(run.monitor))
    object.__setattr__(run, "monitor", names if len(names) > 1 else names[0] if names else None)
    if run.patience is not None:
        try:
            object.__setattr__(run, "patience", whole("patience", run.patience))
        except ValueError as error:
            raise ValueError(f"{error}, of epochs, or None") from None
        if run.monitor is None:
            raise ValueError("patience needs a monitor: say what must get better, e.g. monitor='val_loss'")
    if not _rising_shares(run.drops):
        raise ValueError(f"drops = {run.drops!r}; give rising shares of the training, such as (0.5, 0.75)")


def check_features(run: Run) -> None:
    """Whose features a head is trained on: the weights that the model comes with, or a run, by its key."""
    if run.features is not None and run.head == "own":
        raise ValueError("head = 'own' with features: then only a head learns, and there would be none; leave head out")
    if run.features is not None and (of_images := [t for t in run.transforms if isinstance(t, ImageTransform)]):
        raise ValueError(
            f"transforms = ({of_images[0]!r}, …) with features: those are computed once, of images as they are; leave the "
            "transforms of images to the run that trains the backbone"
        )
    if run.features == "cached":
        check_weights(run.model)
    elif run.features is not None and not re.fullmatch("[0-9a-f]{64}", str(run.features)):
        raise ValueError(f"features = {run.features!r}; give a trained run, the 64 digits of its key, or 'cached'")


def check_ranks(run: Run) -> None:
    """Losses that cannot be computed in pieces, or on several ranks."""
    name = type(run.loss).__name__
    if run.accumulate > 1 and run.loss.couples_batch:
        raise ValueError(
            f"accumulate = {run.accumulate}, but {name} couples the rows of a batch: in pieces it is another loss. Use "
            "accumulate=1 and, to save memory, a smaller batch_size, precision='bf16' or more devices"
        )
    if run.n_ranks > 1 and _learns_of_rows(run.loss):
        raise ValueError(
            f"devices = {run.devices} and nodes = {run.nodes}, but {name} learns estimates for each training row, "
            "which ranks would have to exchange after every step; use devices=1 and nodes=1"
        )


def _rising_shares(drops: Any) -> bool:
    numbers = isinstance(drops, (tuple, list)) and all(isinstance(share, (int, float)) for share in drops)
    return numbers and all(0 < share < 1 for share in drops) and list(drops) == sorted(set(drops))


def _learns_of_rows(loss: Loss) -> bool:
    """Whether the state of the loss has parameters: they belong to training rows."""
    state = loss.state(n_rows=1, n_classes=2)
    return state is not None and any(True for _ in state.parameters())
