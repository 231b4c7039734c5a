"""Loss and average-K accuracy around trained weights, on a plane that two random directions span.

A direction is *filter-normalised*: each filter of it (each row of a weight matrix) has the length of the filter it moves,
so that a step means the same in every layer and for networks that differ only in scale (Li et al. 2018). Biases and the
scales of batch normalisation stay where they are.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.metrics import accuracy
from workbench.progress import bar
from workbench.row_sampling import evenly_spaced_rows
from workbench.sets import AverageK
from workbench.store import Store
from workbench.store.planes import Plane, lattices, lines
from workbench.tables import LogitTable
from workbench.training.features import stored_weights
from workbench.training.scoring import scores_and_features

if TYPE_CHECKING:
    from workbench.datasets import Split
    from workbench.losses import Loss
    from workbench.training.trainer import Run, TrainedRun

KEPT_EVERY = 8  # points: what is lost by an interruption, at most


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
    are those of test rows, at most `rows` of each, spread evenly. K is that of the loss, or 5. Noised losses are smoothed
    exactly.

    The plane has `steps` points a side (an odd number, so that w is one of them), computed from coarse to fine and kept
    in the store after each refinement: an interrupted call goes on, and a finer one starts from what is there.
    Returns one row per point: a, b, loss, accuracy, threshold, K, n (test rows); `figures.weight_plane` draws it.

    >>> import tempfile
    >>> from workbench.training.trainer import Run, train
    >>> store = Store(tempfile.mkdtemp())
    >>> trained = train(Run("digits", model="linear", epochs=3, device="cpu"), store=store, progress=False)
    >>> plane = weight_plane(trained, steps=3, store=store, progress=False)
    >>> plane.shape
    (9, 7)

    Method: Li et al. 2018, Visualizing the loss landscape of neural nets; thresholds as in Garcin et al. 2023.
    """
    from workbench.training.trainer import TrainedRun, train

    if steps != int(steps) or steps < 3 or steps % 2 == 0:
        raise ValueError(f"steps = {steps!r}; give an odd number of points a side, at least 3")
    if not (np.isfinite(reach) and reach > 0) or rows < 1:
        raise ValueError(f"reach = {reach!r} and rows = {rows!r}; both must be above 0")
    store = Store() if store is None else store
    trained = run if isinstance(run, TrainedRun) else train(run, store=store, progress=progress)
    plane = Plane.through(trained.stored, K=K, reach=reach, rows=rows, seed=seed)
    known = plane.points(store)
    *_, points = levels = list(lattices(steps, reach))
    left = sum(point not in known for point in points)
    moved = _MovableWeights(trained, plane)
    with bar("weight plane", "point", total=left, hidden=not progress) as shown:
        for lattice in levels:
            new = [point for point in lattice if point not in known]
            for number, (a, b) in enumerate(new, start=1):
                known[a, b] = [a, b, *moved.judged(a, b)]
                shown.update()
                if number % KEPT_EVERY == 0 or number == len(new):
                    plane.keep(known, store)
    return lines(known, points)


class _MovableWeights:
    """A trained network that can be moved on a plane, and the rows it is evaluated on."""

    def __init__(self, trained: TrainedRun, plane: Plane) -> None:
        data, rows = trained.run.data, plane.rows
        self.network = copy.deepcopy(trained.model)
        self.loss = trained.run.loss.for_classes(data.class_counts).at(1).exact()
        self.state = _loss_state(trained, self.loss)
        self.batch_size = trained.run.batch_size
        self.K = plane.K
        self.val, self.test = (_some(split, rows) for split in (data.val, data.test))
        self.parameters = list(self.network.parameters())
        self.weights = [parameter.detach().clone() for parameter in self.parameters]
        generator = torch.Generator().manual_seed(plane.seed)
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
        return self._mean_loss(scores), accuracy(sets), rule.threshold, self.K, n

    def _mean_loss(self, scores: Tensor) -> float:
        labels = self.loss.readable(torch.from_numpy(self.test[1]), scores.shape[-1])
        batches = zip(scores.split(self.batch_size), labels.split(self.batch_size), strict=True)
        with torch.no_grad():
            return float(torch.cat([self.loss(*batch, state=self.state) for batch in batches]).mean())

    def _table(self, scores: Tensor, labels: np.ndarray) -> LogitTable:
        log_C = self.loss.link_constant(self.state)
        return LogitTable(self.loss.logits(scores).numpy(), labels, link=self.loss.link, link_constant=log_C)


def _some(split: Split, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of at most that many rows."""
    chosen = evenly_spaced_rows(split.n, most)
    return split.inputs[chosen], split.labels[chosen]


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
    normalised: Tensor = (F.normalize(filters, dim=1) * lengths).view_as(weights)
    return normalised


def _loss_state(trained: TrainedRun, loss: Loss) -> nn.Module | None:
    """Return the state of the loss at the end of training, such as the normaliser of the quasibinary loss."""
    state = loss.state(trained.run.data.train.n, trained.run.data.n_classes)
    if state is None:
        return None
    stored = stored_weights(trained.stored)
    prefix = "loss_state."
    state.load_state_dict({name[len(prefix) :]: value for name, value in stored.items() if name.startswith(prefix)})
    return state.eval()
