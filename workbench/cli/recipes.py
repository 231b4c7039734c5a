"""`workbench recipes`: how the papers trained."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from workbench.catalogue import RECIPES as KNOWN
from workbench.catalogue import DeclaredRecipe
from workbench.cli.base import Command, Options, Parser
from workbench.knobs import shown


def _options(parser: Parser) -> None:
    parser.add_argument("recipe", nargs="?", metavar="NAME", help="one of them, to be printed whole")
    parser.add_argument("--json", action="store_true", help="print as JSON, settings as in run.json")


def _run(options: Options) -> int:
    if options.recipe is not None and options.recipe not in KNOWN:
        raise ValueError(f"there is no recipe named {options.recipe!r}; known: {', '.join(KNOWN)}")
    if options.json:
        facts = {name: dataclasses.asdict(recipe) for name, recipe in KNOWN.items()}
        print(json.dumps(facts if options.recipe is None else facts[options.recipe], indent=2, ensure_ascii=False))
    elif options.recipe is not None:
        print("\n".join(_whole(options.recipe, KNOWN[options.recipe])))
    else:
        titles = ("name", "paper", "place", "what it trains")
        lines = [titles, *((name, each.paper, each.place, each.trains) for name, each in KNOWN.items())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return 0


def _whole(name: str, recipe: DeclaredRecipe) -> list[str]:
    """All that a recipe says, line by line."""
    lines = [f"{name}: {recipe.trains}"]
    lines += [f"  from {recipe.paper}, {recipe.place}"] if recipe.paper else []
    lines += [f"  {field} = {_typed(value)}" for field, value in recipe.settings.items()]
    lines += [f"  for K = {', '.join(map(str, recipe.K))}"] if recipe.K else []
    for title, settings in (("compared", recipe.compared), ("searched", recipe.grid)):
        lines += [f"  {title}:"] if settings else []
        lines += [
            "    " + ", ".join(f"{field} = {_typed(value)}" for field, value in setting.items()) for setting in settings
        ]
    lines += [f"  note: {recipe.note}"] if recipe.note else []
    lines += [f"  not told, and chosen here: {', '.join(recipe.untold)}"] if recipe.untold else []
    model = (
        "" if "model" in recipe.settings else " --features RUN" if "features" in recipe.settings else " --model NAME"
    )
    return [*lines, f"train it: workbench train --recipe {name} --data PATH{model}"]


def _typed(value: Any) -> str:
    """A field of a run, as `run.json` has it, the way it is typed: a loss and transforms as Python writes them."""
    if isinstance(value, list):
        return ", ".join(map(_typed, value)) or "none"
    if isinstance(value, Mapping) and "knobs" in value:
        name = value.get("loss", value.get("transform", "")).rpartition(":")[2]
        knobs = {knob: tuple(each) if isinstance(each, list) else each for knob, each in value["knobs"].items()}
        return f"{name}({', '.join(f'{knob}={shown(each)}' for knob, each in knobs.items())})"
    return "none" if value is None else shown(value)


RECIPES = Command(
    "recipes",
    "list how the papers trained, or print one recipe whole",
    "List the recipes: settings of runs as the papers give them, each with its place; or print one of them whole.",
    _options,
    _run,
    examples=(("workbench recipes plantnet300k-resnet18", "how a paper trained"),),
)
