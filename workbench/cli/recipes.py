"""`workbench recipes`: training settings of the papers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from workbench.cli.base import Command, Options, Parser
from workbench.knobs import Knobbed, format_value

if TYPE_CHECKING:
    from workbench.runs.recipes import Recipe


def _options(parser: Parser) -> None:
    parser.add_argument("recipe", nargs="?", metavar="NAME", help="the recipe to print")
    parser.add_argument("--json", action="store_true", help="print as JSON, settings as in run.json")


def _run(options: Options) -> int:
    from workbench.runs import recipes

    known = recipes.RECIPES if options.recipe is None else {options.recipe: recipes.named(options.recipe)}
    if options.json:
        facts = {name: recipe.described() for name, recipe in known.items()}
        print(json.dumps(facts if options.recipe is None else facts[options.recipe], indent=2, ensure_ascii=False))
    elif options.recipe is not None:
        print("\n".join(_whole(options.recipe, known[options.recipe])))
    else:
        titles = ("name", "paper", "place", "what it trains")
        lines = [titles, *((name, each.paper, each.place, each.trains) for name, each in known.items())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return 0


def _whole(name: str, recipe: Recipe) -> list[str]:
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
    lines += [f"  not stated by the paper, chosen here: {', '.join(recipe.unstated)}"] if recipe.unstated else []
    model = (
        "" if "model" in recipe.settings else " --features RUN" if "features" in recipe.settings else " --model NAME"
    )
    return [*lines, f"train it: workbench train --recipe {name} --data PATH{model}"]


def _typed(value: Any) -> str:
    """A field of a run as it is typed: a loss and transforms as Python writes them."""
    if isinstance(value, tuple):
        return ", ".join(map(_typed, value)) or "none"
    if isinstance(value, Knobbed):
        knobs = ", ".join(f"{name}={format_value(each)}" for name, each in value.settings().items())
        return f"{type(value).__name__}({knobs})"
    return "none" if value is None else format_value(value)


RECIPES = Command(
    "recipes",
    "list the training settings of the papers, or print one",
    "List the recipes: settings of runs as the papers give them, each with its place; or print one of them whole.",
    _options,
    _run,
    examples=(("workbench recipes plantnet300k-resnet18", "the settings of a paper"),),
)
