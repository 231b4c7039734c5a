"""Export of a trained network: an ONNX file, or a bundle with all that sets need. Neither needs the workbench."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

import workbench
from workbench.files.atomic import whole_file, whole_folder
from workbench.optional_dependencies import check_installed
from workbench.sets import AverageK, FittedRule, Rule, TopK
from workbench.sets.base import dtype_threshold
from workbench.store.runs import WEIGHTS
from workbench.tables.links import check_same_link
from workbench.training.features import stored_weights
from workbench.training.predicting import fitted_rule, input_format, logits

if TYPE_CHECKING:
    from workbench.training.trained_run import TrainedRun

FORMAT = 1  # of bundle.json
MODEL, BUNDLE = "model.onnx", "bundle.json"
INPUTS, SCORES, PROBABILITIES = "inputs", "scores", "probabilities"  # what goes in and comes out


def _sparsemax(scores: Tensor) -> Tensor:
    """Sort with torch only: the one of `operators` may use NumPy, which is not part of a graph."""
    falling = scores.sort(-1, descending=True).values
    excess = falling.cumsum(-1) - 1
    ranks = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    support = (ranks * falling > excess).sum(-1, keepdim=True)  # how many classes keep some probability
    return (scores - excess.gather(-1, support - 1) / support).clamp(min=0)


# `tables.links`, as torch computes them inside the exported network.
LINKS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "softmax": lambda scores, _: scores.softmax(-1),
    "sigmoid": lambda scores, _: scores.sigmoid(),
    "quasibinary": lambda scores, log_C: (scores - log_C).exp(),
    "identity": lambda scores, _: scores,
    "sparsemax": lambda scores, _: _sparsemax(scores),
}


def export(trained: TrainedRun, path: Path, rule: Rule | FittedRule | None = None) -> Path:
    """Writes `path`, a file that ends in .onnx or a folder, as a whole or not at all."""
    path = path.expanduser()
    for package in ("onnx", "onnxscript"):
        check_installed(package)
    if path.suffix == ".onnx":
        if rule is not None:
            raise ValueError(f"{path} holds a network and no rule; give a folder, such as {path.with_suffix('')}")
        with whole_file(path) as aside:
            _write_onnx(trained, aside)
        return path
    _check_free(path)
    fitted = fitted_rule(AverageK(trained.stored.record.K) if rule is None else rule, trained.tables["val"])
    described = _described(trained, fitted)
    with whole_folder(path) as folder:
        _write_onnx(trained, folder / MODEL)
        safetensors.torch.save_file(_network_weights(trained), folder / WEIGHTS)
        (folder / BUNDLE).write_text(json.dumps(described, indent=1, ensure_ascii=False), encoding="utf-8")
    return path


def _check_free(path: Path) -> None:
    """Refuse to write over anything but nothing, an empty folder, or a bundle that holds no other file."""
    if not path.exists():
        return
    ours = path.is_dir() and (path / BUNDLE).is_file()
    others = {entry.name for entry in path.iterdir()} - {MODEL, WEIGHTS, BUNDLE} if path.is_dir() else {path.name}
    if others or not (ours or not any(path.iterdir())):
        found = f"holds {min(others)}" if others and path.is_dir() else "is there"
        raise FileExistsError(
            f"{path} {found} and is not a bundle of ours alone; give another path, or one that ends in .onnx"
        )


class _ScoringModule(nn.Module):
    """The network with what a table makes of its scores: the logits of the loss, and their probabilities."""

    def __init__(self, trained: TrainedRun) -> None:
        super().__init__()
        self.network, self.trained = trained.model, trained
        table = trained.tables["val"]
        self.link, self.log_C = LINKS[table.link], table.link_constant or 0.0

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        scores = logits(self.trained, self.network(inputs))
        return scores, self.link(scores, self.log_C)


def _write_onnx(trained: TrainedRun, path: Path) -> None:
    shape = tuple(trained.stored.record.input_shape or ())
    dtype = torch.uint8 if trained.model.images else torch.float32
    network = _ScoringModule(trained).cpu().eval()
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)  # of torchvision, which nothing here asks for
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # torch warns of its own code
            program = torch.onnx.export(
                network,
                (torch.zeros((2, *shape), dtype=dtype),),
                input_names=[INPUTS],
                output_names=[SCORES, PROBABILITIES],
                dynamic_shapes=({0: torch.export.Dim("rows")},),
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        why = str(error.__cause__ or error).strip().partition("\n")[0]
        raise ValueError(f"{trained.stored.title} cannot be written as ONNX ({why:.200})") from error
    finally:
        logger.setLevel(level)
    assert program is not None
    program.save(path)


def _network_weights(trained: TrainedRun) -> dict[str, Tensor]:
    from workbench.training.trained_run import network_weights

    return network_weights(stored_weights(trained.stored))


def _described(trained: TrainedRun, fitted: FittedRule) -> dict[str, Any]:
    """Return the content of `bundle.json`: a set has every class above the threshold, and the first `min_size`."""
    table, form, network = trained.tables["val"], input_format(trained), trained.model
    files = {"resize": form.resize, "size": form.input_shape[0]} if form.resize else None
    check_same_link(fitted, table)
    threshold, min_size = _cut(fitted)
    return {
        "format": FORMAT,
        "title": trained.stored.title,
        "run": trained.stored.key,
        "inputs": {
            "shape": list(form.input_shape),
            "dtype": "uint8" if network.images else "float32",
            "columns": None if form.columns is None else list(form.columns),
            "files": files,  # shorter side of an image in a file, and the square that is cut from its middle
            "divided_by": 255 if network.images else 1,  # by the model itself, as what follows
            "mean": network.mean.tolist(),
            "deviation": network.deviation.tolist(),
        },
        "link": table.link,
        "link_constant": table.link_constant,
        "class_names": list(table.named_classes()),
        "rule": {"rule": type(fitted.rule).__name__, "knobs": fitted.rule.settings()},
        "threshold": threshold,
        "min_size": min_size,
        "versions": {"workbench": workbench.__version__, "torch": torch.__version__},
    }


def _cut(fitted: FittedRule) -> tuple[Any, int]:
    """The threshold of the probabilities, in their precision, and how many classes are in a set in any case."""
    rule = fitted.rule
    min_size = int(getattr(rule, "min_size", 0))
    if isinstance(rule, TopK):
        return None, max(rule.K, min_size)
    one_for_all = np.ndim(fitted.threshold) == 0
    if not fitted.cuts_probabilities or (min_size and not one_for_all):
        raise ValueError(
            f"{rule.short()} is more than a threshold of probabilities, which is all that a bundle holds; give AverageK, "
            "Threshold, LAC, TopK, or ClassConditionalLAC without min_size, or use `predictor`"
        )
    threshold = dtype_threshold(fitted.threshold, np.dtype(np.float32))
    return (float(threshold) if one_for_all else threshold.tolist()), min_size
