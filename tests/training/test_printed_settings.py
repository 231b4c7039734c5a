"""Recipes say what the papers print: compared field by field with one table of the printed settings."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import Any

import pytest
from printed_settings import FACTOR_2, PRINTED, UNSTATED, Losses, Printed

from workbench.losses import Loss
from workbench.losses.base import PAPERS
from workbench.networks.base import TORCHVISION
from workbench.networks.by_name import backbone_named
from workbench.runs.recipes import RECIPES, Recipe
from workbench.training.learner import OPTIMIZERS

OF_PAPERS = [name for name, recipe in RECIPES.items() if recipe.paper]
# Networks of Table 3.3 of the thesis that are not to be had: torchvision has none such, or the adapter refuses it.
NOT_HERE = ("inception_v3", "inception_v4", "inception_resnet_v2", "squeezenet")
CALLED = {"shufflenet_v2_x1_0": "shufflenet", "vit_b_16": "vit"}  # there
# Networks of torchvision that end in a linear layer and return one tensor, with weights IMAGENET1K_V1.
IN_TORCHVISION = {
    *("alexnet", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "shufflenet_v2_x1_0", "vgg11", "vgg16"),
    *("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "wide_resnet101_2"),
    *("densenet121", "densenet161", "densenet169", "densenet201", "vit_b_16"),
    *(f"efficientnet_b{size}" for size in range(5)),
}
FIELDS = [
    field.name for field in dataclasses.fields(Printed) if field.name not in ("place", "also_unstated", "pretrained")
]


def in_recipe(recipe: Recipe, field: str, printed: Any) -> Any:
    """What a recipe has for a field of the printed table, in its terms."""
    settings = recipe.settings
    match field:
        case "momentum":
            return OPTIMIZERS[settings["optimizer"]].keywords.get("momentum")
        case "divided_at":
            return tuple(round(share * settings["epochs"]) for share in settings.get("milestones", ()))
        case "monitor":
            watched = settings.get("monitor", ())
            return (watched,) if isinstance(watched, str) else watched
        case "augmentation":
            return tuple(type(each).__name__ for each in settings.get("transforms", ()))
        case "models":
            named = [each["model"].removeprefix(TORCHVISION).split(":")[0] for each in recipe.grid if "model" in each]
            assert not set(named) & set(NOT_HERE)
            return tuple(
                each for each in printed if each in NOT_HERE or each in (CALLED.get(one, one) for one in named)
            )
        case "compared":
            return told_losses(recipe.compared, printed)
        case "grid" if printed == FACTOR_2:
            steps = [setting["loss"].steepness for setting in recipe.grid if setting["loss"].operator == "splitter"]
            return FACTOR_2 if len(steps) > 2 and {b / a for a, b in itertools.pairwise(steps)} == {2} else steps
        case "grid":
            return told_losses(tuple(setting for setting in recipe.grid if "loss" in setting), printed)
        case "K":
            return recipe.K
        case _:
            return settings.get(field)


def unstated_name(recipe: Recipe, field: str) -> str:
    """How a recipe calls a field that is not told."""
    return field if field != "divided_at" else "milestones" if recipe.settings["schedule"] == "steps" else "schedule"


def told_losses(settings: tuple, printed: Losses) -> Losses:
    """Losses of a recipe, with the knobs that are printed of each; those that are not must stand at their default."""
    found = []
    for setting, (_, output) in zip(settings, printed, strict=True):
        loss: Loss = setting["loss"]
        knobs = {**loss.settings(), **{name: value for name, value in setting.items() if name != "loss"}}
        if "transforms" in knobs:
            noise, *_ = knobs.pop("transforms")
            knobs["label noise"] = noise.probability
        defaults = type(loss)().settings()
        unstated = {name for name in loss.knobs() if name not in output and name not in ("K", "steepness")}
        assert {name: knobs[name] for name in unstated} == {name: defaults[name] for name in unstated}
        assert knobs.get("K", 5) == 5
        found.append((type(loss).__name__, {name: knobs[name] for name in output}))
    return tuple(found)


def test_every_recipe_of_a_paper_has_its_line_in_the_table_with_its_place():
    assert list(PRINTED) == sorted(PRINTED, key=list(RECIPES).index)
    assert set(PRINTED) == set(OF_PAPERS)
    for name, printed in PRINTED.items():
        assert any(paper.removeprefix("Garcin, ") in printed.place for paper in RECIPES[name].paper.split("; "))
        assert set(RECIPES[name].paper.split("; ")) <= set(PAPERS)
        for table in re.findall(r"Table \S+\d", RECIPES[name].place):
            assert table in printed.place.replace("Tables", "Table")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", PRINTED)
def test_a_recipe_says_what_its_paper_prints(name, field):
    recipe, printed = RECIPES[name], getattr(PRINTED[name], field)
    if printed == UNSTATED:
        assert unstated_name(recipe, field) in recipe.unstated
    else:
        assert in_recipe(recipe, field, printed) == printed


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_paper_does_not_tell_is_named_and_nothing_else(name):
    recipe, printed = RECIPES[name], PRINTED[name]
    unstated = {unstated_name(recipe, field) for field in FIELDS if getattr(printed, field) == UNSTATED}
    assert set(recipe.unstated) == unstated | set(printed.also_unstated)


@pytest.mark.parametrize("name", PRINTED)
def test_recipes_of_fine_tuned_networks_say_where_the_weights_come_from(name):
    assert ("IMAGENET1K_V1" in RECIPES[name].note) == PRINTED[name].pretrained


def test_what_is_misprinted_is_said():
    assert "a momentum of 1e-4" in RECIPES["quasibinary-resnet18"].note
    assert "a batch size of 120 epochs" in RECIPES["imagenet-resnet18"].note


def named_models(recipe: Recipe) -> set[str]:
    """Every network that a recipe names, in its settings, in what it compares and searched, and in its note."""
    settings = (recipe.settings, *recipe.compared, *recipe.grid)
    in_note = re.findall(r"model='([^']+)'|with_weights\('([^']+)'", recipe.note)
    return {each["model"] for each in settings if "model" in each} | {first or second for first, second in in_note}


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_name_no_network_that_is_refused(name):
    for model in named_models(RECIPES[name]):
        if model.startswith(TORCHVISION):
            network, weights = model.removeprefix(TORCHVISION).split(":")
            assert network in IN_TORCHVISION
            assert weights == "IMAGENET1K_V1"
        else:
            assert callable(backbone_named(model))
    assert not [word for word in ("squeeze", "inception", "googlenet") if word in RECIPES[name].note.lower()]
