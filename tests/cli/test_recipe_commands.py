"""Recipes on the command line: listed, printed whole, trained and swept."""

from __future__ import annotations

import json

import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.runs.recipes import RECIPES
from workbench.store import Store
from workbench.training import Run

QUICKLY = ("--data", "digits", "--model", "linear", "--epochs", 1, "--batch_size", 500, "--json")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))


def run(capsys, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def failed(capsys, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


def stored_run(key: str) -> Run:
    return Run.from_json((Store().open(key).path / "run.json").read_text())


def trained(capsys, *arguments: object) -> Run:
    """The run that `workbench train` has kept."""
    return stored_run(json.loads(run(capsys, "train", *arguments))["key"])


def test_recipes_are_listed_with_paper_place_and_what_they_train(capsys):
    titles, *lines = run(capsys, "recipes").splitlines()
    assert titles.split()[:3] == ["name", "paper", "place"]
    assert [line.split()[0] for line in lines] == list(RECIPES)
    (line,) = (line for line in lines if line.startswith("imagenet-resnet18"))
    for output in ("Garcin et al. 2022", "appendix D, Table 9", "resnet18, 120 epochs", "SmoothTopKHinge"):
        assert output in line


@pytest.mark.parametrize("name", RECIPES)
def test_one_recipe_is_printed_whole(capsys, name):
    text, recipe = run(capsys, "recipes", name), RECIPES[name]
    output = [
        recipe.paper,
        recipe.place,
        recipe.note,
        *recipe.unstated,
        *(f"  {field} = " for field in recipe.settings),
    ]
    assert not [part for part in output if part not in text]
    assert text.count("\n    ") == len(recipe.compared) + len(recipe.grid)
    assert json.loads(run(capsys, "recipes", name, "--json"))["settings"] == recipe.described()["settings"]


def test_as_json_all_recipes_are_there(capsys):
    assert list(json.loads(run(capsys, "recipes", "--json"))) == list(RECIPES) == list(wb.recipes.RECIPES)


def test_a_recipe_that_does_not_exist_lists_those_that_do(capsys):
    for arguments in (("recipes", "nope"), ("train", "--recipe", "nope"), ("sweep", "--recipe", "nope")):
        message = failed(capsys, *arguments)
        assert "there is no recipe named 'nope'; known: quick-photographs" in message


def test_the_settings_of_a_recipe_are_the_defaults_and_options_given_beside_win(capsys):
    beside = ("--learning_rate", 0.5, "--transforms")
    made = trained(capsys, "--recipe", "cifar100-resnet18-adam", *QUICKLY, *beside)
    recipe = wb.recipes.RECIPES["cifar100-resnet18-adam"]
    given = {"model": "linear", "epochs": 1, "batch_size": 500, "learning_rate": 0.5, "transforms": ()}
    assert {field: getattr(made, field) for field in recipe.settings} == {**recipe.settings, **given}


def test_drops_of_a_recipe_are_kept_and_can_be_given(capsys):
    assert trained(capsys, "--recipe", "imagenet-resnet18", *QUICKLY).milestones == (0.25, 0.5, 0.75)
    assert trained(capsys, "--recipe", "imagenet-resnet18", *QUICKLY, "--milestones", 0.9).milestones == (0.9,)


def test_a_loss_that_the_paper_trains_stands_at_the_papers_knobs_and_settings(capsys):
    made = trained(capsys, "--recipe", "imagenet-resnet18", "--loss", "NoisedTopK", *QUICKLY)
    assert made.loss == wb.losses.NoisedTopK(epsilon=0.5, n_samples=10)
    assert made.weight_decay == 1.5e-4
    made = trained(capsys, "--recipe", "imagenet-resnet18", "--loss", "NoisedTopK", "--epsilon", 1, *QUICKLY)
    assert made.loss == wb.losses.NoisedTopK(epsilon=1.0, n_samples=10)


def test_a_K_given_beside_a_recipe_is_that_of_the_loss_and_of_what_is_watched(capsys):
    made = trained(capsys, "--recipe", "imagenet-resnet18", "--loss", "NoisedTopK", "--K", 3, *QUICKLY)
    assert (made.loss.K, made.monitor) == (3, "top_k_accuracy@K=3")


def test_without_a_recipe_a_run_is_what_it_was(capsys):
    made = trained(capsys, *QUICKLY, "--loss", "Focal")
    assert made.key == Run("digits", model="linear", epochs=1, batch_size=500, loss=wb.losses.Focal()).key


def test_help_with_a_recipe_tells_its_settings_as_the_defaults(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--recipe", "imagenet-resnet18", "--loss", "NoisedTopK", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: 120)" in text
    assert "(default: 0.00015)" in text


def test_help_tells_that_a_knob_may_follow_a_schedule(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "Numeric knobs can follow a schedule: --epsilon 'anneal(3, 0.2)'" in text


def test_a_recipe_of_a_head_is_trained_on_the_features_of_a_run(capsys):
    backbone = json.loads(run(capsys, "train", "--recipe", "quick-rows", "--data", "digits", "--epochs", 1, "--json"))
    head = ("--recipe", "quick-head", "--data", "digits", "--features", backbone["key"][:12], "--epochs", 1, "--json")
    made = trained(capsys, *head)
    assert (made.features, made.model, made.batch_size) == (backbone["key"], "mlp", 256)


def test_a_recipe_that_leaves_the_model_to_you_asks_for_it(capsys):
    message = failed(capsys, "train", "--recipe", "plantnet300k-vit", "--data", "digits")
    assert "leaves the model to you; give model='torchvision:vit_b_16:IMAGENET1K_V1'" in message
    message = failed(capsys, "train", "--recipe", "quick-head", "--data", "digits")
    assert "give model=…, a backbone that was trained before, or features=, a run" in message
    asked = {"plantnet300k-vit": " --model NAME", "quick-head": " --features RUN", "quick-rows": ""}
    for name, option in asked.items():
        assert run(capsys, "recipes", name).endswith(f"train it: workbench train --recipe {name} --data PATH{option}\n")


def test_a_sweep_of_a_recipe_trains_what_the_paper_compares_at_each_K(capsys):
    found = json.loads(run(capsys, "sweep", "--recipe", "imagenet-resnet18", *QUICKLY))
    output = {(line["loss"].split("(")[0], line["K"], line["learning_rate"]) for line in found["frame"]}
    rates = {"CrossEntropy": 0.1, "SmoothTopKHinge": 1.0, "NoisedTopK": 0.1}
    assert output == {(loss, K, rate) for loss, rate in rates.items() for K in (1, 5)}
    watched = {
        (run.loss.settings().get("K"), run.monitor) for run in map(stored_run, {line["run"] for line in found["frame"]})
    }
    assert watched == {(K, f"top_k_accuracy@K={k}") for k in (1, 5) for K in (k, None)}


def test_a_sweep_of_a_recipe_takes_another_K(capsys):
    recipe = ("--recipe", "imagenet-resnet18", "--loss", "NoisedTopK", "--K", 3)
    found = json.loads(run(capsys, "sweep", *recipe, *QUICKLY))
    (trained_run,) = map(stored_run, {line["run"] for line in found["frame"]})
    assert (trained_run.loss.K, trained_run.monitor) == (3, "top_k_accuracy@K=3")


def test_a_sweep_of_a_recipe_takes_one_of_its_losses_and_more_to_vary(capsys):
    recipe = ("--recipe", "imagenet-lt-resnet34", "--search", "--loss", "Focal", "--over", "seed", 0, 1)
    found = json.loads(run(capsys, "sweep", *recipe, *QUICKLY))
    output = {(line["loss"], line["seed"]) for line in found["frame"]}
    assert output == {(f"Focal(gamma={gamma})", seed) for gamma in (0.5, 1.0, 2.0, 5.0) for seed in (0, 1)}


def test_a_sweep_without_anything_to_vary_says_what_to_give(capsys):
    for more in ((), ("--recipe", "quick-rows")):
        message = failed(capsys, "sweep", "--data", "digits", *more)
        assert "nothing is varied; say what to try: --over NAME VALUE" in message
