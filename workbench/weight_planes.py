"""Loss and average-K accuracy around trained weights, on a plane that two random directions span.

A direction is *filter-normalised*: each filter of it (each row of a weight matrix) has the length of the filter it moves,
so that a step means the same in every layer and for networks that differ only in scale (Li et al. 2018). Biases and the
scales of batch normalisation stay where they are.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from workbench.scoring import scores_and_features
from workbench.sets import AverageK
from workbench.store import Store
from workbench.tables import LogitTable

if TYPE_CHECKING:
    from workbench.losses import Loss
    from workbench.training import Run, TrainedRun

COLUMNS = ["a", "b", "loss", "accuracy", "threshold", "K", "n"]


def weight_plane(
    run: Run | TrainedRun,
    *,
    K: float | None = None,
    reach: float = 1.0,
    steps: int = 17,
    rows: int = 1000,
    seed: int = 0,
    store: Store | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    r"""Loss and average-K accuracy at the weights $w + a\,u + b\,v$, for a and b from −reach to reach.

    w are the trained weights, u and v random filter-normalised directions (`seed` chooses them). At every point the
    threshold of the sets is fitted again on validation rows, so that sets have K classes on average; loss and accuracy
    are those of test rows, at most `rows` of each. K is that of the loss, or 5. Noised losses are smoothed exactly.

    The plane has `steps` points a side (an odd number, so that w is one of them), computed from coarse to fine and kept
    in the store after each refinement: an interrupted call goes on, and a finer one starts from what is there.
    Returns one row per point: a, b, loss, accuracy, threshold, K, n (test rows); `figures.weight_plane` draws it.

    >>> import tempfile
    >>> from workbench.training import Run, train
    >>> store = Store(tempfile.mkdtemp())
    >>> trained = train(Run("digits", model="linear", epochs=3, device="cpu"), store=store, progress=False)
    >>> plane = weight_plane(trained, steps=3, store=store, progress=False)
    >>> plane.shape
    (9, 7)

    Method: Li et al. 2018, Visualizing the loss landscape of neural nets; thresholds as in Garcin et al. 2023.
    """
    from workbench.training import TrainedRun, train

    if steps != int(steps) or steps < 3 or steps % 2 == 0:
        raise ValueError(f"steps = {steps!r}; give an odd number of points a side, at least 3")
    if not (np.isfinite(reach) and reach > 0) or rows < 1:
        raise ValueError(f"reach = {reach!r} and rows = {rows!r}; both must be above 0")
    store = Store() if store is None else store
    trained = run if isinstance(run, TrainedRun) else train(run, store=store, progress=progress)
    place = _Plane(trained, K, seed, rows)
    settings = {"run": trained.stored.key, "K": place.K, "reach": reach, "rows": rows, "seed": seed}
    kept = store.root / ".planes" / f"{hashlib.sha256(json.dumps(settings).encode()).hexdigest()}.csv"
    known = _read(kept)
    wanted = list(_coarse_to_fine(steps, reach))
    points = sorted({point for level in wanted for point in level})
    with tqdm(
        total=sum(point not in known for point in points), desc="weight plane", unit="point", disable=not progress
    ) as bar:
        for level in wanted:
            new = [point for point in level if point not in known]
            for a, b in new:
                known[a, b] = [a, b, *place.judged(a, b)]
                bar.update()
            if new:
                with store.replacing(kept) as aside:
                    pd.DataFrame(known.values(), columns=COLUMNS).to_csv(aside, index=False)
    return pd.DataFrame([known[point] for point in points], columns=COLUMNS)


class _Plane:
    """A trained network that can be moved, and the rows it is judged on."""

    def __init__(self, trained: TrainedRun, K: float | None, seed: int, rows: int) -> None:
        data = trained.run.data
        self.network = copy.deepcopy(trained.model)
        self.loss = trained.run.loss.for_classes(data.class_counts).exact()
        self.state = _loss_state(trained, self.loss)
        self.batch_size = trained.run.batch_size
        wanted = self.loss.settings().get("K", 5) if K is None else K
        self.K = float(min(max(wanted, 1), data.n_classes - 1))
        self.val, self.test = ((split.inputs[:rows], split.labels[:rows]) for split in (data.val, data.test))
        self.parameters = list(self.network.parameters())
        self.weights = [parameter.detach().clone() for parameter in self.parameters]
        generator = torch.Generator().manual_seed(seed)
        self.u, self.v = ([filter_normalised(w, generator) for w in self.weights] for _ in range(2))

    def judged(self, a: float, b: float) -> tuple[float, float, float, float, int]:
        """Loss, accuracy, threshold, K and n at a point."""
        with torch.no_grad():
            for parameter, w, u, v in zip(self.parameters, self.weights, self.u, self.v, strict=True):
                parameter.copy_(w + a * u + b * v)
        scores = scores_and_features(self.network, self.test[0])[0]
        val_scores = scores_and_features(self.network, self.val[0])[0]
        n = len(scores)
        if not (scores.isfinite().all() and val_scores.isfinite().all()):
            return float("nan"), float("nan"), float("nan"), self.K, n
        rule = AverageK(self.K).fit(self._table(val_scores, self.val[1]))
        sets = rule.sets(self._table(scores, self.test[1]))
        return self._mean_loss(scores), float(sets.hits.mean()), rule.threshold, self.K, n

    def _mean_loss(self, scores: Tensor) -> float:
        labels = torch.from_numpy(self.test[1])
        if self.loss.labels == "many" and labels.ndim == 1:
            labels = F.one_hot(labels, scores.shape[-1]).bool()
        batches = zip(scores.split(self.batch_size), labels.split(self.batch_size), strict=True)
        with torch.no_grad():
            return float(torch.cat([self.loss(*batch, state=self.state) for batch in batches]).mean())

    def _table(self, scores: Tensor, labels: np.ndarray) -> LogitTable:
        log_C = float(self.state.log_C) if self.loss.link == "quasibinary" and self.state is not None else None  # type: ignore[arg-type]
        return LogitTable(self.loss.logits(scores).numpy(), labels, link=self.loss.link, link_constant=log_C)


def filter_normalised(weights: Tensor, generator: torch.Generator) -> Tensor:
    """A random direction whose filters are as long as those of the weights; 0 for biases and other vectors.

    >>> weights = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    >>> filter_normalised(weights, torch.Generator().manual_seed(0)).norm(dim=1).round(decimals=3)
    tensor([5., 1.])
    """
    if weights.ndim < 2:
        return torch.zeros_like(weights)
    filters = torch.randn(weights.shape, generator=generator).flatten(1)
    lengths = weights.flatten(1).norm(dim=1, keepdim=True)
    return (F.normalize(filters, dim=1) * lengths).view_as(weights)


def _loss_state(trained: TrainedRun, loss: Loss) -> nn.Module | None:
    """What the loss remembered at the end of training, such as the normaliser of the quasibinary loss."""
    state = loss.state(trained.run.data.train.n, trained.run.data.n_classes)
    if state is None:
        return None
    stored = safetensors.torch.load_file(trained.stored.verified("weights.safetensors"))
    prefix = "loss_state."
    state.load_state_dict({name[len(prefix) :]: value for name, value in stored.items() if name.startswith(prefix)})
    return state.eval()


def _coarse_to_fine(steps: int, reach: float) -> Iterator[list[tuple[float, float]]]:
    """The points of the plane in ever finer lattices, each halving the stride of the one before."""
    stride = steps - 1 & 1 - steps  # the largest power of two that divides the number of gaps
    while stride:
        along = [round(reach * (2 * step / (steps - 1) - 1), 12) for step in range(0, steps, stride)]
        yield [(a, b) for a, b in product(along, along)]
        stride //= 2


def _read(kept: Path) -> dict[tuple[float, float], list[float]]:
    """(a, b) → row, of a plane that was begun before."""
    if not kept.is_file():
        return {}
    rows = pd.read_csv(kept)
    return {(row[0], row[1]): [*row[:-1], int(row[-1])] for row in rows.to_numpy().tolist()}
