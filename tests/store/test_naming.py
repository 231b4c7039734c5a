"""What runs are called: names differ, do not depend on the order, and tell no more than they must."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from workbench.catalogue import LOSSES
from workbench.store import DEMO, Store
from workbench.store.naming import named_by_a_person, names, whole_name
from workbench.store.record import RunRecord

CODE = re.compile(r"[a-z][A-Z]|\w=\S|\(\)")  # the middle of a class name, a keyword argument, a call
PROPER = re.compile(r"ResNet|DenseNet|EfficientNet")


def record(loss="CrossEntropy", title=None, **facts):
    spec = LOSSES[loss].spec(**{name: facts[name] for name in facts if name in LOSSES[loss].knobs})
    facts = {name: value for name, value in facts.items() if name not in ("K", "epsilon", "alpha")}
    title = f"garden · cnn · {loss}(…)" if title is None else title
    return RunRecord(title=title, **{"model": "cnn", "dataset": {"name": "garden"}, **facts}, loss=spec)


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


@given(runs)
def test_alone_a_run_is_called_by_its_loss_or_by_its_title(records):
    for key, about in records.items():
        (name,) = names({key: about}).values()
        assert name == (LOSSES[about.loss_name].title if about.trained else about.title)


@pytest.mark.parametrize(
    ("one", "other", "called"),
    [
        ({"loss": "AverageKTwoHead", "alpha": 1.05}, {"loss": "AverageKTwoHead"}, "Average-K two-head, α = 1.05"),
        ({"dataset": {"name": "/data/my photos"}}, {}, "my photos · Cross-entropy"),
        ({"model": "resnet18-small"}, {}, "Small ResNet-18 · Cross-entropy"),
        ({"features": "f" * 64}, {}, "head of CNN · Cross-entropy"),
        ({"epochs": 3}, {"epochs": 10}, "Cross-entropy, 3 epochs"),
        ({"loss": "NoisedTopK", "epsilon": 0.3, "seed": 1}, {"loss": "NoisedTopK", "seed": 2}, "Noised top-K, ε = 0.3"),
        ({"seed": 1}, {"seed": 2}, "Cross-entropy, seed 1"),
        ({}, {}, "Cross-entropy (aaaa)"),
        ({"title": "my best"}, {}, "my best"),
    ],
)
def test_a_run_is_called_by_what_differs(one, other, called):
    assert names({"a" * 12: record(**one), "b" * 12: record(**other)})["a" * 12] == called


def test_the_whole_name_of_every_run_of_the_package_is_in_words():
    for run in Store(DEMO).runs():
        assert not CODE.search(run.name), run.name
    assert whole_name(record(title="my best")) == "my best (garden · CNN · Cross-entropy)"
