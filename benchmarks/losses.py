"""What every loss costs, forward and backward, as multiples of cross-entropy.

    python benchmarks/losses.py                           the table, our peers beside us, and the budgets
    python benchmarks/losses.py --plot docs/loss_costs.png  also cost against K and against the number of classes

Batch of 64, one thread, standard normal scores. Processor time; each number is the quickest of several short rounds,
divided by the quickest round of `torch.nn.functional.cross_entropy` in the same run. "Kept" is what autograd holds for
the backward pass, as a multiple of the scores.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import workbench as wb
from workbench.losses import LOSSES, Loss

BATCH = 64
CLASSES = (100, 1000, 10_450)
SET_SIZES = (1, 2, 5, 10, 20, 50)
MORE_CLASSES = (30, 100, 300, 1000, 3000, 10_450)

LossFunction = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Budget:
    """What a loss may cost at most."""

    name: str
    loss: Loss
    n_classes: int
    limit: float | None = None  # None: reported only


BUDGETS = (
    Budget("noised, ε = 0.2, 5 draws", wb.losses.NoisedTopK(K=5), 1000, 8),
    Budget("noised, ε = 0.2, 5 draws", wb.losses.NoisedTopK(K=5), 10_450, 12),
    Budget("exact noised, ε = 0.2", wb.losses.ExactNoisedTopK(K=5), 1000, 200),
    Budget("exact noised, ε = 1", wb.losses.ExactNoisedTopK(K=5, epsilon=1.0), 1000),
    Budget("smooth hinge", wb.losses.SmoothTopKHinge(K=5), 1000, 35),
    Budget("differentiable, bitonic", wb.losses.DifferentiableTopK(operator="bitonic", m=16), 1000, 12),
    Budget("differentiable, splitter", wb.losses.DifferentiableTopK(operator="splitter", m=16), 1000, 12),
    Budget("differentiable, sinkhorn", wb.losses.DifferentiableTopK(operator="sinkhorn_sort", m=16), 1000),
    Budget("sparse-top", wb.losses.SparseTop(), 1000, 8),
    Budget("average-K two-head", wb.losses.AverageKTwoHead(K=5.0), 1000, 10),
)


class Race:
    """Times losses on the same scores against cross-entropy."""

    def __init__(self, n_classes: int, heads: int = 1, many_labels: bool = False) -> None:
        generator = torch.Generator().manual_seed(0)
        shape = (BATCH, n_classes) if heads == 1 else (BATCH, heads, n_classes)
        self.scores = torch.randn(shape, generator=generator).requires_grad_()
        self.labels = torch.randint(n_classes, (BATCH,), generator=generator)
        self.given = F.one_hot(self.labels, n_classes).bool() if many_labels else self.labels
        self.plain = torch.randn(BATCH, n_classes, generator=generator).requires_grad_()

    @classmethod
    def for_loss(cls, loss: Loss, n_classes: int) -> Race:
        return cls(n_classes, loss.heads, loss.labels == "many")

    def cost(self, loss: LossFunction, rounds: int = 5) -> float:
        """Forward and backward, as a multiple of cross-entropy."""

        def ours() -> None:
            self.scores.grad = None
            loss(self.scores, self.given).mean().backward()

        def cross_entropy() -> None:
            self.plain.grad = None
            F.cross_entropy(self.plain, self.labels).backward()

        found = [(_seconds(ours), _seconds(cross_entropy)) for _ in range(rounds)]
        return min(seconds for seconds, _ in found) / min(seconds for _, seconds in found)

    def kept(self, loss: LossFunction) -> float:
        """What autograd keeps between forward and backward, as a multiple of the scores."""
        storages: dict[int, int] = {}

        def keep(saved: Tensor) -> Tensor:
            storages[saved.untyped_storage().data_ptr()] = saved.untyped_storage().nbytes()
            return saved

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
            loss(self.scores, self.given)
        return sum(storages.values()) / (self.scores.numel() * self.scores.element_size())


def _seconds(action: Callable[[], None], budget: float = 0.03) -> float:
    """Processor time of one call, averaged over a short round."""
    action()
    calls, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < budget or calls == 0:
        action()
        calls += 1
    return elapsed / calls


def of_set_size(loss_class: type[Loss], K: int) -> Loss:
    """The loss with sets of K classes, or as it is when it has no K."""
    if loss_class is wb.losses.DifferentiableTopK:
        return loss_class(p_k=(0.0,) * (K - 1) + (1.0,), m=max(16, K + 1))
    return loss_class(K=K) if "K" in loss_class.knobs() else loss_class()


def peers() -> dict[str, tuple[Callable[[int], LossFunction], str]]:
    """Name of a peer → how it is made for a number of classes, and the loss of ours it stands beside."""
    found: dict[str, tuple[Callable[[int], LossFunction], str]] = {}
    if find_spec("pytopk"):
        import pytopk

        found["pytopk, 5 draws"] = (lambda n: pytopk.BalNoisedTopK(5, epsilon=0.2, n_sample=5), "NoisedTopK")
    if find_spec("difftopk"):
        import difftopk

        for method in ("bitonic__non_sparse", "odd_even", "softsort"):
            made = partial(difftopk.TopKCrossEntropyLoss, method, 1.0, [0.5, 0, 0, 0, 0.5], m=16, distribution="cauchy")
            found[f"difftopk {method}"] = (made, "DifferentiableTopK")
    if find_spec("entmax"):
        import entmax

        def projection(scores: Tensor, labels: Tensor) -> Tensor:
            return entmax.budget_bisect(scores, budget=5, n_iter=24)

        found["entmax budget_bisect, 24 steps"] = (lambda n: projection, "SparseTop")
    return found


def print_table(losses: Iterable[type[Loss]]) -> None:
    print(f"{'loss':34}" + "".join(f"{f'L = {n}':>12}" for n in CLASSES) + f"{'kept':>9}")
    for loss_class in losses:
        loss = loss_class()
        costs = [Race.for_loss(loss, n).cost(loss) for n in CLASSES]
        kept = Race.for_loss(loss, 1000).kept(loss)
        print(f"{loss_class.__name__:34}" + "".join(f"{cost:12.1f}" for cost in costs) + f"{kept:9.1f}", flush=True)
    print("\npeers (pip install workbench[bench])")
    for name, (made, ours) in peers().items():
        costs = [Race(n).cost(made(n)) for n in CLASSES]
        print(f"{name:34}" + "".join(f"{cost:12.1f}" for cost in costs) + f"   ({ours})", flush=True)


def print_budgets() -> None:
    print(f"\n{'budget':34}{'L':>12}{'cost':>12}{'at most':>9}")
    for budget in BUDGETS:
        cost = Race.for_loss(budget.loss, budget.n_classes).cost(budget.loss, rounds=9)
        limit = "" if budget.limit is None else f"{budget.limit:9g}" + ("" if cost <= budget.limit else "   over")
        print(f"{budget.name:34}{budget.n_classes:12}{cost:12.1f}{limit}", flush=True)
    for loss_class, wanted in ((wb.losses.NoisedTopK, 2), (wb.losses.SmoothTopKHinge, 50)):
        few, many = (Race(1000).cost(loss_class(K=K), rounds=9) for K in (1, 50))
        print(f"{loss_class.__name__ + ', K = 50 over K = 1':34}{1000:12}{many / few:12.2f}{wanted:9g}", flush=True)


def draw(losses: Iterable[type[Loss]], path: Path) -> None:
    """Cost against K (1000 classes) for the losses that have one, and against the number of classes for all."""
    import matplotlib.pyplot as plt

    from workbench.figures.style import LIGHT, matplotlib_rc

    losses = tuple(losses)
    with_K = [loss for loss in losses if "K" in loss.knobs() or loss is wb.losses.DifferentiableTopK]
    with plt.rc_context(matplotlib_rc(LIGHT)):
        figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6.5), sharey=True, layout="constrained")
        for loss_class in with_K:
            costs = [Race.for_loss(loss_class(), 1000).cost(of_set_size(loss_class, K), rounds=3) for K in SET_SIZES]
            _line(left, loss_class, SET_SIZES, costs, losses)
        for loss_class in losses:
            loss = loss_class()
            costs = [Race.for_loss(loss, n).cost(loss, rounds=3) for n in MORE_CLASSES]
            _line(right, loss_class, MORE_CLASSES, costs, losses)
        left.set(title="1000 classes", xlabel="K", ylabel="forward + backward, in cross-entropies", xticks=SET_SIZES)
        right.set(title="K = 5", xlabel="number of classes", xticks=MORE_CLASSES)
        for axes, ticks in ((left, SET_SIZES), (right, MORE_CLASSES)):
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.minorticks_off()
            axes.axhline(1, color=LIGHT.muted, linewidth=0.8)
        figure.legend(*right.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
        figure.savefig(path, dpi=150)
    print(f"\ndrawn: {path}")


def _line(axes, loss_class: type[Loss], x: Iterable[int], costs: list[float], losses: tuple[type[Loss], ...]) -> None:
    from workbench.figures.style import LIGHT

    place = losses.index(loss_class)
    colour = LIGHT.categories[place % len(LIGHT.categories)]
    mark = ("o", "s", "^")[place // len(LIGHT.categories)]  # colour and mark together tell losses apart
    axes.plot(x, costs, color=colour, marker=mark, markersize=5, linewidth=1.4, label=loss_class.title)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--plot", type=Path, help="also draw cost against K and against the number of classes")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    print_table(LOSSES)
    print_budgets()
    if options.plot:
        draw(LOSSES, options.plot)


if __name__ == "__main__":
    main()
