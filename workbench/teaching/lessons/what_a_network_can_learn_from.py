"""Lesson 5: the error is flat; the plain hinge has a slope, and its minimum may still be no set at all."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.teaching.base import Choice, Lesson, Picture, Question, Story, axes, percent, signed, slider
from workbench.teaching.published_numbers import SAME_SET, TOP_5

OTHERS = (3.0, 2.0, 1.0, 0.0)  # scores of the other classes; the label's moves
K = 2
BLURRED = (0.24, 0.19, 0.19, 0.19, 0.19)  # a distribution whose two best classes hold less than half


def risks(distribution: tuple[float, ...], K: int) -> dict[str, tuple[float, float]]:
    """Mean loss of the plain and of the calibrated hinge when all scores are equal, and when the K best lead by 1."""
    from workbench.figures.losses.evaluation import loss_values
    from workbench.losses import CalibratedTopKHinge, Loss, TopKHinge

    tie, best = np.zeros(len(distribution)), np.array([1.0] * K + [0.0] * (len(distribution) - K))

    def mean(loss: Loss, scores: np.ndarray) -> float:
        rows = np.tile(scores, (len(distribution), 1))
        return float(np.dot(distribution, loss_values(loss, rows, np.arange(len(distribution)))))

    losses = {"plain": TopKHinge(K=K), "calibrated": CalibratedTopKHinge(K=K)}
    return {name: (mean(loss, tie), mean(loss, best)) for name, loss in losses.items()}


def tell(theme: Theme) -> Story:
    """Three losses and their slopes as the label's score climbs, and what the plain hinge asks for in doubt."""
    from workbench.figures.losses.evaluation import loss_gradients, loss_values, scores_moved
    from workbench.losses import CrossEntropy, TopKError, TopKHinge

    grid = np.round(np.arange(-1, 5.01, 0.05), 2)
    rows = np.column_stack([grid, np.tile(OTHERS, (len(grid), 1))])
    losses = {
        "top-2 error": (TopKError(K=K), theme.threshold),
        "top-2 hinge": (TopKHinge(K=K), theme.model_a),
        "cross-entropy": (CrossEntropy(), theme.model_b),
    }
    values = {name: loss_values(loss, rows, 0) for name, (loss, _) in losses.items()}
    slopes = {name: loss_gradients(loss, rows, 0) for name, (loss, _) in losses.items()}
    # A step is drawn upright: both points beside it stand where it is.
    border = sorted(OTHERS)[-K]
    step = np.where(np.abs(grid - border) < 0.05 + 1e-9, border, grid)
    moved = slider("score of the label", [round(0.25 * step, 2) for step in range(-4, 21)], "{:.2f}", start=0.25)
    at = [int(np.abs(grid - value).argmin()) for value in moved.values]

    def drawn(place: int) -> go.Figure:
        lines = [
            go.Scatter(
                x=step if name == "top-2 error" else grid,
                y=values[name],
                name=name,
                line={"color": each[1], "width": 3},
            )
            for name, each in losses.items()
        ]
        dots = go.Scatter(
            x=[grid[at[place]]] * 3,
            y=[values[name][at[place]] for name in losses],
            mode="markers",
            showlegend=False,
            marker={"size": 11, "color": [each[1] for each in losses.values()]},
        )
        figure = axes(theme, "score of the label; the others stand at 3, 2, 1, 0", "loss", traces=[*lines, dots])
        return figure.update_layout(yaxis_range=[-0.1, 5])

    def caption(place: int) -> str:
        told = [
            f"{name} {values[name][at[place]]:.2f}, slope {signed(slopes[name][at[place], 0])}, "
            f"{int(scores_moved(slopes[name][[at[place]]])[0])} of 5 scores pulled"
            for name in losses
        ]
        return "; ".join(told).capitalize() + "."

    picture = Picture(
        tuple(drawn(place) for place in range(len(moved.values))),
        "Three curves against the score of the label: the top-2 error is a step, the hinge a ramp, cross-entropy a bend.",
        moved,
        tuple(caption(place) for place in range(len(moved.values))),
    )
    start = at[moved.start]
    pulled = {name: int(scores_moved(slopes[name][[start]])[0]) for name in losses}
    asked_for = risks(BLURRED, K)
    two_best = sum(sorted(BLURRED)[-K:])
    words = (
        "A network learns by *gradient descent*: the *gradient* of a loss points where the loss rises fastest, and scores move "
        "the opposite way. The *top-K error* is 0 if the label is among the K highest scores, and 1 if not.",
        f"Five classes, K = {K}. Four scores are 3, 2, 1 and 0; the label's is {moved.values[moved.start]:g}. So it is "
        "fourth, and the error is 1.",
    )
    choices = (
        Choice(
            "It pushes the score of the label up",
            "It should, and does not: a small step up leaves the label fourth, and the error 1.",
        ),
        Choice(
            "It pushes the two highest scores down", "A small step down leaves them the two highest: the error stays 1."
        ),
        Choice(
            "Nowhere: it is zero",
            f"Right. The error is a step: flat on both sides, and it moves {pulled['top-2 error']} of the five scores.",
            right=True,
        ),
    )
    answer = (
        "So one trains with a *surrogate*: a loss with a slope. The **plain top-K hinge** is (1 + s − s_y)₊: s_y is the "
        "score of the label, s the K-th highest score of the *other* classes, (·)₊ cuts off below 0. *Cross-entropy* is "
        "−log of the softmax probability of the label.",
        "**A slope is not enough.** Let the label be random with probabilities "
        f"{', '.join(f'{p:g}' for p in BLURRED)}. If the two best classes lead by 1, the plain hinge costs "
        f"{asked_for['plain'][1]:.2f} on average, with equal scores only {asked_for['plain'][0]:.2f}: a miss costs 2, and the "
        f"two best classes hold only {percent(two_best, 0)}. So it prefers equal scores, which name no class. Such a loss is "
        "*not calibrated*: its minimum does not give the best set. The *calibrated* hinge compares the label with the (K+1)-th "
        f"highest of *all* scores: {asked_for['calibrated'][1]:.2f} for the two best classes, "
        f"{asked_for['calibrated'][0]:.2f} for equal scores.",
        "On a small garden with few frequent and many rare species the plain hinge reaches "
        f"{TOP_5['top-K hinge']} % top-5 accuracy (95 % interval), cross-entropy {TOP_5['cross-entropy']} %. It does not give "
        f"all rows the same set: its most frequent set is that of {SAME_SET['top-K hinge']} %. It moves "
        f"{pulled['top-2 hinge']} of our five scores, cross-entropy {pulled['cross-entropy']}; that is not why it learns "
        "less, as the next lesson shows.",
    )
    return Story(
        words,
        Question("Which way does the gradient of the top-2 error push the scores?", choices, picture=picture),
        answer,
    )


LESSON = Lesson(
    "what_a_network_can_learn_from",
    "What a network can learn from",
    "You will see three losses, a step, a ramp and a bend, and what each of them asks for.",
    "04_losses_as_landscapes",
    tell,
    needs_torch=True,
)
