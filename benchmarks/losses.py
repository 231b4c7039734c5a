"""What every loss costs, forward and backward, as multiples of cross-entropy.

    python benchmarks/losses.py                           the table, our peers beside us, and the budgets
    python benchmarks/losses.py --plot docs/loss_costs.png  also cost against K and against the number of classes

Batch of 64, one thread, standard normal scores. Processor time. A short round of the loss and one of
`torch.nn.functional.cross_entropy` take turns, and each number is the median of their ratios: on a shared machine both
become slower and faster together, by a factor of two, while the quickest round of each may be lucky. "Kept" is what
autograd holds for the backward pass, as a multiple of the scores.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import workbench as wb
from workbench.losses import LOSSES, Loss
from workbench.optional_dependencies import install_command

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

    def cost(self, loss: LossFunction, rounds: int = 7) -> float:
        """Forward and backward, as a multiple of cross-entropy."""

        def ours() -> None:
            self.scores.grad = None
            loss(self.scores, self.given).mean().backward()

        def cross_entropy() -> None:
            self.plain.grad = None
            F.cross_entropy(self.plain, self.labels).backward()

        return statistics.median(_seconds(ours) / _seconds(cross_entropy) for _ in range(rounds))

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
        return loss_class(p_k=(0.0,) * (K - 1) + (1.0,), operator="splitter", m=max(16, K + 1))
    return loss_class(K=K) if "K" in loss_class.knobs() else loss_class()


@dataclass(frozen=True)
class Peer:
    """A loss of another package, and the one of ours it stands beside."""

    name: str
    beside: type[Loss]
    made: Callable[[int, int], LossFunction]  # from the number of classes and K


def peers() -> list[Peer]:
    """The installed peers, from the extra `bench`."""
    found = []
    if find_spec("pytopk"):
        import pytopk

        found.append(Peer("pytopk, 5 draws", wb.losses.NoisedTopK, lambda n, K: pytopk.BalNoisedTopK(K, 0.2, 5)))
    if find_spec("difftopk"):
        import difftopk

        for method in ("bitonic__non_sparse", "odd_even", "softsort"):

            def made(n: int, K: int, method: str = method) -> LossFunction:
                p_k = [0.0] * (K - 1) + [1.0]
                return difftopk.TopKCrossEntropyLoss(method, 1.0, p_k, n, m=max(16, K + 1), distribution="cauchy")

            found.append(Peer(f"difftopk {method}", wb.losses.DifferentiableTopK, made))
    if find_spec("entmax"):
        import entmax

        def projection(n: int, K: int) -> LossFunction:
            return lambda scores, labels: entmax.budget_bisect(scores, budget=K, n_iter=24)

        found.append(Peer("entmax budget_bisect, 24 steps", wb.losses.SparseTop, projection))
    return found


def print_table(losses: Iterable[type[Loss]]) -> None:
    print(f"{'loss':34}" + "".join(f"{f'L = {n}':>12}" for n in CLASSES) + f"{'kept':>9}")
    for loss_class in losses:
        loss = loss_class()
        costs = [Race.for_loss(loss, n).cost(loss) for n in CLASSES]
        kept = Race.for_loss(loss, 1000).kept(loss)
        print(f"{loss_class.__name__:34}" + "".join(f"{cost:12.1f}" for cost in costs) + f"{kept:9.1f}", flush=True)
    print(f"\npeers ({install_command('bench')})")
    for peer in peers():
        costs = [Race(n).cost(peer.made(n, 5)) for n in CLASSES]
        beside = f"   ({peer.beside.__name__})"
        print(f"{peer.name:34}" + "".join(f"{cost:12.1f}" for cost in costs) + beside, flush=True)


def print_budgets() -> None:
    print(f"\n{'budget':34}{'L':>12}{'cost':>12}{'at most':>9}")
    for budget in BUDGETS:
        cost = Race.for_loss(budget.loss, budget.n_classes).cost(budget.loss, rounds=15)
        limit = "" if budget.limit is None else f"{budget.limit:9g}" + ("" if cost <= budget.limit else "   over")
        print(f"{budget.name:34}{budget.n_classes:12}{cost:12.1f}{limit}", flush=True)
    for loss_class, wanted in ((wb.losses.NoisedTopK, 2), (wb.losses.SmoothTopKHinge, 50)):
        few, many = (Race(1000).cost(loss_class(K=K), rounds=15) for K in (1, 50))
        print(f"{loss_class.__name__ + ', K = 50 over K = 1':34}{1000:12}{many / few:12.2f}{wanted:9g}", flush=True)


def draw(losses: Iterable[type[Loss]], path: Path) -> None:
    """Cost against K for the losses that have one, and against the number of classes for all; peers are dashed."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator

    from workbench.figures.style import LIGHT, matplotlib_rc

    shown = dict(zip(dict.fromkeys(type(budget.loss) for budget in BUDGETS), LIGHT.categories, strict=False))
    beside = {peer.beside: peer for peer in reversed(peers())}  # the first of each
    with plt.rc_context(matplotlib_rc(LIGHT)):
        figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6), sharey=True, layout="constrained")
        for loss_class in sorted(losses, key=lambda loss_class: loss_class in shown):
            look = {"color": LIGHT.muted, "linewidth": 1, "alpha": 0.4}
            if loss_class in shown:
                look = {"color": shown[loss_class], "linewidth": 2, "marker": "o", "label": loss_class.title}
            default, peer = loss_class(), beside.get(loss_class)
            if "K" in loss_class.knobs() or loss_class is wb.losses.DifferentiableTopK:
                race = Race.for_loss(default, 1000)
                left.plot(SET_SIZES, [race.cost(of_set_size(loss_class, K), 3) for K in SET_SIZES], **look)
                if peer:
                    costs = [race.cost(peer.made(1000, K), 3) for K in SET_SIZES]
                    left.plot(SET_SIZES, costs, color=look["color"], linestyle="--")
            races = {n: Race.for_loss(default, n) for n in MORE_CLASSES}
            right.plot(MORE_CLASSES, [race.cost(of_set_size(loss_class, 5), 3) for race in races.values()], **look)
            if peer:
                costs = [Race(n).cost(peer.made(n, 5), 3) for n in MORE_CLASSES]
                right.plot(MORE_CLASSES, costs, color=look["color"], linestyle="--", label=peer.name)
        left.set(title="1000 classes", xlabel="K", ylabel="forward + backward, in cross-entropies")
        right.set(title="K = 5", xlabel="number of classes")
        for axes, ticks in ((left, SET_SIZES), (right, MORE_CLASSES)):
            axes.set(xscale="log", yscale="log")
            for axis, places in ((axes.xaxis, ticks), (axes.yaxis, (1, 3, 10, 30, 100, 300))):
                axis.set_ticks(places, [str(place) for place in places])
                axis.set_minor_locator(NullLocator())
        right.plot([], [], color=LIGHT.muted, linewidth=1, alpha=0.4, label="the other losses")
        figure.legend(*right.get_legend_handles_labels(), loc="outside right upper")
        figure.savefig(path, dpi=150)
    print(f"\ndrawn: {path}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--plot", type=Path, help="also draw cost against K and against the number of classes")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    # As in a process that trains: once a large block was freed, the allocator keeps what is given back to it. Before that
    # every page goes to the system and comes back empty, which is no cost of a loss.
    torch.zeros(7 * 2**20)
    print_table(LOSSES)
    print_budgets()
    if options.plot:
        draw(LOSSES, options.plot)


if __name__ == "__main__":
    main()
