"""How a network learns: one module for images and rows, every loss and every head.

A learner knows how to begin an epoch, take a step and judge the epoch. Who makes it do so is another matter: Lightning
(`fitting`), or a stack of learners that take their steps together (`stack`), which does without Lightning's seconds of import.

All randomness of epoch e comes from generators seeded by (seed, e, purpose), and all progress is in one checkpoint file:
weights, the optimizer's state, the history and the best weights so far. So a run that was killed goes on from its last
checkpoint and ends with the same bits as one that was never interrupted, wherever `Run` promises the same bits at all.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from tqdm import tqdm

from workbench.counts import scores_pulled
from workbench.datasets import ImageFiles, Split
from workbench.networks.network import Network, copied
from workbench.store import Store
from workbench.store.record import target_K
from workbench.store.runs import folder_of_epoch
from workbench.tables import LogitTable
from workbench.training.batches import Augmented, Batch, Batches, Epoch, generator, readable, seed_of, tensor_of
from workbench.training.constant_answer import answers
from workbench.training.features import features_of, network_of, standardise, whole_network
from workbench.training.hardware import device_named
from workbench.training.monitors import measured
from workbench.training.ranks import together as parallel
from workbench.training.run import Run
from workbench.training.scoring import normalisers, predicted, rows_at_once, tables_of, validated

# A checkpoint follows the first epoch that ends this long after the last one. That is what a kill costs at most, besides
# the epoch itself; a process that is interrupted or asked to end writes the last epoch that it finished.
CHECKPOINT_SECONDS = 10.0
# Steps between two looks at what they gave. To look makes a GPU finish all it was given and then wait for more; a loss that
# is no number is noticed as many steps late at most, and always before the epoch is judged.
STEPS_BETWEEN_LOOKS = 50
COMPILER = "inductor"  # of torch.compile; on a CPU it needs one for C++

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": partial(torch.optim.AdamW, fused=True),  # fused: one pass over the weights
    "adam": partial(torch.optim.Adam, fused=True),
    "sgd": partial(torch.optim.SGD, momentum=0.9, nesterov=True, fused=True),
}
# Share of the training done, in [0, 1), and the shares at which the rate drops → factor of the learning rate.
SCHEDULES: dict[str, Callable[[float, Sequence[float]], float]] = {
    "cosine": lambda done, drops: (1 + math.cos(math.pi * done)) / 2,
    "constant": lambda done, drops: 1.0,
    "steps": lambda done, drops: 0.1 ** sum(done >= share for share in drops),
}


class Learner(nn.Module):
    """A network, its loss and the loss's state, trained from one checkpoint to the next."""

    bar: tqdm
    optimizer: torch.optim.Optimizer

    def __init__(
        self,
        run: Run,
        store: Store,
        on_epoch: Callable[[dict[str, float]], None] | None = None,
        on_batch: Callable[[], None] | None = None,
        *,
        progress: bool = False,
    ) -> None:
        super().__init__()
        self.on_epoch = on_epoch
        self.backward: Callable[[Tensor], None] = Tensor.backward  # ranks, which exchange gradients, have another
        self.run, self.data = run, run.data
        self.scheduled = run.loss.for_classes(self.data.class_counts)  # each step takes it at the share that is done
        self.loss = self.scheduled.at(1)  # validation and tables take it at the end, so that epochs can be compared
        self.fixed: dict[str, Tensor] = {}  # weights of the whole network that do not learn, copied once
        if run.features is None:
            self.network = self.whole = network_of(run)
            standardise(self.network, self.data)
        else:  # what learns is the head alone, and the features are its data
            self.whole = whole_network(run, store)
            self.whole.backbone.requires_grad_(False)  # ranks would wait for its gradients
            self.fixed = copied(self.whole.backbone.state_dict(prefix="backbone."))
            device = device_named(run.device)
            self.data = features_of(
                self.whole, self.data, run.model_name, store, device, progress=progress, on_batch=on_batch
            )
            self.network = Network(nn.Flatten(), self.whole.head, self.data.input_shape, prepared=True)
        if parallel.n_ranks() > 1 and device_named(run.device).type == "cpu":
            parallel.share_batch_statistics(self.network)
        self.evaluated: Callable[..., Tensor] | None = None  # the loss, compiled
        if run.channels_last:
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch forgot to say so
        if run.compile:
            self.network.compile(backend=COMPILER)
            if (
                self.loss.compiles and not self.scheduled.scheduled()
            ):  # a schedule makes another loss of it in every step
                self.evaluated = torch.compile(self.loss, backend=COMPILER)
        self.train_rows, self.val_rows = _tensors(self.data.train), _tensors(self.data.val)
        self.state = self._initial_state()
        self.n_batches = math.ceil(self.data.train.n / run.batch_size)
        self.K = target_K(self.loss.settings(), self.data.n_classes)  # of the average-K accuracy
        self.store, self.checkpoint, self.saved_at = store, store.unfinished(run.key), time.monotonic()
        self.history: list[dict[str, float]] = []
        # Epoch → its weights: of those that are best so far in one of the monitors, or of the last one without a monitor.
        self.kept: dict[int, dict[str, Tensor]] = {}
        self.optimizer_state: dict[str, Any] | None = None
        self.reached: dict[str, Any] | None = None  # the checkpoint of the last epoch, as long as it is not written
        self.first_epoch, self.passed = (
            0,
            0,
        )  # this process trains the epochs from the first on, and has trained so many
        self.unseen: list[tuple[int, Tensor, Tensor, int]] = []  # step, loss, scores pulled, rows; not looked at yet
        self.train_losses: list[float] = []
        self.nonzero_gradients: list[float] = []  # of a row of scores, on average; one number a piece
        self.log_constants: list[Tensor] = []  # of the batches, for a loss that has a constant
        self.val_losses: list[Tensor] = []
        self.val_scores: list[Tensor] = []

    def progress_bar(self, *, disable: bool) -> tqdm:
        """One bar for the whole run; the last validation metrics stand beside it."""
        total, done = self.run.epochs * self.n_batches, self.first_epoch * self.n_batches
        return tqdm(total=total, initial=done, desc=self.run.title, unit="batch", dynamic_ncols=True, disable=disable)

    def _initial_state(self) -> nn.Module | None:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed_of(self.run.seed, 0, "state"))
            return self.loss.state(self.data.train.n, self.data.n_classes)

    @property
    def state_speed(self) -> float:
        """How many times as fast as the network the loss's state learns."""
        return float(getattr(self.state, "learning_rate_factor", 1.0))

    @property
    def epoch(self) -> int:
        """The epoch of the whole run."""
        return self.first_epoch + self.passed

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.whole.parameters(), torch.empty(0)).device

    def done(self, step: int) -> float:
        """The share of the training that is behind when a step of this epoch begins."""
        return (self.epoch * self.n_batches + step) / (self.run.epochs * self.n_batches)

    # Data and optimizer

    def train_dataloader(self) -> Epoch:
        order = torch.randperm(self.data.train.n, generator=generator(self.run.seed, self.epoch, "order"))
        places = torch.rand((self.data.train.n, 2), generator=generator(self.run.seed, self.epoch, "crops"))
        augmented = Augmented(self.run.augmentations, self.data.train.n, self.run.seed, self.epoch)
        pinned = self.device.type == "cuda"
        batches = Batches(
            *self.train_rows, self.run.batch_size, order, places, self.run.accumulate, augmented, pinned=pinned
        )
        return Epoch(batches, alone=parallel.n_ranks() > 1)

    def val_dataloader(self) -> Batches:
        return Batches(*self.val_rows, rows_at_once(self.data.input_shape))

    def parameter_groups(self) -> list[dict[str, Any]]:
        """What the optimizer changes, and how fast: the weights and, of some losses, what they remember of each row."""
        rates = {"lr": self.run.learning_rate, "weight_decay": self.run.weight_decay}
        return [{"params": list(self.network.parameters()), "speed": 1.0, **rates}, *self.groups_of_state()]

    def groups_of_state(self) -> list[dict[str, Any]]:
        """What the loss learns of each row, if it does: faster, and without a decay."""
        if self.state is None or not (estimates := list(self.state.parameters())):
            return []
        rates = {"speed": self.state_speed, "lr": self.run.learning_rate, "weight_decay": 0.0}
        return [{"params": estimates, **rates}]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        self.optimizer = OPTIMIZERS[self.run.optimizer](self.parameter_groups())
        if self.optimizer_state is not None:
            self.optimizer.load_state_dict(self.optimizer_state)
        return self.optimizer

    # One epoch

    def begin_epoch(self) -> None:
        """Nothing is counted yet, and the noise is that of this epoch."""
        self.unseen.clear()
        self.train_losses.clear()
        self.nonzero_gradients.clear()
        self.log_constants.clear()
        self.noise = generator(self.run.seed, self.epoch, "noise", self.device)

    def on_train_epoch_start(self) -> None:
        self.started_at = time.perf_counter()
        self.begin_epoch()
        # A module with dropout draws from the global generator, which `fit` has set aside for the user. Each rank drops
        # other features: it sees other rows.
        dropout = seed_of(
            self.run.seed, self.epoch, f"dropout of rank {parallel.rank()}" if parallel.rank() else "dropout"
        )
        torch.default_generator.manual_seed(dropout)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(dropout)

    def learn(self, batch: Batch, batch_idx: int) -> None:
        """One step, or one piece of it: nothing in it asks the device for a value, but for a look now and then."""
        inputs, labels, rows = (tensor.to(self.device, non_blocking=True) for tensor in batch[:3])
        share = batch[3]
        step, piece = divmod(batch_idx, self.run.accumulate)
        scores = parallel.together(self.network(inputs), len(rows))
        if not scores.requires_grad:
            raise ValueError(
                f"no weight of {self.run.model_name} learns: all are frozen, or its scores are detached from them; set "
                "requires_grad on some, or give head='new' to train a new head"
            )
        scores.retain_grad()
        loss = share * self.losses(scores, labels, rows, step).mean()
        if piece == 0:
            self.optimizer.zero_grad()
        self.backward(loss)
        assert scores.grad is not None
        self.unseen.append((step, loss.detach(), scores_pulled(scores.grad).sum(), len(scores)))
        if piece == self.run.accumulate - 1:
            self.set_rates(self.optimizer.param_groups, step)
            self.optimizer.step()
            self.bar.update()
            if (step + 1) % STEPS_BETWEEN_LOOKS == 0 or step + 1 == self.n_batches:
                self.look()

    def look(self) -> None:
        """Reads what the steps since the last look gave, at once, and refuses to go on with a loss that is no number."""
        steps, values, pulled, n_rows = zip(*self.unseen, strict=True)
        self.unseen.clear()
        seen = zip(steps, torch.stack(values).tolist(), torch.stack(pulled).tolist(), n_rows, strict=True)
        for step, value, n_pulled, n in seen:
            self.check_finite(value, step)
            self.train_losses.append(value)
            self.nonzero_gradients.append(n_pulled / n)

    def losses(self, scores: Tensor, labels: Tensor, rows: Tensor, step: int) -> Tensor:
        """What the loss says of each row of a step; its schedules stand where the step does."""
        labels = self.loss.readable(labels, self.data.n_classes)
        loss = self.evaluated or self.scheduled.at(self.done(step))
        values = loss(scores, labels, generator=self.noise, state=self.state, rows=rows)
        if (log_C := getattr(self.state, "batch_log_C", None)) is not None:
            self.log_constants.append(log_C)
        return values

    def check_finite(self, value: float, step: int) -> None:
        """Refuses to go on with a loss that is no number."""
        if not math.isfinite(value):
            raise FloatingPointError(self._diverged(f"the loss is {value} in batch {step + 1} of {self.n_batches}"))

    def rate(self, step: int) -> float:
        """The learning rate of this step of the epoch."""
        return self.run.learning_rate * SCHEDULES[self.run.schedule](self.done(step), self.run.drops)

    def set_rates(self, groups: Sequence[dict[str, Any]], step: int) -> None:
        """The network learns at the rate of this step, and what the loss learns so much faster."""
        for group in groups[1:]:
            group["speed"] = self.state_speed
        for group in groups:
            group["lr"] = self.rate(step) * group["speed"]

    def on_validation_epoch_start(self) -> None:
        self.val_losses.clear()
        self.val_scores.clear()
        self.val_noise = generator(self.run.seed, self.epoch, "validation noise", self.device)

    def validation_step(self, batch: Batch) -> None:
        inputs, labels, rows, _ = batch
        scores = parallel.together(self.network(inputs), len(rows))
        self.val_losses.append(self.validation_losses(scores, labels))
        self.val_scores.append(scores.float())

    def validation_losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """What the loss says of each row of val."""
        labels = self.loss.readable(labels, self.data.n_classes)
        return self.loss(scores, labels, generator=self.val_noise, state=self.state)

    def end_epoch(self, seconds: float) -> dict[str, float]:
        """Judges the epoch by its scores of val, keeps its weights if it is the best, and returns its line of the history."""
        scores = torch.cat(self.val_scores).cpu()
        if not torch.isfinite(scores).all():
            raise FloatingPointError(self._diverged("some validation scores are not finite"))
        val = predicted(self.data.val, self.loss, self.state, scores, class_counts=self.data.class_counts)
        self.history.append(
            {
                "epoch": self.epoch,
                "train_loss": math.fsum(self.train_losses) / self.n_batches,
                "val_loss": torch.cat(self.val_losses).mean().item(),
                **validated(val, self.K),
                **measured(self.run.monitors, val),
                **answers(self.loss.logits(scores), val, self.K),
                **normalisers(self.loss, self.state, scores, self.log_constants),
                "nonzero_gradients": math.fsum(self.nonzero_gradients) / len(self.nonzero_gradients),
                **self._scheduled_knobs(),
                "seconds": seconds,
            }
        )
        best = {self.run.best_epoch(self.history), *self.run.best_epochs(self.history).values()}
        self.kept = {epoch: weights for epoch, weights in self.kept.items() if epoch in best}
        if self.epoch in best:
            self.kept[self.epoch] = self.weights()
        return self.history[-1]

    def on_train_epoch_end(self) -> bool:
        """Judges the epoch, tells of it and writes a checkpoint when one is due; whether the run is finished."""
        last = self.end_epoch(time.perf_counter() - self.started_at)
        self.bar.set_postfix(val_loss=f"{last['val_loss']:.3f}", val_accuracy=f"{last['val_accuracy']:.1%}")
        finished = parallel.as_first(self.run.finished(self.history))  # all ranks stop, or none
        due = finished or time.monotonic() - self.saved_at >= CHECKPOINT_SECONDS
        optimizer = self.optimizer.state_dict()
        self.reached = {
            "weights": self.kept[self.epoch] if self.epoch in self.kept else self.weights(),
            "kept": self.kept if self.run.monitor is not None else {},
            "history": list(self.history),
            "optimizer": optimizer if due else copy.deepcopy(optimizer),  # the next step would change it
        }
        if self.on_epoch is not None:  # before the checkpoint, so that a short run that is cancelled leaves no file
            self.on_epoch(dict(last))
        if due:
            self.save()
        return finished

    def _scheduled_knobs(self) -> dict[str, float]:
        """What the knobs that follow a schedule had become in the last step of the epoch."""
        last = self.scheduled.at(self.done(self.n_batches - 1))
        return {f"loss.{name}": getattr(last, name) for name in self.scheduled.scheduled()}

    def _diverged(self, what: str) -> str:
        run = self.run
        knobs = ", ".join(f"{name} = {value}" for name, value in run.loss.settings().items())
        if not self.history and not self.train_losses:  # no step was taken, so that it is not the learning rate
            return (
                f"epoch 1 of {run.epochs}: {what}, before anything is learnt: the first scores of {run.model_name} are not "
                "finite, or the loss of them is not; look at the model's weights, at its inputs (columns of numbers near 1e38 "
                "overflow) and at the loss"
            )
        return (
            f"epoch {self.epoch + 1} of {run.epochs}: {what}. Most often the learning rate is too large: "
            f"try learning_rate={run.learning_rate / 10:g}"
            + (f"; then look at {knobs} of {type(run.loss).__name__}" if knobs else "")
            + ("; or try precision='32'" if run.precision != "32" else "")
        )

    def tables(self, device: torch.device) -> dict[str, LogitTable]:
        """What the kept weights say about val and test; and, each in its folder, those of further kept epochs."""
        tables = self._tables(device)
        others = {epoch: weights for epoch, weights in self.kept.items() if weights is not self.best}
        for epoch, weights in others.items():
            self.load(weights)
            tables |= {folder_of_epoch(epoch) + name: table for name, table in self._tables(device).items()}
        if others:
            self.load(self.best)
        return tables

    def _tables(self, device: torch.device) -> dict[str, LogitTable]:
        chosen = self.run.monitor is not None
        return tables_of(self.network, self.loss, self.state, self.data, device=device, chosen_on_val=chosen)

    @property
    def best(self) -> dict[str, Tensor]:
        """The weights of the best epoch so far, or of the last one without a monitor."""
        return self.kept[self.run.best_epoch(self.history)]

    # Checkpoints

    def weights(self) -> dict[str, Tensor]:
        """A copy of all that was learnt, on the CPU: the network's weights and, as `loss_state.…`, the loss's state."""
        learnt = dict(self.whole.state_dict())
        if self.state is not None:
            learnt |= {f"loss_state.{name}": value for name, value in self.state.state_dict().items()}
        return copied({name: value for name, value in learnt.items() if name not in self.fixed}) | self.fixed

    def load(self, weights: dict[str, Tensor]) -> None:
        """Takes back what `weights` gave."""
        prefix = "loss_state."
        of_state = {name: value for name, value in weights.items() if name.startswith(prefix)}
        self.whole.load_state_dict({name: value for name, value in weights.items() if name not in of_state})
        if self.state is not None:
            self.state.load_state_dict({name.removeprefix(prefix): value for name, value in of_state.items()})

    def save(self) -> None:
        """Writes the epoch that was reached, unless that is done. It is the same on all ranks, so rank 0 writes it."""
        if parallel.rank() != 0 or self.reached is None:
            return
        n_bytes = sum(tensor.nbytes for tensor in _tensors_in(self.reached))
        with self.store.replacing(self.checkpoint, n_bytes) as aside, aside.open("wb") as file:
            torch.save(self.reached, file)
        self.reached, self.saved_at = None, time.monotonic()

    def keep_best(self) -> str:
        """Writes the best weights so far to a file, and says so. Every rank has the same ones, so rank 0 writes them."""
        path = self.store.diverged(self.run.key)
        if parallel.rank() == 0:
            content = safetensors.torch.save(self.best)
            with self.store.replacing(path, len(content)) as aside:
                aside.write_bytes(content)
        return f"the weights of epoch {self.run.best_epoch(self.history) + 1}, the best so far, are kept in {path}"

    def resume(self) -> None:
        """Takes up the checkpoint, if there is one."""
        if not self.checkpoint.is_file():
            return
        try:
            content = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
            history, optimizer = list(content["history"]), content["optimizer"]
            # An earlier version kept one epoch, as "best".
            kept = content["kept"] if "kept" in content else {self.run.best_epoch(history): content["best"]}
            self.load(content["weights"])
        except Exception as error:  # torch raises many kinds, and none of them is worth losing the run
            name = type(error).__name__
            warnings.warn(f"{self.checkpoint} cannot be read ({name}): training starts anew", stacklevel=2)
            return
        self.kept = kept if self.run.monitor is not None else {len(history) - 1: content["weights"]}
        self.history, self.optimizer_state = history, optimizer
        self.first_epoch = len(self.history)


@contextlib.contextmanager
def best_kept(learner: Learner) -> Iterator[None]:
    """A loss that diverges does not take the epochs before it along."""
    try:
        yield
    except FloatingPointError as error:
        if not learner.history:
            raise
        raise FloatingPointError(f"{error}; {learner.keep_best()}") from None


def _tensors(split: Split) -> tuple[Tensor | ImageFiles, Tensor]:
    return readable(split.inputs), tensor_of(split.labels)


def _tensors_in(content: Any) -> Iterator[Tensor]:
    """The tensors of a checkpoint, wherever they are in it."""
    if isinstance(content, Tensor):
        yield content
    elif isinstance(content, (Mapping, list)):
        for part in content.values() if isinstance(content, Mapping) else content:
            yield from _tensors_in(part)
