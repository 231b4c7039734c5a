"""What run.json says of a run, in every format that was ever written; and the key of a run, which no move of a file changes."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from workbench import losses
from workbench.sets import AverageK
from workbench.store import RunRecord, Store
from workbench.store.record import FIELDS, SETTINGS, USUAL_K
from workbench.store.shelf import Shelf
from workbench.tables import LogitTable
from workbench.training import Run, TrainedRun, train, trainer
from workbench.training.keys import NOT_IN_KEY

FORMAT_1 = Path(__file__).parent / "stored" / "run_of_format_1.json"
FORMER = "734e47a403f82bb0e8a62e58612830ceff25e50d2fef5048eed7893a968ff319"  # what the version that wrote it called it
RUN = Run("digits", model="linear", loss=losses.NoisedTopK(K=3, epsilon=0.5), epochs=2, device="cpu")


def keep_run_of_format_1(store: Store) -> None:
    scores = np.random.default_rng(0).normal(size=(8, 10)).astype(np.float32)
    weights = {"head.weight": np.zeros((10, 64), np.float32), "head.bias": np.zeros(10, np.float32)}
    with store.writing(FORMER) as directory:
        (directory / "run.json").write_bytes(FORMAT_1.read_bytes())
        safetensors.numpy.save_file(weights, directory / "weights.safetensors")
        for split in ("val", "test"):
            LogitTable(scores, np.arange(8)).save(directory / split)


@pytest.fixture
def never_trained(monkeypatch):
    monkeypatch.setattr(trainer, "check_run", lambda run: pytest.fail("it would be trained"))


@pytest.mark.parametrize("place", ["workbench.losses.noised", "workbench.somewhere.else_"])
def test_moving_the_file_of_a_loss_changes_neither_what_is_stored_nor_the_key(monkeypatch, place):
    monkeypatch.setattr(losses.NoisedTopK, "__module__", place)
    moved = Run("digits", model="linear", loss=losses.NoisedTopK(K=3, epsilon=0.5), epochs=2, device="cpu")
    assert moved.loss.spec() == {"loss": "NoisedTopK", "knobs": {"K": 3, "epsilon": 0.5, "n_samples": 5}}
    assert moved.key == "c3a096cc6179d20867b0883b3524fe51441620dac25399529264a90d5bf8e70a"
    assert moved.former_key == FORMER


@pytest.mark.parametrize("loss", losses.LOSSES, ids=lambda loss: loss.__name__)
def test_every_loss_of_ours_is_stored_by_its_name_alone(loss):
    assert loss().spec()["loss"] == loss.__name__
    assert losses.from_spec(loss().spec()) == loss()


def test_a_loss_of_somebody_else_is_stored_with_its_module():
    class Mine(losses.CrossEntropy):
        pass

    assert Mine().spec()["loss"].startswith(f"{__name__}:")


def test_a_run_of_format_1_is_read_as_if_it_were_written_today(store):
    keep_run_of_format_1(store)
    record = store.open(FORMER).record
    assert record.loss == RUN.loss.spec()
    assert (record.loss_name, record.K, record.data_name, record.trained) == ("NoisedTopK", 3.0, "digits", True)
    assert record.settings["loss.epsilon"] == 0.5
    assert record.to_json()["format"] == 2
    assert record.to_json()["colour"] == "of somebody else's program"
    assert RunRecord.from_json(json.loads(json.dumps(record.to_json()))) == record
    assert TrainedRun.open(FORMER, store).run.key == RUN.key


def test_train_finds_a_run_of_format_1_and_gives_it_the_key_of_today(store, never_trained):
    keep_run_of_format_1(store)
    trained = train(RUN, store=store)
    assert trained.stored.key == RUN.key
    assert [run.key for run in store.runs() if run.path.parent == store.root] == [RUN.key]
    assert json.loads((trained.path / "run.json").read_text())["format"] == 2
    assert store.open(FORMER[:12]).key == store.open(FORMER).key == RUN.key
    assert trained.tables["test"].n == 8
    assert train(RUN, store=store).stored.record.formerly == (FORMER,)


def test_a_live_run_of_format_1_is_found_through_the_shelf(store, never_trained):
    keep_run_of_format_1(store)
    assert train(RUN, store=Shelf(store)).stored.path == store.root / RUN.key


def test_a_run_of_format_1_that_cannot_be_written_anew_is_found_where_it_is(store, never_trained, monkeypatch):
    keep_run_of_format_1(store)

    def read_only(*_, **__):
        raise PermissionError(30, os.strerror(30))

    monkeypatch.setattr(Path, "mkdir", read_only)
    assert train(RUN, store=store).stored.key == FORMER


def test_features_of_a_run_of_format_1_are_asked_for_by_the_key_it_has(store):
    keep_run_of_format_1(store)
    head = Run("digits", model="linear", features=TrainedRun.open(FORMER, store))
    assert store.open(head.features).key == FORMER


def test_what_is_known_of_a_run_stays_known_when_its_title_changes(store):
    keep_run_of_format_1(store)
    before = store.open(FORMER).record
    assert store.rename(FORMER, "mine").record == dataclasses.replace(before, title="mine")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([], "it is a list where facts about a run should be"),
        ({}, "title cannot be None"),
        ({"title": "a", "format": 3}, "it is of format 3 and this version reads 1 and 2"),
        ({"title": "a", "epochs": "many"}, "epochs cannot be 'many'"),
        ({"title": "a", "loss": {"loss": 3}}, r"loss cannot be \{'loss': 3\}"),
    ],
)
def test_a_record_that_cannot_be_is_refused_in_words(said, why):
    with pytest.raises(ValueError, match=why):
        RunRecord.from_json(said)


@pytest.mark.parametrize(
    ("facts", "K"),
    [
        ({}, USUAL_K),
        ({"n_classes": 4}, 3.0),
        ({"loss": {"loss": "NoisedTopK", "knobs": {"K": 2}}, "n_classes": 10}, 2.0),
        ({"loss": {"loss": "NoisedTopK", "knobs": {"K": 20}}, "n_classes": 10}, 9.0),
        ({"loss": {"loss": "mine:Loss", "knobs": {"K": "few"}}}, USUAL_K),
    ],
)
def test_the_K_of_a_run_is_that_of_its_loss_or_the_usual_one_or_what_its_classes_allow(facts, K):
    assert RunRecord(title="a", **facts).K == K
    assert AverageK().K == USUAL_K


def test_a_record_has_a_field_for_everything_that_a_run_says_of_itself():
    fields = {field.name for field in dataclasses.fields(Run)}
    assert fields <= FIELDS.keys()
    assert set(SETTINGS) == fields - set(NOT_IN_KEY) | {"dataset_key"}
