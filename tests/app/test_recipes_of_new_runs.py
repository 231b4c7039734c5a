"""Recipes in *A new run*: applied whole, what has no control told in words, and what was changed since told too."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.runs.recipes import RECIPES as DECLARED
from workbench.store import DEMO, Store

APP = Path(__file__).resolve().parents[2] / "app"
RECIPES = {name: SimpleNamespace(**recipe.described()) for name, recipe in DECLARED.items()}  # as run.json has them
OF_HEADS = [name for name, recipe in RECIPES.items() if "features" in recipe.settings]
OF_NETWORKS = [name for name in RECIPES if name not in OF_HEADS]


@pytest.fixture
def drawn(monkeypatch):
    """`drawn(recipe="quick-rows")`: the controls of a run as an address asks for them; `described(…)` is its run as JSON."""
    monkeypatch.syspath_prepend(str(APP))

    def page(part, key):
        import streamlit as st

        from session import training_requests
        from views.train import new_run

        st.session_state["run"] = run = getattr(new_run, part)(key)
        st.session_state["code"] = str(training_requests.code(run))

    def compose(part="whole", key=None, **address):
        app = AppTest.from_function(page, args=(part, key), default_timeout=600)
        app.query_params = {name: str(value) for name, value in address.items()}
        app.run()
        assert not app.exception
        return app

    return compose


def described(app: AppTest) -> dict:
    return app.session_state["run"].description()


def said(app: AppTest) -> str:
    return "\n".join(each.value for each in (*app.caption, *app.info)).replace("\\", "")


def words(setting: dict) -> str:
    from views.train.recipes import _in_words

    return _in_words(setting)


@pytest.mark.parametrize("name", OF_NETWORKS)
def test_a_recipe_is_applied_whole_and_says_where_it_is_from_its_K_and_what_is_not_told(drawn, name):
    app, recipe = drawn(recipe=name, data="digits"), RECIPES[name]
    assert {field: described(app)[field] for field in recipe.settings} == recipe.settings
    assert not app.info  # nothing differs
    told = (recipe.paper, recipe.place, recipe.note, *recipe.unstated, ", ".join(map(str, recipe.K)))
    assert not [part for part in told if part not in said(app)]


@pytest.mark.parametrize("name", ["imagenet-resnet18", "cifar100-densenet"])
def test_the_page_trains_the_run_of_the_recipe(drawn, name):
    made = drawn(recipe=name, data="digits").session_state["run"]
    assert made.key == wb.recipes.RECIPES[name].run("digits").key


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("imagenet-resnet18", 2),
        ("plantnet300k-resnet50", 5),
        ("imagenet-lt-resnet34", 4),
        ("quasibinary-zero-labels", 0),
    ],
)
def test_what_a_paper_compares_is_applied_whole(drawn, name, at):
    drawn(recipe=name, data="digits")
    setting = RECIPES[name].compared[at]
    app = drawn(recipe=name, data="digits", **{f"compared_{name}": words(setting)})
    whole = {**RECIPES[name].settings, **setting}
    assert {field: described(app)[field] for field in whole} == whole
    assert not app.info


def test_transforms_of_the_data_that_a_paper_compares_become_part_of_the_data(drawn):
    name = "cifar100-label-noise"
    drawn(recipe=name, data="garden")
    setting = RECIPES[name].compared[4]
    app = drawn(recipe=name, data="garden", **{f"compared_{name}": words(DECLARED[name].compared[4])})
    run = described(app)
    assert [each["transform"] for each in run["dataset"]["transforms"]] == ["LabelNoise"]
    assert [*run["dataset"]["transforms"], *run["transforms"]] == setting[
        "transforms"
    ]  # those of images change batches
    assert "transforms: Label noise, p = 0.1" in said(app)
    assert not app.info


def test_what_a_recipe_sets_and_no_control_shows_is_told_in_words_and_in_the_code(drawn):
    drawn(recipe="imagenet-resnet18", data="digits")
    setting = RECIPES["imagenet-resnet18"].compared[2]
    app = drawn(recipe="imagenet-resnet18", data="digits", **{"compared_imagenet-resnet18": words(setting)})
    assert "milestones: 0.25, 0.5, 0.75" in said(app)
    assert "n samples: 10" in said(app)
    assert "milestones=(0.25, 0.5, 0.75)" in app.session_state["code"]
    assert "n_samples=10" in app.session_state["code"]
    app = drawn(recipe="cifar100-resnet18-adam", data="digits")
    monitor = RECIPES["cifar100-resnet18-adam"].settings["monitor"]
    assert "monitor: " in said(app)
    assert f"monitor={tuple(monitor) if isinstance(monitor, list) else monitor!r}" in app.session_state["code"]


def test_a_control_that_was_changed_says_that_the_run_differs_from_the_recipe(drawn):
    app = drawn(recipe="imagenet-resnet18", data="digits", **{"epochs_imagenet-resnet18": 10})
    assert app.info[0].value.replace("\\", "") == "This run differs from imagenet-resnet18: epochs is 10 and not 120."
    assert described(app)["milestones"] == [0.25, 0.5, 0.75]
    app = drawn(recipe="quasibinary-zero-labels", data="digits", **{"new_loss_quasibinary-zero-labels": "Focal"})
    assert "loss is Focal, γ = 2 and not Quasibinary, ρ = " in said(app)


def test_a_recipe_whose_model_is_open_starts_with_one_of_the_paper(drawn):
    assert described(drawn(recipe="plantnet300k-vit", data="digits"))["model"] == "torchvision:vit_b_16:IMAGENET1K_V1"


def test_recipes_of_heads_are_for_heads(drawn):
    key = next(run.key for run in Store(DEMO).runs() if run.has_weights)
    for name in OF_HEADS:
        app = drawn("head", key, head_recipe=name)
        expected = {field: value for field, value in RECIPES[name].settings.items() if field != "features"}
        assert {field: described(app)[field] for field in expected} == expected
        assert described(app)["features"] == key
        assert not app.info
    assert not set(drawn(recipe="quick-rows", data="digits").selectbox(key="recipe").options) & set(OF_HEADS)
