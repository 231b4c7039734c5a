"""What *A new run* asks to be trained: every dataset with every loss, as its controls stand at first."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
from browsing import KEYS, click
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench import display_names
from workbench.datasets import DATASETS, DatasetSpec, recipe_class
from workbench.figures.base import counted
from workbench.store import Store

APP = Path(__file__).resolve().parents[2] / "app"
LOSSES = [loss for loss in wb.losses.LOSSES if loss.trains]
# The smallest of every dataset that the page can ask for, and a model that reads it in no time.
SMALL = {
    "garden": {"data_species": 20, "data_genera": 4, "data_n_train": 1000, "data_n_val": 500, "data_n_test": 500},
    "meadow": {"data_species": 20, "data_genera": 4, "data_n_train": 1000, "data_n_val": 500, "data_n_test": 500},
    "letters": {},
    "digits": {},
    "symbols": {"data_n_train": 500, "data_n_val": 100, "data_n_test": 100},
    "names": {"data_dimensions": 64},
}
QUICK = {"recipe": "quick-rows", "epochs_quick-rows": 1}


@pytest.fixture
def asked_for(monkeypatch):
    """`asked_for(data="digits", new_loss="Focal")`: the run that the page would ask the worker for.

    Or only the `part` of the page with that name.
    """
    monkeypatch.syspath_prepend(str(APP))

    def page(part, key):
        import streamlit as st

        from views.train import new_run, recipes

        start = recipes.Start("quick-rows", {}, "quick-rows")
        st.session_state["asked for"] = new_run.chosen_loss(start) if part == "chosen_loss" else new_run.whole(key)

    def compose(part="whole", key=None, **address):
        app = AppTest.from_function(page, args=(part, key), default_timeout=600)
        app.query_params = {name: value if isinstance(value, list) else str(value) for name, value in address.items()}
        app.run()
        assert not app.exception
        return app.session_state["asked for"]

    return compose


@pytest.mark.parametrize("data", DATASETS)
def test_data_whose_knobs_nobody_moved_have_their_default_knobs(asked_for, data):
    defaults = {name: knob.default for name, knob in recipe_class(data).knobs().items()}
    assert asked_for(data=data).dataset == DatasetSpec(data, defaults)


def test_augmentations_are_chosen_for_a_new_run_and_kept_with_the_data_of_a_run(asked_for, tmp_path, monkeypatch):
    from session import training_requests
    from workbench.datasets import HorizontalFlip, Normalise, PaddedCrop
    from workbench.training import Run, train

    chosen = [PaddedCrop(), HorizontalFlip()]
    run = asked_for(data="digits", augmentation=[display_names.title_of(type(each)) for each in chosen], **QUICK)
    assert run.transforms == tuple(chosen)
    assert asked_for(data="digits", **QUICK).transforms == ()
    made = {}
    exec(training_requests.code(run).partition("trained =")[0], made)
    assert made["run"].key == run.key
    assert training_requests.title(run).endswith("Padded crop, padding = 4 · Horizontal flip, p = 0.5")

    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    kept = (HorizontalFlip(0.25), Normalise((0.5,), (0.5,)))
    trained = train(
        Run("digits", model="linear", epochs=1, device="cpu", transforms=kept), store=Store(tmp_path), progress=False
    )
    assert asked_for(key=trained.stored.key, data="those of the chosen run", **QUICK).transforms == kept


@pytest.mark.usefixtures("one_thread")
def test_every_loss_whose_knobs_nobody_moved_trains_with_its_defaults(asked_for, tmp_path):
    from workbench.training import train

    run = asked_for(data="digits", **QUICK)
    for loss in LOSSES:
        chosen = asked_for(part="chosen_loss", new_loss=loss.title)
        assert chosen == loss()
        trained = train(dataclasses.replace(run, loss=chosen), store=Store(tmp_path), progress=False)
        assert len(trained.history) == 1


def test_a_knob_may_change_while_the_network_learns_from_a_beginning_to_where_its_slider_stands(asked_for):
    noised = {"part": "chosen_loss", "new_loss": "Noised top-K"}
    assert repr(asked_for(**noised).epsilon) == "anneal(3.0, 0.2)"
    assert asked_for(**noised, changes_NoisedTopK="nothing").epsilon == 0.2
    other = asked_for(**noised, changes_NoisedTopK="K", begin_NoisedTopK_K=10)
    assert other.spec()["knobs"] == {"K": "anneal(10, 5)", "epsilon": 0.2, "n_samples": 5}
    values = [format(value, "g") for value in wb.losses.NoisedTopK.knobs()["epsilon"].values()]
    moved = asked_for(**noised, begin_NoisedTopK_epsilon=values[90], new_NoisedTopK_epsilon=values[20])
    assert repr(moved.epsilon) == repr(wb.schedules.anneal(float(values[90]), float(values[20])))
    damped = {"part": "chosen_loss", "new_loss": "Focal", "changes_Focal": "γ", "new_Focal_gamma": "0"}
    assert repr(asked_for(**damped).gamma) == "anneal(5.0, 0.0, course='linear')", "to zero there is no factor"
    assert asked_for(part="chosen_loss", new_loss="Cross-entropy") == wb.losses.CrossEntropy()


def test_the_page_shows_a_schedule_in_words_and_in_its_code(drawn):
    page = drawn("train", train="A new run", new_loss="Noised top-K", data="digits")
    words = [caption.value for caption in page.caption]
    assert any("ε goes from 3 to 0.2 over three quarters of the training and stays there" in text for text in words)
    assert any("epsilon=wb.schedules.anneal(3.0, 0.2)" in code.value for code in page.code)


def sent(page):
    """What the pictures of a page were given."""
    given = [json.loads(each.proto.json) for each in page.get("bidi_component") if each.proto.json]
    return [each for each in given if "title" in each]


def titles(page):
    """Titles of the pictures of a page."""
    return [each["title"] for each in sent(page)]


@pytest.fixture
def made_ahead(monkeypatch):
    """What pages make in the background is there at once."""
    monkeypatch.syspath_prepend(str(APP))
    from views.train import plan_pictures

    def at_once(function, *arguments):
        done = Future()
        done.set_result(function(*arguments))
        return done

    for cached in (plan_pictures.landscapes_ready, plan_pictures._counting):
        cached.clear()
    monkeypatch.setattr(plan_pictures, "AHEAD", SimpleNamespace(submit=at_once))
    yield
    for cached in (plan_pictures.landscapes_ready, plan_pictures._counting):
        cached.clear()


@pytest.mark.usefixtures("made_ahead")
def test_beside_the_form_stand_what_the_loss_rewards_the_classes_and_what_changes_while_it_learns(drawn, store):
    page = drawn("train", train="A new run", new_loss="Noised top-K", **{"epochs_quick-photographs": 4})
    assert titles(page) == ["Noised top-K", "How unequal the classes are", "What changes while it learns"]
    level, classes, course = sent(page)
    assert "K = 2, ε = 0.2" in level["subtitle"], (
        "of three classes a set has two at most, and schedules are at their end"
    )
    test = store.open(KEYS["garden"]).tables["test"]
    assert f"{test.class_counts.sum()} training rows of {test.n_classes} classes" in classes["text"]
    assert [note["text"] for note in course["figure"]["layout"]["annotations"]] == ["<b>learning rate</b>", "<b>ε</b>"]
    mixed = drawn("train", train="A new run", new_loss="Differentiable top-k")
    assert "P_K = (0.5, 0.5)" in sent(mixed)[0]["subtitle"]


def test_classes_are_counted_and_torch_is_loaded_in_the_background_and_only_for_data_as_they_come(drawn):
    said = "Counting the classes of letters…"
    page = drawn("train", train="A new run", data="letters")
    assert titles(page) == ["What changes while it learns"]
    assert {said, "Getting ready to draw what the loss rewards…"} <= {caption.value for caption in page.caption}
    moved = drawn("train", train="A new run", data="letters", data_seed="3")
    assert said not in [caption.value for caption in moved.caption]


@pytest.mark.usefixtures("made_ahead")
def test_data_that_no_run_has_are_counted(drawn):
    counts = wb.load_dataset("letters").class_counts
    page = drawn("train", train="A new run", data="letters")
    assert titles(page) == ["Cross-entropy", "How unequal the classes are", "What changes while it learns"]
    assert any(counted(int(counts.sum())) in each.get("text", "") for each in sent(page))


@pytest.mark.usefixtures("made_ahead")
def test_a_sweep_shows_every_run_that_it_will_train(drawn):
    page = drawn("train", train="Sweeps", values_run_learning_rate="0.1, 0.2", values_run_seed="0, 1")
    plan, *others = sent(page)
    assert plan["figure"]["data"][0]["text"] == ["to train"] * 4
    assert plan["subtitle"].startswith("n = 4 runs: 0 trained, 4 to train")
    assert len(others) == 3


def test_weights_are_as_many_as_they_were_and_come_back_as_they_are_written(asked_for):
    run = asked_for(data="meadow", data_organs="0.7, 0.1, 0.1, 0.1", new_loss="Differentiable top-k")
    assert run.dataset.knobs["organs"] == (0.7, 0.1, 0.1, 0.1)
    assert run.dataset.knobs["plants"] == (0.1, 0.3, 0.3, 0.3)
    assert run.loss.p_k == (0.5, 0, 0, 0, 0.5)


@pytest.mark.parametrize("value", [(0.5, 0.5), (1 / 3, 2 / 3), (1.0, 0.0), (1 / 3, 1 / 3, 1 / 3), (1.0,)])
def test_the_control_of_weights_shows_all_of_them_and_returns_what_it_shows(monkeypatch, value):
    monkeypatch.syspath_prepend(str(APP))

    def page(value):
        import streamlit as st

        import workbench as wb
        from controls import knobs

        knob = wb.losses.DifferentiableTopK.knobs()["p_k"]
        st.session_state["chosen"] = knobs.widget("p_k", knob, value, key="weights")

    app = AppTest.from_function(page, args=(value,)).run()
    assert app.session_state["chosen"] == value
    if len(value) == 2:
        app.select_slider[0].set_value(0.2).run()
        assert app.session_state["chosen"] == (0.2, 0.8)
    else:
        app.text_input[0].set_value(", ".join(["1", *["0"] * (len(value) - 1)])).run()
        assert app.session_state["chosen"] == (1.0, *[0.0] * (len(value) - 1))
        app.text_input[0].set_value("1, 1, 1").run()
        assert f"give {len(value)} numbers" in app.exception[0].message


@pytest.mark.browser
@pytest.mark.writes
def test_every_dataset_is_trained_from_the_page(opened, store):
    for data, small in SMALL.items():
        page = opened(view="train", wait_for="text=What learns", train="A new run", data=data, **QUICK, **small)
        click(page.get_by_role("button", name="Train", exact=True))
        page.get_by_text(f"{data} · MLP · Cross-entropy").first.wait_for()
        page.get_by_text("Trained and kept").first.wait_for()
        page.close()
    trained = {run.record.data_name for run in store.runs() if run.record.trained}
    assert trained >= set(DATASETS)


@pytest.mark.usefixtures("one_thread")
def test_a_run_that_ended_with_a_constant_answer_says_what_to_do(tmp_path, monkeypatch):
    from workbench.store.store import copy_run
    from workbench.training import Run, train

    monkeypatch.syspath_prepend(str(APP))
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    run = train(Run("digits", model="linear", epochs=1, device="cpu"), store=Store(tmp_path), progress=False).stored
    said = "it gives a constant answer: try epsilon=wb.schedules.anneal(3, 0.2)"
    with Store(tmp_path).writing(key := 64 * "a") as directory:
        copy_run(run, directory, warned=said)

    def page(described, key):
        from types import SimpleNamespace

        import streamlit as st

        from session import training_requests
        from views.train import new_run
        from workbench.runs import Run
        from workbench.workers.client import FINISHED, Progress

        progress = Progress((Run.from_json(described),), FINISHED, {0: key})
        training_requests.long_worker = lambda: SimpleNamespace(progress=progress)
        st.session_state["pages"] = ()  # to open the run in
        new_run.watch(False)

    from session import training_requests

    monkeypatch.setattr(training_requests, "long_worker", training_requests.long_worker)  # given back afterwards
    described = json.loads(json.dumps(run.record.run))
    for its_key, warnings in ((key, [said]), (run.key, [])):
        app = AppTest.from_function(page, args=(described, its_key), default_timeout=600).run()
        assert not app.exception
        assert [each.value.replace("\\", "") for each in app.warning] == warnings
