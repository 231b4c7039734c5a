"""Any figure follows sliders: every position is that figure, by day and by night, and Python can read where they stand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.figures import Figure
from workbench.figures.film import Move, moved
from workbench.figures.interact import MOST_POSITIONS, Interactive

VIEW = "application/vnd.jupyter.widget-view+json"
EPSILONS, SIZES = (0.1, 1.0, 3.0), (1, 2)


def levels(K: int, epsilon: float) -> Figure:
    return wb.figures.level_sets(wb.losses.ExactNoisedTopK(K=K, epsilon=epsilon), steps=11)


@pytest.fixture(scope="module")
def moving() -> Interactive:
    return wb.figures.interact(levels, K=SIZES, epsilon=EPSILONS)


@pytest.fixture
def opened() -> Interactive:
    """One of its own, whose sliders a test may move."""
    return wb.figures.interact(lambda T: wb.figures.lorenz([T, 1, 2]), T=(1, 5))


def as_sent(figure: Any) -> dict[str, Any]:
    return json.loads(figure.to_json())


@pytest.mark.parametrize("dark", [False, True])
def test_every_position_is_the_figure_that_was_asked_for(moving, dark):
    (film,) = moving.panel(night=True).pictures
    start, moves = (film.night, [*film.moves, *film.night_moves]) if dark else (film.figure, film.moves)
    for place, (K, epsilon) in enumerate((K, epsilon) for K in SIZES for epsilon in EPSILONS):
        shown, expected = moved(start, moves, place), levels(K, epsilon).plot(dark)
        for one, other in zip(as_sent(shown)["data"], as_sent(expected)["data"], strict=True):
            assert one == other


def test_only_what_differs_by_night_is_sent_twice(moving):
    (film,) = moving.panel(night=True).pictures
    values = [move for move in film.night_moves if isinstance(move, Move) and move.property in ("x", "y", "z")]
    assert values == []
    (alone,) = moving.panel().pictures
    assert (alone.night, list(alone.night_moves)) == (None, [])


def test_the_frame_has_every_position(moving):
    one = levels(1, 0.1).frame
    assert len(moving.frame) == 6 * len(one)
    assert {*moving.frame["epsilon"]} == {"0.1", "1", "3"}


def test_another_cell_reads_where_the_sliders_stand_and_moves_them(opened):
    assert opened.position == {"T": 1}
    seen: list[Any] = []
    opened.widget.observe(lambda change: seen.append(change["new"]), "values")
    opened.widget.place = 1  # as a browser does
    assert (opened.position, seen) == ({"T": 5}, [{"T": "5"}])
    assert opened.figure.subtitle == "n = 8 training rows of 3 classes"
    opened.move(T=1)
    assert opened.widget.values == {"T": "1"}
    with pytest.raises(ValueError, match=r"no position T = 2; the sliders have \{'T': \[1, 5\]\}"):
        opened.move(T=2)


def test_several_figures_are_linked_and_a_page_has_them_all():
    table = wb.LogitTable(np.random.default_rng(0).normal(size=(80, 4)), np.arange(80) % 4)
    sets = {K: wb.TopK(K).fit(table)(table) for K in (1, 2)}
    linked = wb.figures.interact(
        lambda K: {"sizes": wb.figures.set_sizes(sets[K]), "classes": wb.figures.per_class(sets[K])}, K=(1, 2)
    )
    assert [film.name for film in linked.panel().pictures] == ["sizes", "classes"]
    assert '"name": "classes", "title"' in linked.to_html()
    assert linked.widget.panel["sliders"][0]["label"] == "K"


def test_a_notebook_has_the_widget_and_any_other_figure_says_how_to_get_one(opened):
    assert opened._repr_mimebundle_()[VIEW]["model_id"] == opened.widget.model_id
    with pytest.raises(ValueError, match=r"has no slider; wb\.figures\.interact makes one"):
        wb.figures.lorenz([1, 2]).widget


def test_what_cannot_follow_a_slider_is_refused_in_words():
    with pytest.raises(ValueError, match="at least one slider"):
        wb.figures.interact(lambda: None)
    with pytest.raises(ValueError, match=f"at most {MOST_POSITIONS}"):
        wb.figures.interact(lambda x: None, x=range(MOST_POSITIONS + 1))
    with pytest.raises(TypeError, match="return a figure of"):
        wb.figures.interact(lambda x: x, x=(1, 2))
