"""Training settings of the papers by name, and settings that finish on a laptop.

>>> recipe = RECIPES["cifar100-resnet18-adam"]
>>> recipe.run("digits", epochs=1).optimizer
'adam'
>>> recipe.compared[0]  # one of the settings that the paper compares: sweep(recipe.run(data), over=recipe.compared)
{'loss': CrossEntropy()}
>>> table().loc["imagenet-resnet18", "place"]
'appendix D, Table 9'
"""

from __future__ import annotations

import pandas as pd

from workbench.runs.recipes.base import Recipe
from workbench.runs.recipes.garcin import OF_GARCIN
from workbench.runs.recipes.liao import OF_LIAO
from workbench.runs.recipes.petersen import OF_PETERSEN

QUICK: dict[str, Recipe] = {
    "quick-photographs": Recipe(
        settings={"model": "cnn", "epochs": 10, "batch_size": 64, "learning_rate": 3e-3},
        note="small photographs such as the garden: about a minute on one core",
    ),
    "quick-rows": Recipe(
        settings={"model": "mlp", "epochs": 10, "batch_size": 128, "learning_rate": 3e-3},
        note="rows of numbers such as letters: seconds",
    ),
    "quick-head": Recipe(
        settings={"features": "cached", "epochs": 20, "batch_size": 256, "learning_rate": 3e-3},
        note="a head on cached features, in seconds: give model=, a backbone that was trained before, or features=, a run",
    ),
}
RECIPES: dict[str, Recipe] = {**QUICK, **OF_GARCIN, **OF_PETERSEN, **OF_LIAO}

__all__ = ["RECIPES", "Recipe", "named", "table"]


def named(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in RECIPES:
        raise ValueError(f"there is no recipe named {name!r}; known: {', '.join(RECIPES)}")
    return RECIPES[name]


def table() -> pd.DataFrame:
    """All recipes: one line each, with the paper, the place in it, the K it is for and what it trains."""
    columns = {
        name: {
            "paper": recipe.paper,
            "place": recipe.place,
            "K": ", ".join(map(str, recipe.K)),
            "trains": recipe.trains,
        }
        for name, recipe in RECIPES.items()
    }
    return pd.DataFrame.from_dict(columns, orient="index").rename_axis("recipe")
