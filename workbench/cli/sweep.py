"""`workbench sweep`: many settings of a run, the best chosen on validation rows."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from workbench.cli.base import Command

if TYPE_CHECKING:
    from workbench.training import Run


def _sweep(arguments: list[str]) -> int:
    from workbench.cli.described import described_run
    from workbench.sets import rule_from_text
    from workbench.training.sweeps import ranking_metric, sweep

    run, options = described_run(_parser(), arguments)
    ranking_metric(options.metric)
    rule = rule_from_text(options.rule, foreign=True) if options.rule else None
    found = sweep(run, _over(run, options), rule=rule, progress=not options.json)
    for setting, message in found.failed:
        print(f"diverged: {setting}: {message}", file=sys.stderr)
    best = found.best(options.metric)
    if options.json:
        test = {name: None if math.isnan(value) else value for name, value in best.test.items()}  # JSON has no NaN
        result = {"settings": best.settings, "test": test, "runs": [done.stored.key for done in best.runs]}
        lines = json.loads(found.frame.to_json(orient="records"))
        print(json.dumps({"best": result, "frame": lines}, indent=2, ensure_ascii=False, default=repr))
    else:
        print(found.summary().to_string(index=False, float_format="{:.4g}".format))
        chosen = ", ".join(f"{name} = {value}" for name, value in best.settings.items()) or "the only setting"
        print(f"best {best.metric} on val: {chosen}")
        interval = "[{low:.4g}, {high:.4g}], 95 % interval of the mean over {seeds} seeds".format(**best.test)
        print(f"on test: {best.test['mean']:.4g} {interval if best.test['seeds'] > 1 else '(one seed: no interval)'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench sweep",
        description="Train a model in every combination of some settings, choose the best one on validation rows and "
        "report it on test rows. Runs that are stored are not trained again, so an interrupted sweep goes on.",
        epilog="--loss NAME --help lists the knobs of that loss, which --over loss.KNOB varies; those of the dataset, --over "
        "data.KNOB.",
    )
    settings = parser.add_mutually_exclusive_group()
    settings.add_argument(
        "--over",
        action="append",
        nargs="+",
        metavar=("NAME", "VALUE"),
        help="a training option, loss.KNOB or data.KNOB, and the values to try; given several times, every combination is "
        "trained",
    )
    settings.add_argument(
        "--setting",
        action="append",
        nargs="+",
        metavar="NAME=VALUE",
        help="one setting of a list in place of a grid, such as learning_rate=0.1 seed=0; may be given several times",
    )
    parser.add_argument(
        "--search",
        action="store_true",
        help="with --recipe: train what the paper searched, in place of what it compares",
    )
    parser.add_argument(
        "--rule",
        metavar="RULE",
        help="the rule that makes sets, or module:Rule for one of yours (default: AverageK(K=5))",
    )
    parser.add_argument("--metric", default="accuracy", help="what to choose by on validation rows (default: accuracy)")
    return parser


def _over(run: Run, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The settings to train: those that a person typed, those of a recipe, or each of these with each of those."""
    typed, of_recipe = _typed(run, options), [] if options.recipe is None else _of_recipe(run, options)
    settings = [{**setting, **more} for setting in of_recipe or [{}] for more in typed]
    if settings == [{}]:
        known = "" if options.recipe is None else f"{options.recipe} says nothing of that, so "
        raise ValueError(f"nothing to vary: {known}give --over NAME VALUE …, --setting NAME=VALUE … or --recipe NAME")
    return settings


def _of_recipe(run: Run, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What the paper of a recipe compares, or searched; what was given on the command line stays as it was given."""
    from workbench.cli.described import given_fields, turned
    from workbench.training import recipes

    recipe, given, kind = recipes.named(options.recipe), given_fields(options), type(run.loss)
    settings = []
    for setting in recipe.grid if options.search else recipe.compared:
        loss = setting.get("loss", run.loss)
        if options.loss is None or type(loss) is kind:
            left = {name: value for name, value in setting.items() if name not in given}
            if "loss" in setting and type(loss) is kind:
                left["loss"] = dataclasses.replace(loss, **turned(options, "", kind.knobs()))
            settings.append(left)
    return [setting for at, setting in enumerate(settings) if setting not in settings[:at]]


def _typed(run: Run, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What a person typed: a list of settings, or the combinations of a grid; one that changes nothing if nothing was."""
    from workbench.datasets import recipe_class

    knobs = {
        **run.knobs(),
        **{f"loss.{name}": declared for name, declared in run.loss.knobs().items()},
        **{f"data.{name}": declared for name, declared in recipe_class(options.dataset).knobs().items()},
    }

    def value(name: str, text: str) -> Any:
        if name == "model":
            return text
        if name not in knobs:
            raise ValueError(f"{name} is nothing that a sweep varies; give one of model, {', '.join(knobs)}")
        return knobs[name].parsed(name, text)

    if options.setting:
        settings = [dict(pair.partition("=")[::2] for pair in pairs) for pairs in options.setting]
        return [{name: value(name, text) for name, text in setting.items()} for setting in settings]
    grid: dict[str, list[Any]] = {}
    for name, *texts in options.over or ():
        grid.setdefault(name, []).extend(value(name, text) for text in texts)
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


SWEEP = Command(
    "sweep",
    "train a model in many settings",
    reads=_sweep,
    examples=(
        ("workbench sweep --loss NoisedTopK --over loss.epsilon 0.1 0.5 1 --over seed 0 1 2", ""),
        ("workbench sweep --recipe cifar100-densenet --data PATH", "what a paper compares"),
    ),
)
