"""Evaluation passes: the scores and features of a split as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from workbench.datasets import Dataset, ImageFiles, Split
from workbench.losses import Loss
from workbench.networks.network import Network
from workbench.sets.thresholds import checked_m, threshold_among
from workbench.tables import LogitTable
from workbench.tables.ordering import likeliest
from workbench.training.batches import in_turn, readable

# That go through the network, at most, when nothing is learnt. Twice as many rows take twice as long each on a CPU.
ROWS_AT_ONCE, NUMBERS_AT_ONCE = 512, 2**24


def rows_at_once(input_shape: tuple[int, ...]) -> int:
    """Rows per evaluation forward pass; fewer for large photographs."""
    return max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // math.prod(input_shape)))


def scores_and_features(
    network: Network, inputs: np.ndarray | ImageFiles, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Scores (n, L) or (n, 2, L) and last-layer features (n, d) of raw inputs, computed in float32."""
    blocks = [(scores.cpu(), features.cpu()) for scores, features in scored_blocks(network, inputs, device)]
    scores, features = zip(*blocks, strict=True)  # the device holds one block at a time
    return torch.cat(scores), torch.cat(features)


def scored_blocks(
    network: Network, inputs: np.ndarray | ImageFiles, device: torch.device | str = "cpu"
) -> Iterator[tuple[Tensor, Tensor]]:
    """The scores and the features of some rows at a time; how many of them decides the last bits."""
    network = network.to(device).eval()
    with torch.inference_mode():
        for block in in_turn(readable(inputs), torch.arange(len(inputs)).split(rows_at_once(inputs.shape[1:]))):
            features = network.features(block.to(device))
            yield network.head(features), features


def split_tables(
    name: str,
    data: Dataset,
    loss: Loss,
    state: nn.Module | None,
    scores: Tensor,
    features: Tensor | None = None,
    *,
    chose_model: bool = False,
) -> dict[str, LogitTable]:
    """The tables of one split by name: what the predicting head says and, of two heads, what the candidate head says."""
    split = getattr(data, name)
    known = {
        "class_names": data.class_names,
        "groups": data.groups,
        "class_counts": data.class_counts,
        "attributes": split.attributes,
        "texts": split.texts,
        "strokes": split.strokes,
        "posterior": split.posterior,
        "chose_model": chose_model,
    }
    features_of_rows = None if features is None else features.numpy()
    tables = {name: predicted(split, loss, state, scores, features=features_of_rows, **known)}
    if loss.heads == 2:  # the candidate head learns by cross-entropy, so its link is softmax
        tables[f"{name}/candidates"] = LogitTable(scores[:, 1].cpu().numpy(), split.labels, **known)
    return tables


def predicted(split: Split, loss: Loss, state: nn.Module | None, scores: Tensor, **known: Any) -> LogitTable:
    """The table of what the predicting head says of a split, with what else is `known` of its rows and classes."""
    predicting = loss.logits(scores).cpu().numpy()
    return LogitTable(predicting, split.labels, link=loss.link, link_constant=loss.link_constant(state), **known)


def tables_of(
    network: Network,
    loss: Loss,
    state: nn.Module | None,
    data: Dataset,
    *,
    device: torch.device | str = "cpu",
    chosen_on_val: bool = False,
) -> dict[str, LogitTable]:
    """The tables of val and test. Features that are the inputs or the scores themselves are not kept twice."""
    tables: dict[str, LogitTable] = {}
    for name in ("val", "test"):
        scores, features = scores_and_features(network, getattr(data, name).inputs, device)
        nothing_more = isinstance(network.backbone, nn.Flatten) or isinstance(network.head, nn.Identity)
        kept = None if nothing_more else features
        tables |= split_tables(name, data, loss, state, scores, kept, chose_model=chosen_on_val and name == "val")
    return tables


def validated(val: LogitTable, K: float) -> dict[str, float]:
    """Top-1 accuracy, coverage of average-K sets, and their mean size.

    The threshold is that of these same rows, as in Garcin et al. 2023, so the size is K but for ties: probabilities that
    are equal enter a set together, and zeros enter none. Where rows have many labels, the likeliest class must be one of
    them, and the set must hold all. Rows without a label have a size, and no part in the accuracies (NaN if there are no
    others).
    """
    labels, probabilities, rows = val.checked_labels(), val.probabilities(), np.flatnonzero(val.labelled)
    guesses = likeliest(probabilities, val.scores, val.link)[rows]
    inside = probabilities >= threshold_among(probabilities, checked_m(K, val))
    if val.many_labels:
        right, held = labels[rows, guesses], (inside | ~labels)[rows].all(axis=1)
    else:
        right, held = labels[rows] == guesses, inside[rows, labels[rows]]
    return {
        "val_accuracy": float(right.mean()) if len(rows) else np.nan,
        "val_average_K_accuracy": float(held.mean()) if len(rows) else np.nan,
        "val_mean_size": float(np.count_nonzero(inside) / val.n),
    }


def first_hits(logits: Tensor, labels: Tensor) -> Tensor:
    """Per row of logits (…, n, L): 1 if the largest one is of a label, 0 if not, NaN for a row without a label.

    >>> first_hits(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0])).tolist()
    [1.0, 0.0]
    """
    first = logits.argmax(-1)
    if labels.ndim < logits.ndim:
        return (first == labels).float().masked_fill(labels < 0, torch.nan)
    right = labels.gather(-1, first.unsqueeze(-1)).squeeze(-1).float()
    return right.masked_fill(~labels.bool().any(-1), torch.nan)


def mean_of_known(values: Sequence[float]) -> float:
    """Mean of the values that are not NaN; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def normalisers(
    loss: Loss, state: nn.Module | None, scores: Tensor, log_constants: Sequence[Tensor] = ()
) -> dict[str, float]:
    r"""The normaliser of the scores: the mean over rows of $\log \sum_k e^{z_k}$, and log C of quasibinary.

    A softmax has a normaliser for each row; quasibinary has one C for all, so that rows can be compared (Liao et al.,
    Fig. 2). Logarithms, because both overflow. As in that figure also the mean and the variance of the normaliser
    itself: of the $\sum_k e^{z_k}$ of all rows, or of the C of all batches of the epoch, whose logarithms are
    `log_constants`. Empty for losses that have neither.
    """
    if loss.link not in ("softmax", "quasibinary"):
        return {}
    of_rows = loss.logits(scores).logsumexp(-1)
    found = {"val_log_normaliser": of_rows.mean().item()}
    if (log_C := loss.link_constant(state)) is not None:
        found["log_C"] = log_C
    each = (torch.stack(list(log_constants)) if len(log_constants) else of_rows).double().exp()
    variance = each.var(correction=0).nan_to_num(nan=math.inf)  # where one overflows
    return {**found, "normaliser_mean": each.mean().item(), "normaliser_variance": variance.item()}
