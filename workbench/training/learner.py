"""Optimisation of a network: one module for images and rows, every loss and every head.

A learner begins an epoch, takes its steps and judges it. `loop` leads one learner, alone or as one of several ranks;
`stacked.stack` leads many that take their steps together.

All randomness of epoch e comes from generators seeded by (seed, e, purpose), and all progress is in one checkpoint file:
weights, the optimizer's state, the history and the best weights so far. So a run that was killed goes on from its last
checkpoint and ends with the same bits as one that was never interrupted, wherever `Run` promises the same bits at all.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch
from torch import Tensor, nn

from workbench.datasets import ImageFiles, Split
from workbench.gradient_sparsity import scores_with_gradient
from workbench.losses.target_size import target_K
from workbench.networks.network import Network, copied
from workbench.operators.order import at_least_float32
from workbench.progress import bar
from workbench.runs.run import Run
from workbench.schedules import LEARNING_RATES
from workbench.store import Store
from workbench.store.runs import folder_of_epoch
from workbench.tables import LogitTable
from workbench.training.batches import Batch, Batches, EpochAugmentations, generator, readable, seed_of, tensor_of
from workbench.training.checkpoint import read_checkpoint, write_checkpoint
from workbench.training.collapse import answers
from workbench.training.features import features_of, network_of, standardise, whole_network
from workbench.training.hardware import HALVES, device_named
from workbench.training.monitoring import measured
from workbench.training.ranks import collectives as parallel
from workbench.training.scoring import (
    first_hits,
    mean_of_known,
    normalisers,
    predicted,
    rows_at_once,
    tables_of,
    validated,
)
from workbench.warning_capture import warn

if TYPE_CHECKING:
    from tqdm import tqdm

# A checkpoint follows the first epoch that ends this long after the last one. That is what a kill costs at most, besides
# the epoch itself; a process that is interrupted or asked to end writes the last epoch that it finished.
CHECKPOINT_SECONDS = 10.0
# Steps between two looks at what they gave. To look makes a GPU finish all it was given and then wait for more; a loss that
# is not a number is noticed as many steps late at most, and always before the epoch is judged.
STEPS_BETWEEN_LOOKS = 50
COMPILER = "inductor"  # of torch.compile; on a CPU it needs one for C++

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": partial(torch.optim.AdamW, fused=True),  # fused: one pass over the weights
    "adam": partial(torch.optim.Adam, fused=True),
    "sgd": partial(torch.optim.SGD, momentum=0.9, nesterov=True, fused=True),
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
        *,
        progress: bool = False,
    ) -> None:
        super().__init__()
        self.on_epoch = on_epoch
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
            self.data = features_of(self.whole, self.data, run.model_name, store, device, progress=progress)
            self.network = Network(nn.Flatten(), self.whole.head, self.data.input_shape, prepared=True)
        if parallel.n_ranks() > 1:
            parallel.share_batch_statistics(self.network, device_named(run.device))
        self.evaluated: Callable[..., Tensor] | None = None  # the loss, compiled
        if run.channels_last:
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch forgot to say so
        if run.compile:
            self.network.compile(backend=COMPILER)
            if (
                self.loss.compiles and not self.scheduled.scheduled()
            ):  # a schedule makes another loss of it in every step
                self.evaluated = torch.compile(self.loss, backend=COMPILER)
        self.forward_pass: nn.Module = self.network  # ranks wrap it, to average their gradients
        self.train_rows, self.val_rows = _tensors(self.data.train), _tensors(self.data.val)
        self.state = self._initial_state()
        self.n_batches = math.ceil(self.data.train.n / run.batch_size)
        self.K = target_K(self.loss.settings(), self.data.n_classes)  # of the average-K accuracy
        self.store, self.checkpoint, self.saved_at = store, store.unfinished(run.key), time.monotonic()
        self.history: list[dict[str, float]] = []
        # Epoch → its weights: of those that are best so far in one of the monitors, or of the last one without a monitor.
        self.kept_weights: dict[int, dict[str, Tensor]] = {}
        self.optimizer_state: dict[str, Any] | None = None
        self.scaler = torch.amp.GradScaler(enabled=False)  # of the loss; only float16 needs another scale than 1
        self.scaler_state: dict[str, Any] = {}
        self.reached: dict[str, Any] | None = None  # the checkpoint of the last epoch, as long as it is not written
        self.epoch = 0  # the epoch that is trained, of the whole run
        self.device = torch.device("cpu")  # where the weights are
        # Step, loss, scores pulled, rows, hits of the first class; not looked at yet.
        self.unseen: list[tuple[int, Tensor, Tensor, int, Tensor]] = []
        self.train_losses: list[float] = []
        self.nonzero_gradients: list[float] = []  # of a row of scores, on average; one number a piece
        self.train_hits: list[float] = []  # whether the first class is a label, of the labelled rows of the epoch
        self.log_constants: list[Tensor] = []  # of the batches, for a loss that has a constant
        self.val_losses: list[Tensor] = []
        self.val_scores: list[Tensor] = []

    def progress_bar(self, *, hidden: bool) -> tqdm:
        """One bar for the whole run, beside it the last validation metrics; in a log, one line an epoch."""
        total, done = self.run.epochs * self.n_batches, self.epoch * self.n_batches
        return bar(self.run.title, "batch", total=total, initial=done, hidden=hidden, every=math.inf)

    def _initial_state(self) -> nn.Module | None:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed_of(self.run.seed, 0, "state"))
            return self.loss.state(self.data.train.n, self.data.n_classes)

    @property
    def state_speed(self) -> float:
        """Learning rate of the loss's state as a multiple of the network's."""
        return float(getattr(self.state, "learning_rate_factor", 1.0))

    def progress_at(self, step: int) -> float:
        """The share of the training that is behind when a step of this epoch begins; without epochs, all of it."""
        n_steps = self.run.epochs * self.n_batches
        return (self.epoch * self.n_batches + step) / n_steps if n_steps else 1.0

    # Data and optimizer

    def train_batches(self) -> Batches:
        """The rows of this epoch, in its own order."""
        order = torch.randperm(self.data.train.n, generator=generator(self.run.seed, self.epoch, "order"))
        places = torch.rand((self.data.train.n, 2), generator=generator(self.run.seed, self.epoch, "crops"))
        augmented = EpochAugmentations(self.run.augmentations, self.data.train.n, self.run.seed, self.epoch)
        pinned = self.device.type == "cuda"
        return Batches(
            *self.train_rows, self.run.batch_size, order, places, self.run.micro_batches, augmented, pinned=pinned
        )

    def val_batches(self) -> Batches:
        """The validation rows, in their order."""
        return Batches(*self.val_rows, rows_at_once(self.data.input_shape))

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameter groups of the optimizer: the weights and, for some losses, their estimates for each row."""
        rates = {"lr": self.run.learning_rate, "weight_decay": self.run.weight_decay}
        return [{"params": list(self.network.parameters()), "speed": 1.0, **rates}, *self.groups_of_state()]

    def groups_of_state(self) -> list[dict[str, Any]]:
        """The loss's estimates for each row, if it has some: they learn faster, and without decay."""
        if self.state is None or not (estimates := list(self.state.parameters())):
            return []
        rates = {"speed": self.state_speed, "lr": self.run.learning_rate, "weight_decay": 0.0}
        return [{"params": estimates, **rates}]

    def move_to(self, device: torch.device) -> None:
        """Moves the weights, and what the loss remembers."""
        self.to(device)
        self.device = device

    def make_optimizer(self) -> None:
        """The optimizer and the scale of the loss, where the checkpoint left them."""
        self.optimizer = OPTIMIZERS[self.run.optimizer](self.parameter_groups())
        if self.run.precision == "fp16":
            self.scaler = torch.amp.GradScaler(self.device.type)
        if self.optimizer_state is not None:
            self.optimizer.load_state_dict(self.optimizer_state)
            self.scaler.load_state_dict(self.scaler_state)

    # One epoch

    def train_epoch(self) -> bool:
        """One epoch: its steps, the validation rows, the checkpoint. Returns whether the run is finished."""
        started = time.perf_counter()
        self.begin_epoch()
        self.seed_dropout()
        if self.run.epochs:
            for index, batch in enumerate(self.train_batches()):
                self.learn(batch, index)
        with evaluating(self), torch.inference_mode():
            self.validate()
        finished = self.close_epoch(time.perf_counter() - started)
        self.epoch += 1
        return finished

    def begin_epoch(self) -> None:
        """Nothing is counted yet, and the noise is that of this epoch."""
        self.unseen.clear()
        self.train_losses.clear()
        self.nonzero_gradients.clear()
        self.train_hits.clear()
        self.log_constants.clear()
        self.noise = generator(self.run.seed, self.epoch, "noise", self.device)

    def seed_dropout(self) -> None:
        """Seeds the global generators, from which a module with dropout draws and which `fit` has set aside for the user.

        Each rank drops other features: it sees other rows.
        """
        purpose = f"dropout of rank {parallel.rank()}" if parallel.rank() else "dropout"
        seed = seed_of(self.run.seed, self.epoch, purpose)
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed_all(seed)  # it may be any of them
        elif self.device.type != "cpu":
            torch.get_device_module(self.device).manual_seed(seed)

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """The precision of one forward pass. It must end before the weights change, for it keeps their rounded copies."""
        if self.run.precision == "32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, HALVES[self.run.precision])

    def learn(self, batch: Batch, batch_idx: int) -> None:
        """One step, or one piece of it: nothing in it asks the device for a value, but for a look now and then."""
        inputs, labels, rows = (tensor.to(self.device, non_blocking=True) for tensor in batch[:3])
        share = batch[3]
        step, piece = divmod(batch_idx, self.run.micro_batches)
        with self.autocast():
            scores = parallel.together(self.forward_pass(inputs), len(rows))
            if not scores.requires_grad:
                raise ValueError(
                    f"no weight of {self.run.model_name} learns: all are frozen, or its scores are detached from them; set "
                    "requires_grad on some, or give head='new' to train a new head"
                )
            scores.retain_grad()
            loss = self.losses(scores, labels, rows, step).mean()
            loss = loss if share == 1 else share * loss
        if piece == 0:
            self._forget_gradients()
        self.scaler.scale(loss).backward()
        assert scores.grad is not None
        hits = first_hits(self.loss.logits(scores.detach()), labels)
        self.unseen.append((step, loss.detach(), scores_with_gradient(scores.grad).sum(), len(scores), hits))
        if piece == self.run.micro_batches - 1:
            self.set_rates(self.optimizer.param_groups, step)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.bar.update()
            if (step + 1) % STEPS_BETWEEN_LOOKS == 0 or step + 1 == self.n_batches:
                self.look()

    def _forget_gradients(self) -> None:
        """As `optimizer.zero_grad()`, which takes as long as the forward pass of a small head."""
        for group in self.optimizer.param_groups:
            for weights in group["params"]:
                weights.grad = None

    def look(self) -> None:
        """Reads what the steps since the last look gave, at once, and refuses to go on with a loss that is not a number."""
        steps, values, pulled, n_rows, hits = zip(*self.unseen, strict=True)
        self.unseen.clear()
        self.train_hits += torch.cat(hits).tolist()
        seen = zip(steps, torch.stack(values).tolist(), torch.stack(pulled).tolist(), n_rows, strict=True)
        for step, value, n_pulled, n in seen:
            self.check_finite(value, step)
            self.train_losses.append(value)
            self.nonzero_gradients.append(n_pulled / n)

    def losses(self, scores: Tensor, labels: Tensor, rows: Tensor, step: int) -> Tensor:
        """The loss of each row of a step, with its schedules at that step."""
        labels = self.loss.readable(labels, self.data.n_classes)
        if self.evaluated is not None:
            values = self.evaluated(scores, labels, generator=self.noise, state=self.state, rows=rows)
        else:  # the dataset has checked the labels, and `check_run` the shapes: a step does not do so again
            loss, scores = self.scheduled.at(self.progress_at(step)), at_least_float32(scores)
            values = loss.values(scores, labels, noise=None, generator=self.noise, state=self.state, rows=rows)
        if (log_C := getattr(self.state, "batch_log_C", None)) is not None:
            self.log_constants.append(log_C)
        return values

    def check_finite(self, value: float, step: int) -> None:
        """Refuses to go on with a loss that is not a number."""
        if not math.isfinite(value):
            raise FloatingPointError(self._diverged(f"the loss is {value} in batch {step + 1} of {self.n_batches}"))

    def rate(self, step: int) -> float:
        """The learning rate of this step of the epoch."""
        return self.run.learning_rate * LEARNING_RATES[self.run.schedule](self.progress_at(step), self.run.milestones)

    def set_rates(self, groups: Sequence[dict[str, Any]], step: int) -> None:
        """The network learns at the rate of this step, and what the loss learns so much faster."""
        for group in groups[1:]:
            group["speed"] = self.state_speed
        for group in groups:
            group["lr"] = self.rate(step) * group["speed"]

    def begin_validation(self) -> None:
        """No row is scored yet, and the noise is that of this epoch."""
        self.val_losses.clear()
        self.val_scores.clear()
        self.val_noise = generator(self.run.seed, self.epoch, "validation noise", self.device)

    def validate(self) -> None:
        """Scores and losses of the validation rows."""
        self.begin_validation()
        for inputs, labels, rows, _ in self.val_batches():
            with self.autocast():
                scores = parallel.together(self.network(inputs.to(self.device)), len(rows))
                self.val_losses.append(self.validation_losses(scores, labels.to(self.device)))
            self.val_scores.append(scores.float())

    def validation_losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The loss of each validation row."""
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
                "train_loss": math.fsum(self.train_losses) / self.n_batches if self.train_losses else math.nan,
                "train_accuracy": mean_of_known(self.train_hits),
                "val_loss": torch.cat(self.val_losses).mean().item(),
                **validated(val, self.K),
                **measured(self.run.monitors, val),
                **answers(self.loss.logits(scores), val, self.K),
                **normalisers(self.loss, self.state, scores, self.log_constants),
                "nonzero_gradients": mean_of_known(self.nonzero_gradients),
                **self._scheduled_knobs(),
                "seconds": seconds,
            }
        )
        best = {self.run.best_epoch(self.history), *self.run.best_epochs(self.history).values()}
        self.kept_weights = {epoch: weights for epoch, weights in self.kept_weights.items() if epoch in best}
        if self.epoch in best:
            self.kept_weights[self.epoch] = self.weights()
        return self.history[-1]

    def close_epoch(self, seconds: float) -> bool:
        """Judges the epoch, reports it and writes a checkpoint when one is due; whether the run is finished."""
        last = self.end_epoch(seconds)
        metrics = {"val_loss": f"{last['val_loss']:.3f}", "val_accuracy": f"{last['val_accuracy']:.1%}"}
        self.bar.set_postfix(epoch=f"{self.epoch + 1}/{self.run.epochs}", **metrics)
        finished = parallel.as_first(self.run.finished(self.history))  # all ranks stop, or none
        due = finished or time.monotonic() - self.saved_at >= CHECKPOINT_SECONDS
        optimizer = self.optimizer.state_dict()
        self.reached = {
            "weights": self.kept_weights[self.epoch] if self.epoch in self.kept_weights else self.weights(),
            "kept": self.kept_weights if self.run.monitor is not None else {},
            "history": list(self.history),
            "optimizer": optimizer if due else copy.deepcopy(optimizer),  # the next step would change it
            "scaler": self.scaler.state_dict(),
        }
        if self.on_epoch is not None:  # before the checkpoint, so that a short run that is cancelled leaves no file
            self.on_epoch(dict(last))
        if due:
            self.save()
        return finished

    def _scheduled_knobs(self) -> dict[str, float]:
        """The value of each scheduled knob in the last step of the epoch."""
        last = self.scheduled.at(self.progress_at(self.n_batches - 1))
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
        """The tables of val and test by the kept weights and, each in its folder, by those of further kept epochs."""
        tables = self._tables(device)
        others = {epoch: weights for epoch, weights in self.kept_weights.items() if weights is not self.best}
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
        return self.kept_weights[self.run.best_epoch(self.history)]

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
        write_checkpoint(self.reached, self.checkpoint, self.store)
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
        """Takes up the checkpoint, if there is one that can be trusted; otherwise training starts anew, with a warning."""
        if not self.checkpoint.is_file():
            return
        try:
            content = read_checkpoint(self.checkpoint)
            self._check_checkpoint(content)
        except Exception as error:  # torch raises many kinds, and none of them is worth losing the run
            message = f"{self.checkpoint} cannot be used ({type(error).__name__}: {error}): training starts anew"
            warn(message, stacklevel=2)
            return
        self.load(content["weights"])
        self.history, self.optimizer_state = list(content["history"]), content["optimizer"]
        self.scaler_state = content.get("scaler", {})
        self.epoch = len(self.history)
        self.kept_weights = content["kept"] if self.run.monitor is not None else {self.epoch - 1: content["weights"]}

    def _check_checkpoint(self, content: Mapping[str, Any]) -> None:
        """Refuses a checkpoint whose weights or epochs are not those of this run."""
        expected = _shapes(self.weights())
        if any(_shapes(weights) != expected for weights in (content["weights"], *content["kept"].values())):
            raise ValueError("its weights are not those of this network")
        epochs = [row["epoch"] for row in content["history"]]
        if epochs != list(range(len(epochs))) or not 0 < len(epochs) <= max(self.run.epochs, 1):
            raise ValueError("its history is not that of this run")


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (value.shape, value.dtype) for name, value in weights.items()}


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Switches a module to evaluation, and every part of it back to what it was."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


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
