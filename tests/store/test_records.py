"""run.json: the description of a run and facts about its result; and the key of a run, which no move of a file changes."""

from __future__ import annotations

import dataclasses
import json

import pytest

from workbench import losses
from workbench.losses.target_size import USUAL_K
from workbench.sets import AverageK
from workbench.store import RunRecord
from workbench.training import Run, train

RUN = Run("digits", model="linear", loss=losses.NoisedTopK(K=3, epsilon=0.5), epochs=2, device="cpu")
FACTS = {"title": "mine", "n_classes": 10, "colour": "of another program"}
CONTENT = {"format": 1, "run": json.loads(json.dumps(RUN.to_json())), "facts": FACTS}


@pytest.mark.parametrize("place", ["workbench.losses.noised", "workbench.somewhere.else_"])
def test_moving_the_file_of_a_loss_changes_neither_what_is_stored_nor_the_key(monkeypatch, place):
    monkeypatch.setattr(losses.NoisedTopK, "__module__", place)
    moved = Run("digits", model="linear", loss=losses.NoisedTopK(K=3, epsilon=0.5), epochs=2, device="cpu")
    assert moved.loss.spec() == {"loss": "NoisedTopK", "knobs": {"K": 3, "epsilon": 0.5, "n_samples": 5}}
    assert moved.key == RUN.key


@pytest.mark.parametrize("loss", losses.LOSSES, ids=lambda loss: loss.__name__)
def test_every_loss_of_ours_is_stored_by_its_name_alone(loss):
    assert loss().spec()["loss"] == loss.__name__
    assert losses.from_spec(loss().spec()) == loss()


def test_a_loss_of_somebody_else_is_stored_with_its_module():
    class Mine(losses.CrossEntropy):
        pass

    assert Mine().spec()["loss"].startswith(f"{__name__}:")


def test_a_record_holds_the_description_of_its_run():
    record = RunRecord.from_json(CONTENT)
    assert record.loss == RUN.loss.spec()
    assert (record.loss_name, record.K, record.data_name, record.trained) == ("NoisedTopK", 3.0, "digits", True)
    assert record.settings["loss.epsilon"] == 0.5
    assert Run.from_json(record.run).key == RUN.key


def test_a_record_is_written_as_it_was_read_with_the_facts_of_other_programs():
    record = RunRecord.from_json(CONTENT)
    assert record.to_json() == CONTENT
    assert RunRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_a_record_matches_the_description_of_its_run_wherever_that_is_trained():
    record = RunRecord.from_json(CONTENT)
    assert record.matches({**CONTENT["run"], "device": "cuda", "devices": 4})
    assert record.matches({"model": "linear"})
    assert not record.matches({**CONTENT["run"], "seed": 1})


def test_what_is_known_of_a_run_stays_known_when_its_title_changes(store):
    trained = train(dataclasses.replace(RUN, epochs=1), store=store, progress=False).stored
    assert store.rename(trained.key, "mine").record == dataclasses.replace(trained.record, title="mine")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([], "it is a list; expected an object with format, run and facts"),
        ({}, "it is of format None; this version reads format 1"),
        ({"format": 3, "facts": {"title": "a"}}, "it is of format 3; this version reads format 1"),
        ({"format": 1, "facts": {}}, "title cannot be None"),
        ({"format": 1, "facts": {"title": "a"}, "run": {"epochs": "many"}}, "epochs = 'many' is not allowed"),
        ({"format": 1, "facts": {"title": "a"}, "run": {"loss": {"loss": 3}}}, r"loss cannot be \{'loss': 3\}"),
        ({"format": 1, "facts": {"title": "a"}, "run": {"milestones": [0.5, 0.1]}}, "milestones cannot be"),
        ({"format": 1, "facts": {"title": "a", "n_classes": 0}}, "n_classes cannot be 0"),
    ],
)
def test_a_record_that_cannot_be_is_refused_in_words(content, why):
    with pytest.raises(ValueError, match=why):
        RunRecord.from_json(content)


@pytest.mark.parametrize(
    ("loss", "n_classes", "K"),
    [
        (None, None, USUAL_K),
        (None, 4, 3.0),
        ({"loss": "NoisedTopK", "knobs": {"K": 2}}, 10, 2.0),
        ({"loss": "NoisedTopK", "knobs": {"K": 20}}, 10, 9.0),
        ({"loss": "mine:Loss", "knobs": {"K": "few"}}, None, USUAL_K),
    ],
)
def test_the_K_of_a_run_is_that_of_its_loss_or_the_usual_one_or_what_its_classes_allow(loss, n_classes, K):
    run = {} if loss is None else {"loss": loss}
    assert RunRecord(title="a", run=run, n_classes=n_classes).K == K
    assert AverageK().K == USUAL_K
