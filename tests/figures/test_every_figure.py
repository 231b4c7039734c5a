"""What is true of every figure: numbers first, two renderers, words, and code that makes it again."""

from __future__ import annotations

import dataclasses
import functools
import html
import inspect
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as StaticFigure

import workbench as wb
from workbench.figures.style import DARK, LIGHT


def table_of(n: int, n_classes: int, seed: int = 0, **fields: object) -> wb.LogitTable:
    """Scores that know their label more often than not, over classes that are not equally frequent."""
    rng = np.random.default_rng(seed)
    labels = np.minimum(rng.geometric(min(0.9, 3 / n_classes), n) - 1, n_classes - 1)
    scores = rng.normal(size=(n, n_classes)).astype(np.float32)
    scores[np.arange(n), labels] += rng.gamma(2, 1.5, n)
    counts = 1 + (400 / (1 + np.arange(n_classes))).astype(int)
    return wb.LogitTable(scores, labels, class_counts=counts, **fields)


SIDE = np.linspace(-1, 1, 5)
PLANE = pd.DataFrame([(a, b, 0.5 + a**2 + 2 * b**2, 0.9 - a**2 / 4) for a in SIDE for b in SIDE]).set_axis(
    ["a", "b", "loss", "accuracy"], axis=1
)
PLANE = PLANE.assign(threshold=0.1, K=2.0, n=100)
SUMMARY = pd.DataFrame(
    [
        (epsilon, K, "test", metric, 0.5 + epsilon / 10 - K / 100, 3, 0.45, 0.66)
        for metric in ("accuracy", "mean_size", "expected_calibration_error", "macro_accuracy")
        for K in (1, 3)
        for epsilon in (0.01, 0.1, 1.0)
    ],
    columns=["loss.epsilon", "loss.K", "split", "metric", "mean", "seeds", "low", "high"],
)
MIXTURES = pd.DataFrame(
    [
        (
            (1 - weight, 0.0, 0.0, 0.0, weight),
            operator,
            "test",
            f"top_k_accuracy@K={K}",
            0.5 + weight / 10,
            3,
            0.45,
            0.66,
        )
        for K in (1, 5)
        for operator in ("splitter", "soft_sort")
        for weight in (0.0, 0.5, 1.0)
    ],
    columns=["loss.p_k", "loss.operator", "split", "metric", "mean", "seeds", "low", "high"],
)
HISTORY = pd.DataFrame(
    {
        "epoch": [0, 1, 2],
        "train_loss": [2.0, 1.1, 0.7],
        "val_loss": [1.9, 1.3, 1.2],
        "val_accuracy": [0.4, 0.6, 0.62],
        "val_mean_size": [2.0, 2.0, 2.0],
        "seconds": [1.5, 1.4, 1.4],
    }
)
REPRODUCED = pd.DataFrame(
    [
        (loss, f"K = {K}", part, 90.0 + K, 89.5 + K, 90.5 + K, 91.0 + K / 2, 90.0, 92.0, 3)
        for loss in ("CE", "a loss whose name is far too long to stand beside an axis of a picture")
        for K in (1, 5)
        for part in ("", "few")
    ],
    columns=["row", "column", "part", "printed", "printed_low", "printed_high", "ours", "low", "high", "seeds"],
)
PLAN = pd.DataFrame(
    [
        (epsilon, seed, state, seconds, accuracy)
        for seed in (0, 1)
        for epsilon, state, seconds, accuracy in (
            (0.1, "trained", None, 0.6 + seed / 10),
            (0.2, "to train", 40.0, None),
            (1.0, "failed", None, None),
        )
    ],
    columns=["loss.epsilon", "seed", "state", "seconds", "accuracy"],
)
ORGANS = np.array(["flower", "leaf", "fruit"])
TABLES = {
    "seven classes": table_of(300, 7, class_names=[f"species {k}" for k in range(7)], groups=[*"aaabbcc"]),
    "sixty classes": table_of(400, 60),
    "1081 classes": table_of(500, 1081),
}
POINTS = pd.DataFrame(
    {"series": "noised", "x": [0.1, 1.0], "value": [60.0, 90.0], "low": [58.0, 89.0], "high": [62.0, 91.0]}
)
OF_LOSSES = {
    *("binary_surrogates", "calibration_map", "conditional_risk", "gallery", "gradient_sparsity", "level_sets"),
    *("against_knob", "against_mixture", "learning_curves", "line_profile", "moat", "normalisers", "probe"),
    *(
        "descent_paths",
        "filmstrip",
        "loss_difference",
        "reproduced",
        "smoothing_bounds",
        "twins",
        "sweep_plan",
        "weight_plane",
        "with_intervals",
    ),
}
OF_TABLES = (
    *(
        "accuracy_against_count",
        "accuracy_against_size",
        "candidates",
        "against_bayes",
        "coverage_bounds",
        "explore",
        "f1_against_threshold",
        "gains_by_count",
        "head_or_tail",
        "lorenz",
        "most_improved",
        "none_of_these",
        "on_two_metrics",
        "paired_differences",
        "per_class",
        "risk_against_coverage",
    ),
    *(
        "reliability",
        "reliability_curve",
        "rule_tradeoff",
        "samples",
        "set_sizes",
        "shared_sets",
        "class_matrix",
        "size_against_threshold",
        "temperatures",
    ),
    *("same_answer", "worst_slices"),
)
NAMES = (*sorted(OF_LOSSES), *OF_TABLES)
# Of these no more than a table of scores is asked.
WITHOUT_LABELS = {
    *("against_bayes", "lorenz", "none_of_these", "same_answer", "samples", "set_sizes", "shared_sets"),
    "class_matrix",
    "size_against_threshold",
}


def namespace(table: wb.LogitTable, name: str = "") -> dict[str, object]:
    """What a reader of the `code` of the figure of that name has at hand."""
    if name == "against_bayes":
        table = dataclasses.replace(table, posterior=wb.LogitTable(table.scores / 3).probabilities())
    val, test = (table, table) if table.n == 1 else table.split()
    images = np.random.default_rng(1).integers(0, 256, (test.n, 12, 10, 3), dtype=np.uint8)
    blurred = {
        f"other_{name}": wb.LogitTable(part.scores / 3, part.labels, link=part.link)
        for name, part in (("val", val), ("test", test))
    }
    tables = {"a": test, "b": blurred["other_test"]}
    partial = (
        {}
        if table.many_labels
        else {f"partial_{part}": wb.PartialTable.of_table(rows, m=3) for part, rows in (("val", val), ("test", test))}
    )
    return {
        "val": val,
        "test": test,
        "table": test,
        "tables": tables,
        "images": images,
        "plane": PLANE,
        "history": HISTORY,
        "histories": {
            name: HISTORY.assign(normaliser_mean=[4.0, 9.0, mean], normaliser_variance=[0.5, 2.0, 0.1])
            for name, mean in (("softmax", 800.0), ("quasibinary", 9.5))
        },
        "summary": MIXTURES if name == "against_mixture" else SUMMARY,
        "frame": REPRODUCED,
        "plan": PLAN,
        "points": POINTS,
        **blurred,
        **partial,
    }


def comparison_of(at_hand: dict[str, object]) -> pd.DataFrame:
    tables, val = ({"a": at_hand[split], "b": at_hand[f"other_{split}"]} for split in ("test", "val"))
    metrics = (wb.metrics.accuracy, wb.metrics.macro_accuracy)
    return wb.comparison.compare(tables, wb.Threshold(0.2), metrics, val=val, resamples=20)


def made(name: str, table: wb.LogitTable) -> wb.figures.Figure:
    at_hand = namespace(table, name)
    val, test = at_hand["val"], at_hand["test"]
    match name:
        case "level_sets":
            return wb.figures.level_sets(wb.losses.CrossEntropy(), label=1, steps=11)
        case "descent_paths":
            return wb.figures.descent_paths(wb.losses.CrossEntropy(), label=1, n_steps=3, steps=11)
        case "loss_difference":
            return wb.figures.loss_difference(wb.losses.TopKHinge(K=1), wb.losses.CrossEntropy(), label=1, steps=11)
        case "gallery":
            return wb.figures.gallery([wb.losses.CrossEntropy, wb.losses.CalibratedTopKHinge(K=1)], label=0, steps=11)
        case "filmstrip":
            return wb.figures.filmstrip(wb.losses.NoisedTopK(K=1), "epsilon", (0.1, 1.0), label=1, steps=11)
        case "probe":
            return wb.figures.probe([wb.losses.CrossEntropy(), wb.losses.NoisedTopK(K=2)], (0.2, 1.0, 0.8), label=1)
        case "line_profile":
            return wb.figures.line_profile([wb.losses.CrossEntropy(), wb.losses.CalibratedTopKHinge(K=2)], steps=31)
        case "binary_surrogates":
            return wb.figures.binary_surrogates()
        case "gradient_sparsity":
            losses = [wb.losses.NoisedTopK(K=1), wb.losses.CrossEntropy()]
            return wb.figures.gradient_sparsity(losses, epsilons=(0.01, 0.1, 1))
        case "smoothing_bounds":
            return wb.figures.smoothing_bounds(epsilons=(0.1, 1))
        case "moat":
            return wb.figures.moat(steps=11)
        case "twins":
            return wb.figures.twins(steps=4)
        case "conditional_risk":
            return wb.figures.conditional_risk(wb.losses.NoisedTopK(K=2), steps=13)
        case "calibration_map":
            return wb.figures.calibration_map(wb.losses.TopKHinge(K=1), steps=7, grid=13)
        case "weight_plane":
            return wb.figures.weight_plane(at_hand["plane"])
        case "against_knob":
            return wb.figures.against_knob(at_hand["summary"], "loss.epsilon")
        case "sweep_plan":
            return wb.figures.sweep_plan(at_hand["plan"])
        case "normalisers":
            return wb.figures.normalisers(at_hand["histories"])
        case "with_intervals":
            return wb.figures.with_intervals(at_hand["points"], "ε", "top-5 accuracy, %", logarithmic=True)
        case "reproduced":
            return wb.figures.reproduced(at_hand["frame"])
        case "against_mixture":
            return wb.figures.against_mixture(at_hand["summary"])
        case "learning_curves":
            return wb.figures.learning_curves(at_hand["history"], epochs=5)
        case "lorenz":
            return wb.figures.lorenz(table.class_counts)
        case "reliability":
            return wb.figures.reliability(test, bins=10)
        case "reliability_curve":
            return wb.figures.reliability_curve(test)
        case "on_two_metrics":
            return wb.figures.on_two_metrics(comparison_of(at_hand))
        case "paired_differences":
            return wb.figures.paired_differences(comparison_of(at_hand))
        case "none_of_these":
            return wb.figures.none_of_these(test, threshold=0.4)
        case "candidates":
            return wb.figures.candidates(test, K=2 if table.n_classes > 2 else 1, batch=8)
        case "risk_against_coverage":
            return wb.figures.risk_against_coverage(test, K=(2, 5))
        case "f1_against_threshold":
            return wb.figures.f1_against_threshold(at_hand["tables"], at=0.3)
        case "temperatures":
            return wb.figures.temperatures(val, test, at=1.5)
        case "accuracy_against_size":
            return wb.figures.accuracy_against_size(wb.SetIndex(test, K_max=4, step=0.5))
        case "coverage_bounds":
            return wb.figures.coverage_bounds(at_hand["partial_val"], at_hand["partial_test"])
        case "size_against_threshold":
            indices = [wb.SetIndex(part, K_max=4, step=0.5) for part in (val, test)]
            return wb.figures.size_against_threshold(*indices, threshold=0.2)
        case "head_or_tail":
            return wb.figures.head_or_tail(val, test, K_max=4, step=0.5)
        case "rule_tradeoff":
            return wb.figures.rule_tradeoff(val, test, rules=[wb.TopK(1), wb.LAC(0.8), wb.APS(0.8, min_size=1)])
        case "explore":
            return wb.figures.explore(val, test, K_max=3, step=0.5)
    sets = wb.AverageK(K=2 if table.n_classes > 2 else 1, min_size=1).fit(val)(test)
    if name == "most_improved":
        return wb.figures.most_improved(wb.TopK(K=1).fit(at_hand["other_val"])(at_hand["other_test"]), sets)
    if name == "gains_by_count":
        return wb.figures.gains_by_count(wb.TopK(K=1).fit(val)(test), sets)
    if name == "shared_sets":
        return wb.figures.shared_sets(sets, around=0)
    return wb.figures.samples(sets, at_hand["images"]) if name == "samples" else getattr(wb.figures, name)(sets)


CASES = [(name, "seven classes") for name in NAMES] + [(name, "1081 classes") for name in OF_TABLES]
CASES += [("per_class", "sixty classes")]


@functools.cache
def example(name: str, size: str) -> wb.figures.Figure:
    """The figure of that name; it cannot be changed, so that all tests share it."""
    return made(name, TABLES[size])


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}, {case[1]}")
def figure(request) -> wb.figures.Figure:
    return example(*request.param)


@pytest.fixture(scope="module")
def plot(figure) -> go.Figure:
    return figure.plot()


@pytest.fixture(scope="module")
def static(figure) -> StaticFigure:
    return figure.static()


@pytest.fixture(scope="module", params=NAMES)
def small(request) -> wb.figures.Figure:
    return example(request.param, "seven classes")


@pytest.fixture(scope="module")
def small_plot(small) -> go.Figure:
    return small.plot()


@pytest.fixture(scope="module")
def small_static(small) -> StaticFigure:
    return small.static()


def test_every_figure_of_the_list_is_tested_here_and_public():
    listed = {figure.__name__ for figure in wb.figures.FIGURES}
    assert listed == set(NAMES), "an example of a new figure is made by `made`; add its name to OF_TABLES or OF_LOSSES"
    assert set(wb.figures.__all__) == {"FIGURES", "Code", "Figure", "interact", "sprite_sheet", *NAMES}


def test_the_frame_is_tidy(figure):
    assert isinstance(figure.frame, pd.DataFrame)
    assert len(figure.frame) > 0
    assert isinstance(figure.frame.index, pd.RangeIndex)
    assert figure.frame.columns.is_unique
    assert not any(isinstance(value, list | tuple | np.ndarray) for value in figure.frame.iloc[0])


def test_plotly_draws_it_on_axes_that_are_fixed(plot):
    assert isinstance(plot, go.Figure)
    assert len(plot.data) > 0
    for axis in [*plot.select_xaxes(), *plot.select_yaxes()]:
        assert axis.range is not None
        assert np.isfinite(np.array(axis.range, float)).all()
    assert plot.layout.height


def test_matplotlib_draws_it_without_a_browser(static, tmp_path):
    assert isinstance(static, StaticFigure)
    path = tmp_path / "picture.png"
    static.savefig(path, dpi=30)
    assert path.stat().st_size > 500


def test_it_says_how_many_rows_stand_behind_it(figure, plot, static):
    for words in (figure.subtitle, figure.text):
        assert re.search(r"\bn = \d", words)
    assert figure.subtitle in plot.layout.title.text
    assert figure.title in plot.layout.title.text
    assert figure.subtitle in [text.get_text() for text in static.texts]


def assert_header_on_paper(static):
    paper = static.get_window_extent()
    assert all(text.get_window_extent().x1 < paper.x1 for text in static.texts[-2:])


def test_title_and_subtitle_end_on_the_paper(static):
    assert_header_on_paper(static)


def test_a_subtitle_with_much_to_say_ends_on_the_paper():
    loss = wb.losses.DifferentiableTopK(p_k=(0.5, 0.5))  # five knobs
    assert_header_on_paper(wb.figures.conditional_risk(loss, K=2, steps=5).static())


def test_the_words_are_sentences_with_numbers(figure):
    assert figure.text.endswith(".")
    assert len(re.findall(r"\d", figure.text)) > 4
    assert "nan" not in figure.text.lower().split()


@pytest.mark.parametrize(("name", "size"), CASES)
def test_its_code_makes_the_same_frame_again(name, size):
    figure = example(name, size)
    at_hand = namespace(TABLES[size], name)
    if name in ("on_two_metrics", "paired_differences"):
        at_hand["comparison"] = comparison_of(at_hand)
    exec(figure.code, at_hand)
    pd.testing.assert_frame_equal(at_hand["figure"].frame, figure.frame)
    assert at_hand["figure"].text == figure.text


def test_by_night_only_the_colours_change(small, small_plot):
    light, dark = small_plot, small.plot(dark=True)
    assert light.layout.template.layout.paper_bgcolor == LIGHT.paper
    assert dark.layout.template.layout.paper_bgcolor == DARK.paper
    assert [trace.type for trace in light.data] == [trace.type for trace in dark.data]
    assert to_hex(small.static(dark=True).get_facecolor()) == DARK.paper


def test_no_colour_is_plotly_s_own(small_plot):
    colours = set(re.findall(r"#[0-9a-f]{6}", small_plot.to_json().lower()))
    assert not colours & {"#636efa", "#ef553b", "#00cc96", "#ab63fa", "#ffa15a", "#e5ecf6"}


def test_a_page_holds_the_picture_its_words_and_no_address_to_fetch(small):
    page = small.page()
    assert 'role="img"' in page
    assert small.title in page
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?:', page)


def test_a_notebook_shows_words_where_it_cannot_show_pictures(small, small_static):
    assert small._repr_mimebundle_()["text/plain"] == small.text
    assert repr(small_static) == small.text


def test_a_still_picture_keeps_its_words_on_an_exported_page(small, small_static):
    image = small_static._repr_html_()
    assert image.startswith('<img src="data:image/png;base64,')
    assert image.endswith(f' alt="{html.escape(small.text)}">')


def test_it_cannot_be_changed(small):
    with pytest.raises(AttributeError):
        small.title = "another"


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"binary_surrogates", "moat", "smoothing_bounds"}))
def test_what_it_is_not_made_of_is_refused_in_words(name):
    draw = getattr(wb.figures, name)
    needed = [each for each in inspect.signature(draw).parameters.values() if each.default is each.empty]
    with pytest.raises(
        (TypeError, ValueError),
        match=r"expected .* got|a landscape is that of a loss|class_counts has shape",
    ):
        draw(*[object()] * max(1, len(needed)))


@pytest.mark.parametrize("name", OF_TABLES)
def test_one_row_and_two_classes_are_enough(name):
    table = wb.LogitTable(np.array([[2.0, 0.0]]), [0], class_counts=[3, 1])
    figure = made(name, table)
    assert figure.plot().data
    assert figure.static().axes


@pytest.mark.parametrize("name", OF_TABLES)
def test_one_class_is_enough(name):
    table = wb.LogitTable(np.zeros((4, 1)), [0, 0, 0, 0], class_counts=[3])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "K = 1 with 1 classes")
        figure = made(name, table)
    assert figure.plot().data
    assert figure.static().axes


@pytest.mark.parametrize("name", OF_TABLES)
def test_a_table_without_labels_is_drawn_or_refused_in_words(name):
    labelled = TABLES["seven classes"]
    table = wb.LogitTable(labelled.scores, class_counts=labelled.class_counts)
    if name in WITHOUT_LABELS:
        assert made(name, table).plot().data
    else:
        with pytest.raises(ValueError, match="no labels"):
            made(name, table)


def test_many_labels_are_drawn_too():
    rng = np.random.default_rng(0)
    labels = rng.random((80, 6)) < 0.3  # some rows have none
    table = wb.LogitTable(rng.normal(size=(80, 6)) + 2 * labels, labels, link="sigmoid")
    for name in set(OF_TABLES) - {
        "lorenz",
        "accuracy_against_count",
        "gains_by_count",
        "head_or_tail",
        "coverage_bounds",
        "risk_against_coverage",
        "candidates",
    }:
        assert made(name, table).plot().data, name


def test_figures_are_imported_without_torch():
    code = "import sys, workbench.figures; assert not {'torch', 'seaborn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["per_class", "shared_sets", "most_improved"])
def test_long_names_of_classes_are_shortened_beside_an_axis_and_whole_under_the_pointer(name):
    names = [f"a class with a name that goes on and on until the number {j}" for j in range(5)]
    scores = np.random.default_rng(0).normal(size=(60, 5))
    table = wb.LogitTable(scores, np.arange(60) % 5, class_names=names)
    sets, other = (wb.TopK(K).fit(table)(table) for K in (1, 3))
    figure = {
        "per_class": lambda: wb.figures.per_class(sets),
        "shared_sets": lambda: wb.figures.shared_sets(other, around=0),
        "most_improved": lambda: wb.figures.most_improved(sets, other),
    }[name]()
    drawn = figure.plot().to_plotly_json()
    axes = [drawn["layout"][axis].get("ticktext") for axis in ("xaxis", "yaxis")]
    (ticks, *_) = [list(texts) for texts in axes if texts is not None]
    assert ticks
    assert all("…" in tick and len(tick) < 45 for tick in ticks)
    assert len(set(ticks)) == len(ticks)
    assert names[1] in figure.plot().to_json()
    if name == "shared_sets":  # names beside both axes leave the room to the cells
        assert all(len(html.unescape(tick).removeprefix("<b>").removesuffix("</b>")) <= 20 for tick in ticks)
