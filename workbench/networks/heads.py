"""Heads turn features (n, d) into scores (n, L), or (n, 2, L): which, and how many, the loss says.

A model that ends in a linear layer with L scores is taken apart: that layer is the head.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.losses import Loss


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


def with_head(
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
    found = _split_head(backbone, input_shape, n_classes)
    if found is None:
        raise ValueError(
            f"the model returns {n_classes} numbers for {n_classes} classes: its scores, or features? Its last step is no "
            "linear layer that would tell. Give head='own' if they are scores (before softmax or sigmoid), head='new' if "
            "they are features"
        )
    backbone, last = found
    return backbone, last if loss.head == "linear" and loss.heads == 1 else _head(loss, last.in_features, n_classes)


def _split_head(model: nn.Module, input_shape: tuple[int, ...], n_classes: int) -> tuple[nn.Module, nn.Linear] | None:
    """Split a model into its body and the linear layer that computes its outputs; None if there is none."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    outputs_of: dict[str, Tensor] = {}

    def remember(name: str) -> Callable[..., None]:
        return lambda _layer, _inputs, output: outputs_of.update({name: output})

    hooks = [layer.register_forward_hook(remember(name)) for name, layer in layers.items()]
    outputs = _outputs(model, input_shape)
    for hook in hooks:
        hook.remove()
    last = next((name for name, output in outputs_of.items() if output is outputs), None)
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
    """Return the output of the model for two blank inputs."""
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
