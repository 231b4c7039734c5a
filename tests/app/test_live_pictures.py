"""Live pictures without a browser: they follow a slider whose values are trained, and a collapsed head is flagged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.store import DEMO, Store
from workbench.store.lru_store import LRUStore
from workbench.workers.client import CANCELLED, Progress, head_of

APP = Path(__file__).resolve().parents[2] / "app"
GAMMAS = {"0": 0.0, "2.5": 2.5, "5": 5.0}


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    """A small trained run and a head for each of three values, in the LRU store of a store: base, heads by text, store."""
    from workbench.training import Run, train

    store = Store(tmp_path_factory.mktemp("home"))
    base = train(Run("digits", model="mlp", epochs=1, device="cpu"), store=store, progress=False).stored
    runs = {text: head_of(base, wb.losses.Focal(gamma=gamma), epochs=1) for text, gamma in GAMMAS.items()}
    for run in runs.values():
        train(run, store=LRUStore(store), progress=False)
    return base, runs, store


@pytest.fixture
def live_heads(heads, monkeypatch):
    monkeypatch.syspath_prepend(str(APP))
    monkeypatch.setenv("WORKBENCH_HOME", str(heads[2].root))
    from views.train import live_heads

    return live_heads


def test_the_pictures_of_a_trained_axis_follow_its_slider(heads, live_heads, monkeypatch):
    _, runs, store = heads
    monkeypatch.setattr(live_heads.st, "session_state", {})
    axis = live_heads.trained_axis("live_Focal_gamma", runs)
    film = live_heads.film("live-sizes", axis, dark=False)["film"]
    assert film["follows"] == {"widget": "live_Focal_gamma", "texts": tuple(GAMMAS)}
    for at, key in enumerate(axis.keys):
        run = LRUStore(store).open(key)
        val = run.tables["val"]
        expected = wb.figures.set_sizes(wb.AverageK(run.record.K).fit(val).sets(val))
        assert (film["subtitles"][at], film["texts"][at]) == (expected.subtitle, expected.text)
    assert film["moves"], "the bars differ"


def test_an_axis_with_a_value_that_is_not_trained_is_followed_by_no_picture(heads, live_heads, monkeypatch):
    base, runs, _ = heads
    monkeypatch.setattr(live_heads.st, "session_state", {})
    untrained = head_of(base, wb.losses.Focal(gamma=1.0), epochs=1)
    assert live_heads.trained_axis("live_Focal_gamma", {**runs, "1": untrained}) is None


def test_a_stage_has_a_number_an_epoch_its_time_and_one_who_waits_a_place(heads, live_heads):
    run = next(iter(heads[1].values()))
    assert live_heads.stage(Progress((run,), "preparing")) == "starting the training process"
    assert live_heads.stage(Progress((run,), "preparing", stage="photographs", done=0.4)) == "photographs: 40%"
    trained = Progress((run,), "training", history=({"epoch": 0, "seconds": 1.0},), done=1.0, seconds_left=8.2)
    assert live_heads.stage(trained) == "epoch 1 of 1, about 8 s left"
    waiting = Progress((run,), "queued", place=2)
    assert live_heads.stage(waiting) == "other visitors come first, place 2 in the queue"


def test_a_cancelled_head_can_be_trained_again_and_a_collapsed_one_links_to_the_reason(heads, live_heads):
    from streamlit.testing.v1 import AppTest

    from views.landscapes.loss_views import MOAT

    assert live_heads.WHY == MOAT

    def page(head, state):
        from types import SimpleNamespace

        from session import training_requests
        from views.train import live_heads
        from workbench.store.record import RunRecord
        from workbench.workers.client import Progress

        training_requests.live_visitor = lambda: SimpleNamespace(progress=Progress((head,), state), cancel=lambda: None)
        live_heads.status(head, [], Progress((head,)))
        loss = {"loss": "NoisedTopK", "knobs": {"K": 3, "epsilon": 0.01}}
        record = RunRecord(title="mine", run={"loss": loss}, warned="it gives a constant answer")
        live_heads.flag_collapse(SimpleNamespace(record=record, key="a" * 64))

    from session import training_requests

    head = next(iter(heads[1].values()))
    before = training_requests.live_visitor
    try:
        cancelled = AppTest.from_function(page, args=(head, CANCELLED), default_timeout=600).run()
        working = AppTest.from_function(page, args=(head, "preparing"), default_timeout=600).run()
    finally:
        training_requests.live_visitor = before
    assert not cancelled.exception
    assert [each.label for each in cancelled.button] == ["Train it now", "Why small ε stalls"]
    assert [each.value for each in cancelled.warning] == ["it gives a constant answer"]
    assert [each.label for each in working.button] == ["Cancel", "Why small ε stalls"]


def test_the_value_in_use_is_marked_in_every_panel():
    import pandas as pd

    rows = [(x, "val", metric, x / 2, 1, None, None) for metric in ("accuracy", "mean_size") for x in (0.1, 0.5, 1.0)]
    summary = pd.DataFrame(rows, columns=["loss.epsilon", "split", "metric", "mean", "seeds", "low", "high"])
    figure = wb.figures.against_knob(summary, "loss.epsilon", split="val", mark=0.5)
    marks = [trace for trace in figure.plot().data if trace.name == "ε = 0.5"]
    assert [(*trace.x,) for trace in marks] == [(0.5, 0.5)] * 2
    assert "mark=0.5" in figure.code
    dashed = [line for axes in figure.static().axes for line in axes.lines if line.get_linestyle() == "--"]
    np.testing.assert_array_equal([line.get_xdata() for line in dashed], [[0.5, 0.5]] * 2)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of ties, which the page captures
@pytest.mark.parametrize(
    "run", [run for run in Store(DEMO).runs() if run.record.run["epochs"]], ids=lambda run: run.name
)
def test_every_run_of_the_package_has_numbers_and_pictures_in_the_live_panel(run, live_heads, monkeypatch):
    names = []
    monkeypatch.setattr(live_heads.st, "metric", lambda name, *_, **__: names.append(name))
    base = next(other for other in Store(DEMO).runs() if other.dataset_spec == run.dataset_spec)
    live_heads.numbers.__wrapped__(run, base, run.record.K, "val")
    assert names[:2] == ["Correct", "Mean over classes"]
    assert {*names[2:]} <= {"Mean size", "Mean size: without a label", "Rare classes", "Medium", "Frequent"}
    assert "Mean size" in names
    for name in live_heads.MAKERS:
        if name != "live-shots" or not run.many_labels:
            assert len(live_heads.figure_of(name, run, run.record.K).frame), name
