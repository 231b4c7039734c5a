"""Many runs, one after the other, together, or on a cluster: `train_all`."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.progress import redraws
from workbench.runs.run import Run
from workbench.store import Store, chosen_store
from workbench.training.features import network_of
from workbench.training.stacked import train_many
from workbench.training.trained_run import TrainedRun
from workbench.training.trainer import Cancelled, check_run, train

if TYPE_CHECKING:
    from distributed import Client

Result = TrainedRun | Exception
OnEpoch = Callable[[Run, dict[str, float]], None]


def train_all(
    runs: Iterable[Run],
    *,
    store: Store | None = None,
    progress: bool = True,
    client: Client | None = None,
    titles: Sequence[str] | None = None,
    on_epoch: OnEpoch | None = None,
) -> Iterator[Result]:
    """Train runs, and yield the result of each in their order: the trained run, or the exception of one that failed.

    All runs are checked before the first is trained. A run that is stored is read, so a call that was interrupted goes on
    where it stopped; of several processes that ask for a run at the same time, one trains it and the others wait. Heads on
    cached features, `linear` and `mlp` are trained together; each is the run that it would be alone, but for rounding.

    Args:
        runs: The runs. One that appears twice is trained once.
        store: Where runs are kept, as in `train`.
        progress: Prints a line for each run, with the time that is left.
        client: A client of a Dask cluster whose workers train the runs side by side; they must see the same store.
        titles: How each run is called in its line; by default `run.title`.
        on_epoch: Function of a run and the row of its history, called after every epoch that is trained in this process. It
            may raise `Cancelled`, which ends all.

    Yields:
        A `TrainedRun`, or the exception that ended its training, most often FloatingPointError: the loss diverged.

    Raises:
        ValueError: A run cannot be trained, such as one whose K is too large for its classes.

    >>> import tempfile
    >>> runs = [Run("digits", model="linear", epochs=1, learning_rate=rate) for rate in (0.001, 0.01)]
    >>> results = train_all(runs, store=Store(tempfile.mkdtemp()), progress=False)
    >>> [len(trained.history) for trained in results]
    [1, 1]
    """
    runs, store = list(runs), chosen_store(store)
    check_all(runs)
    titles = [run.title for run in runs] if titles is None else titles
    distinct = list({run.key: run for run in runs}.values())
    if client is None:
        results = _train_here(distinct, store, progress, on_epoch)
    else:
        from workbench.training.sweeps.dask_backend import trained_side_by_side

        results = trained_side_by_side(distinct, client, store, progress)
    return _in_order(runs, titles, store, progress, results)


def check_all(runs: Sequence[Run]) -> None:
    """Every run can be trained: better to fail before the first than after it. A network that runs share is made once."""
    made = set()
    for run in runs:
        check_run(run)
        model = run.model if isinstance(run.model, str) else id(run.model)
        kind = (model, run.head, run.loss.head, run.loss.heads, run.data.input_shape, run.data.n_classes)
        if kind not in made:
            network_of(run)
            made.add(kind)


def _in_order(
    runs: Sequence[Run], titles: Sequence[str], store: Store, progress: bool, results: Iterator[Result]
) -> Iterator[Result]:
    """The result of each run, with a line for each: how far the work is and how long it will take."""
    waiting, seconds = {run.key for run in runs if not store.has(run.key)}, []
    done: dict[str, Result] = {}
    for at, (run, title) in enumerate(zip(runs, titles, strict=True), 1):
        new, start, outcome = run.key in waiting, time.monotonic(), "stopped"
        try:
            if run.key not in done:
                done[run.key] = next(results)
            outcome = _outcome(done[run.key], new)
        finally:
            if new:
                waiting.remove(run.key)
                seconds.append(time.monotonic() - start)
            if progress:
                left = _left(len(waiting), seconds)
                print(f"{at:>{len(str(len(runs)))}}/{len(runs)}  {title}  {outcome}{left}", file=sys.stderr, flush=True)
        yield done[run.key]


def _train_here(runs: Sequence[Run], store: Store, progress: bool, on_epoch: OnEpoch | None) -> Iterator[Result]:
    """The result of each run. Those that can be are trained together, when the first of them has its turn."""
    done: dict[str, Result] = {}
    for run in runs:
        if run.key not in done and (members := _together(run, runs, store)):
            with store.lock(member.key for member in members):
                shown = progress and redraws()
                results = train_many.train_heads(members, store=store, progress=shown, on_epoch=on_epoch)
            done |= zip((member.key for member in members), results, strict=True)
        if run.key not in done:
            of_run = None if on_epoch is None else functools.partial(on_epoch, run)
            try:
                with store.lock([run.key]):
                    done[run.key] = train(run, store=store, progress=False, on_epoch=of_run)
            except Cancelled:
                raise
            except Exception as error:  # whatever it is: the other runs go on
                done[run.key] = error
        yield done[run.key]


def _together(run: Run, runs: Sequence[Run], store: Store) -> list[Run]:
    """The runs that are trained in the same steps as this one; none if it is stored or trained alone.

    A head on cached features is a stack of its own, which has less to do around a step than `train`.
    """
    members = [] if store.has(run.key) else train_many.companions(run, runs, store)
    return members if len(members) > 1 or run.features is not None else []


def _outcome(result: Result, new: bool) -> str:
    if isinstance(result, Exception):
        return "diverged" if isinstance(result, FloatingPointError) else f"failed: {result}"
    return f"top-1 accuracy on val {result.metrics['val_accuracy']:.1%}" + ("" if new else ", stored")


def _left(waiting: int, seconds: Sequence[float]) -> str:
    if not seconds or not waiting:
        return ""
    left = waiting * sum(seconds) / len(seconds)
    return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"
