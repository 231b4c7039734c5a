"""A picture is defined once: moved along a slider it is the picture the library draws there, and a click knows its rows."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

import workbench as wb
from workbench.calibration import at_temperature
from workbench.figures.base import Click, Figure
from workbench.figures.film import Move, moved, moves_along, plotly_frames
from workbench.figures.sets.class_matrix import similar_order
from workbench.figures.sets.neighbours import co_members, co_members_at, companions
from workbench.figures.sets.sizes import last_bars, pooled, size_ticks
from workbench.metrics.rows import RowFilter


def table_of(n: int, n_classes: int, seed: int) -> wb.LogitTable:
    random = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes if n_classes > 100 else np.minimum(random.geometric(0.4, n) - 1, n_classes - 1)
    scores = random.normal(size=(n, n_classes))
    scores[np.arange(n), labels] += random.gamma(2, 1.5, n)
    counts = 1 + (400 / (1 + np.arange(n_classes))).astype(int)
    return wb.LogitTable(scores, labels, class_counts=counts)


SMALL = {"val": table_of(80, 7, 0), "test": table_of(100, 7, 1)}
LARGE = {"val": table_of(240, 120, 0), "test": table_of(240, 120, 1)}
THRESHOLDS = np.linspace(0.05, 0.95, 11)
NOISE = np.random.default_rng(2).normal(size=(100, 7))
OTHER = {"val": table_of(80, 7, 2), "test": wb.LogitTable(SMALL["test"].scores + NOISE, SMALL["test"].labels)}
MANY = np.random.default_rng(4).random((60, 7)) < 0.25
WITHOUT_COUNTS = {split: wb.LogitTable(SMALL[split].scores, SMALL[split].labels) for split in SMALL}
LABEL_SETS = wb.LogitTable(np.random.default_rng(5).normal(size=(60, 7)) + 2 * MANY, MANY, link="sigmoid")


pytestmark = pytest.mark.filterwarnings("ignore:.* sets are empty")


class Slider:
    """The places of K from 1 to 6, as a page with a slider has them."""

    def __init__(self, tables: dict[str, wb.LogitTable]) -> None:
        self.tables = tables
        self.val, self.test = (wb.SetIndex(tables[split], K_max=6, step=0.5) for split in ("val", "test"))

    def places(self, by: Any = None) -> dict[str, Any]:
        return self.test.compact(self.val.thresholds, by=by)

    def fitted(self) -> dict[str, Any]:
        return self.val.compact(self.val.thresholds)

    def sets(self, place: int) -> wb.PredictionSets:
        return wb.Threshold(self.val.thresholds[place]).fit(self.tables["val"])(self.tables["test"])


def compared_at(place: int) -> pd.DataFrame:
    """Two runs at a place of K, and their top-K accuracy at a K of its own."""
    tables = {"one": SMALL["test"], "two": replace(OTHER["test"], class_counts=SMALL["test"].class_counts)}
    metrics = (wb.metrics.accuracy, wb.metrics.shot_accuracy, wb.metrics.top_k_accuracy.at(K=1 + place % 3))
    rule = wb.Threshold(small.val.thresholds[place])
    return wb.comparison.compare(tables, rule, metrics, val=tables, resamples=20)


small, large, other, plain = (Slider(each) for each in (SMALL, LARGE, OTHER, WITHOUT_COUNTS))
curve = wb.figures.accuracy_against_size(small.test)
COMPARISONS = [compared_at(place) for place in range(len(small.val.thresholds))]
ORDER = similar_order(SMALL["test"])
COMPANIONS = companions(SMALL["test"], around=2, most=4)


def standing(place: int) -> Figure:
    at = small.places()
    return curve.standing_at(at["mean_size"][place], at["accuracy"][place])


trade = wb.figures.head_or_tail(SMALL["val"], SMALL["test"], K_max=6, step=0.5)


def standing_between(place: int) -> Figure:
    at = small.places()
    return trade.standing_at(*(at[name][place] for name in ("mean_size", "macro_accuracy", "accuracy")))


# Figure at a place → what it is asked to move along.
MOVING = {
    "sizes": (lambda i: wb.figures.set_sizes(small.sets(i)), small.places()),
    "sizes of long tails": (lambda i: wb.figures.set_sizes(large.sets(i)), large.places()),
    "sizes by shots": (lambda i: wb.figures.set_sizes(small.sets(i), by="shots"), small.places("shots")),
    "classes": (lambda i: wb.figures.per_class(small.sets(i)), small.places()),
    "many classes": (lambda i: wb.figures.per_class(large.sets(i)), large.places()),
    "rarity": (lambda i: wb.figures.accuracy_against_count(small.sets(i)), small.places()),
    "company": (
        lambda i: wb.figures.shared_sets(small.sets(i), around=2, among=COMPANIONS),
        {"co_members": co_members_at(SMALL["test"], COMPANIONS, small.val.thresholds), **small.places()},
    ),
    "matrix": (
        lambda i: wb.figures.class_matrix(small.sets(i), among=ORDER),
        {"co_members": co_members_at(SMALL["test"], ORDER, small.val.thresholds), **small.places()},
    ),
    "differences": (
        lambda i: wb.figures.paired_differences(COMPARISONS[i]),
        {"comparisons": COMPARISONS, **small.places()},
    ),
    "runs on two metrics": (
        lambda i: wb.figures.on_two_metrics(COMPARISONS[i], "shot_accuracy (many)", "top_k_accuracy"),
        {"comparisons": COMPARISONS, **small.places()},
    ),
    "curve": (standing, small.places()),
    "gains": (
        lambda i: wb.figures.gains_by_count(small.sets(0), small.sets(i)),
        {
            **small.places(),
            "hits_before": np.repeat(small.places()["class_hits"][:1], len(small.val.thresholds), axis=0),
        },
    ),
    "head or tail": (standing_between, small.places()),
    "G": (
        lambda i: wb.figures.size_against_threshold(small.val, small.test, threshold=float(small.val.thresholds[i])),
        small.fitted(),
    ),
    "none of these": (
        lambda i: wb.figures.none_of_these(LABEL_SETS, threshold=float(THRESHOLDS[i])),
        {"thresholds": THRESHOLDS},
    ),
    "F1": (
        lambda i: wb.figures.f1_against_threshold({"a": LABEL_SETS}, at=float(THRESHOLDS[i])),
        {"thresholds": THRESHOLDS},
    ),
}
HOVERS = {"customdata", "hovertemplate", "text"}  # under the pointer a picture that moves says less


def seen(drawn: go.Figure) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Traces, shapes and axes of a picture; bars of no height, beyond the last one, are not seen."""
    traces = []
    for trace in drawn.data:
        kept = {name: value for name, value in trace.to_plotly_json().items() if name not in HOVERS}
        if trace.type == "bar":
            high = np.asarray(trace.y) > 0
            kept |= {name: np.asarray(trace[name])[high] for name in ("x", "y", "hovertext") if name in kept}
        traces.append(kept)
    layout = drawn.layout.to_plotly_json()
    axes = {name: dict(axis) for name, axis in layout.items() if name.startswith(("xaxis", "yaxis"))}
    for name in filter(lambda name: name.startswith("xaxis"), axes):
        for end in ("range", "tickvals", "ticktext"):  # at rest the axis of sizes ends with the largest
            axes[name].pop(end, None)
    return traces, layout.get("shapes", []), axes


def assert_same(one: Any, two: Any) -> None:
    """Equal, numbers up to rounding."""
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for name in one:
            assert_same(one[name], two[name])
    elif isinstance(one, list | tuple | np.ndarray):
        assert len(one) == len(two)
        for each, other in zip(one, two, strict=True):
            assert_same(each, other)
    else:
        assert one == (pytest.approx(two, abs=1e-9, nan_ok=True) if isinstance(one, numbers.Real) else two)


@pytest.mark.parametrize("name", MOVING)
def test_a_picture_moved_along_a_slider_is_the_picture_that_is_drawn_there(name):
    drawn, places = MOVING[name]
    first = drawn(0)
    start, moves = first.plot(), first.moves(places)
    n_places = len(places["thresholds"])
    assert all(len(move.values) in (1, n_places) for move in moves)
    for place in (0, 3, n_places - 1):
        assert_same(seen(moved(start, moves, place)), seen(drawn(place).plot()))


def test_the_sets_of_another_model_move_with_them():
    def drawn(place):
        return wb.figures.set_sizes(small.sets(place), by="shots", other=other.sets(place))

    codes, names = wb.tables.groups.rows_by(SMALL["test"], "shots")
    of_rows = np.array(names)[codes]
    places, of_other = small.places("shots"), other.places(of_rows)
    moves = drawn(0).moves(places, other=of_other)
    for place in (0, 4, 9):
        assert_same(seen(moved(drawn(0).plot(), moves, place)), seen(drawn(place).plot()))
    said = drawn(0).subtitles(places, other=of_other)[4]
    assert said.endswith(f"; outlined: {other.sets(4).sizes.mean():.2f}")


def test_a_selection_moves_in_front_of_all_rows():
    rows = np.arange(0, 100, 3)

    def drawn(place):
        return wb.figures.set_sizes(small.sets(place), rows=rows)

    of_rows = wb.SetIndex(SMALL["test"].rows(rows), K_max=6, step=0.5).compact(small.val.thresholds)
    moves = drawn(0).moves(of_rows, other=small.places())
    for place in (0, 4, 9):
        assert_same(seen(moved(drawn(0).plot(), moves, place)), seen(drawn(place).plot()))
    sizes = small.sets(4).sizes
    assert drawn(0).subtitles(of_rows, other=small.places())[4] == (
        f"n = 34 selected of 100 sets, {sizes[rows].mean():.2f} classes on average; outlined, all: {sizes.mean():.2f}"
    )


def test_classes_without_counts_keep_their_places_while_a_slider_moves():
    first = wb.figures.per_class(plain.sets(0))
    moves = first.moves(plain.places())
    shown = moved(first.plot(), moves, 6)
    classes = [each[-1] for each in shown.data[0].customdata]
    assert classes == first.ordered()["class"].tolist()
    accuracy = wb.metrics.class_accuracy(plain.sets(6))
    np.testing.assert_allclose(shown.data[0].y, accuracy[classes])
    assert shown.layout.xaxis.title.text == "classes, most accurate at the smallest K first"


@pytest.mark.parametrize("name", MOVING)
def test_a_subtitle_that_moves_says_the_mean_of_its_place(name):
    drawn, places = MOVING[name]
    subtitles = drawn(0).subtitles(places)
    if len(subtitles) == 1:
        assert subtitles == [drawn(0).subtitle]
    else:
        assert len(subtitles) == len(places["thresholds"])
        assert subtitles[0] != subtitles[-1]


def test_the_explorer_shows_its_moves_as_frames():
    figure = wb.figures.explore(SMALL["val"], SMALL["test"], K_max=6, step=0.5)
    drawn = figure.plot()
    moves = figure.moves(small.places())
    for place, frame in enumerate(drawn.frames):
        shown = moved(drawn, moves, place)
        for number, trace in zip(frame.traces, frame.data, strict=True):
            for name in set(trace.to_plotly_json()) - {"type"}:
                np.testing.assert_allclose(trace[name], shown.data[number][name])
        assert frame.layout.yaxis.range == shown.layout.yaxis.range
    np.testing.assert_allclose(drawn.frames[2].data[0].y, figure.shares()[2], atol=1e-5)


def test_a_move_finds_its_trace_and_its_shape_by_name():
    drawn = go.Figure([{"name": "a"}, {"name": "b"}], {"shapes": [{"name": "s"}, {"name": "t"}]})
    assert Move("y", [[1]], "b").found_in(drawn) == (1, "y")
    assert Move("x0", [1], shape="t").found_in(drawn) == (None, "shapes[1].x0")
    assert Move("xaxis.range", [(0, 1)]).found_in(drawn) == (None, "xaxis.range")
    with pytest.raises(ValueError, match="not in list"):
        Move("y", [[1]], "c").found_in(drawn)
    (frame,) = plotly_frames(drawn, [Move("y", [[1, 2]], "b"), Move("xaxis.range", [(0, 1)])], ["only"])
    assert (frame.traces, list(frame.data[0].y), frame.layout.xaxis.range) == ((1,), [1, 2], (0, 1))


def test_any_pictures_of_one_kind_follow_one_another_whole():
    tables = [at_temperature(SMALL["test"], T) for T in (0.25, 1.0, 4.0)]
    curve = wb.figures.temperatures(SMALL["val"], SMALL["test"])
    losses = [wb.losses.NoisedTopK(K=2, epsilon=epsilon) for epsilon in (0.2, 1.0)]
    for pictures in (
        [wb.figures.reliability(table).plot(dark=True) for table in tables],
        [curve.marked(T).plot() for T in (0.5, 2.0)],
        [wb.figures.line_profile([loss]).plot() for loss in losses],
        [wb.figures.level_sets(loss, steps=11, gradients=True).plot() for loss in losses],
    ):
        moves = moves_along(pictures)
        assert moves
        for place, picture in enumerate(pictures):
            shown = moved(pictures[0], moves, place)
            assert_same([trace.to_plotly_json() for trace in shown.data], [t.to_plotly_json() for t in picture.data])
            assert_same(shown.layout.to_plotly_json(), picture.layout.to_plotly_json())
    with pytest.raises(ValueError, match="have the same traces"):
        moves_along([go.Figure([{"type": "bar"}]), go.Figure([{"type": "scatter"}])])


# Sizes that share a bar


def test_bars_beyond_the_last_are_pooled_in_steps_of_ten_and_fifty_stands_for_all_larger_sizes():
    shares = np.zeros((3, 2, 51))
    shares[:, :, 1] = 0.9
    shares[0, :, 7], shares[1, :, 13], shares[2, 0, 50], shares[2, 1, 2] = 0.1, 0.1, 0.1, 0.1
    last = last_bars(shares, n_classes=51)
    assert last.tolist() == [10, 20, 50]
    assert pooled(shares, np.array([10, 10, 10]))[1:, 0, 10].tolist() == pytest.approx([0.1, 0.1])
    np.testing.assert_allclose(pooled(shares, last).sum(axis=2), 1)
    assert size_ticks(20, larger=False) == (list(range(0, 21, 2)), [str(size) for size in range(0, 21, 2)])

    tables = {split: table_of(120, 160, seed) for seed, split in enumerate(("val", "test"))}
    index = wb.SetIndex(tables["test"], K_max=60, step=59)
    places = index.compact(index.thresholds)
    figure = wb.figures.set_sizes(wb.AverageK(1).fit(tables["test"])(tables["test"]))
    shown = moved(figure.plot(), figure.moves(places), 1)
    assert shown.layout.xaxis.ticktext[-1] == "50+"
    assert shown.data[0].hovertext[50] == "50 classes or more"
    assert shown.data[0].customdata[50] == np.count_nonzero(index.sizes(K=60) >= 50)


def test_the_axis_of_sizes_never_goes_beyond_the_number_of_classes():
    table = table_of(80, 6, 0)
    figure = wb.figures.set_sizes(wb.AverageK(2).fit(table)(table))
    index = wb.SetIndex(table)
    for drawn in (figure.plot(), moved(figure.plot(), figure.moves(index.compact(index.thresholds)), 3)):
        assert tuple(drawn.layout.xaxis.range) == (-0.5, 6.5)
        assert drawn.layout.xaxis.ticktext[-1] == "6"


def test_the_axis_of_sizes_ends_with_the_largest_at_rest_and_stands_still_under_a_slider():
    scores = np.zeros((40, 30))
    scores[:, :13] = 5.0
    table = wb.LogitTable(scores)
    figure = wb.figures.set_sizes(wb.Threshold(0.05).fit(table)(table))
    assert figure.plot().layout.xaxis.range == (-0.5, 13.5)
    assert figure.plot().layout.xaxis.ticktext[-1] == "12"  # of every other size
    places = wb.SetIndex(table, K_max=13).compact([0.05, 0.06])
    assert moved(figure.plot(), figure.moves(places), 0).layout.xaxis.range == (-0.5, 20.5)


# Rows behind a click


def clicks(figure: Figure) -> list[tuple[Click, Any]]:
    """Every point of every trace of a picture, with the trace."""
    found = []
    for trace in figure.plot().data:
        points = np.ndindex(np.shape(trace.z)) if trace.type == "heatmap" else range(len(trace.x))
        for point in points:
            data = None if trace.customdata is None else trace.customdata[point]
            found.append((Click(trace.name, point, data), trace))
    return found


def opened(figure: Figure, sets: wb.PredictionSets) -> list[int]:
    """How many rows each part of a picture opens."""
    assert figure.opens_rows
    found = (figure.rows_behind(click) for click, _ in clicks(figure))
    return [len(rows.rows(sets)) for rows in found if rows is not None]


def test_a_bar_of_sizes_opens_as_many_rows_as_it_says():
    for figure, sets in (
        (wb.figures.set_sizes(small.sets(4)), small.sets(4)),
        (wb.figures.set_sizes(small.sets(4), by="shots"), small.sets(4)),
        (wb.figures.set_sizes(large.sets(9)), large.sets(9)),
    ):
        told = [int(trace.customdata[click.point]) for click, trace in clicks(figure)]
        assert opened(figure, sets) == told
        assert sum(told) == len(sets)


def test_an_outlined_bar_opens_rows_of_the_other_sets():
    these, those = small.sets(2), other.sets(2)
    figure = wb.figures.set_sizes(these, other=those)
    for click, trace in clicks(figure):
        whose = those if figure.outlined(click) else these
        assert len(figure.rows_behind(click).rows(whose)) == trace.customdata[click.point]


def test_a_last_bar_that_larger_sets_share_opens_all_of_them():
    scores = np.zeros((1000, 400))
    scores[:, 0] = 10
    scores[:2, 0] = 0  # two rows that are all ties
    table = wb.LogitTable(scores)
    sets = wb.Threshold(0.001).fit(table)(table)
    figure = wb.figures.set_sizes(sets)
    click = Click("all rows", 10, figure.plot().data[0].customdata[10])
    assert figure.rows_behind(click).rows(sets).tolist() == [0, 1]


@pytest.mark.parametrize("draw", [wb.figures.per_class, wb.figures.accuracy_against_count])
def test_a_class_opens_its_rows_before_and_after_a_move(draw):
    figure, sets = draw(small.sets(0)), small.sets(0)
    n = figure.frame.set_index("class")["n"]
    assert sum(opened(figure, sets)) == n.sum()
    for drawn in (figure.plot(), moved(figure.plot(), figure.moves(small.places()), 5)):
        for trace in drawn.data:
            for data in trace.customdata if trace.customdata is not None else ():
                rows = figure.rows_behind(Click(trace.name, 0, data)).rows(sets)
                assert len(rows) == n[int(data[-1])]
                assert (sets.table.labels[rows] == int(data[-1])).all()


def test_a_bar_of_many_classes_opens_nothing():
    figure = wb.figures.per_class(large.sets(0))
    assert not figure.opens_rows
    assert figure.rows_behind(Click("few", 3)) is None


def test_a_bin_of_a_reliability_diagram_opens_its_rows_from_dot_and_bar():
    figure, sets = wb.figures.reliability(SMALL["test"], bins=8), small.sets(0)
    told = figure.points()["count"].tolist()
    assert opened(figure, sets) == told * 2
    assert not wb.figures.reliability(SMALL["test"], K=2).opens_rows


def test_a_bar_of_confidence_opens_its_rows_with_or_without_a_label():
    figure = wb.figures.none_of_these(LABEL_SETS)
    sets = wb.Threshold(0.5).fit(LABEL_SETS)(LABEL_SETS)
    assert opened(figure, sets) == figure.frame["count"].tolist()


def test_a_cell_of_shared_sets_opens_the_rows_that_hold_both():
    sets = small.sets(6)
    figure = wb.figures.shared_sets(sets, around=0)
    together = figure.frame.set_index(["class", "with_class"])["together"]
    for line, one in enumerate(figure.order):
        for column, two in enumerate(figure.order):
            rows = figure.rows_behind(Click(None, [line, column])).rows(sets)
            if line != column:
                assert len(rows) == together[one, two]


def test_a_cell_of_the_matrix_opens_the_rows_with_both_classes_and_one_on_the_diagonal_those_of_its_block():
    sets = small.sets(8)
    figure = wb.figures.class_matrix(sets, level=0.15)
    for pair in figure.frame.itertuples():
        cell = [figure.order.index(pair._1), figure.order.index(pair.with_class)]
        rows = figure.rows_behind(Click("pairs", cell)).rows(sets)
        either = np.union1d(*(RowFilter(holds=(each,)).rows(sets) for each in (pair._1, pair.with_class)))
        assert (len(rows), len(either)) == (pair.together, pair.sets)
        assert pair.share == pytest.approx(len(rows) / len(either))
    blocks = figure.blocks()
    assert len(blocks)
    for block in blocks.itertuples():
        place = figure.order.index(block.members[0])
        rows = figure.rows_behind(Click("pairs", [place, place])).rows(sets)
        assert len(rows) == block.rows
        assert (sets.matrix()[np.ix_(rows, block.members)].sum(axis=1) >= 2).all()
    assert figure.rows_behind(Click("groups", [0, 0])) is None


def test_blocks_of_the_matrix_grow_with_K_and_those_that_cross_groups_are_named():
    table = wb.LogitTable.from_probabilities(
        [[0.5, 0.3, 0.2, 0.0], [0.4, 0.4, 0.2, 0.0], [0.0, 0.0, 0.2, 0.8]], groups=["a", "b", "b", "c"]
    )
    order = (0, 1, 2, 3)
    sizes = []
    for threshold in (0.45, 0.25, 0.15):
        figure = wb.figures.class_matrix(wb.Threshold(threshold).fit(table)(table), among=order)
        sizes.append(figure.blocks()["size"].tolist())
    assert sizes == [[], [2], [3]]
    assert figure.blocks()["groups"].tolist() == ["b 2, a 1"]
    assert "Of several groups: class 0, class 1, class 2 (b 2, a 1)" in figure.text
    with pytest.raises(ValueError, match=r"among = \[0, 0\]; give some of the 4 classes, each once"):
        wb.figures.class_matrix(figure.sets, among=[0, 0])


def test_companions_are_those_that_most_thresholds_put_together_and_are_counted_as_in_the_sets_of_each():
    table = SMALL["test"]
    thresholds = np.random.default_rng(6).random(50)  # in no order
    together = co_members_at(table, range(table.n_classes), thresholds)
    for place in (0, 17):
        sets = wb.Threshold(thresholds[place]).fit(table).sets(table)
        np.testing.assert_array_equal(together[place], co_members(sets))
    many = co_members_at(table, range(table.n_classes), np.linspace(0, 1, 1001))[1:, 2].sum(axis=0)
    most = [int(each) for each in np.argsort(-many) if each != 2][:3]
    assert set(companions(table, around=2, most=3)) == {2, *most}
    with pytest.raises(ValueError, match=r"among = \[0, 1\]; give some of the 7 classes, 2 one of them"):
        wb.figures.shared_sets(small.sets(0), around=2, among=[0, 1])


def test_a_bar_of_improvement_opens_what_was_gained_or_lost():
    before = wb.TopK(1).fit(SMALL["test"])(SMALL["test"])
    after = small.sets(3)
    figure = wb.figures.most_improved(before, after)
    for place, bar in enumerate(figure.ends().itertuples()):
        rows = figure.rows_behind(Click(None, place)).rows(before, after)
        assert len(rows) == (bar.gained if bar.difference > 0 else bar.lost)


def test_an_answer_a_quadrant_and_a_slice_open_as_many_rows_as_they_say():
    sets = small.sets(3)
    answers = wb.figures.same_answer(sets)
    for count, data in zip(answers.frame["count"], answers.plot().data[0].customdata, strict=False):
        assert len(answers.rows_behind(Click(None, 0, data)).rows(sets)) == count
    slices = wb.figures.worst_slices(sets, min_rows=5)
    for line, n in enumerate(slices.frame["n"]):
        assert len(slices.rows_behind(Click(None, 0, [line])).rows(sets)) == n
    known = replace(SMALL["test"], posterior=SMALL["test"].probabilities()[::-1])
    sets = wb.Threshold(0.2).fit(known)(known)
    quadrants = wb.figures.against_bayes(sets)
    for name, part in quadrants.frame.groupby("quadrant"):
        assert len(quadrants.rows_behind(Click(name, 0)).rows(sets)) == part["count"].sum()


def test_most_pictures_neither_move_nor_open_rows():
    figure = wb.figures.lorenz([1, 2, 3])
    assert figure.moves(small.places()) == []
    assert figure.subtitles(small.places()) == [figure.subtitle]
    assert not figure.opens_rows
    assert figure.rows_behind(Click("any", 0)) is None


# Nothing is left out


def kinds(figure: type[Figure]) -> set[type[Figure]]:
    """All kinds of figures."""
    return {figure}.union(*(kinds(each) for each in figure.__subclasses__()))


def test_every_figure_that_moves_is_moved_here():
    moving = {kind for kind in kinds(Figure) if kind.moves is not Figure.moves}
    tried = {type(drawn(0)) for drawn, _ in MOVING.values()} | {wb.figures.explore(**SMALL).__class__}
    assert moving == tried, "add an example of a new one to MOVING"


def test_every_figure_whose_parts_are_clicked_is_clicked_here():
    clicked = {kind.__name__ for kind in kinds(Figure) if kind.rows_behind is not Figure.rows_behind}
    assert clicked == {
        *("SetSizes", "PerClass", "AccuracyAgainstCount", "Reliability", "NoneOfThese", "SharedSets", "MostImproved"),
        *("GainsByCount", "SameAnswer", "AgainstBayes", "WorstSlices", "ClassMatrix"),
    }
