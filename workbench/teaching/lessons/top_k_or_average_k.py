"""Lesson 2: the same number of classes for every row, or the same number on average."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.base import points
from workbench.figures.style import Theme
from workbench.metrics.bayes import top_k_against_average_k
from workbench.sets import AverageK, TopK
from workbench.teaching.base import Choice, Lesson, Picture, Question, Story, axes, percent, slider
from workbench.teaching.demo_tables import tables
from workbench.teaching.tokens import tokens

MOST = 15
CLEAR, BLURRED = (0.97, 0.01, 0.01, 0.01), (0.3, 0.28, 0.22, 0.2)  # the two rows of the question
K = 2


def by_hand(rows: tuple[tuple[float, ...], ...], K: int) -> tuple[float, float]:
    """How often sets of K classes each, and of K classes on average, hold the label of rows whose probabilities are known."""
    probabilities = np.array(rows)
    each, pooled = -np.sort(-probabilities, axis=1)[:, :K], -np.sort(-probabilities.ravel())[: K * len(probabilities)]
    return float(each.sum(1).mean()), float(pooled.sum() / len(probabilities))


def tell(theme: Theme) -> Story:
    """Two rows by hand, then the best that top-K and average-K can do on the garden, and what a network does."""
    top, average = by_hand((CLEAR, BLURRED), K)
    val, test = tables("garden", "CrossEntropy")
    frame = top_k_against_average_k(test, range(1, MOST + 1))
    lines_of = frame.to_dict("records")
    sizes = slider("K", range(1, MOST + 1), "{:.0f}", start=3)
    lines = [
        go.Scatter(
            x=frame["K"], y=frame["average_k"], name="best average-K", line={"color": theme.bayes, "shape": "spline"}
        ),
        go.Scatter(
            x=frame["K"], y=frame["top_k"], name="best top-K", mode="lines+markers", line={"color": theme.model_b}
        ),
    ]

    def drawn(place: int) -> go.Figure:
        at = lines_of[place]
        gap = go.Scatter(
            x=[at["K"], at["K"]],
            y=[at["top_k"], at["average_k"]],
            mode="lines+markers",
            name="the gap",
            line={"color": theme.threshold, "width": 5},
        )
        figure = axes(
            theme, "K: classes in a set, each or on average", "sets that hold the label", traces=[*lines, gap]
        )
        return figure.update_layout(yaxis_tickformat=".0%", yaxis_range=[0.65, 1.005])

    picture = Picture(
        tuple(drawn(place) for place in range(MOST)),
        "Two curves against K: how often the best average-K sets and the best top-K sets hold the label, and the gap at one K.",
        sizes,
        tuple(
            f"K = {line['K']:.0f}: the label is in {percent(line['average_k'])} of the average-K sets and in "
            f"{percent(line['top_k'])} of the top-K sets, a gap of {100 * line['gap']:.1f} points."
            for line in lines_of
        ),
    )
    best = max(lines_of, key=lambda line: line["gap"])
    three = {rule: rule(3).fit(val)(test) for rule in (TopK, AverageK)}
    made = three[AverageK].sizes
    choices = (
        Choice(
            "Two classes for each row",
            f"That is top-2: right with probability {percent(top)}. On the clear row the second class adds "
            f"{percent(CLEAR[1], 0)}; on the blurred row a third class would add {percent(BLURRED[2], 0)}.",
        ),
        Choice(
            "One class for the clear row, three for the blurred one",
            f"Right: these are the four largest probabilities of the table. {percent(average)} in place of {percent(top)}.",
            right=True,
        ),
        Choice(
            "It does not matter, the number of classes is the same",
            f"The number is the same, the result is not: {percent(average)} against {percent(top)}.",
        ),
    )
    words = (
        "A *row* is one input with the probabilities of its L classes; a table has n rows. *Top-K* names the K most probable "
        "classes of every row. *Average-K* names every class whose probability reaches **one threshold for all rows**, "
        "chosen so that sets hold K classes *on average*.",
        f"Two rows, four classes. The first row is clear: {_listed(CLEAR)}. The second is blurred: {_listed(BLURRED)}. "
        "You may name four classes in all.",
    )
    answer = (
        "Each class that you name costs the same and adds its probability. So the best choice is the largest probabilities of "
        "the whole table: those above one threshold. **Average-K is the best rule for a given mean size**; top-K is the best "
        "one if all sets must have the same size.",
        f"In the garden the gap is largest at K = {best['K']:.0f}: {percent(best['average_k'])} against "
        f"{percent(best['top_k'])}, {points(best['gap'])}. If all rows were equally ambiguous, there would be no gap: "
        "average-K gains where ambiguity is *unequal*.",
        f"A trained network shows the same: its top-3 sets are correct for {percent(float(three[TopK].hits.mean()))} of the "
        f"rows, its average-3 sets for {percent(float(three[AverageK].hits.mean()))}. Of these, "
        f"{percent(float((made == 1).mean()), 0)} have one class and {percent(float((made > 5).mean()), 0)} more than "
        "five. The price: average-K compares probabilities *between* rows, so they must mean the same in every row; top-K "
        "needs only the order within a row.",
    )
    asked = "Which four do you name, so that the sets contain the labels as often as possible?"
    return Story(words, Question(asked, choices, picture=picture), answer, (tokens(),))


def _listed(probabilities: tuple[float, ...]) -> str:
    return ", ".join(f"{probability:g}" for probability in probabilities)


LESSON = Lesson(
    "top_k_or_average_k",
    "Top-K or average-K",
    "You will see two ways to spend the same number of classes, and how much the better one gains.",
    "02_top_k_or_average_k",
    tell,
)
