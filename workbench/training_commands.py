"""`workbench train` and `workbench sweep`: a run described on the command line, each option from its knob."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from typing import Any

from workbench.datasets import DATASETS, TRANSFORMS, load_dataset, recipe_class
from workbench.knobs import Knob, from_text
from workbench.lookup import allowed_modules
from workbench.losses import class_named
from workbench.networks.models import BACKBONES, backbone_named, foreign
from workbench.sets import rule_from_text
from workbench.store import Store
from workbench.training import MONITORS, Run, train
from workbench.training.features import check_trained
from workbench.training.loggers import LOGGERS
from workbench.training.ranks.processes import node_number
from workbench.training.sweeps import ranking_metric, sweep


def train_command(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="workbench train",
        description="Train a model with a loss and keep its scores. The same run is never trained twice, and a run that "
        "was interrupted goes on from its last checkpoint.",
        epilog="--loss NAME --help lists the knobs of that loss; workbench losses lists the losses. On several nodes, "
        "give the same command on each, with MASTER_ADDR, MASTER_PORT and NODE_RANK in its environment.",
    )
    parser.add_argument("--again", action="store_true", help="train anew even if this run is stored already")
    parser.add_argument(
        "--logger",
        metavar="NAME",
        help=f"tell {', '.join(LOGGERS)} of every epoch; csv and tensorboard write to logs/ beside the runs",
    )
    run, options = _described_run(parser, arguments)
    done = train(run, progress=not options.json, again=options.again, logger=options.logger)
    if node_number(run.nodes) > 0:  # node 0 tells of the run
        return 0
    if options.json:
        found = {"key": run.key, "path": str(done.path), "title": run.title, **done.kept}
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        print(f"{run.title}: kept as {run.key[:12]} in {done.path.parent}")
        measured = {name: value for name, value in done.kept.items() if name != "epoch"}
        print(f"epoch {done.kept['epoch'] + 1:.0f} of {len(done.history)}, whose weights were kept: ", end="")
        print(", ".join(f"{name} {value:.4g}" for name, value in measured.items()))
        print(f"next: workbench evaluate {run.key[:12]}, or workbench app")
    return 0


def sweep_command(arguments: list[str]) -> int:
    run, options = _described_run(_sweep_parser(), arguments)
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
        print(json.dumps({"best": result, "frame": lines}, indent=2, ensure_ascii=False))
    else:
        print(found.summary().to_string(index=False, float_format="{:.4g}".format))
        chosen = ", ".join(f"{name} = {value}" for name, value in best.settings.items()) or "the only setting"
        print(f"best {best.metric} on val: {chosen}")
        interval = "[{low:.4g}, {high:.4g}], 95 % interval of the mean over {seeds} seeds".format(**best.test)
        print(f"on test: {best.test['mean']:.4g} {interval if best.test['seeds'] > 1 else '(one seed: no interval)'}")
    return 0


def _sweep_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench sweep",
        description="Train a model in every combination of some settings, choose the best one on validation rows and "
        "report it on test rows. Runs that are stored are not trained again, so an interrupted sweep goes on.",
        epilog="--loss NAME --help lists the knobs of that loss, which --over loss.KNOB varies; those of the dataset, --over "
        "data.KNOB.",
    )
    settings = parser.add_mutually_exclusive_group(required=True)
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
        "--rule",
        metavar="RULE",
        help="the rule that makes sets, or module:Rule for one of yours (default: AverageK(K=5))",
    )
    parser.add_argument("--metric", default="accuracy", help="what to choose by on validation rows (default: accuracy)")
    return parser


def _over(run: Run, options: argparse.Namespace) -> dict[str, list[Any]] | list[dict[str, Any]]:
    """What a sweep varies, as a person typed it: a list of settings, or a grid."""
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
    for name, *texts in options.over:
        grid.setdefault(name, []).extend(value(name, text) for text in texts)
    return grid


def _described_run(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[Run, argparse.Namespace]:
    """The run that the arguments describe, and what else they say to the parser."""
    # First the names, because the loss and the dataset bring options of their own.
    names = argparse.ArgumentParser(add_help=False)
    for reader in (names, parser):
        reader.add_argument(
            "--loss", default="CrossEntropy", metavar="NAME", help="a loss, or module:Class (default: CrossEntropy)"
        )
        reader.add_argument(
            "--dataset", default="garden", metavar="NAME", help=f"{', '.join(DATASETS)}, or a path (default: garden)"
        )
    chosen, _rest = names.parse_known_args(arguments)
    loss_class = class_named(chosen.loss)
    data_knobs = recipe_class(chosen.dataset).knobs()

    _add_options(parser)
    _add_knobs(parser, "training", "", Run.knobs())
    _add_knobs(parser, f"knobs of {loss_class.__name__}", "", loss_class.knobs())
    _add_knobs(parser, f"knobs of {chosen.dataset}", "data.", data_knobs)
    options = parser.parse_args(arguments)

    if options.model is not None:
        backbone_named(options.model)  # better to fail now than when the data are drawn
    data = load_dataset(chosen.dataset, **_turned(options, "data.", data_knobs))
    model = "cnn" if len(data.input_shape) == 3 else "mlp"
    features, settings = options.features, _turned(options, "", Run.knobs())
    if features not in (None, "cached"):
        source = Store().open(features)
        check_trained(source)
        features, model = source.key, source.info["model"]
        if options.model is None:
            backbone_named(model, allowed=allowed_modules(options.allow))  # a stored run is only data
        if foreign(model):
            settings = {
                "head": source.info.get("head", "new"),
                **settings,
            }  # of the network that the features come from
    run = Run(
        dataset=data,
        model=options.model or model,
        loss=loss_class(**_turned(options, "", loss_class.knobs())),
        features=features,
        transforms=tuple(from_text(text, TRANSFORMS, "transform") for text in options.transforms),
        monitor=options.monitor,
        patience=options.patience,
        drops=tuple(options.drops),
        **settings,
    )
    return run, options


def _add_options(parser: argparse.ArgumentParser) -> None:
    """The fields of a run that are no knobs."""
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"{', '.join(BACKBONES)}, torchvision:name or module:factory (default: that of --features, else cnn for "
        "images and mlp for rows)",
    )
    parser.add_argument(
        "--features",
        metavar="KEY",
        help="train a head only, on the features of this run (its key, or the beginning of it; see workbench runs), or of "
        "the weights that the model comes with (cached)",
    )
    parser.add_argument(
        "--transforms",
        nargs="+",
        default=(),
        metavar="CHANGE",
        help=f"changes of the data, as Python prints them: {', '.join(repr(kind()) for kind in TRANSFORMS)}",
    )
    parser.add_argument(
        "--drops",
        type=float,
        nargs="+",
        default=Run.drops,
        metavar="SHARE",
        help="with --schedule steps: the shares of the training after which the learning rate is divided by ten (default: "
        f"{' '.join(map(str, Run.drops))})",
    )
    parser.add_argument("--monitor", choices=MONITORS, help="keep the weights of the epoch that was best in this")
    parser.add_argument("--patience", type=int, metavar="N", help="stop after N epochs without a better one")
    parser.add_argument(
        "--allow",
        nargs="+",
        default=(),
        metavar="MODULE",
        help="modules that the run of --features may import: one of yours that its model lives in",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON, and no progress")


def _add_knobs(parser: argparse.ArgumentParser, title: str, prefix: str, knobs: Mapping[str, Knob]) -> None:
    """One option per knob, with its meaning, range and default."""
    group = parser.add_argument_group(title)
    for name, declared in knobs.items():
        default = str(declared.default).strip("()")
        meaning = f"{declared.meaning}; {declared.accepts()} (default: {default})".replace("%", "%%")
        try:
            group.add_argument(f"--{prefix}{name}", metavar="VALUE", help=meaning)
        except argparse.ArgumentError:
            raise ValueError(f"{title}: --{prefix}{name} means something else here already; rename the knob") from None


def _turned(options: argparse.Namespace, prefix: str, knobs: Mapping[str, Knob]) -> dict[str, Any]:
    """The knobs that were given on the command line, read and checked."""
    given = {name: getattr(options, prefix + name) for name in knobs}
    return {name: knobs[name].parsed(prefix + name, text) for name, text in given.items() if text is not None}
