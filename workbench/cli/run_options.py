"""Options of `train` and `sweep` that describe a run, one for each knob."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from workbench import schedules
from workbench.datasets import AUGMENTATIONS, DATASETS, TRANSFORMS, Transform, load_dataset, recipe_class
from workbench.knobs import Knob, from_text
from workbench.losses import CrossEntropy, class_named
from workbench.networks import BACKBONES
from workbench.networks.by_name import backbone_named, foreign
from workbench.runs import MONITORS, Run, recipes
from workbench.store import Store
from workbench.trusted_imports import allowed_modules

CHANGES: tuple[type[Transform], ...] = (*TRANSFORMS, *AUGMENTATIONS)


def described_run(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[Run, argparse.Namespace]:
    """The run that the arguments describe, and what else they say to the parser."""
    # First the names, because the loss and the dataset bring options of their own.
    names = argparse.ArgumentParser(add_help=False)
    for reader in (names, parser):
        reader.add_argument(
            "--recipe", metavar="NAME", help="settings of a paper (see workbench recipes); options given beside it win"
        )
        reader.add_argument(
            "--loss", metavar="NAME", help="a loss, or module:Class (default: that of --recipe, else CrossEntropy)"
        )
        reader.add_argument(
            *("--dataset", "--data"),
            default="garden",
            metavar="NAME",
            help=f"{', '.join(DATASETS)}, or a path (default: garden)",
        )
    chosen, _rest = names.parse_known_args(arguments)
    start = _start(chosen)
    loss, data_knobs = start["loss"], recipe_class(chosen.dataset).knobs()

    _add_options(parser)
    _add_knobs(parser, "training", "", Run.knobs(), start)
    _add_knobs(parser, f"knobs of {type(loss).__name__}", "", loss.knobs(), loss.settings())
    _add_knobs(parser, f"knobs of {chosen.dataset}", "data.", data_knobs)
    options = parser.parse_args(arguments)

    if options.model is not None:
        backbone_named(options.model)  # better to fail now than when the data are drawn
    data = load_dataset(chosen.dataset, **given_knobs(options, "data.", data_knobs))
    given = given_fields(options)
    if given.get("features", "cached") != "cached":
        source = Store().open(given["features"])
        source.check_network()
        given = {"model": str(source.record.model), **given, "features": source.key}
        if options.model is None:
            backbone_named(given["model"], allowed=allowed_modules(options.allow))  # a stored run is only data
        if foreign(given["model"]):
            given.setdefault("head", source.record.run.get("head", "auto"))
    of_loss = given_knobs(options, "", loss.knobs(), schedules.parsed)
    given["loss"] = dataclasses.replace(loss, **of_loss)
    if chosen.recipe is not None:
        recipe = dataclasses.replace(recipes.named(chosen.recipe), settings=start)
        return recipe.run(data, K=of_loss.get("K"), **given), options
    return Run(data, **{"model": "cnn" if len(data.input_shape) == 3 else "mlp", **given}), options


def _start(chosen: argparse.Namespace) -> dict[str, Any]:
    """The settings that a run starts from: a loss at least, and those of a recipe."""
    kind = None if chosen.loss is None else class_named(chosen.loss)
    if chosen.recipe is None:
        return {"loss": CrossEntropy() if kind is None else kind()}
    recipe = recipes.named(chosen.recipe)
    return {"loss": CrossEntropy(), **recipe.settings} if kind is None else recipe.with_loss(kind)


def given_fields(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a run that were given on the command line; the loss is another matter."""
    given = {name: getattr(options, name) for name in ("model", "features", "patience")}
    if options.monitor is not None:
        given["monitor"] = tuple(name for names in options.monitor for name in names.split(","))
    if options.milestones is not None:
        given["milestones"] = tuple(options.milestones)
    if options.transforms is not None:
        given["transforms"] = tuple(from_text(text, CHANGES, "transform") for text in options.transforms)
    given |= given_knobs(options, "", Run.knobs())
    return {name: value for name, value in given.items() if value is not None}


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the fields of a run that are not knobs."""
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"{', '.join(BACKBONES)}, torchvision:name or module:factory (default: that of --features or --recipe, "
        "else cnn for images and mlp for rows)",
    )
    parser.add_argument(
        "--features",
        metavar="KEY",
        help="train a head only, on the features of this run (its key, or the beginning of it; see workbench runs), or of "
        "the weights that the model comes with (cached)",
    )
    known = ", ".join(repr(kind()) for kind in CHANGES)
    parser.add_argument(
        "--transforms",
        nargs="*",
        metavar="TRANSFORM",
        help=f"transforms of the dataset or of training images, as Python writes them: {known}; the "
        "option alone means no transforms, not even those of --recipe",
    )
    parser.add_argument(
        "--milestones",
        type=float,
        nargs="+",
        metavar="SHARE",
        help="with --schedule steps: the shares of the training after which the learning rate is divided by ten (default: "
        f"those of --recipe, else {' '.join(map(str, Run.milestones))})",
    )
    parser.add_argument(
        "--monitor",
        action="append",
        metavar="NAME",
        help=f"metric that chooses the epoch whose weights are kept: {', '.join(MONITORS)}. Given several times, or with "
        "commas between them, the first chooses the weights and each of the others keeps the tables of its own best epoch",
    )
    parser.add_argument(
        "--patience", type=int, metavar="N", help="early stopping: stop after N epochs without improvement"
    )
    parser.add_argument(
        "--allow",
        nargs="+",
        default=(),
        metavar="MODULE",
        help="modules of yours that the run of --features may import for its model",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON, without a progress bar")


def _add_knobs(
    parser: argparse.ArgumentParser,
    title: str,
    prefix: str,
    knobs: Mapping[str, Knob],
    start: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """One option per knob, with its meaning, its range and where it stands unless it is given."""
    group = parser.add_argument_group(title)
    for name, declared in knobs.items():
        value = start.get(name, declared.initial)
        default = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        meaning = f"{declared.meaning}; {declared.accepts()} (default: {default})".replace("%", "%%")
        try:
            group.add_argument(f"--{prefix}{name}", metavar="VALUE", help=meaning)
        except argparse.ArgumentError:
            raise ValueError(f"{title}: --{prefix}{name} means something else here already; rename the knob") from None


def given_knobs(
    options: argparse.Namespace,
    prefix: str,
    knobs: Mapping[str, Knob],
    parsed: Callable[[Knob, str, str], Any] = Knob.parsed,
) -> dict[str, Any]:
    """The knobs that were given on the command line, read and checked."""
    given = {name: getattr(options, prefix + name) for name in knobs}
    return {name: parsed(knobs[name], prefix + name, text) for name, text in given.items() if text is not None}
