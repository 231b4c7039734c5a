"""Many runs, one frame: a grid of knobs and seeds, tuned on val and reported on test."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from workbench.metrics import Metric
from workbench.metrics.base import checked_metrics
from workbench.sets import AverageK, Rule, checked_rule
from workbench.store import Store, chosen_store
from workbench.store.record import target_K
from workbench.training.features import network_of
from workbench.training.settings import Over, Setting, cells, every_setting, filled, rules_in, runs_in
from workbench.training.stacked import heads
from workbench.training.sweeps.swept import METRICS, Sweep
from workbench.training.trainer import Run, TrainedRun, check_run, train

if TYPE_CHECKING:
    from distributed import Client


def sweep(
    run: Run,
    over: Over,
    *,
    rule: Rule | Sequence[Rule] | None = None,
    metrics: Sequence[Metric] = METRICS,
    store: Store | None = None,
    progress: bool = True,
    client: Client | None = None,
) -> Sweep:
    """Train a run in every setting of some of its fields, and judge each on val and on test.

    - `run`: the run whose fields are varied.

    `over` names fields of the run (`seed`, `learning_rate`, `model`, …) or, after `loss.` and `data.`, knobs of its loss
    and of its dataset. A mapping of names to values is a grid: all combinations are trained. A list of mappings is
    trained as it stands, and a mapping of it that has lists of values is a grid of its own, so that each loss is tuned on
    its own knobs (`best_of_each("loss", …)` then takes the best of each):

        over=[{"loss": [CrossEntropy()], "learning_rate": [0.01, 0.1], "seed": range(3)},
              {"loss": [NoisedTopK()], "loss.epsilon": [0.1, 1.0], "seed": range(3)}]

    `K` is that of the loss, where it has one, of the rules and of what is watched (`"average_k_accuracy@K=5"`), all
    together; a run that it does not change is trained once and judged at each K.

    A run that is stored is not trained again, so a sweep that was interrupted goes on where it stopped, and of several sweeps
    at a time one trains a run and the others wait for it. A run that fails, most often because its loss diverges, is told of
    in `failed`, and the others go on. `client`, a `distributed.Client`, trains the runs side by side on the workers of a Dask
    cluster, which must see the same store. Heads on cached features, `linear` and `mlp` are trained together
    (`stacked.heads.train_heads`); each is the run that it would be alone, but for rounding.

    Sets are made by `rule`, or by each of several, fitted on val (default: average-K for K = 5, or fewer where there are
    few classes), and judged by `metrics`; `top_k_accuracy.at(K=3)` is top-3 accuracy. `store` is where runs are kept, as in
    `train`; `progress` prints a line for each run.

    >>> import tempfile
    >>> from workbench.losses import NoisedTopK
    >>> run = Run("digits", model="linear", loss=NoisedTopK(K=3), epochs=2, device="cpu")
    >>> over = {"loss.epsilon": [0.1, 1.0], "seed": range(2)}
    >>> found = sweep(run, over, rule=AverageK(2), store=Store(tempfile.mkdtemp()), progress=False)
    >>> len(found.runs), found.best("accuracy").settings
    (4, {'loss.epsilon': 1.0})
    """
    if not isinstance(run, Run):
        raise ValueError(f"sweep takes a Run, such as Run('letters', model='mlp'), and not {run!r}")
    store, metrics, rules = chosen_store(store), checked_metrics(metrics), _checked_rules(rule)
    settings = every_setting(over)
    runs = runs_in(run, settings)
    settings = filled(settings, runs)
    first = [at for at, setting in enumerate(settings) if setting not in settings[:at]]  # a run counts once
    runs, settings = [runs[at] for at in first], [settings[at] for at in first]
    _check_all(runs)
    rules = rules or (AverageK(target_K({}, min(one.data.n_classes for one in runs))),)
    _check_K(runs, settings, rules)
    kept: list[tuple[TrainedRun, Setting]] = []
    failed: list[tuple[Setting, str]] = []
    for setting, done in zip(settings, _told(runs, settings, store, progress, client), strict=True):
        if isinstance(done, TrainedRun):
            kept.append((done, setting))
        else:
            failed.append((setting, str(done)))
    return Sweep(rules, metrics, tuple(done for done, _ in kept), tuple(setting for _, setting in kept), tuple(failed))


def _trained(runs: Sequence[Run], store: Store, progress: bool) -> Iterator[TrainedRun | Exception]:
    """Every run in its order, trained or read from the store; the error in place of one that failed.

    Runs that can be are trained together, when the first of them has its turn.
    """
    done: dict[str, TrainedRun | Exception] = {}
    for run in runs:
        if run.key not in done and not store.has(run.key) and len(members := heads.companions(run, runs, store)) > 1:
            with store.held(member.key for member in members):
                found = heads.train_heads(members, store=store, progress=progress and sys.stderr.isatty())
            done |= zip((member.key for member in members), found, strict=True)
        if run.key not in done:
            try:
                with store.held([run.key]):
                    done[run.key] = train(run, store=store, progress=False)
            except Exception as error:  # whatever it is: the other settings go on
                done[run.key] = error
        yield done[run.key]


def _told(
    runs: Sequence[Run], settings: Sequence[Setting], store: Store, progress: bool, client: Client | None
) -> Iterator[TrainedRun | Exception]:
    """Every run as it is trained here or by a client, with a line for each: how far the sweep is and how long it will take."""
    distinct = {run.key: run for run in runs}
    waiting, seconds = {key for key in distinct if not store.has(key)}, []
    results, done = _results(list(distinct.values()), store, progress, client), {}
    for at, (run, setting) in enumerate(zip(runs, settings, strict=True), 1):
        new, start, said = run.key in waiting, time.monotonic(), "stopped"
        try:
            if run.key not in done:
                done[run.key] = next(results)
            said = _said(done[run.key], new)
        finally:
            if new:
                waiting.remove(run.key)
                seconds.append(time.monotonic() - start)
            if progress:
                named = " ".join(f"{name}={value}" for name, value in cells(setting).items())
                left = _left(len(waiting), seconds)
                print(f"{at:>{len(str(len(runs)))}}/{len(runs)}  {named}  {said}{left}", file=sys.stderr, flush=True)
        yield done[run.key]


def _results(
    runs: Sequence[Run], store: Store, progress: bool, client: Client | None
) -> Iterator[TrainedRun | Exception]:
    if client is None:
        return _trained(runs, store, progress)
    from workbench.training.sweeps.side_by_side import trained_side_by_side

    return trained_side_by_side(runs, client, store, progress)


def _said(done: TrainedRun | Exception, new: bool) -> str:
    if isinstance(done, Exception):
        return "diverged" if isinstance(done, FloatingPointError) else f"failed: {done}"
    return f"top-1 accuracy on val {done.kept['val_accuracy']:.1%}" + ("" if new else ", stored")


def _left(waiting: int, seconds: Sequence[float]) -> str:
    if not seconds or not waiting:
        return ""
    left = waiting * sum(seconds) / len(seconds)
    return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"


def _checked_rules(given: Any) -> tuple[Rule, ...]:
    """The rules, one or several; none if none was given."""
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)):
        return (checked_rule(given),)
    if not given:
        raise ValueError("rule = []; give at least one, such as AverageK(K=5)")
    return tuple(checked_rule(rule) for rule in given)


def _check_all(runs: Sequence[Run]) -> None:
    """Every run can be trained: better to fail before the first than after it. A network that runs share is made once."""
    made = set()
    for run in runs:
        check_run(run)
        model = run.model if isinstance(run.model, str) else id(run.model)
        kind = (model, run.head, run.loss.head, run.loss.heads, run.data.input_shape, run.data.n_classes)
        if kind not in made:
            network_of(run)
            made.add(kind)


def _check_K(runs: Sequence[Run], settings: Sequence[Setting], rules: Sequence[Rule]) -> None:
    """Every K that is varied makes rules, of some classes and fewer than there are."""
    for run, setting in zip(runs, settings, strict=True):
        rules_in(rules, setting)
        if setting.get("K", 1) <= 0:
            raise ValueError(f"over: K = {setting['K']} is no set; give a K above 0")
        if "K" in setting and setting["K"] >= run.data.n_classes:
            raise ValueError(f"over: K = {setting['K']} with {run.data.n_classes} classes; K must be smaller")
