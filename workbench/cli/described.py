"""A run described on the command line, each option from its knob: what `train` and `sweep` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from workbench import schedules
from workbench.datasets import DATASETS, TRANSFORMS, load_dataset, recipe_class
from workbench.knobs import Knob, from_text
from workbench.lookup import allowed_modules
from workbench.losses import class_named
from workbench.networks import BACKBONES
from workbench.networks.network import backbone_named, foreign
from workbench.store import Store
from workbench.training import MONITORS, Run
from workbench.training.features import check_trained


def described_run(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[Run, argparse.Namespace]:
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
        features, model = source.key, str(source.record.model)
        if options.model is None:
            backbone_named(model, allowed=allowed_modules(options.allow))  # a stored run is only data
        if foreign(options.model or model):
            settings.setdefault("head", source.record.head or "new")
    run = Run(
        dataset=data,
        model=options.model or model,
        loss=loss_class.for_new_runs(**_turned(options, "", loss_class.knobs(), schedules.parsed)),
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
        default = declared.new_runs or str(declared.default).strip("()")
        meaning = f"{declared.meaning}; {declared.accepts()} (default: {default})".replace("%", "%%")
        try:
            group.add_argument(f"--{prefix}{name}", metavar="VALUE", help=meaning)
        except argparse.ArgumentError:
            raise ValueError(f"{title}: --{prefix}{name} means something else here already; rename the knob") from None


def _turned(
    options: argparse.Namespace,
    prefix: str,
    knobs: Mapping[str, Knob],
    parsed: Callable[[Knob, str, str], Any] = Knob.parsed,
) -> dict[str, Any]:
    """The knobs that were given on the command line, read and checked."""
    given = {name: getattr(options, prefix + name) for name in knobs}
    return {name: parsed(knobs[name], prefix + name, text) for name, text in given.items() if text is not None}
