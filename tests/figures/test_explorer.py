"""The dashboard of a notebook: three sliders say the same, every position is what the rule gives, and Python can read it."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.figures.base import WITHOUT_WIDGETS, Click
from workbench.figures.film import Film, moved, moves_along, untitled
from workbench.figures.sets.explorer import Explorer

VIEW = "application/vnd.jupyter.widget-view+json"


def table(n: int, seed: int) -> wb.LogitTable:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 6))
    return wb.LogitTable(
        2 * scores, (scores + rng.normal(size=scores.shape)).argmax(1), class_counts=[90, 60, 40, 9, 5, 2]
    )


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return wb.figures.explore(table(150, 0), table(200, 1), K_max=4, step=0.5)


@pytest.fixture
def opened() -> Explorer:
    """One of its own, whose sliders a test may move."""
    return wb.figures.explore(table(150, 0), table(200, 1), K_max=4, step=0.5)


def test_every_position_is_that_of_the_rule_whose_slider_has_it(explorer):
    linked = explorer.linked
    judged = explorer.judged()
    for place in range(len(linked.along["threshold"])):
        sets = explorer.sets_at(place)
        assert sets.sizes.mean() == judged["mean_size"][place]
        assert sets.hits.mean() == judged["accuracy"][place]


@pytest.mark.parametrize(("name", "rule"), [("K", wb.AverageK), ("threshold", wb.Threshold), ("confidence", wb.LAC)])
def test_a_slider_that_is_held_says_exactly_what_was_asked_for(explorer, name, rule):
    linked = explorer.linked
    for value in linked.values[name].tolist():
        place = linked.nearest(name, value)
        assert linked.rule(place) == rule(**{name: value})
        assert linked.along[name][place] == value


def test_the_sliders_of_the_panel_lead_back_to_their_own_values_at_every_tau(explorer):
    *linked, of_tau = explorer.panel().sliders
    for slider in linked:
        for start in range(0, len(slider.nearest), slider.block):
            own = [slider.nearest[start + place] for place in slider.positions]
            assert own == list(range(len(slider.positions)))
    assert [of_tau.texts[start] for start in range(0, len(of_tau.texts), of_tau.stride)] == [
        "0",
        "0.25",
        "0.5",
        "0.75",
        "1",
    ]


def test_the_promise_is_the_coverage_that_the_threshold_keeps_on_the_validation_rows(explorer):
    val, linked = explorer.val.table, explorer.linked
    for place in (0, 3, 20):
        covered = (val.probabilities()[np.arange(val.n), val.labels] >= linked.along["threshold"][place]).sum()
        assert linked.along["confidence"][place] == pytest.approx(covered / (val.n + 1), abs=0.005)


def test_rows_without_labels_promise_nothing():
    unlabelled = wb.LogitTable(table(150, 0).scores)
    explorer = wb.figures.explore(unlabelled, table(200, 1), K_max=4)
    assert list(explorer.linked.values) == ["K", "threshold"]
    assert np.isnan(explorer.confidence)
    with pytest.raises(ValueError, match="no slider 'confidence'; give one of K, threshold"):
        explorer.move(confidence=0.9)


def test_another_cell_reads_where_the_sliders_stand(opened):
    assert (opened.K, opened.rule) == (4.0, wb.AverageK(4.0))
    seen: list[Any] = []
    opened.widget.observe(lambda change: seen.append(change["new"]), "K")
    opened.widget.place = opened.linked.nearest("K", 2.0)  # as a browser does
    assert (opened.K, opened.widget.K, seen) == (2.0, 2.0, [2.0])
    assert opened.threshold == wb.AverageK(2.0).fit(opened.val.table).threshold
    opened.move(confidence=0.8)
    assert (opened.confidence, opened.rule) == (0.8, wb.LAC(0.8))
    assert opened.sets.sizes.mean() == wb.LAC(0.8).fit(opened.val.table)(opened.test.table).sizes.mean()


def test_tau_leads_from_head_to_tail_and_the_other_sliders_stay(opened):
    opened.move(K=2)
    opened.move(tau=1)
    assert (opened.tau, opened.widget.tau, opened.K) == (1.0, 1.0, 2.0)
    assert opened.rule == wb.AverageK(2.0, tau=1.0)
    opened.move(confidence=0.8)
    assert (opened.tau, opened.rule) == (1.0, wb.PAS(0.8, tau=1.0))
    rare = {tau: wb.metrics.shot_accuracy(_moved(opened, K=2, tau=tau).sets)["few"] for tau in (0, 1)}
    assert rare[1] > rare[0]


def _moved(explorer: Explorer, **sliders: float) -> Explorer:
    explorer.move(**sliders)
    return explorer


def test_without_class_counts_or_with_too_many_scores_there_is_no_tau(monkeypatch):
    counted, plain = table(150, 0), wb.LogitTable(table(150, 0).scores, table(150, 0).labels)
    assert wb.figures.explore(plain, plain, K_max=4).taus == (0.0,)
    with pytest.raises(ValueError, match="no slider 'tau'"):
        wb.figures.explore(plain, plain, K_max=4).move(tau=1)
    monkeypatch.setattr("workbench.figures.film.SCORES", 1000)
    assert wb.figures.explore(counted, counted, K_max=4).taus == (0.0,)
    assert wb.figures.explore(counted, counted, K_max=4, taus=(0, 1)).taus == (0.0, 1.0)
    with pytest.raises(ValueError, match="the first one 0"):
        wb.figures.explore(counted, counted, taus=(1, 0))


def test_a_click_selects_rows_and_they_stay_selected_when_the_sliders_move(opened):
    assert opened.selected_rows.tolist() == []
    opened.move(K=2)
    count = int((opened.sets.sizes == 2).sum())
    opened.widget.chosen = {"picture": "sizes", "trace": "all rows", "point": 2, "data": count}
    np.testing.assert_array_equal(opened.selected_rows, np.flatnonzero(opened.sets.sizes == 2))
    assert f"{count} rows" in opened.widget.note
    opened.move(K=3)
    np.testing.assert_array_equal(opened.selected_rows, np.flatnonzero(opened.sets.sizes == 2))
    assert opened.rows_behind_click("curve", Click("average-K", 3)) is None


def test_without_anywidget_the_picture_with_one_slider_is_shown_and_the_widget_says_what_to_install(
    opened, monkeypatch
):
    find = importlib.util.find_spec
    hidden = lambda name, *rest: None if name == "anywidget" else find(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    monkeypatch.setattr("workbench.figures.base.find_spec", hidden)
    assert VIEW not in opened._repr_mimebundle_()
    assert opened.K == 4.0
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'set-workbench\[notebooks\]'"):
        opened.widget


def test_a_notebook_has_the_widget_and_what_is_shown_without_a_kernel(opened, monkeypatch):
    bundle = opened._repr_mimebundle_()
    assert bundle[VIEW]["model_id"] == opened.widget.model_id
    assert bundle["text/plain"] == opened.text
    monkeypatch.setenv(WITHOUT_WIDGETS, "1")
    assert VIEW not in opened._repr_mimebundle_()


def test_plotly_js_is_sent_when_a_page_asks_for_it_and_is_in_no_notebook(opened, monkeypatch):
    sent: list[Any] = []
    monkeypatch.setattr(opened.widget, "send", lambda content, buffers=None: sent.append((content, buffers)))
    opened.widget._handle_custom_msg({"ask": "plotly"}, [])
    ((content, (script,)),) = sent
    assert content == {"answer": "plotly"}
    assert b"plotly.js" in script[:100]
    assert sum(len(str(value)) for value in opened.widget.get_state().values()) < 600_000


def test_by_night_a_film_is_the_dark_figure(explorer):
    for figure in explorer.pictures.values():
        day, night = untitled(figure.plot()), untitled(figure.plot(dark=True))
        shown, expected = (json.loads(each.to_json()) for each in (moved(day, moves_along([day, night]), 1), night))
        expected["layout"].pop("title")  # an empty one
        assert shown == expected
        assert Film(day, night=night).spec()["night"]
        assert Film(day).spec()["night"] == []
