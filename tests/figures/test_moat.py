"""The moat: exact gradients at scores where K classes sit above the label."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import workbench as wb
from workbench.losses import ExactNoisedTopK, NoisedTopK
from workbench.schedules import anneal


def at(figure, line, gap):
    (row,) = figure.frame[(figure.frame["line"] == line) & np.isclose(figure.frame["gap"], gap)].to_dict("records")
    return row


def test_the_gradients_are_those_of_the_loss_with_exact_smoothing():
    figure = wb.figures.moat((0.7,), K=2, n_classes=6, lead=0.5, reach=2.0, steps=3)
    for gap in (0.0, 1.0, 2.0):
        scores = torch.tensor([[0.0, gap, gap, -0.5, -0.5, -0.5]], dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(ExactNoisedTopK(K=2, epsilon=0.7)(scores, torch.tensor([0])).sum(), scores)
        row = at(figure, "ε = 0.7", gap)
        assert row["pull"] == pytest.approx(-gradient[0, 0].item())
        assert row["push"] == pytest.approx(gradient[0, 1:3].sum().item())


def test_many_draws_agree_with_the_exact_pull_and_push():
    row = at(wb.figures.moat((1.0,), K=2, n_classes=6, reach=2.0, steps=2), "ε = 1", 2.0)
    scores = torch.tensor([[0.0, 2.0, 2.0, -1.0, -1.0, -1.0]], requires_grad=True)
    loss, draws = NoisedTopK(K=2, epsilon=1.0, n_samples=200_000), torch.Generator().manual_seed(0)
    (gradient,) = torch.autograd.grad(loss(scores, torch.tensor([0]), generator=draws).sum(), scores)
    assert row["pull"] == pytest.approx(-gradient[0, 0].item(), abs=0.01)
    assert row["push"] == pytest.approx(gradient[0, 1:3].sum().item(), abs=0.01)


def test_of_two_classes_on_top_the_pull_is_a_probability_of_the_normal_law():
    """K = 1 and a rest that is far away: the label holds place 2 unless it beats the class that sits."""
    figure = wb.figures.moat((0.5,), K=1, n_classes=3, lead=50.0, reach=1.0, steps=2)
    beats = 0.5 * math.erfc(1.0 / (0.5 * math.sqrt(2)) / math.sqrt(2))
    assert at(figure, "ε = 0.5", 1.0)["pull"] == pytest.approx(beats, abs=1e-6)
    assert at(figure, "ε = 0.5", 1.0)["push"] == pytest.approx(beats, abs=1e-6)


def test_little_noise_neither_pulls_the_label_across_nor_pushes_the_sitting_classes_down():
    figure = wb.figures.moat()
    for gap in (1.5, 3.0, 5.0):
        stuck, annealed = at(figure, "ε = 0.2", gap), at(figure, "ε = 3", gap)
        assert stuck["pull"] < 0.01
        assert stuck["push"] < 0.01
        assert annealed["pull"] > 0.9
        assert annealed["push"] > 0.3


def test_the_top_K_hinge_moves_two_classes_and_reaches_across():
    frame = wb.figures.moat().frame.query("line == 'top-K hinge'")
    assert (frame["pull"] == 1).all()
    assert (frame["push"] == 1).all()


def test_the_words_tell_the_numbers_of_the_picture():
    figure = wb.figures.moat((0.2,), K=3)
    row = at(figure, "ε = 0.2", 2.0)
    assert f"ε = 0.2: pull {row['pull']:.2g}, push {row['push']:.2g}" in figure.text
    assert "K = 3 of 20 classes" in figure.subtitle
    assert figure.plot().layout.xaxis.title.text == "gap between place 3 and place 4"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilons": ()}, r"give 1 to 5 numbers above 0"),
        ({"epsilons": (0.0, 1.0)}, "give 1 to 5 numbers above 0"),
        ({"epsilons": range(1, 9)}, "give 1 to 5 numbers above 0"),
        ({"K": 0}, "K = 0 with 20 classes; give a whole number from 1 to 18"),
        ({"K": 19}, "K = 19 with 20 classes; give a whole number from 1 to 18"),
        ({"n_classes": 2}, "n_classes = 2; give a whole number ≥ 3"),
        ({"lead": 0}, "lead = 0; give a number above 0"),
        ({"reach": -1}, "reach = -1; give a number above 0"),
        ({"steps": 1}, "steps = 1; give a whole number ≥ 2"),
    ],
)
def test_a_moat_that_cannot_be_drawn_is_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.moat(**arguments)


def test_figures_of_a_loss_with_a_schedule_are_those_of_its_end():
    annealed, fixed = NoisedTopK(K=1, epsilon=anneal(3, 0.2)), NoisedTopK(K=1, epsilon=0.2)
    for draw in (wb.figures.level_sets, wb.figures.conditional_risk, wb.figures.calibration_map, wb.figures.gallery):
        ours, theirs = draw(annealed, steps=5), draw(fixed, steps=5)
        assert ours.frame.equals(theirs.frame)
        assert (ours.subtitle, ours.text, str(ours.code)) == (theirs.subtitle, theirs.text, str(theirs.code))
    for draw in (wb.figures.line_profile, wb.figures.gradient_sparsity):
        assert draw([annealed]).frame.equals(draw([fixed]).frame)
        assert str(draw(annealed).code) == str(draw(fixed).code)
