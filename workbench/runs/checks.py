"""Checks of a run: its parts, its course, its features and its ranks, each with an error that says what to do."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from workbench.datasets import AUGMENTATIONS, TRANSFORMS, Dataset, DatasetSpec, ImageTransform, Normalise, Transform
from workbench.losses import Loss
from workbench.networks.base import TORCHVISION
from workbench.networks.by_name import BACKBONES, backbone_named, foreign, has_scores, is_module, random_weights
from workbench.runs.monitors import monitors_named
from workbench.validation import whole_number

if TYPE_CHECKING:
    from torch import nn

    from workbench.runs.run import Run


def check_parts(run: Run) -> None:
    """A loss that trains, a model, a dataset and its transforms."""
    if not isinstance(run.loss, Loss):
        raise TypeError(f"loss = {run.loss!r} is not a loss; give one such as CrossEntropy(), with the brackets")
    if not run.loss.trains:
        raise ValueError(f"{run.loss!r} has a zero gradient almost everywhere: nothing can be trained with it")
    check_model(run.model)
    if run.head == "own" and not foreign(run.model):
        raise ValueError(f"head = 'own', but {run.model} returns features and no scores; leave head out")
    if not isinstance(run.dataset, (str, os.PathLike, Dataset, DatasetSpec)):
        raise TypeError(f"dataset = {run.dataset!r}; give a name, a path or a Dataset")
    if not isinstance(run.transforms, (tuple, list)) or not all(isinstance(t, Transform) for t in run.transforms):
        known = ", ".join(f"{kind.__name__}()" for kind in (*TRANSFORMS, *AUGMENTATIONS))
        raise TypeError(f"transforms = {run.transforms!r}; give a tuple of some of {known}")
    if sum(isinstance(each, Normalise) for each in run.transforms) > 1:
        raise ValueError(f"transforms = {run.transforms!r} normalise images twice; give one Normalise")


def check_untrained(run: Run) -> None:
    """A network that is not trained has scores of its own."""
    if run.epochs == 0 and (run.head == "new" or run.features is not None or not has_scores(run.model)):
        raise ValueError(
            f"epochs = 0 evaluates a network as it is, and the head of {run.model_name} would be new, with random weights; give "
            "epochs ≥ 1, or a model that has scores of its own"
        )


def check_model(model: Any) -> None:
    """A name, `module:factory` or a Module whose weights have shapes. Names of torchvision are looked up by `train`."""
    if isinstance(model, str):
        if not model.startswith(TORCHVISION):
            backbone_named(model)
    elif not is_module(model):
        raise TypeError(f"model = {model!r}; give {', '.join(BACKBONES)}, module:factory or a torch Module")
    else:
        from torch.nn.parameter import is_lazy

        if any(is_lazy(weights) for weights in (*model.parameters(), *model.buffers())):
            raise ValueError(f"model = {model!r} has weights without a shape yet; send some inputs through it first")


def check_weights(model: str | nn.Module) -> None:
    """Refuses a model whose features would be those of random weights."""
    if isinstance(model, str) and random_weights(model):
        raise ValueError(
            f"{model} comes with random weights, so there is nothing to gain from its features; "
            "give a trained run, efficientnet-lite0, torchvision:name:weights, a Module or module:factory"
        )


def check_course(run: Run) -> None:
    """The monitors, the patience, and the milestones of the learning rate."""
    names = tuple(monitor.name for monitor in monitors_named(run.monitor))
    object.__setattr__(run, "monitor", names if len(names) > 1 else names[0] if names else None)
    if run.patience is not None:
        try:
            object.__setattr__(run, "patience", whole_number("patience", run.patience))
        except ValueError as error:
            raise ValueError(f"{error}, of epochs, or None") from None
        if run.monitor is None:
            raise ValueError("patience needs a monitor: say what must get better, e.g. monitor='val_loss'")
    if not is_rising(run.milestones):
        raise ValueError(f"milestones = {run.milestones!r}; give rising shares of the training, such as (0.5, 0.75)")


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


def check_device(run: Run) -> None:
    """A place where torch can train; `train` sees whether this machine has it."""
    if not isinstance(run.device, str) or not re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,3})?", run.device):
        raise ValueError(
            f"device = {run.device!r}; give auto, cpu, cuda, a GPU by its number such as cuda:1, or mps (of a Mac)"
        )
    if run.n_ranks > 1 and run.device not in ("auto", "cpu", "cuda"):
        raise ValueError(
            f"device = {run.device!r} is a single place, but devices = {run.devices} and nodes = {run.nodes} share each batch "
            "among several; use device='cuda' or 'cpu'"
        )


def check_ranks(run: Run) -> None:
    """Losses that cannot be computed in pieces, or on several ranks."""
    name = type(run.loss).__name__
    if run.micro_batches > 1 and run.loss.couples_batch:
        raise ValueError(
            f"micro_batches = {run.micro_batches}, but {name} couples the rows of a batch: in pieces it is another loss. Use "
            "micro_batches=1 and, to save memory, a smaller batch_size, precision='bf16' or more devices"
        )
    if run.n_ranks > 1 and _learns_of_rows(run.loss):
        raise ValueError(
            f"devices = {run.devices} and nodes = {run.nodes}, but {name} learns estimates for each training row, "
            "which ranks would have to exchange after every step; use devices=1 and nodes=1"
        )


def is_rising(milestones: Any) -> bool:
    """Whether these are rising shares of the training."""
    numbers = isinstance(milestones, (tuple, list)) and all(isinstance(share, (int, float)) for share in milestones)
    return numbers and all(0 < share < 1 for share in milestones) and list(milestones) == sorted(set(milestones))


def _learns_of_rows(loss: Loss) -> bool:
    """Whether the state of the loss has parameters: they belong to training rows."""
    state = loss.state(n_rows=1, n_classes=2)
    return state is not None and any(True for _ in state.parameters())
