"""torch.compile leaves every loss what it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_every_loss import value_and_gradient
from test_never_waits import with_rest

from workbench.losses import LOSSES

WHOLE = [loss_class for loss_class in LOSSES if loss_class.compiles]


def compared(loss, **options):
    torch.compiler.reset()
    scores, labels, rest = with_rest(loss)
    found = value_and_gradient(torch.compile(loss, **options), scores, labels, **rest)
    _, _, rest = with_rest(loss)  # a state that has seen nothing yet
    torch.testing.assert_close(found, value_and_gradient(loss, scores, labels, **rest), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss_class", WHOLE, ids=lambda loss_class: loss_class.__name__)
def test_a_loss_that_says_so_is_compiled_whole_and_keeps_its_values(loss_class):
    compared(loss_class(), fullgraph=True, backend="aot_eager")


def test_losses_that_draw_or_have_a_gradient_by_hand_do_not_say_so():
    by_hand = {"SmoothTopKHinge", "ExactNoisedTopK", "DifferentiableTopK", "Sparsemax", "SparseTop"}
    by_choice = {"AverageKTwoHead", "ConformalTraining"}  # NumPy chooses on a CPU; a rank in exact arithmetic
    drawing = {loss_class.__name__ for loss_class in LOSSES if loss_class.random}
    assert {loss_class.__name__ for loss_class in LOSSES if not loss_class.compiles} == by_hand | by_choice | drawing


def test_the_guide_names_the_losses_that_are_not_compiled():
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "training.md").read_text(encoding="utf-8")
    told = guide.partition("gradient written by hand: ")[2].partition(". Nor are")[0]
    assert told.split(", ") == [f"`{loss_class.__name__}`" for loss_class in LOSSES if not loss_class.compiles]


@pytest.mark.long
@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss_class: loss_class.__name__)
def test_no_loss_is_changed_by_being_compiled_in_parts(loss_class):
    compared(loss_class(), backend="aot_eager")


@pytest.mark.long
@pytest.mark.parametrize("loss_class", WHOLE, ids=lambda loss_class: loss_class.__name__)
def test_no_loss_is_changed_by_kernels_of_its_own(loss_class):
    compared(loss_class(), backend="inductor")
