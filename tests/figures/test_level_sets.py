"""Level sets: the numbers are those of the loss, and the geometry is that of the paper."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import workbench as wb
from workbench.figures.losses.evaluation import loss_values, on_three_classes
from workbench.figures.losses.landscapes import simplex_grid
from workbench.figures.losses.ternary import CORNERS, downhill, rays
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
        point = row[None] if loss.heads == 1 else torch.stack([row, row])[None]
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
def test_a_noised_loss_is_drawn_with_its_expectation(loss_class):
    loss = dataclasses.replace(on_three_classes(loss_class), epsilon=0.3)
    figure = wb.figures.level_sets(loss, steps=5, rescale=False)
    scores = torch.as_tensor(simplex_grid(5))
    noise = torch.randn(15, 100_000, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    sampled = loss(scores, torch.full((15,), 2), noise=noise).numpy()
    scale = getattr(loss, "scale", 1.0)
    assert figure.frame["value"].to_numpy() / scale == pytest.approx(sampled / scale, abs=5e-3)
    assert "smoothed exactly" in figure.subtitle


@pytest.mark.parametrize("loss_class", [loss for loss in LOSSES if loss.random], ids=lambda loss: loss.__name__)
def test_sampling_is_shown_on_request_with_a_fixed_seed(loss_class):
    loss = on_three_classes(loss_class)
    first, second = (
        wb.figures.level_sets(loss, steps=21, rescale=False, sampled=True).frame["value"] for _ in range(2)
    )
    assert "noise drawn once" in wb.figures.level_sets(loss, steps=5, sampled=True).subtitle
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


def test_a_background_joins_the_batch_of_every_point():
    """The value is the loss of the batch: the point and the fixed rows."""
    background = ([[1.0, 0.0, 0.0], [0.0, 3.0, 0.0]], [0, 2])
    for loss_class in (loss for loss in LOSSES if loss.couples_batch):
        loss = on_three_classes(loss_class)
        figure = wb.figures.level_sets(loss, steps=11, rescale=False, background=background)
        some = figure.frame.sample(5, random_state=0)
        for row, value in zip(some[["s0", "s1", "s2"]].to_numpy(), some["value"], strict=True):
            batch = torch.tensor(np.vstack([row, background[0]]))
            labels = torch.tensor([2, *background[1]])
            batch = torch.stack([batch, batch], dim=1) if loss.heads == 2 else batch
            labels = torch.eye(3)[labels].bool() if loss.labels == "many" else labels
            assert value == pytest.approx(loss(batch, labels).mean().item())
        assert "beside 2 fixed rows" in figure.subtitle


def test_a_background_has_a_head_each_if_it_says_so():
    background = ([[[1.0, 0.0, 0.0], [0.0, 0.0, 4.0]]], [0])
    loss = wb.losses.AverageKTwoHead(K=1.5)
    value = wb.figures.level_sets(loss, steps=2, rescale=False, background=background).frame["value"].iloc[2]
    batch = torch.tensor([[[0.0, 0.0, 2.0], [0.0, 0.0, 2.0]], background[0][0]])
    assert value == pytest.approx(loss(batch, torch.tensor([2, 0])).mean().item())


def test_of_two_heads_both_move_unless_one_is_asked_for():
    frames = {
        head: wb.figures.level_sets(HeadsApart(), steps=11, rescale=False, head=head).frame
        for head in ("both", "predicting", "candidate")
    }
    s2 = frames["both"]["s2"].to_numpy()
    assert frames["both"]["value"].to_numpy() == pytest.approx(11 * s2)
    assert frames["predicting"]["value"].to_numpy() == pytest.approx(10 * s2)
    assert frames["candidate"]["value"].to_numpy() == pytest.approx(s2)
    assert wb.figures.level_sets(HeadsApart(), steps=5).subtitle.endswith("both heads move together")


def test_the_two_head_loss_treats_the_other_classes_alike_when_both_heads_move():
    frame = wb.figures.level_sets(on_three_classes(wb.losses.AverageKTwoHead), steps=21).frame
    value = frame.set_index([frame[name].round(6) for name in ("s0", "s1", "s2")])["value"]
    mirrored = value.rename_axis(index={"s0": "s1", "s1": "s0"}).reorder_levels(["s0", "s1", "s2"])
    untied = frame.set_index(value.index).query("abs(s0 - s1) > 1e-6").index
    assert value.loc[untied].to_numpy() == pytest.approx(mirrored.loc[untied].to_numpy())


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


def test_the_top_2_error_is_1_exactly_where_the_label_is_strictly_the_smallest():
    """Figure 1a."""
    frame = wb.figures.level_sets(wb.losses.TopKError(K=2)).frame
    missed = frame["s2"] < frame[["s0", "s1"]].min(axis=1)
    assert (frame["value"] == missed).all()


def test_hinge_and_calibrated_hinge_agree_where_the_label_is_in_the_top_2_and_differ_elsewhere():
    """Figures 1c and 1d."""
    hinge, calibrated = (
        wb.figures.level_sets(loss, rescale=False).frame
        for loss in (wb.losses.TopKHinge(K=2), wb.losses.CalibratedTopKHinge(K=2))
    )
    missed = (hinge["s2"] < hinge[["s0", "s1"]].min(axis=1)).to_numpy()
    hinge, calibrated = hinge["value"].to_numpy(), calibrated["value"].to_numpy()
    assert hinge[~missed] == pytest.approx(calibrated[~missed])
    assert (hinge[missed] > calibrated[missed] + 1e-9).all()
    assert calibrated[missed] == pytest.approx(1)


FIGURE_1 = {
    "a": (wb.losses.TopKError(K=2), {}),
    "b": (wb.losses.CrossEntropy(), {}),
    "c": (wb.losses.TopKHinge(K=2), {}),
    "d": (wb.losses.CalibratedTopKHinge(K=2), {}),
    "e": (wb.losses.ConvexTopKHinge(K=2), {}),
    "f": (wb.losses.SmoothTopKHinge(K=2, temperature=0.1), {"total": 4}),
    "g": (wb.losses.SmoothTopKHinge(K=2, temperature=1.0), {"total": 4}),
    "h": (wb.losses.NoisedTopK(K=2, epsilon=0.3, n_samples=30), {}),
    "i": (wb.losses.NoisedTopK(K=2, epsilon=1.0, n_samples=30), {}),
    "j": (wb.losses.NoisedTopKImbalanced(K=2, epsilon=0.2, max_margin=1.0, scale=1.0), {"total": 0.4}),
}


@pytest.mark.parametrize("panel", FIGURE_1)
def test_every_panel_of_figure_1_is_one_call_symmetric_and_lowest_at_the_label(panel):
    loss, options = FIGURE_1[panel]
    figure = wb.figures.level_sets(loss, steps=49, **options)  # 49: the centre and the ties are grid points
    frame = (
        (figure.frame[["s0", "s1", "s2"]] / options.get("total", 2) * 2).round(9).assign(value=figure.frame["value"])
    )
    value = frame.set_index(["s0", "s1", "s2"])["value"]
    assert value[0, 0, 2] == 0
    for a, b, c in value.index[::13]:
        assert value[a, b, c] == pytest.approx(value[b, a, c])
    # A top-2 loss is highest where both others stand before the label, cross-entropy where one of them takes it all.
    assert value[(2, 0, 0) if panel == "b" else (1, 1, 0)] == pytest.approx(1)


def test_the_smooth_hinge_is_the_hinge_smoothed_and_the_noised_loss_the_calibrated_hinge():
    """Figures 1f and 1h are close to 1c and 1d, and further away the more they are smoothed (1g and 1i)."""
    values = {
        panel: wb.figures.level_sets(loss, rescale=False, **options).frame["value"].to_numpy()
        for panel, (loss, options) in FIGURE_1.items()
    }
    for hard, little, much in (("c", "f", "g"), ("d", "h", "i")):
        near, far = (np.abs(values[panel] - values[hard]).max() for panel in (little, much))
        assert near < far
    assert np.abs(values["f"] - values["c"]).max() < 0.1


def test_regions_part_the_triangle_where_the_predicted_set_changes():
    figure = wb.figures.level_sets(wb.losses.CrossEntropy(), steps=21, regions=2)
    notes = {note.text: (note.x, note.y) for note in figure.plot().layout.annotations}
    for name, kept in (("{0, 1}", {0, 1}), ("{0, 2}", {0, 2}), ("{1, 2}", {1, 2})):
        shares = np.linalg.solve(np.column_stack([CORNERS, np.ones(3)]).T, [*notes[name], 1])
        assert set(np.argsort(shares)[1:]) == kept
    for K in (1, 2):
        for ray in rays(K):
            halfway = np.linalg.solve(np.column_stack([CORNERS, np.ones(3)]).T, [*ray.mean(axis=0), 1])
            ordered = np.sort(halfway)[::-1]
            assert ordered[K - 1] == pytest.approx(ordered[K])  # a tie between the K-th and the next
    assert figure.static().axes


def test_total_scales_the_triangle():
    frame = wb.figures.level_sets(wb.losses.CrossEntropy(), steps=5, total=6, rescale=False).frame
    assert frame[["s0", "s1", "s2"]].sum(axis=1).to_numpy() == pytest.approx(6)
    assert frame["value"].to_numpy() == pytest.approx(direct(wb.losses.CrossEntropy(), frame.to_numpy()[:, :3], 2))


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
    assert bar.marker.colorbar.orientation == "h"  # below the triangle, which then has the whole width of a column


def test_the_bands_cover_the_triangle_once():
    """The areas of the filled shapes, holes counted negative, add up to the area of the triangle."""
    loss = on_three_classes(wb.losses.NoisedTopK)  # noisy: bands with many islands and holes
    figure = wb.figures.level_sets(loss, steps=41, sampled=True)
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
        ({"label": True}, "give 0, 1 or 2"),
        ({"label": 1.0}, "give 0, 1 or 2"),
        ({"steps": 1}, "steps = 1; give a whole number ≥ 2"),
        ({"steps": 10.5}, "whole number"),
        ({"steps": None}, "whole number"),
        ({"head": "left"}, "both, predicting, candidate"),
        ({"total": 0}, "above 0"),
        ({"total": "a"}, "total = 'a'; give a number above 0"),
        ({"regions": 3}, "1 or 2"),
        ({"background": ([[0, 0, 0]], [0])}, "would change nothing"),
        ({"value_range": (0, 1)}, "rescale=False"),
        ({"value_range": (2, 1), "rescale": False}, "low end below the high end"),
        ({"value_range": (0,), "rescale": False}, r"value_range = \(0,\); give two numbers"),
        ({"value_range": 3, "rescale": False}, "give two numbers"),
        ({"value_range": (0, math.inf), "rescale": False}, "give two numbers"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.level_sets(wb.losses.CrossEntropy(), **arguments)


@pytest.mark.parametrize(
    "background",
    [
        ([[0, 0]], [0]),
        ([[0, 0, 0]], [3]),
        ([[0, 0, 0]], [0, 1]),
        ([[0, 0, 0]], 0),
        [[0, 0, 0]],
        ([[0, 0, 0], [1]], [0, 1]),
        ([[0, 0, math.nan]], [0]),
    ],
)
def test_a_background_that_does_not_fit_says_what_does(background):
    with pytest.raises(ValueError, match="as many labels"):
        wb.figures.level_sets(wb.losses.ExpectedPositive(K=2), background=background)


def test_a_class_of_losses_is_not_a_loss():
    with pytest.raises(ValueError, match=r"CrossEntropy\(\), not"):
        wb.figures.level_sets(wb.losses.CrossEntropy)


def test_a_loss_that_needs_more_classes_says_so_by_the_name_it_was_given():
    loss = wb.losses.NoisedTopK(K=5)
    for draw, n_classes in (
        (wb.figures.level_sets, 3),
        (wb.figures.conditional_risk, 3),
        (lambda loss: wb.figures.line_profile([loss], others=(0, 0, 0)), 4),
        (lambda loss: wb.figures.gradient_sparsity(loss, scores=[[2.0, 1.0]]), 2),
    ):
        with pytest.raises(ValueError, match=rf"^NoisedTopK\(K=5.*give NoisedTopK a K below {n_classes}"):
            draw(loss)


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
    arrows = [trace for trace in figure.plot().data if trace.marker.symbol == "arrow"]
    assert len(arrows) == 2  # with and without a rim, for a knob that brings the gradient back
    assert all(np.isnan(trace.x).all() and np.isnan(trace.y).all() for trace in arrows)


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


def test_the_gallery_draws_noise_on_request():
    loss = wb.losses.NoisedTopK(K=2)
    figure = wb.figures.gallery([loss], steps=11, sampled=True)
    alone = wb.figures.level_sets(loss, steps=11, sampled=True)
    assert figure.frame["value"].tolist() == alone.frame["value"].tolist()
    assert "sampled=True" in figure.code


@pytest.mark.parametrize(("arguments", "message"), [({"K": 3}, "holds 1 or 2"), ({"losses": []}, "at least one loss")])
def test_the_gallery_refuses_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.gallery(**arguments)


def test_one_loss_alone_needs_no_brackets():
    loss = wb.losses.NoisedTopK(K=1)
    for draw in (wb.figures.gallery, wb.figures.line_profile, wb.figures.gradient_sparsity):
        assert draw(loss).frame.equals(draw([loss]).frame)
    assert wb.figures.gallery(wb.losses.CrossEntropy, steps=5).panels[0].title == "Cross-entropy"


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
