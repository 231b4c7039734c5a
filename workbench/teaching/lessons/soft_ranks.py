"""Lesson 9: ranks jump, so they are replaced by probabilities of ranks; P_K says which ranks count."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.style import SEQUENTIAL, Theme, plotly_template
from workbench.teaching.base import HEIGHT, Choice, Lesson, Picture, Question, Story, slider
from workbench.teaching.published_numbers import CLAIMS

OTHERS = (2.0, 1.0, 0.0)  # scores of the other three classes; the label's moves
NAMES = ("label", "a", "b", "c")
STEEPNESS = 3.0  # large is near to sorting
P_K = (0.5, 0.5)


def soft_permutation(score: float) -> np.ndarray:
    """(4, 4): row r, column j: the degree to which class j has rank r, by a sorting network; the label is class 0."""
    import torch

    from workbench.operators import comparator_network_sort

    scores = torch.tensor([score, *OTHERS], dtype=torch.float64)
    return comparator_network_sort(scores, relaxation="logistic", steepness=STEEPNESS).numpy()


def tell(theme: Theme) -> Story:
    """The relaxed permutation matrix as the label's score climbs, and the loss that P_K makes of it."""
    moved = slider("score of the label", [round(-1 + 0.25 * step, 2) for step in range(17)], "{:.2f}", start=0.5)
    matrices = [soft_permutation(score) for score in moved.values]
    within = np.array([matrix[:, 0].cumsum() for matrix in matrices])  # (places, 4): among the first k
    border = sorted(OTHERS)[-2]  # above it the label is among the first two
    hard = {"x": [moved.values[0], border, border, moved.values[-1]], "y": [0, 0, 1, 1]}
    scale = [[place / (len(SEQUENTIAL) - 1), colour] for place, colour in enumerate(SEQUENTIAL)]

    def drawn(place: int) -> go.Figure:
        figure = make_subplots(1, 2, column_widths=[0.5, 0.5], horizontal_spacing=0.14)
        cells = {"x": NAMES, "y": ["1st", "2nd", "3rd", "4th"], "z": matrices[place], "zmin": 0, "zmax": 1}
        text = [[f"{value:.2f}" for value in row] for row in matrices[place]]
        figure.add_trace(
            go.Heatmap(**cells, text=text, texttemplate="%{text}", colorscale=scale, showscale=False), 1, 1
        )
        step = {"mode": "lines", "line": {"color": theme.threshold}}
        figure.add_trace(go.Scatter(**hard, name="hard: among the first two", **step), 1, 2)
        soft = {"mode": "lines", "line": {"color": theme.model_a, "width": 3}}
        figure.add_trace(go.Scatter(x=moved.values, y=within[:, 1], name="soft", **soft), 1, 2)
        dot = {"mode": "markers", "marker": {"size": 12, "color": theme.model_a}, "showlegend": False}
        figure.add_trace(go.Scatter(x=[moved.values[place]], y=[within[place, 1]], **dot), 1, 2)
        figure.update_layout(
            template=plotly_template(theme), height=HEIGHT, margin={"l": 50, "r": 20, "t": 40, "b": 52}
        )
        figure.update_yaxes(autorange="reversed", row=1, col=1)
        figure.update_xaxes(title="class; the others stand at 2, 1, 0", row=1, col=1)
        figure.update_xaxes(title="score of the label", row=1, col=2)
        return figure.update_yaxes(range=[-0.03, 1.03], tickformat=".0%", row=1, col=2)

    def loss(place: int) -> float:
        return -math.log(sum(weight * within[place, k] for k, weight in enumerate(P_K)))

    def caption(place: int) -> str:
        first, two = within[place, :2]
        return (
            f"The label is first with probability {first:.3g}, among the first two with {two:.3g}. "
            f"With P_K = (½, ½) the loss is −log(½ · {first:.3g} + ½ · {two:.3g}) = {loss(place):.2f}."
        )

    picture = Picture(
        tuple(drawn(place) for place in range(len(moved.values))),
        "Left, a square of sixteen numbers: the probability that each of four classes has each rank. Right, the probability that "
        "the label is among the first two against its score: a step if ranks are hard, a smooth curve if they are soft.",
        moved,
        tuple(caption(place) for place in range(len(moved.values))),
    )
    at, before = moved.start, matrices[moved.start][:, 0]
    steep = CLAIMS[15]["top-1 points of (.1, 0, 0, 0, .9) over (.5, 0, 0, 0, .5), soft_sort"]
    network = CLAIMS[15]["top-1 points of (.1, 0, 0, 0, .9) over (.5, 0, 0, 0, .5), splitter"]
    words = (
        "The *rank* of a class is its position when scores are sorted, 1 for the highest. A small change of the scores "
        "changes no rank, so the gradient of a rank is zero.",
        "A *relaxed sort* returns a table P of probabilities in place of ranks: row r holds, for each class, the probability "
        "that it has rank r. In the hard table each row has a single 1; the soft table changes smoothly with the scores.",
        "A loss built on it has a setting **P_K**: numbers that add up to 1 and are chosen before the training, for example "
        "P_K = (0.5, 0, 0, 0, 0.5).",
    )
    choices = (
        Choice(
            "How probable each of five classes is",
            "P_K is about k, how many of the highest ranks count, and is the same for every row. Probabilities of classes come "
            "from the network.",
        ),
        Choice(
            "How much being first counts, being among the first two, and so on",
            "Right: in the example half of the weight is on the label being first, and half on its being among the first "
            "five.",
            right=True,
        ),
        Choice(
            "How often the label had rank 1, 2, … in the training data",
            "It is chosen before the training, not counted: it says what we want.",
        ),
    )
    answer = (
        "**P_K is a distribution over k**: it says how much top-1, top-2, … accuracy count in the training. The loss is "
        "−log Σ_k P_K(k) · P(label among the first k). P_K = (1) is ordinary top-1 training.",
        "The column of the label holds its probability of each rank: "
        f"{', '.join(f'{value:.2f}' for value in before)}. P(among the first k) is the sum of its first k entries: "
        f"{within[at, 0]:.2f}, {within[at, 1]:.2f}, {within[at, 2]:.2f}, {within[at, 3]:.2f}. With P_K = (½, ½) the loss is "
        f"−log(½ · {within[at, 0]:.2f} + ½ · {within[at, 1]:.2f}) = {loss(at):.2f}. All of it is smooth. The table here "
        "comes from a sorting network; NeuralSort, SoftSort and Sinkhorn are other ways to make one.",
        "Two warnings. A P_K with little weight on k = 1 may lose top-1 accuracy: on CIFAR-100, (.1, 0, 0, 0, .9) in place of "
        f"(.5, 0, 0, 0, .5) changes it by {steep} points with SoftSort, by {network} with a sorting network (95 % intervals). "
        "And the *steepness* of the sort matters: if it is too flat, all ranks are nearly equally probable; if it is too "
        "steep, P is nearly the hard table, whose gradient is zero.",
    )
    return Story(words, Question("What does P_K say?", choices, picture=picture), answer)


LESSON = Lesson(
    "soft_ranks",
    "Soft ranks",
    "You will see a rank that jumps become a probability that glides, and what a loss can do with it.",
    "06_relaxed_sorting",
    tell,
    needs_torch=True,
)
