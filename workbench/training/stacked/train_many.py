"""Many heads at once: runs that differ in loss, learning rate, weight decay, schedule or seed are trained together.

The step of a small head is mostly the way there. So the weights of all members are stacked, one batched multiplication
gives the scores of all, and what goes around a step is done once. All else is as if each were trained alone: its first
weights, the order of its rows, its noise, its schedule, the epoch that is kept. A member differs from the run trained
alone by rounding only, and is stored under the same key.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby

import torch

from workbench.datasets import ImageFiles
from workbench.progress import bar
from workbench.runs.run import Run
from workbench.store import Store, chosen_store
from workbench.training.hardware import device_named
from workbench.training.learner import Learner
from workbench.training.stacked.stack import OnStep, Stack
from workbench.training.trained_run import TrainedRun
from workbench.training.trainer import Cancelled, check_run, write_learnt
from workbench.warning_capture import warn

ROWS_OF_NUMBERS = ("linear", "mlp")  # models that are small enough to be stacked whole
BYTES_TOGETHER = 2**30  # that the members of a stack may take, at most
COPIES = 8  # of weights and of a batch of scores: themselves, gradients, moments, best epoch, what a loss keeps

OnMemberEpoch = Callable[[Run, dict[str, float]], None]


def stackable(run: Run) -> bool:
    """Whether a run can be trained together with others: on a CPU, and all that learns is a head or a small network.

    That is a head on cached features, or `linear` or `mlp` on data in memory, as they are. Each step must be of one piece.

    >>> stackable(Run("letters", model="mlp")), stackable(Run("letters", model="mlp", micro_batches=2))
    (True, False)
    """
    as_they_are = not run.augmentations and run.normalisation is None
    on_rows = run.model in ROWS_OF_NUMBERS and as_they_are and not isinstance(run.data.train.inputs, ImageFiles)
    in_one_piece = run.n_ranks == run.micro_batches == 1 and run.precision == "32" and not run.compile
    return (run.features is not None or on_rows) and in_one_piece and device_named(run.device).type == "cpu"


def train_heads(
    runs: Sequence[Run],
    *,
    store: Store | None = None,
    progress: bool = True,
    on_epoch: OnMemberEpoch | None = None,
) -> list[TrainedRun | FloatingPointError]:
    """Train runs together, and store each as a run of its own: the results, or the errors of those that diverged, in order.

    Args:
        runs: All of them `stackable`. Those of the same data, network, batch size and optimizer share their steps; stored
            ones are read.
        store: As in `train`.
        progress: As in `train`.
        on_epoch: Called with each run and the row of its history after every epoch, by one thread at a time; it may raise
            `Cancelled`; so may a function that listens to progress bars, before every step. No thread takes a step meanwhile.

    Each thread that torch may use trains its part of them. A member that diverges leaves the others alone. There are no
    checkpoints: after an interruption what was finished is stored, and the rest starts anew.

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
            "data in memory, on a CPU, with micro_batches=1, precision='32' and no compile; or use train"
        )
    waiting = {run.key: run for run in runs if not store.has(run.key)}
    for run in waiting.values():
        check_run(run)
    diverged: dict[str, FloatingPointError] = {}
    for group in _groups(waiting.values()):
        diverged |= _train_group(group, store, progress, on_epoch)
    for key in waiting.keys() - diverged.keys():
        if warning := store.open(key).record.warned:  # of a constant answer
            warn(warning, stacklevel=2)
    return [diverged.get(run.key) or TrainedRun(run, store.open(run.key)) for run in runs]


def companions(run: Run, runs: Iterable[Run], store: Store) -> list[Run]:
    """The runs that can be trained in the same steps as this one, itself included. One with a checkpoint goes on alone."""
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


def _parts(runs: Sequence[Run], n_threads: int) -> list[Sequence[Run]]:
    """The runs of a group as stacks: one for each thread, or more where memory holds fewer members at a time."""
    data, heads = runs[0].data, runs[0].loss.heads
    n_scores = data.n_classes * heads * (COPIES * runs[0].batch_size + data.val.n)
    width = 2048 if runs[0].features is not None else max(256, math.prod(data.input_shape))
    n_weights = COPIES * width * (data.n_classes * heads + 256)
    n_estimates = COPIES * data.train.n * data.n_classes if any(_remembers_rows(run) for run in runs) else 0
    fit = max(1, BYTES_TOGETHER // (4 * n_threads * (n_scores + n_weights + n_estimates)))
    n_parts = max(math.ceil(len(runs) / fit), min(n_threads, len(runs)))
    return [runs[part * len(runs) // n_parts : (part + 1) * len(runs) // n_parts] for part in range(n_parts)]


def _remembers_rows(run: Run) -> bool:
    state = run.loss.state(n_rows=1, n_classes=2)
    return state is not None and any(True for _ in state.parameters())


def _train_group(
    runs: Sequence[Run], store: Store, progress: bool, on_epoch: OnMemberEpoch | None
) -> dict[str, FloatingPointError]:
    """Trains runs that share their steps, a stack of them on each thread that torch may use; returns who diverged."""
    n_threads, stopped, one_at_a_time = torch.get_num_threads(), threading.Event(), threading.Lock()
    total = sum(run.epochs * math.ceil(run.data.train.n / run.batch_size) for run in runs)
    title = f"{len(runs)} runs together · {runs[0].data.name}"
    diverged: dict[str, FloatingPointError] = {}
    shown = bar(title, "batch", total=total, hidden=not progress)

    def on_step(n_members: int) -> None:
        if stopped.is_set():
            raise Cancelled
        with one_at_a_time:
            shown.update(n_members)

    def report(member: Learner) -> None:
        if on_epoch is not None:
            with one_at_a_time:
                on_epoch(member.run, dict(member.history[-1]))

    def trained(part: Sequence[Run]) -> dict[str, FloatingPointError]:
        with one_at_a_time:  # first weights are drawn from torch's one generator
            members = _members(part, store, progress)
        return _train_stack(members, on_step, report)

    torch.set_num_threads(1)  # in each of the threads below: they wait for each other less than those inside a step
    try:
        with shown, ThreadPoolExecutor(n_threads) as threads:
            futures = [threads.submit(trained, part) for part in _parts(runs, n_threads)]
            try:
                for future in as_completed(futures):
                    diverged |= future.result()
            except BaseException:
                stopped.set()
                threads.shutdown(cancel_futures=True)
                raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped; runs that were finished are stored, and the same call trains the others anew"
        ) from None
    finally:
        torch.set_num_threads(n_threads)
    return diverged


def _members(runs: Sequence[Run], store: Store, progress: bool) -> list[Learner]:
    """Each with its first weights. The backbone of cached features is the same for all, and is only kept."""
    members = [Learner(run, store, progress=progress) for run in runs]
    for member in members:
        if member.fixed:
            member.whole.backbone, member.fixed = members[0].whole.backbone, members[0].fixed
    return members


def _train_stack(
    members: Sequence[Learner], on_step: OnStep, report: Callable[[Learner], None]
) -> dict[str, FloatingPointError]:
    """Trains members to the end and stores each as soon as it is finished; returns why others were not."""
    stack = Stack(members)
    while stack.members:
        stack.learn_epoch(on_step)
        for member in stack.members:
            report(member)
        finished = [member for member in stack.members if member.run.finished(member.history)]
        for member in finished:
            if member.run.monitor is not None:
                member.load(member.best)
            write_learnt(member, member.device, together=len(members))
        stack.dismiss(finished)
    return {member.run.key: error for member, error in stack.diverged.items()}
