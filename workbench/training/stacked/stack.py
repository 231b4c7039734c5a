"""Members in step with each other: all that `heads` does in an epoch."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from workbench import losses
from workbench.gradient_sparsity import scores_with_gradient
from workbench.losses import Loss
from workbench.training.learner import OPTIMIZERS, Learner, best_kept
from workbench.training.scoring import first_hits
from workbench.training.stacked.optimizers import RULES

# Knobs that may be tensors, because they enter a formula as factors or exponents: of members that differ in nothing else,
# one evaluation serves all. Others decide a shape (K), how often something is drawn, or which way a computation takes.
FACTORS: dict[type[Loss], tuple[str, ...]] = {
    losses.Focal: ("gamma",),
    losses.LDAM: ("max_margin", "scale"),
    losses.SmoothTopKHinge: ("temperature",),
    losses.ExpectedPositive: ("beta",),
    losses.SoftmaxUniform: ("no_label_weight",),
    losses.SoftmaxMaxConfidence: ("no_label_weight",),
}

OnStep = Callable[[int], None]  # gets the number of members that took it


class Stack:
    """Members in step with each other: stacked weights, a rule that knows the rates of each, and a loss for each."""

    def __init__(self, members: Sequence[Learner]) -> None:
        self.members = list(members)
        self.rule = RULES[members[0].run.optimizer]()
        self.states = {member: _optimizer_of_state(member) for member in members}
        self.diverged: dict[Learner, FloatingPointError] = {}
        self.epoch = 0
        self._stack()

    def _stack(self) -> None:
        """The weights of all members in one tensor for each name; those of a member are a part of it."""
        self.network = self.members[0].network
        self.weights = {
            name: torch.stack([member.network.get_parameter(name).detach() for member in self.members])
            for name, _ in self.network.named_parameters()
        }
        for name, stacked in self.weights.items():
            for member, own in zip(self.members, stacked.unbind(), strict=True):
                member.network.get_parameter(name).data = own
            stacked.requires_grad_()
        self.decays = torch.tensor([member.run.weight_decay for member in self.members])
        self.alike = _places_of_alike(self.members)

    def dismiss(self, members: Iterable[Learner]) -> None:
        """Goes on without these."""
        leaving = set(members)
        stay = [place for place, member in enumerate(self.members) if member not in leaving]
        if len(stay) < len(self.members):
            self.members = [self.members[place] for place in stay]
            self.rule.keep(stay)
            if self.members:
                self._stack()

    def learn_epoch(self, on_step: OnStep) -> None:
        """One epoch of training and one look at val; members that diverge leave the stack and are listed in `diverged`."""
        started, n_members = time.perf_counter(), len(self.members)
        for member in self.members:
            member.epoch = self.epoch
            member.begin_epoch()
            member.begin_validation()
        self._switch(training=True)
        self._train(on_step)
        self._switch(training=False)
        self._validate()
        seconds = (time.perf_counter() - started) / n_members
        for member in self.members:
            with self._left_alone(member):
                member.end_epoch(seconds)
        self.dismiss(self.diverged)
        self.epoch += 1

    def _train(self, on_step: OnStep) -> None:
        inputs, labels = self.members[0].train_rows
        assert isinstance(inputs, Tensor)
        of_seed = {member.run.seed: member for member in self.members}
        orders = {seed: member.train_batches().rows for seed, member in of_seed.items()}
        for step in range(self.members[0].n_batches):
            if self.members:
                on_step(len(self.members))
                rows = torch.stack([orders[member.run.seed][step] for member in self.members])  # (members, n)
                scores = self.scores(inputs[rows] if len(orders) > 1 else inputs[rows[0]], own_rows=len(orders) > 1)
                self._take_step(step, scores, labels[rows], rows)

    def _take_step(self, step: int, scores: Tensor, labels: Tensor, rows: Tensor) -> None:
        outputs = scores.detach().requires_grad_()
        means = self._losses(partial(_of_step, step), outputs, labels, rows).mean(1)  # (members,)
        means.sum().backward()
        assert outputs.grad is not None
        values = means.tolist()
        pulled = scores_with_gradient(outputs.grad.flatten(0, 1)).view(rows.shape).sum(1).tolist()
        hits = first_hits(self.members[0].loss.logits(outputs.detach().flatten(0, 1)), labels.flatten(0, 1))
        of_members = zip(self.members, values, pulled, hits.view(rows.shape).tolist(), strict=True)
        for member, value, n_pulled, own_hits in of_members:
            if math.isfinite(value):
                member.train_losses.append(value)
                member.train_hits += own_hits
                member.nonzero_gradients.append(n_pulled / rows.shape[1])
            else:
                with self._left_alone(member):
                    member.check_finite(value, step)
        rates = [member.rate(step) for member in self.members]
        gradients = torch.autograd.grad(scores, list(self.weights.values()), outputs.grad)
        self.rule.step(list(self.weights.values()), gradients, torch.tensor(rates), self.decays)
        for member, rate in zip(self.members, rates, strict=True):
            if optimizer := self.states[member]:
                for group in optimizer.param_groups:
                    group["lr"] = rate * member.state_speed
                optimizer.step()
                optimizer.zero_grad()
        self.dismiss(self.diverged)

    @torch.no_grad()
    def _validate(self) -> None:
        n_members = len(self.members)
        for inputs, labels, rows, _ in self.members[0].val_batches() if self.members else ():
            scores = self.scores(inputs, own_rows=False)
            own_labels, own_rows = labels.expand(n_members, *labels.shape), rows.expand(n_members, -1)
            values = self._losses(_of_val, scores, own_labels, own_rows)
            for member, own_scores, own_values in zip(self.members, scores, values, strict=True):
                member.val_scores.append(own_scores)
                member.val_losses.append(own_values)

    def scores(self, inputs: Tensor, *, own_rows: bool) -> Tensor:
        """(members, n, L) or (members, n, 2, L), of the same inputs (n, …) or of those of each member."""
        scores: Tensor = vmap(self._scores_of, in_dims=(0, 0 if own_rows else None))(self.weights, inputs)
        return scores

    def _scores_of(self, weights: dict[str, Tensor], inputs: Tensor) -> Tensor:
        scores: Tensor = functional_call(self.network, weights, (inputs,))
        return scores

    def _losses(self, losses_of: Callable[..., Tensor], scores: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        """(members, n): what the loss of each member says of its rows. Losses that are alike are asked at once."""
        everything, values = (scores, labels, rows), dict[int, Tensor]()
        # Not by `scores[places]`: for each of these the gradient would be one of all members.
        of_members = list(zip(*(each.unbind() for each in everything), strict=True))
        for places in self.alike:
            members = [self.members[place] for place in places]
            if len(places) == 1:
                values[places[0]] = losses_of(members[0], *of_members[places[0]])
                continue
            chosen: tuple[Tensor, ...] = everything
            if len(places) < len(self.members):
                chosen = tuple(map(torch.stack, zip(*(of_members[place] for place in places), strict=True)))
            if all(member.loss == members[0].loss for member in members) and not members[0].loss.couples_batch:
                own = losses_of(members[0], *(each.flatten(0, 1) for each in chosen)).view(len(places), -1)
            else:
                own = _mapped([member.loss for member in members], chosen[0], chosen[1])
            values |= zip(places, own.unbind(), strict=True)
        return torch.stack([values[place] for place in range(len(self.members))])

    @contextmanager
    def _left_alone(self, member: Learner) -> Iterator[None]:
        """A member that diverges does not affect the others."""
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


def _optimizer_of_state(member: Learner) -> torch.optim.Optimizer | None:
    """Return the optimizer of per-row state of a loss; it is as large as the data and is not stacked."""
    groups = member.groups_of_state()
    return OPTIMIZERS[member.run.optimizer](groups) if groups else None


def _places_of_alike(members: Sequence[Learner]) -> list[list[int]]:
    """Places of members whose losses differ in factors at most, so that one evaluation serves them all."""
    places: dict[Any, list[int]] = {}
    for place, member in enumerate(members):
        loss = member.loss
        alone = loss.random or member.state is not None or (loss.couples_batch and type(loss) not in FACTORS)
        alone |= member.scheduled is not loss  # a schedule stands where the epochs of its run say
        factors = FACTORS.get(type(loss), ())
        others = tuple(value for name, value in vars(loss).items() if name not in factors)
        places.setdefault(place if alone else (type(loss), others), []).append(place)
    return list(places.values())


def _mapped(alike: Sequence[Loss], scores: Tensor, labels: Tensor) -> Tensor:
    """(members, n): one evaluation of losses that differ in factors, which become tensors with a value for each."""
    one = alike[0]
    if labels.ndim == 2:
        labels = one.readable(labels.flatten(), scores.shape[-1]).unflatten(0, labels.shape)
    factors = {name: torch.tensor([getattr(loss, name) for loss in alike]) for name in FACTORS[type(one)]}

    def values(factors: dict[str, Tensor], scores: Tensor, labels: Tensor) -> Tensor:
        loss = copy.copy(one)
        vars(loss).update(factors)  # not by `replace`, which would ask whether they are numbers in range
        return loss(scores, labels)

    mapped: Tensor = vmap(values)(factors, scores, labels)
    return mapped
