"""Lesson 6: noise spreads the pull of the top-K hinge over the classes near the border; too much of it asks for nothing."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.teaching.base import Choice, Lesson, Picture, Question, Told, axes, slider
from workbench.teaching.measured import ALWAYS_THE_SAME, TOP_5

SCORES = (3.4, 3.2, 3.0, 1.6, 1.3, 1.0, 0.7, 0.4, 0.1, -0.2)
K, LABEL = 3, 3  # the label is fourth, right below the three that sit at the top
NAMES = tuple("label" if place == LABEL else f"{place + 1}." for place in range(len(SCORES)))


def pulls(epsilon: float) -> np.ndarray:
    """How gradient descent moves each score: minus the gradient of the noised top-K loss."""
    from workbench.figures.of_losses.evaluation import loss_gradients
    from workbench.losses import ExactNoisedTopK

    gradient: np.ndarray = loss_gradients(ExactNoisedTopK(K=K, epsilon=epsilon), np.array([SCORES]), LABEL)[0]
    return 0.0 - gradient


def tell(theme: Theme) -> Told:
    """The pull on ten scores at every ε, what short training made of it, and from where on a tie costs nothing."""
    from workbench.figures.of_losses.evaluation import scores_moved
    from workbench.losses.noised import largest_calibrated_epsilon

    noise = slider("ε", [0, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.3, 1.6, 2, 2.5, 3], "{:g}", start=0)
    moved = [pulls(epsilon) for epsilon in noise.values]

    def drawn(place: int) -> go.Figure:
        colours = [theme.hit if value >= 0 else theme.miss for value in moved[place]]
        bars = go.Bar(x=NAMES, y=moved[place], marker={"color": colours}, showlegend=False)
        figure = axes(theme, "classes by falling score; three sit at the top", "pull on the score", traces=[bars])
        figure.add_vline(K - 0.5, line={"color": theme.threshold, "dash": "dash"})
        return figure.update_layout(yaxis_range=[-0.35, 1.05], xaxis_type="category")

    def caption(place: int) -> str:
        pull = moved[place]
        n, above = int(scores_moved(pull[None])[0]), -pull[:K].sum()
        return (
            f"ε = {noise.texts[place]}: {n} of {len(SCORES)} scores are pulled; the label by {pull[LABEL]:+.2f}, "
            f"the three at the top together by {-above + 0.0:+.2f}."
        )

    picture = Picture(
        tuple(drawn(place) for place in range(len(noise.values))),
        "Bars: how the loss pulls at each of ten scores, three of which sit at the top and the fourth of which is the label.",
        noise,
        tuple(caption(place) for place in range(len(noise.values))),
    )
    limits = {size: largest_calibrated_epsilon(size) for size in (2, 3, 5)}
    one = moved[noise.values.index(1.0)]
    words = (
        "To put the label among the K highest scores, the calibrated *top-K hinge* takes (1 + s − s_y)₊: s_y is the "
        "score of the label, s the "
        "(K+1)-th highest of all scores, and (·)₊ cuts off below 0. Gradient descent pulls s_y up and s down.",
        f"Ten classes, K = {K}. Three classes sit at the top, as the commonest classes of long-tailed data soon do. "
        "Below a gap follows the label, at "
        "place K + 1.",
    )
    choices = (
        Choice(
            "It pulls the label up and pushes the third class down",
            "The loss looks at place K + 1 only. The third class is never touched, nor are the other two.",
        ),
        Choice(
            "It pulls the label up and pushes all others down",
            "That is what cross-entropy does. The hinge compares two scores.",
        ),
        Choice(
            "It moves nothing",
            "Right: the class at place K + 1 is the label itself. One pull goes up, one down, on the same score, and "
            "they cancel.",
            right=True,
        ),
    )
    answer = (
        "So the label is stuck below a gap, which we call the **moat**, and the network goes on answering with the same "
        "K classes for every input. That is the "
        "consequence of a gradient that touches one or two scores.",
        "**ε is the scale of Gaussian noise that is added to the scores** before the (K+1)-th highest is taken; the "
        "loss uses its mean over the noise (drawn a few times, or "
        "computed exactly, as here). Now any class near the border may hold place K + 1, each with some probability, "
        "and each gets its share of the push. "
        f"At ε = 1 the label is pulled by {one[LABEL]:+.2f} and the three at the top by {one[:K].sum():+.2f} together: "
        "the noise reaches across the moat. The loss is "
        "smooth, too. ε = 0 is the hinge itself.",
        "**Too little** and nothing changes. On a small garden with a long tail, where always naming the five commonest "
        f"species gives {ALWAYS_THE_SAME} % top-5 "
        f"accuracy, ε = 0.2 ends at {TOP_5['noised, ε = 0.2']} %, ε = 1 at {TOP_5['ε = 1']} %, cross-entropy at "
        f"{TOP_5['cross-entropy']} % (three seeds, 95 % interval). More draws of the noise "
        "at ε = 0.2 do not help: it is the reach that counts.",
        "**Too much** and the noise alone makes up the margin of 1: K + 1 equal scores cost nothing whichever of them "
        "is the label, so nothing is learnt from a tie, "
        "and the loss is no longer calibrated (its minimum need not be the best set). That happens from ε = "
        f"{limits[2]:.2f} on for K = 2, {limits[3]:.2f} for K = 3, {limits[5]:.2f} for "
        "K = 5. Hence a paradox: the ε that learns may not be calibrated, and the calibrated one may not learn. A way "
        "out is to begin with much noise and end with little: "
        f"ε from 3 down to 0.2 ends at {TOP_5['**ε = anneal(3, 0.2)**']} %.",
    )
    return Told(
        words,
        Question("Without noise (ε = 0): what does this loss do to the scores?", choices, picture=picture),
        answer,
    )


LESSON = Lesson(
    "what_epsilon_does",
    "What ε does",
    "You will see a loss that moves nothing, and how noise makes it reach the classes that matter.",
    "04_losses_as_landscapes",
    tell,
    needs_torch=True,
)
