"""Lesson 6: noise lets the top-K hinge reach across a gap of scores; too much of it makes up the margin by itself."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.teaching.base import Choice, Lesson, Picture, Question, Story, axes, signed, slider
from workbench.teaching.machines import ladder
from workbench.teaching.published_numbers import ALWAYS_THE_SAME, JUST_CALIBRATED, LETTERS, SAME_SET, TOP_5

SCORES = (3.4, 3.2, 3.0, 1.6, 1.3, 1.0, 0.7, 0.4, 0.1, -0.2)
K, LABEL = 3, 3  # the label is fourth, right below the three that sit at the top
EPSILON = 0.7  # reaches across the gap, and the loss is still calibrated
NAMES = tuple("label" if place == LABEL else f"{place + 1}." for place in range(len(SCORES)))


def pulls(epsilon: float) -> np.ndarray:
    """How gradient descent moves each score: minus the gradient of the noised top-K loss."""
    from workbench.figures.losses.evaluation import loss_gradients
    from workbench.losses import ExactNoisedTopK

    gradient: np.ndarray = loss_gradients(ExactNoisedTopK(K=K, epsilon=epsilon), np.array([SCORES]), LABEL)[0]
    return 0.0 - gradient


def tell(theme: Theme) -> Story:
    """The pull on ten scores at every ε, what short training made of it, and from where on a tie costs nothing."""
    from workbench.figures.losses.evaluation import scores_moved
    from workbench.losses.noised import largest_calibrated_epsilon

    noise = slider("ε", [0, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.3, 1.6, 2, 2.5, 3], "{:g}", start=0)
    moved = [pulls(epsilon) for epsilon in noise.values]

    def drawn(place: int) -> go.Figure:
        colours = [theme.hit if value >= 0 else theme.miss for value in moved[place]]
        bars = go.Bar(x=NAMES, y=moved[place], marker={"color": colours}, showlegend=False)
        figure = axes(
            theme, "classes by falling score; three are far above the rest", "pull on the score", traces=[bars]
        )
        figure.add_vline(K - 0.5, line={"color": theme.threshold, "dash": "dash"})
        return figure.update_layout(yaxis_range=[-0.35, 1.05], xaxis_type="category")

    def caption(place: int) -> str:
        pull = moved[place]
        n, above = int(scores_moved(pull[None])[0]), -pull[:K].sum()
        return (
            f"ε = {noise.texts[place]}: {n} of {len(SCORES)} scores are pulled; the label by {signed(pull[LABEL])}, "
            f"the three at the top together by {signed(-above)}."
        )

    picture = Picture(
        tuple(drawn(place) for place in range(len(noise.values))),
        "Bars: how the loss pulls at each of ten scores, three of which are far above the rest; the fourth is the label's.",
        noise,
        tuple(caption(place) for place in range(len(noise.values))),
    )
    limits = {size: largest_calibrated_epsilon(size) for size in (2, 3, 5)}
    reaching = moved[noise.values.index(EPSILON)]
    words = (
        "The calibrated *top-K hinge* is (1 + s − s_y)₊: s_y is the score of the label, s the (K+1)-th highest of all "
        "scores, and (·)₊ cuts off below 0. Gradient descent pulls s_y up and s down.",
        f"Ten classes, K = {K}. Three have high scores: training on *long-tailed* data (few classes with many images, many with "
        "few) soon lifts the most frequent classes. The label has rank K + 1, below a gap.",
    )
    choices = (
        Choice(
            "It pulls the label up and pushes the third class down",
            "The loss compares the label with the class of rank K + 1 only. The three at the top are never touched.",
        ),
        Choice(
            "It pulls the label up and pushes all others down",
            "That is what cross-entropy does. The hinge compares two scores.",
        ),
        Choice(
            "It moves nothing",
            "Right: the class of rank K + 1 is the label itself. One pull up and one down on the same score cancel.",
            right=True,
        ),
    )
    answer = (
        "So the label stays below the gap, and the classes above it are never pushed down.",
        "**ε is the scale of Gaussian noise added to the scores** before the (K+1)-th highest is taken; the loss is the mean "
        f"over the noise. At ε = {EPSILON:g} the label is pulled by {signed(reaching[LABEL])} and the three at the top by "
        f"{signed(reaching[:K].sum())} together: the noise reaches across the gap. More draws at the same ε reach no further.",
        "**Too little noise may stall.** On a small long-tailed garden, chosen because the effect shows there, top-5 accuracy "
        f"ends at {TOP_5['noised, ε = 0.2']} % with ε = 0.2 (95 % intervals), where {SAME_SET['noised, ε = 0.2']} % of the rows "
        f"get the same set; cross-entropy at {TOP_5['cross-entropy']} %; the five most frequent species alone at "
        f"{ALWAYS_THE_SAME:g} %. On letters with a milder tail nothing stalls: {LETTERS['noised, ε = 0.2']} % with ε = 0.2, "
        f"{LETTERS['cross-entropy']} % with cross-entropy.",
        "**Too much noise is wrong, too.** On average it pushes the (K+1)-th highest of K + 1 equal scores below them. From "
        f"ε = {limits[3]:.2f} for K = 3 and {limits[5]:.2f} for K = 5 on, that lowers the loss by the whole margin of 1: equal "
        "scores cost nothing, and the loss is no longer calibrated. There is room between: on the garden (K = 5) ε = 0.75 "
        f"reaches {TOP_5[JUST_CALIBRATED]} %, annealing from 3 to 0.2 {TOP_5['**ε = anneal(3, 0.2)**']} %.",
    )
    return Story(
        words,
        Question("Without noise (ε = 0): what does this loss do to the scores?", choices, picture=picture),
        answer,
        (ladder(theme),),
    )


LESSON = Lesson(
    "what_epsilon_does",
    "What ε does",
    "You will see which scores a loss pulls, how far noise makes it reach, and how much noise is too much.",
    "04_losses_as_landscapes",
    tell,
    needs_torch=True,
)
