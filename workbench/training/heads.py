"""Many heads at once: runs that differ in loss, learning rate, weight decay, schedule or seed are trained together.

The step of a small head is mostly the way there. So the weights of all members are stacked, one batched multiplication
gives the scores of all, and what goes around a step is done once. All else is as if each were trained alone: its first
weights, the order of its rows, its noise, its schedule, the epoch that is kept. A member differs from the run trained
alone by rounding only, and is stored under the same key.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from tqdm import tqdm

from workbench.counts import scores_pulled
from workbench.datasets import ImageFiles
from workbench.store import Store, chosen_store
from workbench.training.fitting import best_kept
from workbench.training.hardware import device_named
from workbench.training.learner import OPTIMIZERS, Learner
from workbench.training.run import Run, TrainedRun
from workbench.training.trainer import check_run, write_learnt

ROWS_OF_NUMBERS = ("linear", "mlp")  # models that are small enough to be stacked whole
BYTES_TOGETHER = 2**30  # that the members of a stack may take, at most
COPIES = 8  # of weights and of a batch of scores: themselves, gradients, moments, best epoch, what a loss keeps

OnMemberEpoch = Callable[[Run, dict[str, float]], None]


def stackable(run: Run) -> bool:
    """Whether a run can be trained together with others: on a CPU, and all that learns is a head or a small network.

    That is a head on cached features, or `linear` or `mlp` on data in memory. Each step must be of one piece.

    >>> stackable(Run("letters", model="mlp")), stackable(Run("letters", model="mlp", accumulate=2))
    (True, False)
    """
    on_rows = run.model in ROWS_OF_NUMBERS and not isinstance(run.data.train.inputs, ImageFiles)
    in_one_piece = run.n_ranks == run.accumulate == 1 and run.precision == "32"
    return (run.features is not None or on_rows) and in_one_piece and device_named(run.device).type == "cpu"


def train_heads(
    runs: Sequence[Run],
    *,
    store: Store | None = None,
    progress: bool = True,
    on_epoch: OnMemberEpoch | None = None,
) -> list[TrainedRun | FloatingPointError]:
    """Train runs together, and store each as a run of its own: what each gave, or why it diverged, in their order.

    - `runs`: all of them `stackable`. Those of the same data, network, batch size and optimizer share their steps; what
      is stored already is read.
    - `store`, `progress`: as in `train`.
    - `on_epoch`: gets each run and the row of its history after every epoch.

    A member that diverges leaves the others alone. There are no checkpoints: after an interruption what was finished is
    stored, and the rest starts anew.

    >>> import tempfile
    >>> runs = [Run("digits", model="linear", epochs=2, learning_rate=rate) for rate in (0.001, 0.01)]
    >>> found = train_heads(runs, store=Store(tempfile.mkdtemp()), progress=False)
    >>> [len(trained.history) for trained in found], found[0].stored.record.together
    ([2, 2], 2)
    """
    store = chosen_store(store)
    if alone := [run for run in runs if not stackable(run)]:
        raise ValueError(
            f"{alone[0].title} cannot be trained together with others: give heads on cached features, or linear or mlp on "
            "data in memory, on a CPU, with accumulate=1 and precision='32'; or use train"
        )
    waiting = {run.key: run for run in runs if not _stored(run, store)}
    for run in waiting.values():
        check_run(run)
    diverged: dict[str, FloatingPointError] = {}
    for group in _groups(waiting.values()):
        for part in _parts(group):
            diverged |= _train_part(part, store, progress, on_epoch)
    return [diverged.get(run.key) or TrainedRun(run, store.open(run.key)) for run in runs]


def companions(run: Run, runs: Iterable[Run], store: Store) -> list[Run]:
    """Those of the runs that can be trained in the same steps as this one, itself too. One with a checkpoint goes on alone."""
    if not stackable(run):
        return []
    waiting = (each for each in runs if not store.has(each.key) and not store.unfinished(each.key).is_file())
    return [each for each in waiting if stackable(each) and _shared(each) == _shared(run)]


def _groups(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs by what they share: the rows, the shape of the network, the batch size and the optimizer."""
    ordered = sorted(runs, key=_shared)
    return [list(group) for _, group in groupby(ordered, key=_shared)]


def _shared(run: Run) -> tuple[str, ...]:
    model = run.model if isinstance(run.model, str) else id(run.model)
    facts = (run.data.key, model, run.head, run.features, run.loss.head, run.loss.heads, run.batch_size, run.optimizer)
    return tuple(map(str, facts))


def _stored(run: Run, store: Store) -> bool:
    return store.has(run.key) or store.renewed(run.former_key, run.key) is not None


def _parts(runs: Sequence[Run]) -> Iterator[Sequence[Run]]:
    """The runs of a group, as many at a time as memory allows."""
    data, heads = runs[0].data, runs[0].loss.heads
    n_scores = data.n_classes * heads * (COPIES * runs[0].batch_size + data.val.n)
    width = 2048 if runs[0].features is not None else max(256, math.prod(data.input_shape))
    n_weights = COPIES * width * (data.n_classes * heads + 256)
    n_estimates = COPIES * data.train.n * data.n_classes if any(_remembers_rows(run) for run in runs) else 0
    at_once = max(1, BYTES_TOGETHER // (4 * (n_scores + n_weights + n_estimates)))
    for start in range(0, len(runs), at_once):
        yield runs[start : start + at_once]


def _remembers_rows(run: Run) -> bool:
    state = run.loss.state(n_rows=1, n_classes=2)
    return state is not None and any(True for _ in state.parameters())


def _train_part(
    runs: Sequence[Run], store: Store, progress: bool, on_epoch: OnMemberEpoch | None
) -> dict[str, FloatingPointError]:
    """Trains runs of one group and stores each as soon as it is finished; returns why others were not."""
    members = [Learner(run, store, progress=progress) for run in runs]
    for member in members[1:]:  # the backbone is the same for all, and is only kept
        member.whole.backbone = members[0].whole.backbone if member.fixed else member.whole.backbone
        member.fixed = members[0].fixed
    stack, diverged = Stack(members), {}
    total = max(run.epochs for run in runs) * members[0].n_batches
    title = f"{len(runs)} runs together · {runs[0].data.name}"
    with (
        _interruptions_explained(),
        tqdm(total=total, desc=title, unit="batch", dynamic_ncols=True, disable=not progress) as bar,
    ):
        while stack.members:
            stack.learn_epoch(bar)
            for member in stack.members:
                if error := stack.diverged.get(member):
                    diverged[member.run.key] = error
                elif on_epoch is not None:
                    on_epoch(member.run, dict(member.history[-1]))
            finished = [member for member in stack.members if member.run.finished(member.history)]
            for member in finished:
                if member not in stack.diverged:
                    if member.run.monitor is not None:
                        member.load(member.best)
                    write_learnt(member, member.device, together=len(runs))
            stack.dismiss([*finished, *stack.diverged])
    return diverged


@contextmanager
def _interruptions_explained() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped; runs that were finished are stored, and the same call trains the others anew"
        ) from None


class Stack:
    """Members in step with each other: stacked weights, one optimizer with the rates of each, and a loss for each."""

    def __init__(self, members: Sequence[Learner]) -> None:
        self.members = list(members)
        self.groups = {member: member.parameter_groups() for member in members}
        self.optimizer = OPTIMIZERS[members[0].run.optimizer]([each for own in self.groups.values() for each in own])
        self.diverged: dict[Learner, FloatingPointError] = {}
        self.epoch = 0
        self._stack()

    def _stack(self) -> None:
        """Weights of all members in one tensor for each name, of which the weights of a member are a part."""
        self.network = self.members[0].network
        self.weights = {
            name: torch.stack([member.network.get_parameter(name).detach() for member in self.members])
            for name, _ in self.network.named_parameters()
        }
        for name, stacked in self.weights.items():
            for member, own in zip(self.members, stacked.unbind(), strict=True):
                member.network.get_parameter(name).data = own
            stacked.requires_grad_()
        self.same_loss = _places_of_equal(self.members)

    def dismiss(self, members: Sequence[Learner]) -> None:
        """Goes on without these."""
        if not members:
            return
        self.members = [member for member in self.members if member not in members]
        self.optimizer.param_groups = [group for member in self.members for group in self.groups[member]]
        if self.members:
            self._stack()

    def learn_epoch(self, bar: tqdm) -> None:
        """One epoch of training and one look at val; who diverges on the way is told of in `diverged`."""
        started = time.perf_counter()
        self.diverged = {}
        for member in self.members:
            member.first_epoch = self.epoch
            member.begin_epoch()
            member.on_validation_epoch_start()
        self._switch(training=True)
        self._train(bar)
        self._switch(training=False)
        self._validate()
        seconds = (time.perf_counter() - started) / len(self.members)
        for member in self.members:
            if member not in self.diverged:
                with self._left_alone(member):
                    member.end_epoch(seconds)
        self.epoch += 1

    def _train(self, bar: tqdm) -> None:
        inputs, labels = self.members[0].train_rows
        assert isinstance(inputs, Tensor)
        orders = {seed: self._order_of(seed) for seed in dict.fromkeys(member.run.seed for member in self.members)}
        for step in range(self.members[0].n_batches):
            rows = torch.stack([orders[member.run.seed][step] for member in self.members])  # (members, n)
            scores = self.scores(inputs[rows] if len(orders) > 1 else inputs[rows[0]], own_rows=len(orders) > 1)
            self._take_step(step, scores, labels[rows], rows)
            bar.update()

    def _order_of(self, seed: int) -> Sequence[Tensor]:
        member = next(member for member in self.members if member.run.seed == seed)
        return member.train_dataloader().batches.rows

    def _take_step(self, step: int, scores: Tensor, labels: Tensor, rows: Tensor) -> None:
        outputs = scores.detach().requires_grad_()
        means = self._losses(partial(_of_step, step), outputs, labels, rows).mean(1)  # (members,)
        means.sum().backward()
        assert outputs.grad is not None
        pulled = scores_pulled(outputs.grad.flatten(0, 1)).view(rows.shape).sum(1)
        for member, value, n_pulled in zip(self.members, means.tolist(), pulled.tolist(), strict=True):
            if member not in self.diverged:
                with self._left_alone(member):
                    member.check_finite(value, step)
                    member.train_losses.append(value)
                    member.nonzero_gradients.append(n_pulled / rows.shape[1])
                    member.set_rates(self.groups[member], step)
        gradients = torch.autograd.grad(scores, list(self.weights.values()), outputs.grad)
        for name, stacked in zip(self.weights, gradients, strict=True):
            for member, own in zip(self.members, stacked.contiguous().unbind(), strict=True):
                member.network.get_parameter(name).grad = None if member in self.diverged else own
        self.optimizer.step()
        self.optimizer.zero_grad()

    @torch.no_grad()
    def _validate(self) -> None:
        for inputs, labels, rows, _ in self.members[0].val_dataloader():
            scores = self.scores(inputs, own_rows=False)
            n_members = len(self.members)
            own_labels = labels.expand(n_members, *labels.shape)
            values = self._losses(_of_val, scores, own_labels, rows.expand(n_members, -1))
            for member, own_scores, own_values in zip(self.members, scores, values, strict=True):
                member.val_scores.append(own_scores)
                member.val_losses.append(own_values)

    def scores(self, inputs: Tensor, *, own_rows: bool) -> Tensor:
        """(members, n, L) or (members, n, 2, L), of the same inputs (n, …) or of those of each member."""
        called = vmap(self._scores_of, in_dims=(0, 0 if own_rows else None))
        return called(self.weights, inputs)

    def _scores_of(self, weights: dict[str, Tensor], inputs: Tensor) -> Tensor:
        scores: Tensor = functional_call(self.network, weights, (inputs,))
        return scores

    def _losses(self, losses_of: Callable[..., Tensor], scores: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        """(members, n): what the loss of each member says of its rows. Equal losses are asked at once."""
        values: dict[int, Tensor] = {}
        for places in self.same_loss:
            member = self.members[places[0]]
            if len(places) == 1:
                values[places[0]] = losses_of(member, *(each[places[0]] for each in (scores, labels, rows)))
            else:
                chosen = [each[places].flatten(0, 1) for each in (scores, labels, rows)]
                values |= zip(places, losses_of(member, *chosen).view(len(places), -1), strict=True)
        return torch.stack([values[place] for place in range(len(self.members))])

    @contextmanager
    def _left_alone(self, member: Learner) -> Iterator[None]:
        """A member that diverges takes nobody along."""
        try:
            with best_kept(member):
                yield
        except FloatingPointError as error:
            self.diverged[member] = error

    def _switch(self, *, training: bool) -> None:
        for member in self.members:
            if member.state is not None:
                member.state.train(training)


def _of_step(step: int, member: Learner, scores: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    return member.losses(scores, labels, rows, step)


def _of_val(member: Learner, scores: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    return member.validation_losses(scores, labels)


def _places_of_equal(members: Sequence[Learner]) -> list[list[int]]:
    """Places of members whose loss is the same function of a row, so that one evaluation serves them all."""
    places: dict[Any, list[int]] = {}
    for place, member in enumerate(members):
        loss = member.loss
        of_a_row = not (loss.random or loss.couples_batch or member.state is not None)
        of_a_row &= member.scheduled is loss  # a schedule stands where the epochs of its run say
        places.setdefault((type(loss), loss) if of_a_row else place, []).append(place)
    return list(places.values())
