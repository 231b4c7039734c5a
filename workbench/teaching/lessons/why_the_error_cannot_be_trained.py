"""Lesson 5: the error is flat, the plain hinge says too little and may ask for nothing."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.teaching.base import Choice, Lesson, Picture, Question, Told, axes, percent, slider
from workbench.teaching.measured import ALWAYS_THE_SAME, TOP_5

OTHERS = (3.0, 2.0, 1.0, 0.0)  # scores of the other classes; the label's moves
K = 2
BLURRED = (0.24, 0.19, 0.19, 0.19, 0.19)  # a law whose two best classes hold less than half


def risks(law: tuple[float, ...], K: int) -> dict[str, tuple[float, float]]:
    """Mean loss of the plain and of the calibrated hinge when all scores are equal, and when the K best lead by 1."""
    from workbench.figures.of_losses.evaluation import loss_values
    from workbench.losses import CalibratedTopKHinge, Loss, TopKHinge

    tie, best = np.zeros(len(law)), np.array([1.0] * K + [0.0] * (len(law) - K))

    def mean(loss: Loss, scores: np.ndarray) -> float:
        rows = np.tile(scores, (len(law), 1))
        return float(np.dot(law, loss_values(loss, rows, np.arange(len(law)))))

    losses = {"plain": TopKHinge(K=K), "calibrated": CalibratedTopKHinge(K=K)}
    return {name: (mean(loss, tie), mean(loss, best)) for name, loss in losses.items()}


def tell(theme: Theme) -> Told:
    """Three losses and their slopes as the label's score climbs, and what the plain hinge asks for in doubt."""
    from workbench.figures.of_losses.evaluation import loss_gradients, loss_values, scores_moved
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
    moved = slider("score of the label", [round(0.25 * step, 2) for step in range(-4, 21)], "{:.2f}", start=0.25)
    at = [int(np.abs(grid - value).argmin()) for value in moved.values]

    def drawn(place: int) -> go.Figure:
        lines = [
            go.Scatter(x=grid, y=values[name], name=name, line={"color": each[1], "width": 3})
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
            f"{name} {values[name][at[place]]:.2f}, slope {slopes[name][at[place], 0] + 0.0:.2f}, "
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
        "A network learns by *gradient descent*: its scores are nudged in the direction in which a loss falls fastest, "
        "the minus *gradient*. "
        "What we care about is the *top-K error*: 0 if the label is among the K highest scores, 1 if not.",
        f"Five classes, K = {K}. The scores of four of them stand at 3, 2, 1 and 0; the fifth is the label, at "
        f"{moved.values[moved.start]:g}. So it is "
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
        "So one trains with a *surrogate*: a loss that slopes. The **plain top-K hinge** is (1 + s − s_y)₊, where s_y "
        "is the score of the label, s the "
        "K-th highest score of the *other* classes, and (·)₊ cuts off below 0: it is 0 once the label leads by a margin "
        "of 1. *Cross-entropy* is −log of the "
        "softmax probability of the label.",
        "The hinge slopes, and is a bad teacher all the same. **First, its gradient is sparse**: it moves "
        f"{pulled['top-2 hinge']} of the five scores "
        f"(the label up, one rival down), where cross-entropy moves {pulled['cross-entropy']}. With hundreds of classes "
        "nearly all of them learn nothing from a row. On "
        f"a small garden with a long tail the hinge ends at a top-5 accuracy of {TOP_5['top-K hinge']} %, cross-entropy "
        f"at {TOP_5['cross-entropy']} %, and "
        f"always naming the five commonest species gives {ALWAYS_THE_SAME} %: it stays near that constant answer.",
        "**Second, it may ask for nothing.** Let the label be random with probabilities "
        f"{', '.join(f'{p:g}' for p in BLURRED)}. Putting the two best classes "
        f"in front costs the plain hinge {asked_for['plain'][1]:.2f} on average, giving all classes the same score "
        f"{asked_for['plain'][0]:.2f}: it prefers to say nothing, "
        f"because its two best classes hold only {percent(two_best, 0)} and a miss costs 2. Such a loss is *not "
        "calibrated*: minimising it does not "
        "lead to the best set. Comparing the label with the (K+1)-th highest of *all* scores mends that: "
        f"{asked_for['calibrated'][1]:.2f} against "
        f"{asked_for['calibrated'][0]:.2f}. That is the *calibrated* hinge; its gradient is as sparse. What helps "
        "against that is noise: the next lesson.",
    )
    return Told(
        words,
        Question("Which way does the gradient of the top-2 error push the scores?", choices, picture=picture),
        answer,
    )


LESSON = Lesson(
    "why_the_error_cannot_be_trained",
    "Why the error cannot be trained",
    "You will see a step, a ramp and a bend, and which of them can teach a network anything.",
    "04_losses_as_landscapes",
    tell,
    needs_torch=True,
)
