"""Level sets: the numbers are those of the loss, and the geometry is that of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import workbench as wb
from workbench.figures.landscapes import loss_values, on_three_classes, simplex_grid
from workbench.figures.triangles import CORNERS, downhill
from workbench.losses import LOSSES, Loss


@dataclass(frozen=True)
class MeanOfBatch(Loss):
    """Every row is charged the mean squared score of its batch: the plainest batch-coupled loss."""

    title = "Mean of the batch"
    couples_batch = True
    convex = smooth = True
    calibrated = False

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        return scores.square().mean().expand(len(scores))


@dataclass(frozen=True)
class HeadsApart(Loss):
    """Tells the two heads apart: ten times the label's score of the predicting head, plus that of the candidate head."""

    title = "Heads apart"
    heads = 2
    convex = smooth = True
    calibrated = False

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        chosen = scores.gather(2, labels[:, None, None].expand(-1, 2, 1))[..., 0]  # (n, 2)
        return 10 * chosen[:, 0] + chosen[:, 1]


@dataclass(frozen=True)
class CountsLabels(Loss):
    """A many-label loss: the scores of the labels, summed."""

    title = "Scores of the labels"
    labels = "many"
    convex = smooth = True
    calibrated = False

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        return (scores * labels).sum(-1)


def direct(loss: Loss, scores: np.ndarray, label: int) -> np.ndarray:
    """The loss called as a reader of its docstring would call it, one row at a time."""
    values = []
    for row in torch.tensor(scores):
        point = row[None] if loss.heads == 1 else torch.stack([row, torch.zeros_like(row)])[None]
        labels = torch.tensor([label])
        values.append(loss(point, torch.eye(3)[labels].bool() if loss.labels == "many" else labels).item())
    return np.array(values)


def test_101_steps_are_5151_score_vectors_that_sum_to_2():
    frame = wb.figures.level_sets(wb.losses.CrossEntropy()).frame
    assert frame.columns.tolist() == ["s0", "s1", "s2", "value"]
    assert len(frame) == 5151
    assert np.allclose(frame[["s0", "s1", "s2"]].sum(axis=1), 2)
    assert (frame[["s0", "s1", "s2"]].to_numpy() >= 0).all()
    assert len(frame.drop_duplicates(["s0", "s1", "s2"])) == 5151


@pytest.mark.parametrize("loss_class", [loss for loss in LOSSES if not loss.random], ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("label", [0, 2])
def test_values_equal_the_loss_called_directly(loss_class, label):
    loss = on_three_classes(loss_class)
    frame = wb.figures.level_sets(loss, label=label, steps=31, rescale=False).frame
    some = frame.sample(12, random_state=1)
    assert some["value"].to_numpy() == pytest.approx(direct(loss, some[["s0", "s1", "s2"]].to_numpy(), label), abs=1e-6)


@pytest.mark.parametrize("loss_class", [loss for loss in LOSSES if loss.random], ids=lambda loss: loss.__name__)
def test_a_random_loss_is_drawn_with_a_fixed_seed(loss_class):
    loss = on_three_classes(loss_class)
    first, second = (wb.figures.level_sets(loss, steps=21, rescale=False).frame["value"] for _ in range(2))
    draws = torch.Generator().manual_seed(0)
    scores = torch.as_tensor(simplex_grid(21))
    assert first.equals(second)
    assert first.to_numpy() == pytest.approx(loss(scores, torch.full((231,), 2), generator=draws).numpy())


@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss: loss.__name__)
def test_every_loss_draws_in_both_renderers(loss_class):
    figure = wb.figures.level_sets(on_three_classes(loss_class), steps=21)
    assert figure.frame["value"].between(0, 1).all()
    assert len(figure.plot().data) > 4
    assert figure.static().axes


def test_a_batch_coupled_loss_sees_one_row_a_batch():
    frame = wb.figures.level_sets(MeanOfBatch(), steps=11, rescale=False).frame
    assert frame["value"].to_numpy() == pytest.approx((frame[["s0", "s1", "s2"]] ** 2).mean(axis=1).to_numpy())


def test_of_two_heads_the_predicting_one_moves_unless_the_other_is_asked_for():
    predicting = wb.figures.level_sets(HeadsApart(), steps=11, rescale=False).frame
    candidate = wb.figures.level_sets(HeadsApart(), steps=11, rescale=False, head="candidate").frame
    assert predicting["value"].to_numpy() == pytest.approx(10 * predicting["s2"].to_numpy())
    assert candidate["value"].to_numpy() == pytest.approx(candidate["s2"].to_numpy())


def test_a_many_label_loss_is_given_the_label_as_a_row_of_marks():
    frame = wb.figures.level_sets(CountsLabels(), label=1, steps=11, rescale=False).frame
    assert frame["value"].to_numpy() == pytest.approx(frame["s1"].to_numpy())


@pytest.mark.parametrize("label", [0, 1, 2])
def test_cross_entropy_is_lowest_at_the_corner_of_the_label_and_highest_at_the_other_two(label):
    frame = wb.figures.level_sets(wb.losses.CrossEntropy(), label=label).frame
    lowest = frame.loc[frame["value"].idxmin()]
    assert lowest[f"s{label}"] == 2
    highest = frame[frame["value"] == frame["value"].max()]
    others = [f"s{corner}" for corner in range(3) if corner != label]
    assert sorted(highest[others].to_numpy().tolist()) == [[0, 2], [2, 0]]


def test_the_calibrated_hinge_is_flat_at_1_where_the_label_is_not_in_the_top_2():
    """Figure 1d of Garcin et al. 2022: with L = 3 and K = 2 the (K+1)-th largest score is then the label's own."""
    frame = wb.figures.level_sets(wb.losses.CalibratedTopKHinge(K=2), rescale=False).frame
    missed = frame["s2"] < frame[["s0", "s1"]].min(axis=1)
    assert frame.loc[missed, "value"].to_numpy() == pytest.approx(1)
    assert (frame.loc[~missed, "value"] <= 1).all()


def test_rescaled_values_run_from_0_to_1_and_a_constant_loss_is_0():
    values = wb.figures.level_sets(wb.losses.CrossEntropy(), steps=21).frame["value"]
    assert (values.min(), values.max()) == (0, 1)

    @dataclass(frozen=True)
    class Constant(MeanOfBatch):
        def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
            return torch.full((len(scores),), 3.0) + 0 * scores[:, 0]

    figure = wb.figures.level_sets(Constant(), steps=5)
    assert (figure.frame["value"] == 0).all()
    assert figure.plot().data
    assert figure.static().axes


def test_orientation_and_ranges_stay_while_label_and_scale_change():
    def frozen(plot):
        return [list(plot.layout.xaxis.range), list(plot.layout.yaxis.range), plot.layout.height]

    loss = wb.losses.CrossEntropy()
    plots = [wb.figures.level_sets(loss, label=label, steps=11).plot() for label in range(3)]
    plots.append(wb.figures.level_sets(loss, steps=11, rescale=False).plot())
    assert all(frozen(plot) == frozen(plots[0]) for plot in plots)
    for label, plot in enumerate(plots[:3]):
        marks = [trace for trace in plot.data if trace.mode == "markers" and trace.x[0] is not None]
        assert [float(marks[0].x[0]), float(marks[0].y[0])] == pytest.approx(CORNERS[label])
        assert [note.text for note in plot.layout.annotations if "label" in note.text] == [
            f"<b>label, class {label}</b>"
        ]


def test_a_common_colour_range_makes_two_settings_comparable():
    figure = wb.figures.level_sets(wb.losses.CrossEntropy(), steps=11, rescale=False, value_range=(0, 4))
    bar = next(trace for trace in figure.plot().data if trace.marker.showscale)
    assert (bar.marker.cmin, bar.marker.cmax) == (0, 4)


def test_the_bands_cover_the_triangle_once():
    """The areas of the filled shapes, holes counted negative, add up to the area of the triangle."""
    loss = on_three_classes(wb.losses.NoisedTopK)  # noisy: bands with many islands and holes
    figure = wb.figures.level_sets(loss, steps=41)
    area = 0.0
    for trace in figure.plot().data:
        if trace.fill == "toself":
            points = np.stack([trace.x, trace.y], axis=1).astype(float)
            for ring in np.split(points, np.flatnonzero(np.isnan(points[:, 0]))):
                x, y = ring[~np.isnan(ring[:, 0])].T
                area += 0.5 * float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    assert area == pytest.approx(np.sqrt(3) / 4, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": 3}, "give 0, 1 or 2"),
        ({"label": -1}, "give 0, 1 or 2"),
        ({"steps": 1}, "at least 2"),
        ({"steps": 10.5}, "whole number"),
        ({"head": "left"}, "predicting, candidate"),
        ({"value_range": (0, 1)}, "rescale=False"),
        ({"value_range": (2, 1), "rescale": False}, "low end below the high end"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.level_sets(wb.losses.CrossEntropy(), **arguments)


def test_a_class_of_losses_is_not_a_loss():
    with pytest.raises(ValueError, match=r"CrossEntropy\(\), not"):
        wb.figures.level_sets(wb.losses.CrossEntropy)


def test_a_loss_that_needs_more_than_three_classes_raises():
    with pytest.raises(ValueError, match="K must be smaller than the number of classes"):
        wb.figures.level_sets(wb.losses.CalibratedTopKHinge(K=3))


def test_a_loss_that_is_not_finite_somewhere_says_where():
    @dataclass(frozen=True)
    class Reciprocal(MeanOfBatch):
        def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
            return 1 / scores[:, 0]

    with pytest.raises(ValueError, match=r"not finite at s = \[0\.0, 2\.0, 0\.0\]"):
        wb.figures.level_sets(Reciprocal(), steps=11)


def test_gradients_are_those_of_the_loss_and_arrows_lead_downhill():
    figure = wb.figures.level_sets(wb.losses.CrossEntropy(), steps=21, rescale=False, gradients=True)
    scores = figure.frame[["s0", "s1", "s2"]].to_numpy()
    softmax = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert figure.frame[["g0", "g1", "g2"]].to_numpy() == pytest.approx(softmax - np.eye(3)[2])
    begins, steps = downhill(figure)
    ends = np.linalg.solve(
        np.column_stack([CORNERS, np.ones(3)]).T, np.column_stack([begins + steps, np.ones(len(begins))]).T
    ).T
    starts = np.linalg.solve(
        np.column_stack([CORNERS, np.ones(3)]).T, np.column_stack([begins, np.ones(len(begins))]).T
    ).T
    assert (
        loss_values(wb.losses.CrossEntropy(), 2 * ends, 2) < loss_values(wb.losses.CrossEntropy(), 2 * starts, 2)
    ).all()
    assert any(trace.marker.symbol == "arrow" for trace in figure.plot().data)
    assert figure.static().axes


def test_a_loss_without_a_gradient_has_no_arrows():
    @dataclass(frozen=True)
    class Rank(MeanOfBatch):
        couples_batch = False

        def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
            return (scores > scores.gather(1, labels[:, None])).sum(-1).double()

    figure = wb.figures.level_sets(Rank(), steps=11, gradients=True)
    assert (figure.frame[["g0", "g1", "g2"]] == 0).all(axis=None)
    assert not any(trace.marker.symbol == "arrow" for trace in figure.plot().data)


def test_the_gallery_shows_every_loss_of_the_catalogue():
    figure = wb.figures.gallery(steps=11)
    assert [panel.title for panel in figure.panels] == [loss.title for loss in wb.losses.LOSSES]
    assert figure.frame["loss"].nunique() == len(wb.losses.LOSSES)
    notes = " ".join(note.text.replace("<br>", " ") for note in figure.plot().layout.annotations)
    assert all(loss.title in notes for loss in wb.losses.LOSSES)


def test_a_loss_of_a_notebook_joins_the_gallery():
    figure = wb.figures.gallery((*wb.losses.LOSSES, HeadsApart), steps=11)
    assert figure.panels[-1].title == "Heads apart"


def test_the_gallery_holds_the_numbers_of_the_level_sets_themselves():
    figure = wb.figures.gallery([wb.losses.CrossEntropy, wb.losses.CalibratedTopKHinge], label=1, K=1, steps=11)
    alone = wb.figures.level_sets(wb.losses.CalibratedTopKHinge(K=1), label=1, steps=11)
    part = figure.frame[figure.frame["loss"] == "CalibratedTopKHinge(K=1)"]
    assert part["value"].tolist() == alone.frame["value"].tolist()


@pytest.mark.parametrize(("arguments", "message"), [({"K": 3}, "holds 1 or 2"), ({"losses": []}, "at least one loss")])
def test_the_gallery_refuses_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.gallery(**arguments)


def test_a_line_profile_equals_the_loss_called_directly():
    loss = wb.losses.CalibratedTopKHinge(K=2)
    frame = wb.figures.line_profile([loss], others=(0.5, -1, -2), steps=7).frame
    rows = torch.tensor([[score, 0.5, -1, -2] for score in frame["score"]])
    assert frame["value"].to_numpy() == pytest.approx(loss(rows, torch.zeros(7, dtype=torch.long)).numpy())


@pytest.mark.parametrize(("losses", "others", "message"), [([], (0,), "1 to 8"), ([MeanOfBatch()], (), "at least one")])
def test_a_line_profile_refuses_in_words(losses, others, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.line_profile(losses, others=others)


def test_hinge_and_exponential_lie_above_the_error_and_the_logistic_loss_only_after_division_by_ln_2():
    """The thesis calls all three upper bounds (Section 2.3); the logistic loss is ln 2 at margin 0, where the error is 1."""
    wide = wb.figures.binary_surrogates().frame.pivot_table(index="t", columns="loss", values="value")
    assert (wide[["hinge", "exponential"]].ge(wide["0/1"], axis=0)).all(axis=None)
    assert not (wide["logistic"] >= wide["0/1"]).all()
    assert (wide["logistic"] / np.log(2) >= wide["0/1"] - 1e-12).all()
