"""Prediction: scores of new rows by a trained network, and the sets that a rule makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from workbench.datasets import ImageFiles
from workbench.datasets.new_rows import InputFormat
from workbench.networks.network import Network
from workbench.progress import slow
from workbench.sets import FittedRule, PredictionSets, Rule, checked_rule
from workbench.tables import LogitTable
from workbench.training.hardware import device_named, one_thread_for_small_steps
from workbench.training.scoring import scored_blocks, scores_and_features

if TYPE_CHECKING:
    from workbench.training.trained_run import TrainedRun


def predict(trained: TrainedRun, inputs: Any, *, device: str = "auto", progress: bool = True) -> LogitTable:
    """Score new rows with the network of a run: a table like those of val and test, without labels."""
    rows, ids = input_format(trained).read(inputs)
    scores = _scores(trained, rows, device_named(device), progress=progress)
    known = trained.tables["val"]
    return LogitTable(
        logits(trained, scores).numpy(),
        link=known.link,
        link_constant=known.link_constant,
        class_names=known.class_names,
        groups=known.groups,
        class_counts=known.class_counts,
        ids=ids,
    )


def input_format(trained: TrainedRun) -> InputFormat:
    """Return the expected form of new rows: that of the training rows."""
    record = trained.stored.record
    knobs = (
        {} if record.dataset is None else record.dataset.get("knobs", {})
    )  # runs that were stored before `resize` was
    columns = None if record.columns is None else tuple(record.columns)
    return InputFormat(tuple(record.input_shape or ()), columns, record.resize or knobs.get("resize"))


def logits(trained: TrainedRun, scores: Tensor) -> Tensor:
    """Return the scores that a table stores: those of the predicting head; cosines times their scale."""
    counts = trained.tables["val"].class_counts
    loss = trained.loss if counts is None else trained.loss.for_classes(counts)
    return loss.at(1).logits(scores)


def _scores(trained: TrainedRun, rows: np.ndarray | ImageFiles, device: torch.device, *, progress: bool) -> Tensor:
    """The scores of rows, in the blocks of training: those of the test rows are the stored ones, bit for bit.

    A run on cached features had its head alone in hand: all features first, and then the head.
    """
    network, record = trained.model, trained.stored.record
    size, shape = record.run.get("batch_size", 1), tuple(record.input_shape or ())
    bar = slow(f"predicting with {trained.stored.title}", "row", total=len(rows), hidden=not progress)
    blocks: list[Tensor] = []
    with bar:
        if record.run.get("features") is not None:
            for _, features in scored_blocks(network, rows, device):
                blocks.append(features.float().cpu())
                bar.update(len(features))
            features = torch.cat(blocks)
            head = Network(nn.Flatten(), network.head, tuple(features.shape[1:]), prepared=True)
            with one_thread_for_small_steps(head, tuple(features.shape[1:]), size):
                return scores_and_features(head, features.numpy(), device)[0]
        with one_thread_for_small_steps(network, shape, size):
            for scores, _ in scored_blocks(network, rows, device):
                blocks.append(scores.cpu())
                bar.update(len(scores))
        return torch.cat(blocks)


def fitted_rule(rule: Rule | FittedRule, val: LogitTable) -> FittedRule:
    """The rule fitted on val, unless it is fitted already."""
    return rule if isinstance(rule, FittedRule) else checked_rule(rule).fit(val)


@dataclass(frozen=True, eq=False)
class Predictor:
    """Gives the sets of new rows: `predictor(inputs)`.

    Args:
        trained: The run whose network scores them.
        fitted: The rule that makes sets of the scores, and its threshold.
    """

    trained: TrainedRun
    fitted: FittedRule
    device: str = "auto"
    progress: bool = True

    def __call__(self, inputs: Any) -> PredictionSets:
        """The sets of rows, of all kinds that `TrainedRun.predict` takes."""
        return self.fitted(self.trained.predict(inputs, device=self.device, progress=self.progress))

    def __repr__(self) -> str:
        return f"Predictor({self.trained.stored.title!r}, {self.fitted!r})"
