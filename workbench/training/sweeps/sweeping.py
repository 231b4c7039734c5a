"""Many runs, one frame: a grid of knobs and seeds, tuned on val and reported on test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.losses.target_size import target_K
from workbench.metrics import Metric
from workbench.metrics.base import checked_metrics
from workbench.runs.grid import Over, Setting, cells, every_setting, filled, rules_in, runs_in
from workbench.sets import AverageK, Rule, checked_rule
from workbench.store import Store, chosen_store
from workbench.training.many_runs import check_all, train_all
from workbench.training.sweeps.result import METRICS, Sweep
from workbench.training.trainer import Run, TrainedRun

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

    Args:
        run: The run whose fields are varied.

    `over` names fields of the run (`seed`, `learning_rate`, `model`, …) or, after `loss.` and `data.`, knobs of its loss
    and of its dataset. A mapping of names to values is a grid: all combinations are trained. A list of mappings is
    trained as it stands, and a mapping of it that has lists of values is a grid of its own, so that each loss is tuned on
    its own knobs (`best_of_each("loss", …)` then takes the best of each):

        over=[{"loss": [CrossEntropy()], "learning_rate": [0.01, 0.1], "seed": range(3)},
              {"loss": [NoisedTopK()], "loss.epsilon": [0.1, 1.0], "seed": range(3)}]

    `K` is that of the loss, where it has one, of the rules and of what is watched (`"average_k_accuracy@K=5"`), all
    together; a run that it does not change is trained once and evaluated at each K.

    Stored runs are not trained again, so an interrupted sweep resumes; of several sweeps at a time one trains a run and the
    others wait for it. A run that fails, usually because its loss diverges, is listed in `failed`, and the others go on.
    `client`, a `distributed.Client`, trains the runs side by side on the workers of a Dask
    cluster, which must see the same store. Heads on cached features, `linear` and `mlp` are trained together
    (`train_all`); each is the run that it would be alone, but for rounding.

    Sets are made by `rule`, or by each of several, fitted on val (default: average-K for K = 5, or fewer where there are
    few classes), and evaluated by `metrics`; `top_k_accuracy.at(K=3)` is top-3 accuracy. `store` is where runs are kept, as in
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
    check_all(runs)
    rules = rules or (AverageK(target_K({}, min(one.data.n_classes for one in runs))),)
    _check_K(runs, settings, rules)
    kept: list[tuple[TrainedRun, Setting]] = []
    failed: list[tuple[Setting, str]] = []
    titles = [" ".join(f"{name}={value}" for name, value in cells(setting).items()) for setting in settings]
    results = train_all(runs, store=store, progress=progress, client=client, titles=titles)
    for setting, done in zip(settings, results, strict=True):
        if isinstance(done, TrainedRun):
            kept.append((done, setting))
        else:
            failed.append((setting, str(done)))
    return Sweep(rules, metrics, tuple(done for done, _ in kept), tuple(setting for _, setting in kept), tuple(failed))


def _checked_rules(given: Any) -> tuple[Rule, ...]:
    """The rules, one or several; none if none was given."""
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)):
        return (checked_rule(given),)
    if not given:
        raise ValueError("rule = []; give at least one, such as AverageK(K=5)")
    return tuple(checked_rule(rule) for rule in given)


def _check_K(runs: Sequence[Run], settings: Sequence[Setting], rules: Sequence[Rule]) -> None:
    """Every K that is varied makes rules, of some classes and fewer than there are."""
    for run, setting in zip(runs, settings, strict=True):
        rules_in(rules, setting)
        if setting.get("K", 1) <= 0:
            raise ValueError(f"over: K = {setting['K']} is not a set; give a K above 0")
        if "K" in setting and setting["K"] >= run.data.n_classes:
            raise ValueError(f"over: K = {setting['K']} with {run.data.n_classes} classes; K must be smaller")
