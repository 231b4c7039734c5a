"""Networks: a backbone that turns inputs into features, and the head or heads that the loss asks for.

A backbone sees images as float (n, channels, height, width) in [0, 1], and rows of numbers standardised with the mean
and deviation of the training split. It returns features (n, d); the head turns them into scores (n, L), or (n, 2, L).
A network of one's own that already ends in a linear layer with L scores is taken apart: that layer is the head.

>>> from workbench.losses import CrossEntropy
>>> network = build_network("mlp", CrossEntropy(), input_shape=(16,), n_classes=26)
>>> network(torch.zeros(5, 16)).shape
torch.Size([5, 26])
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.lookup import named
from workbench.losses import Loss
from workbench.networks.backbones import UNTRAINED, Backbone
from workbench.networks.pretrained import PRETRAINED, TORCHVISION, from_torchvision

BACKBONES: dict[str, Backbone] = UNTRAINED | PRETRAINED
ROWS_OF_A_BLOCK = 4096  # whose deviations are held in float64 at a time


class CosineHead(nn.Module):
    """Cosines between the features and one direction per class; the loss multiplies them by its scale."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_classes, n_features))

    def forward(self, features: Tensor) -> Tensor:  # (n, d) → (n, L)
        return F.linear(F.normalize(features, dim=-1), F.normalize(self.weight, dim=-1))


class TwoHeads(nn.Module):
    """Two heads on shared features: the first predicts, the second proposes candidates."""

    def __init__(self, predicting: nn.Module, candidates: nn.Module) -> None:
        super().__init__()
        self.predicting = predicting
        self.candidates = candidates

    def forward(self, features: Tensor) -> Tensor:  # (n, d) → (n, 2, L)
        return torch.stack([self.predicting(features), self.candidates(features)], dim=1)


HEADS: dict[str, Callable[[int, int], nn.Module]] = {"linear": nn.Linear, "cosine": CosineHead}


class Network(nn.Module):
    """A backbone and a head, behind the preparation that inputs need: uint8 photographs or rows of numbers go in."""

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, backbone: nn.Module, head: nn.Module, input_shape: tuple[int, ...], *, prepared: bool = False
    ) -> None:
        super().__init__()
        self.prepared = prepared  # inputs are features already, and go in as they are
        self.backbone = backbone
        self.head = head
        self.images = len(input_shape) == 3
        statistics_shape = () if self.images else input_shape
        self.register_buffer("mean", torch.zeros(statistics_shape))
        self.register_buffer("deviation", torch.ones(statistics_shape))

    def standardise(self, inputs: Tensor) -> None:
        """Takes mean and deviation from the rows of the training split. Photographs are left in [0, 1].

        NumPy adds row after row; torch shares the sum among its threads, and their number would show in the last bits.
        """
        if not self.images:
            rows = inputs.numpy()
            mean = rows.mean(0, dtype=np.float64)
            blocks = (rows[start : start + ROWS_OF_A_BLOCK] for start in range(0, len(rows), ROWS_OF_A_BLOCK))
            deviation = np.sqrt(sum(np.square(block - mean).sum(0) for block in blocks) / len(rows))
            self.mean.copy_(torch.from_numpy(mean))
            self.deviation.copy_(torch.from_numpy(deviation))
            self.deviation[self.deviation == 0] = 1.0  # a constant column stays as it is

    def features(self, inputs: Tensor) -> Tensor:  # (n, height, width, channels) uint8 or (n, d) → (n, width)
        if self.prepared:
            return self.backbone(inputs)
        if self.images:
            return self.backbone(inputs.permute(0, 3, 1, 2).float() / 255)
        return self.backbone((inputs - self.mean).div_(self.deviation))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.features(inputs))


def build_network(
    model: str | nn.Module,
    loss: Loss,
    *,
    input_shape: tuple[int, ...],
    n_classes: int,
    seed: int = 0,
    head: str = "auto",
) -> Network:
    """The network that `model` and the loss describe, with initial weights that depend on the seed only.

    `input_shape` is that of one input as datasets hold it: (height, width, channels) or (columns,). `head` says what a
    model of one's own returns: "new", features, to which the head of the loss is added; "own", the scores themselves;
    "auto" finds out. A model whose outputs are the L scores of its last linear layer is a whole classifier: that layer
    is the head, or makes way for the heads that the loss asks for, if those are others.

    >>> from workbench.losses import CrossEntropy
    >>> mine = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 26))
    >>> network = build_network(mine, CrossEntropy(), input_shape=(16,), n_classes=26)
    >>> network.head, network.features(torch.zeros(5, 16)).shape
    (Linear(in_features=8, out_features=26, bias=True), torch.Size([5, 8]))
    """
    channels_first = (input_shape[2], *input_shape[:2]) if len(input_shape) == 3 else tuple(input_shape)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        backbone = copy.deepcopy(model) if isinstance(model, nn.Module) else _made(model, channels_first)
        given = head if foreign(model) else "new"
        backbone, last = _with_head(backbone, loss, channels_first, n_classes, given)
    return Network(backbone, last, tuple(input_shape))


def foreign(model: str | nn.Module) -> bool:
    """Whether a model is somebody's own, a Module or `module:factory`, which may be a whole classifier."""
    return isinstance(model, nn.Module) or not (model in BACKBONES or model.startswith(TORCHVISION))


def backbone_named(name: str, *, allowed: Iterable[str] | None = None) -> Backbone:
    """The function that makes a backbone for an input shape.

    `torchvision:name` is a network of torchvision, and `module:factory` finds a function that lives elsewhere, in one of
    the `allowed` modules if the name is only data (`lookup.named`).
    """
    if name.startswith(TORCHVISION):
        return from_torchvision(name)
    others = ", torchvision:name; or give module:factory or a torch Module"
    factory = named(name, BACKBONES, "model", others=others, allowed=allowed)
    if not callable(factory):
        raise ValueError(f"{name!r} is not a function that takes an input shape and returns a torch Module")
    return factory


def _made(name: str, channels_first: tuple[int, ...]) -> nn.Module:
    factory = backbone_named(name)
    try:
        return factory(channels_first)
    except TypeError as error:
        raise ValueError(
            f"{name!r} does not make a model: it is called with the input shape, {channels_first} ({error})"
        ) from error


def random_weights(name: str) -> bool:
    """Whether the backbone of this name has weights that know nothing yet. `linear` has none at all."""
    if name.startswith(TORCHVISION):
        return ":" not in name.removeprefix(TORCHVISION)
    return name in UNTRAINED and name != "linear"


def weights_digest(module: nn.Module) -> str:
    """sha256 of all weights of a module."""
    return hashlib.sha256(safetensors.torch.save(copied(module.state_dict()))).hexdigest()


def copied(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of some weights, on the CPU and row by row, as files hold them."""
    row_by_row = torch.contiguous_format
    return {name: value.detach().cpu().clone(memory_format=row_by_row) for name, value in weights.items()}


def _with_head(
    backbone: nn.Module, loss: Loss, input_shape: tuple[int, ...], n_classes: int, head: str
) -> tuple[nn.Module, nn.Module]:
    """The backbone and the head: that which the model has, or the one that the loss asks for."""
    outputs = _outputs(backbone, input_shape)
    if head == "own":
        scores = (2, 2, n_classes) if loss.heads == 2 else (2, n_classes)
        if outputs.shape != scores:
            raise ValueError(
                f"head = 'own', but for 2 inputs the model returns {tuple(outputs.shape)}, and {type(loss).__name__} reads "
                f"scores of shape {scores}; give head='new' if these are features"
            )
        return backbone, nn.Identity()
    if outputs.ndim != 2 or len(outputs) != 2:
        raise ValueError(
            f"for 2 inputs the model returns {tuple(outputs.shape)}; it must return features of shape (2, d)"
        )
    if head == "new" or outputs.shape[1] != n_classes:
        return backbone, _head(loss, outputs.shape[1], n_classes)
    found = _taken_apart(backbone, input_shape, n_classes)
    if found is None:
        raise ValueError(
            f"the model returns {n_classes} numbers for {n_classes} classes: its scores, or features? Its last step is no "
            "linear layer that would tell. Give head='own' if they are scores (before softmax or sigmoid), head='new' if "
            "they are features"
        )
    backbone, last = found
    return backbone, last if loss.head == "linear" and loss.heads == 1 else _head(loss, last.in_features, n_classes)


def _taken_apart(model: nn.Module, input_shape: tuple[int, ...], n_classes: int) -> tuple[nn.Module, nn.Linear] | None:
    """What comes before the linear layer whose outputs are those of the model, and that layer; None if there is none."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    said: dict[str, Tensor] = {}

    def remember(name: str) -> Callable[..., None]:
        return lambda _layer, _inputs, output: said.update({name: output})

    hooks = [layer.register_forward_hook(remember(name)) for name, layer in layers.items()]
    outputs = _outputs(model, input_shape)
    for hook in hooks:
        hook.remove()
    last = next((name for name, output in said.items() if output is outputs), None)
    if last is None:
        return None
    layer = layers[last]
    if last == "":
        return nn.Flatten(), layer
    parent, _, name = last.rpartition(".")
    setattr(model.get_submodule(parent), name, nn.Identity())
    features = _outputs(model, input_shape)
    if features.shape != (2, layer.in_features):  # the layer is at work elsewhere, too
        setattr(model.get_submodule(parent), name, layer)
        return None
    return model, layer


def _head(loss: Loss, n_features: int, n_classes: int) -> nn.Module:
    make = HEADS[loss.head]
    if loss.heads == 2:
        return TwoHeads(make(n_features, n_classes), make(n_features, n_classes))
    return make(n_features, n_classes)


def _outputs(model: nn.Module, input_shape: tuple[int, ...]) -> Tensor:
    """What the model returns when it is shown two blank inputs."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"a model must be a torch Module that returns features, not {type(model).__name__}")
    training = model.training
    model.eval()
    with torch.no_grad():
        try:
            outputs = model(torch.zeros(2, *input_shape))
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"the model does not take inputs of shape {input_shape}: {error}") from error
    model.train(training)
    if not isinstance(outputs, Tensor):
        raise ValueError(
            f"the model returns {type(outputs).__name__}; it must return a tensor, features of shape (n, d)"
        )
    return outputs
