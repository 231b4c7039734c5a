"""The quiz: twenty questions, half of which are answered by moving something, each with its wrong answers explained.

A question that is answered by moving is a function of its data, so that a test can ask it of any data and hold the answer
to the library. Its text has all the numbers it needs: on paper and in Moodle there is no picture.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.teaching.base import Choice, LazyFigures, Picture, Question, Slider, Target, axes, percent, slider

Asked = Callable[[Theme], Question]


def ordinal(number: int) -> str:
    """A place in a ranking.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 21)]
    ['1st', '2nd', '3rd', '4th', '11th', '21st']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(values: Sequence[float]) -> str:
    """Numbers as a sentence has them."""
    return ", ".join(f"{value:g}" for value in values)


def grid(low: float, high: float, step: float) -> list[float]:
    """Values from one end to the other, as they are written."""
    return [round(low + step * place, 6) for place in range(round((high - low) / step) + 1)]


def moving(
    draw: Callable[[float], go.Figure], places: Slider, text: str, caption: Callable[[float], str], **more: Any
) -> Picture:
    """A picture for every value of a slider."""
    return Picture(LazyFigures(draw, places.values), text, places, tuple(map(caption, places.values)), **more)


def bars(
    theme: Theme, names: Sequence[str], values: Sequence[float], y: str, *, chosen: Sequence[bool] | None = None
) -> go.Figure:
    """Bars with their names; those that are chosen stand out."""
    colours = [theme.hit if each else theme.muted for each in chosen or [True] * len(values)]
    return axes(
        theme, "", y, traces=[go.Bar(x=list(names), y=list(values), marker={"color": colours})], showlegend=False
    )


def threshold_of_average_k(
    theme: Theme,
    rows: Sequence[Sequence[float]] = ((0.7, 0.2, 0.1), (0.5, 0.3, 0.2), (0.45, 0.35, 0.2), (0.9, 0.06, 0.04)),
    K: float = 1.5,
) -> Question:
    """Where to cut so that sets hold K classes on average."""
    probabilities = np.array(rows)
    m = math.floor(K * len(probabilities) + 0.5)
    falling = -np.sort(-probabilities.ravel())
    last_in, first_out = float(falling[m - 1]), float(falling[m])

    def inside(cut: float) -> int:
        return int((probabilities >= cut).sum())

    def draw(cut: float) -> go.Figure:
        row = np.repeat(np.arange(1, len(probabilities) + 1), probabilities.shape[1])
        colours = np.where(probabilities.ravel() >= cut, theme.hit, theme.muted)
        dots = go.Scatter(
            x=probabilities.ravel(), y=row, mode="markers", marker={"size": 13, "color": colours}, showlegend=False
        )
        figure = axes(theme, "probability of a class", "row", traces=[dots]).add_vline(
            cut, line={"color": theme.threshold}
        )
        return figure.update_layout(xaxis_range=[0, 1], yaxis={"dtick": 1, "autorange": "reversed"})

    given = "; ".join(listed(row) for row in rows)
    return Question(
        f"{len(probabilities)} rows have these probabilities: {given}. Which threshold gives sets of {K:g} classes on average?",
        target=Target(
            first_out + 1e-6,
            last_in,
            f"More than {m} probabilities reach it: sets are too large.",
            f"Fewer than {m} probabilities reach it: sets are too small.",
            f"K · n = {m} probabilities reach it: cut between {last_in:g} and {first_out:g}.",
        ),
        picture=moving(
            draw,
            slider("threshold", grid(0.02, 0.98, 0.02), "{:.2f}", start=0.6),
            "Dots: the probabilities of the classes of each row, and the threshold.",
            lambda cut: (
                f"{inside(cut)} of {probabilities.size} reach {cut:.2f}: {inside(cut) / len(probabilities):.2f} classes a row."
            ),
        ),
    )


def conformal_rank(theme: Theme, n: int = 24, confidence: float = 0.9) -> Question:
    """Which of the sorted calibration values is the threshold."""
    k = math.ceil(round((n + 1) * confidence, 9))
    values = (np.linspace(0.98, 0.05, n) ** 1.3).tolist()

    def draw(place: float) -> go.Figure:
        chosen = [rank == round(place) for rank in range(1, n + 1)]
        return bars(
            theme, [str(rank) for rank in range(1, n + 1)], values, "probability of the true label", chosen=chosen
        )

    return Question(
        f"LAC sorts the probabilities of the true labels of n = {n} calibration rows, the largest first. For a promise of "
        f"{percent(confidence, 0)}, which place in this list has the threshold?",
        target=Target(
            k,
            k,
            f"Too few values reach it. The place is ⌈(n + 1) · {confidence:g}⌉; n · {confidence:g} forgets that the new row is "
            "one of n + 1.",
            "More values reach it than needed: the promise holds, but the sets are larger than they must be.",
            f"⌈{n + 1} · {confidence:g}⌉ = {k}.",
        ),
        picture=moving(
            draw,
            slider("place", range(1, n + 1), "{:.0f}", start=n // 2),
            "Bars: the sorted probabilities of the true labels.",
            lambda place: f"Place {place:.0f} of {n}: on average {percent(place / (n + 1))} of new labels reach it.",
        ),
    )


def lac_threshold(
    theme: Theme, values: Sequence[float] = (0.95, 0.9, 0.82, 0.74, 0.66, 0.52, 0.4, 0.28, 0.1), confidence: float = 0.8
) -> Question:
    """The threshold of LAC, from a handful of calibration rows."""
    falling = sorted(values, reverse=True)
    k = math.ceil(round((len(values) + 1) * confidence, 9))
    threshold = falling[k - 1]

    def draw(cut: float) -> go.Figure:
        figure = bars(theme, [str(rank + 1) for rank in range(len(falling))], falling, "probability of the true label",
                      chosen=[value >= cut for value in falling])  # fmt: skip
        return figure.add_hline(cut, line={"color": theme.threshold, "width": 3})

    return Question(
        f"The true labels of {len(values)} calibration rows have the probabilities {listed(values)}. Which threshold does LAC "
        f"take for a confidence of {percent(confidence, 0)}?",
        target=Target(
            threshold - 0.005,
            threshold + 0.005,
            f"Too low: {k} of the {len(values)} values must reach the threshold, and the {ordinal(k)} largest is "
            "higher than this.",
            f"Too high: fewer than ⌈(n + 1) · {confidence:g}⌉ = {k} of the values reach it.",
            f"The {ordinal(k)} largest, {threshold:g}: ⌈({len(values)} + 1) · {confidence:g}⌉ = {k}.",
        ),
        picture=moving(
            draw,
            slider("threshold", grid(0, 1, 0.01), "{:.2f}", start=0.5),
            "Bars: the probabilities of the true labels, the largest first, and the threshold.",
            lambda cut: f"{sum(value >= cut for value in falling)} of {len(falling)} reach {cut:.2f}.",
        ),
    )


def rows_to_promise(theme: Theme, confidence: float = 0.95) -> Question:
    """How many calibration rows a promise needs, unless every class is named."""
    needed = math.ceil(round(confidence / (1 - confidence), 9))
    most = max(2 * needed, 10)

    def draw(n: float) -> go.Figure:
        counts = np.arange(1, most + 1)
        line = go.Scatter(x=counts, y=counts / (counts + 1), line={"color": theme.model_a}, showlegend=False)
        dot = go.Scatter(
            x=[n], y=[n / (n + 1)], mode="markers", marker={"size": 12, "color": theme.hit}, showlegend=False
        )
        figure = axes(theme, "calibration rows n", "n / (n + 1)", traces=[line, dot])
        return figure.add_hline(confidence, line={"color": theme.threshold, "dash": "dash"})

    return Question(
        f"What is the smallest number of calibration rows with which a conformal rule can promise {percent(confidence, 0)} "
        "without always naming every class?",
        target=Target(
            needed,
            needed,
            "Too few: even if the threshold is the smallest of the n values, only n/(n + 1) of new labels reach it, less than "
            f"{percent(confidence, 0)}.",
            "Fewer are enough: the place ⌈(n + 1) · confidence⌉ must not lie beyond n.",
            f"n/(n + 1) ≥ {confidence:g} from n = {needed} on.",
        ),
        picture=moving(
            draw,
            slider("rows", range(1, most + 1), "{:.0f}", start=3),
            "A curve: the largest coverage that n rows can promise, and the wanted one.",
            lambda n: f"{n:.0f} rows can promise at most {percent(n / (n + 1))}.",
        ),
    )


def value_of_the_hinge(
    theme: Theme, scores: Sequence[float] = (2.5, 2.0, 1.2, 0.4), label: int = 3, K: int = 2
) -> Question:
    """The calibrated top-K hinge of one row."""
    compared = sorted(scores, reverse=True)[K]
    value = max(0.0, 1 + compared - scores[label])

    def draw(_: float) -> go.Figure:
        names = [f"{place + 1}{' (label)' if place == label else ''}" for place in range(len(scores))]
        return bars(theme, names, scores, "score", chosen=[place == label for place in range(len(scores))])

    return Question(
        f"Scores are {listed(scores)} and the label is class {label + 1}. What is the calibrated top-{K} hinge, "
        f"(1 + s − s_y)₊ with s the {ordinal(K + 1)} highest of all scores?",
        target=Target(
            value - 0.025,
            value + 0.025,
            "Too small. The loss is 0 only if the label leads by 1.",
            f"Too large. The label is compared with the {ordinal(K + 1)} highest score, not with a higher one.",
            f"(1 + {compared:g} − {scores[label]:g})₊ = {value:g}.",
        ),
        picture=moving(
            draw,
            slider("loss", grid(0, max(4.0, 2 * math.ceil(value)), 0.05), "{:.2f}", start=0),
            "Bars: the scores of the classes; the label stands out.",
            lambda _: f"The {ordinal(K + 1)} highest score is {compared:g}; that of the label is {scores[label]:g}.",
        ),
    )


def where_the_hinge_ends(theme: Theme, others: Sequence[float] = (2.0, 1.25, 0.5, -1.0), K: int = 2) -> Question:
    """From which score of the label on the plain top-K hinge is 0."""
    rival = sorted(others, reverse=True)[K - 1]
    needed = rival + 1
    scores = grid(math.floor(min(others)) - 1, math.ceil(max(others)) + 3, 0.05)

    def draw(score: float) -> go.Figure:
        ramp = go.Scatter(
            x=scores,
            y=[max(0.0, 1 + rival - each) for each in scores],
            line={"color": theme.model_a},
            name="plain hinge",
        )
        lines = [
            go.Scatter(x=[each, each], y=[0, 3], mode="lines", line={"color": theme.muted}, showlegend=False)
            for each in others
        ]
        dot = go.Scatter(
            x=[score],
            y=[max(0.0, 1 + rival - score)],
            mode="markers",
            marker={"size": 12, "color": theme.hit},
            showlegend=False,
        )
        return axes(theme, "score of the label; grey: the others", "loss", traces=[*lines, ramp, dot])

    picture = moving(
        draw,
        slider("score of the label", scores, "{:.2f}", start=scores[0]),
        "A ramp that ends at 0, against the score of the label.",
        lambda score: f"At {score:.2f} the loss is {max(0.0, 1 + rival - score):.2f}.",
        secret=("plain hinge",),
    )
    return Question(
        f"The other classes have scores {listed(others)}. What is the lowest score of the label at which the plain "
        f"top-{K} hinge, "
        f"(1 + s − s_y)₊ with s the {ordinal(K)} highest of the *other* scores, is 0?",
        target=Target(
            needed - 0.025,
            needed + 0.025,
            "Too low: the loss is still above 0, because the label must lead by 1.",
            f"It is 0 there, and already at lower scores: the label must lead the {ordinal(K)} of the others by 1, not the "
            "highest.",
            f"{rival:g} + 1 = {needed:g}.",
        ),
        picture=picture,
    )


def temperature_for_a_confidence(theme: Theme, gap: float = 3.0, confidence: float = 0.8176) -> Question:
    """Which temperature makes two classes with that gap so sure."""
    temperature = gap / math.log(confidence / (1 - confidence))

    def sure(T: float) -> float:
        return 1 / (1 + math.exp(-gap / T))

    def draw(T: float) -> go.Figure:
        figure = bars(theme, ("first class", "second class"), (sure(T), 1 - sure(T)), "probability")
        return figure.update_layout(yaxis_range=[0, 1]).add_hline(
            confidence, line={"color": theme.threshold, "dash": "dash"}
        )

    return Question(
        f"There are two classes, and the score of the first is higher by {gap:g}. The first is right in {percent(confidence)} of "
        "such rows. By which temperature T must the scores be divided, so that the softmax gives it this probability?",
        target=Target(
            temperature - 0.06,
            temperature + 0.06,
            "Too small: the gap between the scores stays large, and the probability is too high.",
            "Too large: the gap between the scores becomes small, and the probability is too low.",
            f"1/(1 + e^(−{gap:g}/T)) = {confidence:g} at T = {temperature:.2f}.",
        ),
        picture=moving(
            draw,
            slider("T", grid(0.1, max(5.0, math.ceil(temperature) + 1), 0.1), "{:.1f}", start=1),
            "Two bars: the probabilities of the two classes, and a line at how often the first is right.",
            lambda T: f"T = {T:.1f}: {percent(sure(T))} for the first class.",
        ),
    )


def constant_of_quasibinary(
    theme: Theme, scores: Sequence[Sequence[float]] = ((2.0, 1.0, -1.0), (0.5, -0.5, -2.0)), n_labels: int = 3
) -> Question:
    """The constant C of a batch."""
    exponentials = np.exp(np.array(scores))
    constant = float(exponentials.sum() / n_labels)
    names = [f"row {row + 1}, class {column + 1}" for row in range(len(scores)) for column in range(len(scores[0]))]

    def draw(C: float) -> go.Figure:
        return bars(theme, names, (exponentials / C).ravel().tolist(), "q = e^z / C").update_layout(
            yaxis_range=[0, float(exponentials.max() / constant) * 1.6]
        )

    tenth = 10 ** math.floor(math.log10(constant)) / 10
    return Question(
        f"A batch of {len(scores)} rows has the scores {'; '.join(listed(row) for row in scores)} and {n_labels} labels "
        "in all. The quasibinary loss chooses the constant C so that all q = e^z / C of the batch sum to its number of labels. "
        "Which C is that?",
        target=Target(
            constant - 1.2 * tenth,
            constant + 1.2 * tenth,
            f"Too small: the q sum to more than {n_labels}.",
            f"Too large: the q sum to less than {n_labels}.",
            f"Σ e^z / {n_labels} = {constant:.3g}.",
        ),
        picture=moving(
            draw,
            slider(
                "C",
                grid(tenth, 30 * tenth, tenth) if constant < 3 * 10 * tenth else grid(tenth, 110 * tenth, tenth),
                "{:g}",
            ),
            "Bars: q of every class of every row.",
            lambda C: f"C = {C:g}: the q sum to {exponentials.sum() / C:.2f}.",
        ),
    )


def worth_of_soft_ranks(
    theme: Theme, column: Sequence[float] = (0.2, 0.3, 0.4, 0.1), p_k: Sequence[float] = (0.5, 0.0, 0.5)
) -> Question:
    """Question on the argument of the logarithm in the differentiable top-k loss."""
    within = np.cumsum(column)
    worth = float(sum(weight * within[k] for k, weight in enumerate(p_k)))

    def draw(value: float) -> go.Figure:
        figure = bars(theme, [f"rank {rank + 1}" for rank in range(len(column))], column, "probability of the label")
        return figure.update_layout(yaxis_range=[0, 1]).add_hline(value, line={"color": theme.threshold, "width": 3})

    return Question(
        f"The label has rank 1, 2, … with probabilities {listed(column)}, and P_K = ({listed(p_k)}). The loss is the "
        "−log of Σ_k P_K(k) · P(label among the first k). How large is this sum?",
        target=Target(
            worth - 0.015,
            worth + 0.015,
            "Too small: P(label among the first k) is the sum over the ranks 1 to k, not the probability of rank k alone.",
            "Too large: multiply each P(label among the first k) by its weight P_K(k).",
            " + ".join(f"{weight:g} · {within[k]:.2f}" for k, weight in enumerate(p_k) if weight) + f" = {worth:.3g}.",
        ),
        picture=moving(
            draw,
            slider("number", grid(0, 1, 0.01), "{:.2f}", start=0.1),
            "Bars: the probabilities of the ranks of the label.",
            lambda _: f"Among the first k: {', '.join(f'{value:.2f}' for value in within)}.",
        ),
    )


def number_of_candidates(theme: Theme, n: int = 6, K: float = 2.5) -> Question:
    """How many pseudo-labels the two-head loss takes in a batch."""
    count = math.floor(round((K - 1) * n, 9) + 0.5)
    probabilities = np.sort(np.random.default_rng(0).beta(0.6, 3, 4 * n))[::-1].tolist()

    def draw(value: float) -> go.Figure:
        names = [str(place + 1) for place in range(len(probabilities))]
        chosen = [place < value for place in range(len(probabilities))]
        return bars(theme, names, probabilities, "probability by the candidate head", chosen=chosen)

    return Question(
        f"The two-head loss has K = {K:g}; a batch has {n} rows, each with one label. How many candidates, classes other than "
        "the labels, does the loss choose in the whole batch?",
        target=Target(
            count,
            count,
            "Too few. Each row has one label, so it needs K − 1 more classes on average: (K − 1) · n in the batch.",
            "Too many. The labels count, too: it is (K − 1) · n, not K · n.",
            f"({K:g} − 1) · {n} = {count}: those with the largest probabilities of the candidate head, in any rows.",
        ),
        picture=moving(
            draw,
            slider("candidates", range(1, 4 * n + 1), "{:.0f}"),
            "Bars: probabilities of classes that are not labels, over the whole batch, the largest first.",
            lambda value: f"{value:.0f} candidates: {1 + value / n:.2f} classes a row with the labels.",
        ),
    )


MOVED: tuple[Asked, ...] = (
    threshold_of_average_k,
    conformal_rank,
    lac_threshold,
    rows_to_promise,
    value_of_the_hinge,
    where_the_hinge_ends,
    temperature_for_a_confidence,
    constant_of_quasibinary,
    worth_of_soft_ranks,
    number_of_candidates,
)
CLICKED = (
    Question(
        "All rows are equally ambiguous: each has the same sorted probabilities. What does average-K gain over top-K?",
        (
            Choice(
                "Nothing",
                "An additional class gains the same in every row, so no row deserves a larger set.",
                right=True,
            ),
            Choice(
                "As much as on any data",
                "It gains by giving clear rows fewer classes and blurred rows more; here all rows are alike.",
            ),
            Choice("It loses coverage", "Its threshold gives every row K classes: the same sets as top-K."),
        ),
    ),
    Question(
        "What does one need to find the threshold of average-K?",
        (
            Choice(
                "Probabilities of rows like those to come",
                "Sizes are counted, and counting needs no label.",
                right=True,
            ),
            Choice(
                "Labelled rows", "Labels tell whether sets are right; the threshold only decides how large they are."
            ),
            Choice("The true probabilities", "Any scores will do; better ones give better sets of the same size."),
        ),
    ),
    Question(
        "Calibration rows were collected in spring, new rows come in autumn. What becomes of the conformal promise?",
        (
            Choice(
                "It may be broken",
                "Rows are no longer exchangeable: spring rows differ in kind from autumn rows.",
                right=True,
            ),
            Choice(
                "It holds, because it holds for any network",
                "It holds for any network, but not for any data: calibration rows and new rows must be drawn alike.",
            ),
            Choice(
                "It holds if there are enough calibration rows", "More rows from spring say nothing more about autumn."
            ),
        ),
    ),
    Question(
        "A hospital has conformal sets with 90 % coverage. What can it tell a patient with a rare disease?",
        (
            Choice(
                "Nothing about patients like this one",
                "The promise is marginal, an average over all patients.",
                right=True,
            ),
            Choice(
                "The set holds the disease with probability 90 %",
                "That would be conditional coverage, which is not promised.",
            ),
            Choice("The set is small", "Sizes are not promised at all."),
        ),
    ),
    Question(
        "What is the difference between LAC and APS?",
        (
            Choice(
                "LAC has the smaller sets, APS the more even coverage",
                "One threshold on probabilities gives the smallest sets; adding up probabilities treats kinds of rows alike.",
                right=True,
            ),
            Choice(
                "Only APS adapts its size to the row",
                "LAC does, too: a blurred row has more classes above a threshold.",
            ),
            Choice("Only APS keeps its promise", "Both do, over all rows."),
        ),
    ),
    Question(
        "Why is the top-K error not used for training?",
        (
            Choice("Its gradient is zero almost everywhere", "It is a step: a small move changes nothing.", right=True),
            Choice(
                "It is not what we want", "It is exactly what we want; but it does not say in which direction to move."
            ),
            Choice("It takes too long to compute", "It is one of the cheapest losses there are."),
        ),
    ),
    Question(
        "Training with the noised top-K loss ends with the same five classes for every photograph. What is worth trying first?",
        (
            Choice(
                "A larger ε, at least at the beginning",
                "More noise reaches across the gap below the top classes.",
                right=True,
            ),
            Choice(
                "More draws of the noise at the same ε, for a better mean",
                "The mean becomes more precise, but the noise reaches no further.",
            ),
            Choice(
                "ε = 0",
                "That is the hinge without noise: it pulls two scores at most, and does not reach across the gap.",
            ),
        ),
    ),
    Question(
        "All scores are divided by 2. What happens to top-K sets and to average-K sets (threshold fitted anew)?",
        (
            Choice(
                "Top-K sets stay; average-K sets may change",
                "The order within a row stays; the order between rows need not.",
                right=True,
            ),
            Choice(
                "Both stay, because dividing keeps every order",
                "Average-K compares probabilities of different rows, whose order may change.",
            ),
            Choice("Both change", "The K most probable classes of a row are the same."),
        ),
    ),
    Question(
        "Two species cannot be told apart, and each photograph carries one name. What do two heads do about it?",
        (
            Choice(
                "One head proposes the twin, the other is taught to accept it with a weight w",
                "So the twin is not pushed down like the other wrong classes.",
                right=True,
            ),
            Choice("Each head learns one of the twins", "Both heads have a score for every class."),
            Choice(
                "Their probabilities are averaged",
                "Sets come from one head; the other only proposes candidates in training.",
            ),
        ),
    ),
    Question(
        "One photograph shows no known plant, another shows three. Which links can tell them apart by one threshold?",
        (
            Choice(
                "Sigmoids and quasibinary",
                "Each class is judged alone: all may be small, and three may be large.",
                right=True,
            ),
            Choice(
                "All three, if the threshold is low enough",
                "Both rows sum to 1 under a softmax: spread over many classes or shared by three, each probability is small.",
            ),
            Choice("Softmax and quasibinary", "Under a softmax each row sums to 1, with no plant and with three."),
        ),
    ),
)


def shuffled(question: Question) -> Question:
    """The question with its choices in an order that depends on its text alone: the same on screen and on paper."""
    order = random.Random(question.text).sample(question.choices, len(question.choices))
    return replace(question, choices=tuple(order))


def questions(theme: Theme) -> tuple[Question, ...]:
    """All twenty, a click and a move in turn."""
    pairs = zip(map(shuffled, CLICKED), MOVED, strict=True)
    return tuple(each for click, move in pairs for each in (click, move(theme)))
