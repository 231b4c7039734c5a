"""Figures of sets and tables show the numbers of the library and of plain arithmetic."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import workbench as wb
from workbench import bayes, display_names
from workbench.figures.data.sprites import data_url, png
from workbench.figures.sets.classes import wilson_interval
from workbench.figures.sets.thresholds import POINT


@pytest.fixture(scope="module")
def table() -> wb.LogitTable:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 240)
    scores = rng.normal(size=(240, 5)) + 1.5 * np.eye(5)[labels]
    organs = np.array(["leaf", "flower", "fruit"])[rng.integers(0, 3, 240)]
    return wb.LogitTable(scores, labels, class_counts=[300, 150, 60, 30, 5], attributes={"organ": organs})


@pytest.fixture(scope="module")
def sets(table) -> wb.PredictionSets:
    return wb.AverageK(2).fit(table)(table)


# Set sizes


def test_set_sizes_counts_every_set_once(sets):
    frame = wb.figures.set_sizes(sets).frame
    assert frame["count"].tolist() == np.bincount(sets.sizes).tolist()
    assert frame["share"].sum() == pytest.approx(1)


def test_shares_are_of_the_rows_of_a_group(table, sets):
    frame = wb.figures.set_sizes(sets, by="organ").frame
    assert frame.groupby("group")["share"].sum().to_numpy() == pytest.approx(1)
    for organ, part in frame.groupby("group"):
        sizes = sets.sizes[table.attributes["organ"] == organ]
        assert part["count"].tolist() == np.bincount(sizes, minlength=len(part)).tolist()


def test_shots_are_drawn_from_few_to_many_in_their_own_colours(sets):
    from workbench.figures.style import LIGHT

    figure = wb.figures.set_sizes(sets, by="shots")
    assert list(figure.frame["group"].unique()) == ["few", "medium", "many"]
    assert [bar.marker.color for bar in figure.plot().data] == [LIGHT.few, LIGHT.medium, LIGHT.many]


def test_a_long_tail_of_sizes_shares_the_last_bar():
    scores = np.zeros((1000, 400))
    scores[:, 0] = 10  # sets of one class, but for two rows that are all ties
    scores[:2, 0] = 0
    table = wb.LogitTable(scores)
    figure = wb.figures.set_sizes(wb.Threshold(0.001).fit(table)(table))
    (bars,) = figure.plot().data
    assert figure.frame["size"].max() == 400
    assert (max(bars.x), bars.customdata[-1], figure.plot().layout.xaxis.ticktext[-1]) == (10, 2, "10+")


def test_too_many_groups_are_refused_in_words(sets):
    with pytest.raises(ValueError, match="at most 12"):
        wb.figures.set_sizes(sets, by=np.arange(240) % 13)


def test_an_unknown_group_names_the_known_ones(sets):
    with pytest.raises(ValueError, match="'organ', 'shots'"):
        wb.figures.set_sizes(sets, by="colour")


# Classes


def test_per_class_accuracy_is_that_of_the_metric(sets):
    frame = wb.figures.per_class(sets).frame
    assert frame["accuracy"].to_numpy() == pytest.approx(wb.metrics.class_accuracy(sets))
    assert frame["n"].sum() == 240
    assert frame["hits"].sum() == sets.hits.sum()
    assert frame["accuracy"].mean() == pytest.approx(wb.metrics.macro_accuracy(sets))


def test_classes_stand_by_falling_training_images_or_else_by_falling_accuracy(table, sets):
    by_count = wb.figures.per_class(sets).ordered()
    assert by_count["count"].is_monotonic_decreasing
    bare = wb.LogitTable(table.scores, table.labels)
    by_accuracy = wb.figures.per_class(wb.AverageK(2).fit(bare)(bare)).ordered()
    assert by_accuracy["accuracy"].is_monotonic_decreasing


def test_a_class_without_rows_is_in_the_frame_and_not_in_the_picture(table):
    without = table.rows(table.labels != 3)
    figure = wb.figures.per_class(wb.AverageK(2).fit(without)(without))
    assert np.isnan(figure.frame.loc[3, "accuracy"])
    assert 3 not in figure.ordered()["class"].tolist()
    n_classes = without.n_classes
    assert f"of {n_classes - 1} of {n_classes} classes (1 has no row here)" in figure.subtitle


def test_wilson_intervals_agree_with_scipy():
    from scipy.stats import binomtest

    low, high = wilson_interval(np.array([0, 3, 10]), np.array([10, 10, 10]), z=1.959964)
    for hits, interval in zip((0, 3, 10), zip(low, high, strict=True), strict=True):
        expected = binomtest(hits, 10).proportion_ci(method="wilson")
        assert interval == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_the_lorenz_curve_of_plantnet_says_80_percent_hold_11_percent(shared_data):
    figure = wb.figures.lorenz(shared_data("plantnet300k_meta")["approx_sorted_counts"])
    assert figure.held == pytest.approx(0.11, abs=0.01)
    assert f"{figure.held:.1%}" in figure.text


# Curves


def test_the_curve_holds_what_the_index_says(table):
    index = wb.SetIndex(table, K_max=4)
    frame = wb.figures.accuracy_against_size(index).frame
    average = frame[frame["curve"] == "average-K"]
    assert average["accuracy"].to_numpy() == pytest.approx(index.curve()["accuracy"].to_numpy())
    top = frame[frame["curve"] == "top-K"].set_index("K")["accuracy"]
    assert [top[K] for K in (1, 2, 3, 4)] == pytest.approx([wb.metrics.top_k_accuracy(table, K) for K in (1, 2, 3, 4)])


def test_a_known_posterior_draws_the_best_that_is_possible(table):
    posterior = np.random.default_rng(2).dirichlet(np.ones(5), 12)[np.arange(240) % 12]  # twelve kinds of row
    known = wb.LogitTable(table.scores, table.labels, posterior=posterior)
    frame = wb.figures.accuracy_against_size(wb.SetIndex(known, K_max=3)).frame
    best = frame[frame["curve"] == "best possible"].set_index("K")["accuracy"]
    assert best.to_dict() == pytest.approx({K: bayes.average_k_accuracy(posterior, K) for K in (1, 1.5, 2, 2.5, 3)})


def test_the_best_that_is_possible_is_not_drawn_for_several_labels_and_no_accuracy_leaves_the_plot():
    present = np.random.default_rng(0).uniform(size=(60, 6))  # the probability of each class: a row sums to 3
    labels = np.random.default_rng(1).uniform(size=present.shape) < present
    known = wb.LogitTable(np.log(present / (1 - present)), labels, link="sigmoid", posterior=present)
    figure = wb.figures.accuracy_against_size(wb.SetIndex(known, K_max=5))
    assert "best possible" not in set(figure.frame["curve"])
    assert figure.frame["accuracy"].max() <= 1
    assert "best possible" not in figure.text


def test_sets_of_any_rule_are_a_point_beside_the_curve_and_their_code_marks_them_again(table):
    val, test = table.split()
    sets = wb.APS(confidence=0.99).fit(val).sets(test)
    figure = wb.figures.accuracy_against_size(wb.SetIndex(test, K_max=2), sets)
    (point,) = figure.frame[figure.frame["curve"] == display_names.of_thing(wb.APS(confidence=0.99))].to_dict("records")
    assert (point["mean_size"], point["accuracy"]) == (sets.sizes.mean(), sets.hits.mean())
    assert figure.plot().layout.xaxis.range[1] > point["mean_size"] > 2
    assert figure.static().axes
    made = {"val": val, "test": test}
    exec(figure.code, made)
    assert made["figure"].frame.equals(figure.frame)
    assert made["figure"].text == figure.text


def test_sets_of_less_than_one_class_on_average_are_on_the_picture_too(table):
    sets = wb.Threshold(0.9).fit(table).sets(table)
    figure = wb.figures.accuracy_against_size(wb.SetIndex(table, K_max=2), sets)
    assert sets.sizes.mean() < 1
    assert figure.plot().layout.xaxis.range[0] < sets.sizes.mean()
    assert figure.static().axes[0].get_xlim()[0] < sets.sizes.mean()


def test_other_sets_take_the_place_of_those_marked_before(table):
    index = wb.SetIndex(table, K_max=2)
    first, second = (rule.fit(table).sets(table) for rule in (wb.TopK(1), wb.Threshold(0.3)))
    again, once = (wb.figures.accuracy_against_size(index, sets).marking(second) for sets in (first, None))
    pd.testing.assert_frame_equal(again.frame, once.frame)
    assert (again.text, again.code) == (once.text, once.code)
    assert again.plot().data[-1].name == display_names.of_thing(wb.Threshold(0.3))
    assert again.static().axes


def test_of_a_table_sorted_by_class_the_curve_is_lowest_at_the_best_temperature():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 2000)
    sure = np.where(
        labels == 0, 1.0, 3.0
    )  # class 0 is always right and not sure enough, class 1 often wrong and too sure
    right = (labels == 0) | (rng.random(4000) < 0.6)
    scores = sure[:, None] * (2 * np.eye(2) - 1)[np.where(right, labels, 1 - labels)] / 2
    table = wb.LogitTable(scores, labels)
    figure = wb.figures.temperatures(table, table.rows(slice(100)))
    curve = figure.frame[figure.frame["rows"] == "validation"].set_index("temperature")["loss"]
    assert np.log2(curve.idxmin()) == pytest.approx(np.log2(figure.best), abs=1 / 8)  # the grid is that fine
    assert curve.min() == pytest.approx(figure.lowest, rel=0.02)
    assert "curves of at most 2\N{NO-BREAK SPACE}000 rows of each" in figure.subtitle
    assert "at most 2\N{NO-BREAK SPACE}000 rows of each, spread evenly" in figure.text
    assert "at most" not in wb.figures.temperatures(table.rows(slice(1900, 2100)), table.rows(slice(100))).subtitle


def test_the_explorer_fits_on_val_and_draws_test(table):
    val, test = table.split()
    figure = wb.figures.explore(val, test, K_max=3, step=0.5)
    for row in figure.frame.itertuples():
        sets = wb.AverageK(row.K).fit(val).sets(test)
        assert (row.mean_size, row.accuracy) == pytest.approx((sets.sizes.mean(), sets.hits.mean()))
        kept = wb.LAC().fit(val).confidence_at(row.threshold)
        assert row.confidence * val.n / (val.n + 1) == pytest.approx(kept)
    assert figure.histograms.sum(axis=1).tolist() == [test.n] * 5
    assert len(figure.plot().frames) == len(figure.plot().layout.sliders[0].steps) == 5


def test_the_explorer_refuses_tables_of_different_classes(table):
    other = wb.LogitTable(np.zeros((4, 3)), [0, 1, 2, 0])
    with pytest.raises(ValueError, match="3 classes and test 5"):
        wb.figures.explore(other, table)


# Reliability


def test_before_and_after_share_the_axis_of_rows(table):
    surer = wb.LogitTable(8 * table.scores, table.labels)
    before, after = (wb.figures.reliability(each, bins=10) for each in (table, surer))
    assert before.most < after.most  # a sure network has nearly all rows in the last bin
    pair = before.beside(after), after.beside(before)
    ends = [figure.plot().layout.yaxis2.range for figure in pair]
    assert ends[0] == ends[1] == (0, after.most)
    assert all((figure.points()["share"] <= figure.most).all() for figure in pair)
    assert pair[1] is after


def test_what_was_measured_before_is_a_faint_line_below_what_is_measured_after(table):
    before, after = wb.figures.reliability(table), wb.figures.reliability(wb.TemperatureScaling().fit(table)(table))
    *same, line = after.over(before).plot().data
    assert len(same) == len(after.plot().data)
    assert line.name == "before"
    np.testing.assert_array_equal(line.y, before.points()["accuracy"])


def test_the_dot_of_a_class_grows_with_its_rows(sets):
    figure = wb.figures.accuracy_against_count(sets)
    rows = {name: n for name, n in figure.frame[["name", "n"]].to_numpy()}
    dots = [
        (rows[name], size)
        for trace in figure.plot().data
        if trace.mode == "markers"
        for (name, *_), size in zip(trace.customdata, trace.marker.size, strict=True)
    ]
    assert sorted(dots) == sorted(dots, key=lambda dot: dot[1])
    assert len({size for _, size in dots}) == len({n for n, _ in dots}) > 1


def test_reliability_shows_the_bins_of_the_library_and_their_error(table):
    figure = wb.figures.reliability(table, bins=10)
    assert figure.frame.equals(wb.metrics.reliability_bins(table, bins=10))
    assert f"{wb.metrics.expected_calibration_error(table, bins=10):.1%}" in figure.subtitle
    gaps = (figure.frame["accuracy"] - figure.frame["confidence"]).abs() * figure.frame["count"]
    assert gaps.sum() / 240 == pytest.approx(wb.metrics.expected_calibration_error(table, bins=10))


# Photographs


def test_a_sheet_holds_every_image_at_its_place():
    images = np.random.default_rng(0).integers(1, 256, (7, 4, 5, 3), dtype=np.uint8)
    sheet = wb.figures.sprite_sheet(images, columns=3)
    assert sheet.shape == (12, 15, 3)
    for i, image in enumerate(images):
        row, column = divmod(i, 3)
        assert (sheet[4 * row : 4 * row + 4, 5 * column : 5 * column + 5] == image).all()
    assert (sheet[8:, 5:] == 0).all()
    assert (np.asarray(Image.open(io.BytesIO(png(sheet)))) == sheet).all()
    assert data_url(sheet).startswith("data:image/png;base64,")


def test_grey_and_floating_point_images_become_colours():
    grey = np.linspace(0, 1, 16).reshape(1, 4, 4)
    assert (wb.figures.sprite_sheet(grey, 1)[..., 0] == np.round(255 * grey[0])).all()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 4, 4, 2), np.uint8), "give \\(n, height, width, 3\\)"),
        (np.full((2, 4, 4, 3), 7.0), "must lie in \\[0, 1\\]"),
        (np.zeros((2, 4, 4, 3), np.int64), "images are int64"),
    ],
)
def test_other_images_are_refused_in_words(images, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.sprite_sheet(images, 2)


def test_samples_mark_hits_and_misses_by_sign_and_by_colour(sets):
    from workbench.figures.style import LIGHT

    rows = [int(np.flatnonzero(sets.hits)[0]), int(np.flatnonzero(~sets.hits)[0])]
    figure = wb.figures.samples(sets, np.zeros((240, 8, 8, 3), np.uint8), rows=rows)
    hit, miss = figure.cells(LIGHT)
    assert (hit.heading[0][0], hit.colour, miss.heading[0][0], miss.colour) == ("✓", LIGHT.hit, "✗", LIGHT.miss)
    assert figure.frame.groupby("row", sort=False)["rank"].max().tolist() == sets.sizes[rows].tolist()


def test_an_empty_set_is_shown_as_no_class(table):
    empty = wb.Threshold(1.0).fit(table).sets(table)
    figure = wb.figures.samples(empty, np.zeros((240, 8, 8, 3), np.uint8), rows=[0])
    assert figure.frame["rank"].tolist() == [0]
    assert "no class" in figure.plot().layout.annotations[0].text


@pytest.mark.parametrize(
    ("images", "rows", "message"),
    [
        (None, [0], "carries no photographs"),
        (np.zeros((3, 8, 8, 3), np.uint8), [0], "3 images and 240 rows"),
        (np.zeros((240, 8, 8, 3), np.uint8), [240], "from 0 to 239"),
        (np.zeros((240, 8, 8, 3), np.uint8), [1, 1], "different numbers"),
        (np.zeros((240, 8, 8, 3), np.uint8), [], "1 to 60 row numbers"),
    ],
)
def test_samples_refuse_in_words(sets, images, rows, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.samples(sets, images, rows=rows)


# G


def test_G_holds_what_the_index_counts_and_its_marked_path_ends_at_the_threshold(table):
    val, test = (wb.SetIndex(part, K_max=3) for part in table.split())
    threshold = val.threshold(2.0)
    figure = wb.figures.size_against_threshold(val, test, threshold=threshold)
    for rows, index in zip(figure.frame["rows"].unique(), (val, test), strict=True):
        part = figure.frame[figure.frame["rows"] == rows]
        assert part["mean_size"].tolist() == [index.mean_size(value) for value in part["threshold"]]
        assert (np.diff(part["mean_size"]) <= 0).all()
    drawn = figure.plot()
    across, down = drawn.layout.shapes
    assert (across.x1, across.y0, across.y1) == (threshold, 2.0, 2.0)
    assert (down.x0, down.x1, down.y1) == (threshold, threshold, 2.0)
    (point,) = drawn.select_traces({"name": POINT})
    assert (point.x[0], point.y[0]) == (threshold, 2.0)
    with pytest.raises(ValueError, match="above 0"):
        wb.figures.size_against_threshold(val, test, threshold=0)


def test_other_sets_of_the_same_rows_are_outlined_in_every_panel(table, sets):
    other = wb.TopK(3).fit(table).sets(table)
    figure = wb.figures.set_sizes(sets, by="organ", other=other)
    drawn = figure.plot().data
    assert len(drawn) == 6
    for bars, outlines, (_, part) in zip(
        drawn[::2], drawn[1::2], figure.frame.groupby("group", sort=False), strict=True
    ):
        these, others = (part[part["sets"] == name] for name in ("these", "other"))
        assert bars.y[:4].tolist() == pytest.approx(these.set_index("size")["share"].reindex(range(4)).tolist())
        assert outlines.y.tolist() == others["share"].tolist() == [0, 0, 0, 1]
    assert "3.00 by Top-K, K = 3" in figure.subtitle
    assert figure.static().axes
    with pytest.raises(ValueError, match="same rows"):
        wb.figures.set_sizes(sets, other=wb.TopK(1).fit(table).sets(table.rows(slice(5))))
