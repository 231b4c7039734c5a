"""Names of runs: they differ, are fixed at birth, and say no more than they must."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from workbench.losses import class_named
from workbench.store import DEMO, Store
from workbench.store.record import RunRecord
from workbench.store.run_titles import named_by_a_person, names, whole_name

CODE = re.compile(r"[a-z][A-Z]|\w=\S|\(\)")  # the middle of a class name, a keyword argument, a call
PROPER = re.compile(r"ResNet|DenseNet|EfficientNet")


def record(loss="CrossEntropy", title=None, **facts):
    spec = class_named(loss)(**{name: facts[name] for name in facts if name in class_named(loss).knobs()}).spec()
    facts = {name: value for name, value in facts.items() if name not in ("K", "epsilon", "alpha")}
    title = f"garden · cnn · {loss}(…)" if title is None else title
    finished = facts.pop("finished", "")
    run = {"model": "cnn", "dataset": {"name": "garden"}, **facts, "loss": spec}
    return RunRecord(title=title, run=run, finished=finished)


losses = some.sampled_from(["CrossEntropy", "NoisedTopK", "AverageKTwoHead"])
trained = some.builds(
    record,
    losses,
    K=some.sampled_from([2, 3]),
    epsilon=some.sampled_from([0.1, 0.9]),
    alpha=some.sampled_from([0.2, 1.05]),
    model=some.sampled_from(["cnn", "mlp"]),
    epochs=some.sampled_from([3, 10]),
    seed=some.integers(0, 2),
    dataset=some.sampled_from([{"name": "garden", "knobs": {"rho": rho}} for rho in (0.1, 0.2)] + [None]),
)
named = some.builds(lambda title: RunRecord(title=title), some.sampled_from(["mine", "Cross-entropy", "mine (aaaa)"]))
runs = some.dictionaries(some.text("ab", min_size=12, max_size=12), trained | named, max_size=12)


@given(runs)
def test_names_differ_and_do_not_depend_on_the_order(records):
    found = names(records)
    assert found.keys() == records.keys()
    assert len(set(found.values())) == len(records)
    assert names(dict(sorted(records.items(), reverse=True))) == found


@given(runs)
def test_a_name_is_short_holds_no_code_and_begins_with_what_a_person_said(records):
    for key, name in names(records).items():
        assert not CODE.search(PROPER.sub("", name)), name
        assert len(name) <= 100
        if named_by_a_person(records[key]):
            assert name.startswith(records[key].title)


@given(runs, runs)
def test_a_later_run_renames_none(older, newer):
    older = {f"0{key}": replace(about, finished="2025-01-01") for key, about in older.items()}
    newer = {f"1{key}": replace(about, finished="2025-01-02") for key, about in newer.items()}
    before = names(older)
    assert {key: name for key, name in names(older | newer).items() if key in older} == before


@pytest.mark.parametrize(
    ("older", "newer", "called"),
    [
        ({}, {"loss": "NoisedTopK"}, "garden · Noised top-K"),
        (
            {"loss": "AverageKTwoHead"},
            {"loss": "AverageKTwoHead", "alpha": 1.05},
            "garden · Average-K two-head, w = 1.05",
        ),
        ({}, {"dataset": {"name": "/data/my photos"}}, "my photos · Cross-entropy"),
        ({}, {"model": "resnet18-small"}, "garden · Cross-entropy, Small ResNet-18"),
        ({}, {"features": "f" * 64}, "garden · Cross-entropy, head of CNN"),
        ({"epochs": 10}, {"epochs": 3}, "garden · Cross-entropy, 3 epochs"),
        ({"seed": 1}, {"seed": 2}, "garden · Cross-entropy, seed 2"),
        ({}, {}, "garden · Cross-entropy (bbbb)"),
        ({}, {"title": "my best"}, "my best"),
    ],
)
def test_a_run_is_called_by_what_tells_it_from_older_ones(older, newer, called):
    records = {"b" * 12: record(**newer, finished="2025-01-02"), "a" * 12: record(**older, finished="2025-01-01")}
    assert names(records)["b" * 12] == called


def test_the_whole_name_of_every_run_of_the_package_is_in_words():
    for run in Store(DEMO).runs():
        assert not CODE.search(run.name), run.name
    assert whole_name(record(title="my best")) == "my best (garden · CNN · Cross-entropy)"


def test_a_network_that_was_stored_as_it_is_is_called_by_its_model():
    run = {
        "model": "symbols-mlp",
        "dataset": {"name": "symbols"},
        "epochs": 0,
        "loss": class_named("CrossEntropy")().spec(),
    }
    published = RunRecord(title="symbols · symbols-mlp · CrossEntropy()", run=run)
    assert names({"a": published}) == {"a": "symbols · Published MLP"}
    assert whole_name(published) == "symbols · Published MLP · as it came"


def test_arrays_with_a_name_are_called_by_it():
    run = {"model": "mlp", "dataset": None, "loss": class_named("CrossEntropy")().spec()}
    birds = RunRecord(title="birds · mlp · CrossEntropy()", run=run, data="birds")
    assert names({"a": birds, "b": replace(birds, data="", title="arrays · mlp · CrossEntropy()")}) == {
        "a": "birds · Cross-entropy",
        "b": "own data · Cross-entropy",
    }


@pytest.mark.parametrize(("schedule", "stated"), [("cosine", False), ("constant", False), ("steps", True)])
def test_only_a_rate_that_falls_in_steps_has_milestones(schedule, stated):
    run = record(schedule=schedule, milestones=[0.3, 0.6])
    assert ("milestones" in run.settings) == ("0.3" in whole_name(run)) == stated
