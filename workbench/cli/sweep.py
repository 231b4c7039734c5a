"""`workbench sweep`: train many settings of a run and choose the best on validation rows."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.cli.base import Command
from workbench.metric_spec import MetricSpec

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

    from workbench.losses import Loss
    from workbench.metrics import Metric
    from workbench.training import Run
    from workbench.training.sweeps.best import Best, BestOfEach
    from workbench.training.sweeps.result import Sweep

EACH = ("K", "loss")  # never tuned: the best of each value is reported


def _sweep(arguments: list[str]) -> int:
    from workbench.cli.run_options import described_run

    # --K is a knob of some losses; here it may have several values, and any loss may be judged at each of them.
    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    reader.add_argument("--K", nargs="+", default=[])
    typed, rest = reader.parse_known_args(arguments)
    sizes = [_K("--K", text) for text in typed.K]
    run, options = described_run(_parser(), rest)

    from workbench.sets import rule_from_text  # after --help, which needs no torch
    from workbench.training.sweeps import sweep
    from workbench.training.sweeps.result import METRICS

    if options.recipe is None and len(sizes) == 1 and "K" in run.loss.knobs():
        run, sizes = dataclasses.replace(run, loss=dataclasses.replace(run.loss, **{"K": sizes[0]})), []
    ranking = _metric(options.metric)
    metrics = {metric.stated().name: metric for metric in (*METRICS, ranking, *map(_metric, options.measure))}
    rules = [rule_from_text(text, foreign=True) for text in options.rule]
    over = _over(run, options, sizes)
    if options.recipe is not None:
        over = [{**setting, **grid} for setting in _of_recipe(run, options) for grid in over]
    if not any(over):
        raise ValueError(
            "nothing is varied; say what to try: --over NAME VALUE …, --setting NAME=VALUE …, --K 2 3 5, or --recipe NAME of a "
            "paper that compares some (workbench recipes NAME says what)"
        )
    each = options.each or [
        name for name in EACH if len({repr(value) for grid in over for value in grid.get(name, [])}) > 1
    ]

    with _client(options.cluster, options.workers) as client:
        found = sweep(
            run, over, rule=rules or None, metrics=list(metrics.values()), progress=not options.json, client=client
        )
    for setting, message in found.failed:
        print(f"failed: {setting}: {message}", file=sys.stderr)
    bests = found.best_of_each(each, ranking.stated().name, group=options.group, rule=rules[0] if rules else None)
    pairs = _pairs(bests) if each else None
    if options.json:
        print(json.dumps(_as_json(found, bests, pairs), indent=2, ensure_ascii=False, default=repr))
    else:
        print(_as_text(found, bests, pairs))
    return 1 if found.failed else 0


@contextlib.contextmanager
def _client(cluster: str | None, workers: int | None) -> Iterator[Client | None]:
    """The workers that train: a Dask cluster, processes of this machine that end with the command, or none."""
    if cluster is None and workers is None:
        yield None
        return
    if cluster is not None and workers is not None:
        raise ValueError("--cluster has the workers it has, and --workers starts some here; give one of the two")
    from workbench.cluster.clients import connected

    with connected(cluster or "processes", workers) as client:
        yield client


def _K(of: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{of} = {text!r}: K is a number of classes, such as 5") from None
    return int(number) if number.is_integer() else number


def _metric(text: str) -> Metric:
    """A metric by its name, which may say its K: top_k_accuracy@K=3."""
    from workbench.metrics import METRICS
    from workbench.training.sweeps.result import ranking_metric

    spec = MetricSpec.parse(text)
    metric = ranking_metric(spec.metric, [metric for metric in METRICS if metric.subject in ("sets", "table")])
    if spec.K is None:
        return metric
    if metric.stated() is metric:
        raise ValueError(f"metric = {text!r}: {spec.metric} has no K")
    return metric.at(K=spec.K)


def _pairs(bests: BestOfEach) -> pd.DataFrame | None:
    """Differences of the best settings; None where no two can be paired (with a message)."""
    if len(bests) < 2:
        return None
    try:
        pairs = bests.differences()
    except ValueError as error:
        print(error, file=sys.stderr)
        return None
    return pairs if len(pairs) else None  # each may be of a K of its own


def _as_json(found: Sweep, bests: BestOfEach, pairs: pd.DataFrame | None) -> dict[str, Any]:
    from workbench.metrics.hierarchical import multiplicity
    from workbench.runs.grid import cells

    def lines(frame: pd.DataFrame) -> Any:
        return json.loads(frame.to_json(orient="records"))

    def summary_of(best: Best) -> dict[str, Any]:
        test = {name: None if math.isnan(value) else value for name, value in best.test.items()}  # JSON has no NaN
        named = cells(best.settings)
        settings = {name: value if isinstance(value, tuple) else named[name] for name, value in best.settings.items()}
        return {"settings": settings, "test": test, "runs": [done.stored.key for done in best.runs]}

    result: dict[str, Any] = {}
    if bests.by:
        result |= {"best_of_each": [summary_of(best) for best in bests.values()], "side_by_side": lines(bests.frame)}
    else:
        result["best"] = summary_of(bests[()])
    if pairs is not None:
        result |= {"differences": lines(pairs), "multiplicity": multiplicity(pairs)}
    return result | {"frame": lines(found.frame)}


def _as_text(found: Sweep, bests: BestOfEach, pairs: pd.DataFrame | None) -> str:
    from workbench.metrics.hierarchical import multiplicity

    def table(frame: pd.DataFrame) -> str:
        return frame.to_string(index=False, float_format="{:.4g}".format)

    parts = [table(found.summary().dropna(subset="mean"))]
    if bests.by:
        parts += [f"the best on val for each {' and '.join(bests.by)}, with intervals over seeds and rows"]
        parts += [table(bests.frame)]
        parts += [] if pairs is None else [table(pairs), multiplicity(pairs)]
        return "\n\n".join(parts)
    best = bests[()]
    of = f"{best.metric} ({best.group})" if best.group else best.metric
    chosen = ", ".join(f"{name} = {value}" for name, value in best.settings.items()) or "the only setting"
    interval = "[{low:.4g}, {high:.4g}], 95 % interval of the mean over {seeds} seeds".format(**best.test)
    interval = interval if best.test["seeds"] > 1 else "(one seed: no interval)"
    return "\n".join([*parts, f"best {of} on val: {chosen}", f"on test: {best.test['mean']:.4g} {interval}"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench sweep",
        description="Train a model with every combination of some settings, select the best on validation rows and "
        "report it on test rows. Stored runs are not trained again, so an interrupted sweep resumes.",
        epilog="--loss NAME --help lists the knobs of that loss, which --over loss.KNOB varies; those of the dataset, --over "
        "data.KNOB. --K 2 3 5 sets K of the loss, the rules and the monitors together, also for a loss without K.",
    )
    parser.add_argument(
        "--over",
        action="append",
        default=[],
        nargs="+",
        metavar=("NAME", "VALUE"),
        help="a training option, loss, K, loss.KNOB or data.KNOB, and the values to try; given several times, every "
        "combination is trained",
    )
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        nargs="+",
        metavar="NAME=VALUE",
        help="one setting of a list in place of a grid, such as learning_rate=0.1 seed=0; may be given several times, and "
        "--over is then varied in each. A name given several times is a grid of this setting: loss=NoisedTopK "
        "loss.epsilon=0.1 loss.epsilon=1",
    )
    parser.add_argument(
        "--search",
        action="store_true",
        help="with --recipe: train the grid that the paper searched, at its K, instead of the settings it compares",
    )
    parser.add_argument(
        "--rule",
        action="append",
        default=[],
        metavar="RULE",
        help="the rule that makes sets, or module:Rule for one of yours (default: AverageK(K=5)); may be given several "
        "times: all are measured, and settings are chosen by the first",
    )
    parser.add_argument(
        "--metric",
        default="accuracy",
        help="the metric that selects on validation rows, such as top_k_accuracy@K=3 (default: accuracy)",
    )
    parser.add_argument(
        "--group", default="", help="the group of a metric with several values, such as few of shot_accuracy"
    )
    parser.add_argument("--measure", nargs="+", default=[], metavar="METRIC", help="additional metrics")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="train the runs side by side in N processes of this machine"
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="train them on the workers of a Dask cluster, tcp://host:8786, that see the same store",
    )
    parser.add_argument(
        "--each", nargs="+", metavar="NAME", help="choose the best for each value of these (default: K and loss)"
    )
    return parser


def _over(run: Run, options: argparse.Namespace, sizes: list[float]) -> list[dict[str, list[Any]]]:
    """Return the grids of a sweep as typed: one for each --setting, or one in all."""
    shared = [(name, text) for name, *texts in options.over for text in texts]
    grids = []
    for pairs in options.setting or [[]]:
        typed: dict[str, list[str]] = {}
        for name, text in [*(pair.partition("=")[::2] for pair in pairs), *shared]:
            typed.setdefault(name, []).append(text)
        losses = [_loss(text) for text in typed.get("loss", [])]
        knobs = _knobs(run, losses or [run.loss], options.dataset)
        grid: dict[str, list[Any]] = {"K": sizes} if sizes else {}
        for name, texts in typed.items():
            grid[name] = losses if name == "loss" else [_value(name, text, knobs) for text in texts]
        grids.append(grid)
    return grids


def _of_recipe(run: Run, options: argparse.Namespace) -> list[dict[str, list[Any]]]:
    """Return the grid of a recipe at each of its K; options given beside it win."""
    from workbench import schedules
    from workbench.cli.run_options import given_fields, given_knobs
    from workbench.runs import recipes

    recipe, given, kind = recipes.named(options.recipe), given_fields(options), type(run.loss)
    settings = []
    for setting in (recipe.grid if options.search else recipe.compared) or [{}]:
        loss = setting.get("loss", run.loss)
        if options.loss is None or type(loss) is kind:
            left = {name: [value] for name, value in setting.items() if name not in given}
            if "loss" in setting and type(loss) is kind:
                left["loss"] = [dataclasses.replace(loss, **given_knobs(options, "", kind.knobs(), schedules.parsed))]
            settings.append(({"K": list(recipe.K)} if recipe.K else {}) | left)
    return settings


def _loss(text: str) -> Loss:
    """The loss a person wrote the way Python prints it; its name alone is the loss as new runs begin with it.

    `module:Class` finds one of theirs.
    """
    from workbench.knobs import from_text
    from workbench.losses import class_named

    name, bracket, knobs = text.partition("(")
    found = class_named(name.strip())
    return from_text(found.__name__ + bracket + knobs, (found,), "loss") if bracket else found()


def _knobs(run: Run, losses: Iterable[Loss], dataset: str) -> dict[str, Any]:
    """Name → knob of everything that may be varied, and None for what is not a knob."""
    from workbench.datasets import recipe_class

    return {
        "model": None,
        **run.knobs(),
        "K": None,
        **{f"loss.{name}": declared for loss in losses for name, declared in loss.knobs().items()},
        **{f"data.{name}": declared for name, declared in recipe_class(dataset).knobs().items()},
    }


def _value(name: str, text: str, knobs: Mapping[str, Any]) -> Any:
    from workbench import schedules
    from workbench.knobs import Knob

    if name not in knobs:
        raise ValueError(f"{name} is nothing that a sweep varies; give one of {', '.join(knobs)}, loss")
    if name == "K":
        return _K(name, text)
    if knobs[name] is None:
        return text
    return (schedules.parsed if name.startswith("loss.") else Knob.parsed)(knobs[name], name, text)


SWEEP = Command(
    "sweep",
    "train a model with many settings and select the best",
    reads=_sweep,
    examples=(
        ("workbench sweep --loss NoisedTopK --over loss.epsilon 0.1 0.5 1 --over seed 0 1 2", ""),
        ("workbench sweep --recipe cifar100-densenet --data PATH", "the comparison of a paper"),
    ),
)
