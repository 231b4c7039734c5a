"""Lesson 7: one word, two things: probabilities that mean what they say, and a loss whose minimum is the best set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from workbench.figures.of_probabilities.reliability import reliability
from workbench.figures.style import DARK, Theme
from workbench.metrics import expected_calibration_error, top_k_accuracy
from workbench.tables import LogitTable
from workbench.teaching.base import HEIGHT, Choice, Lesson, Picture, Question, Told, percent, slider
from workbench.teaching.demo import tables

K = 3


def judged(table: LogitTable) -> tuple[float, float]:
    """The calibration error of the probabilities, and the accuracy of their top-3 sets."""
    return float(expected_calibration_error(table)), float(top_k_accuracy(table, K))


def always_the_frequencies(table: LogitTable) -> LogitTable:
    """The table of somebody who looks at no photograph and says how frequent each class is."""
    counts = np.asarray(table.class_counts, float)
    return LogitTable.from_probabilities(np.tile(counts / counts.sum(), (table.n, 1)), labels=table.labels)


def tell(theme: Theme) -> Told:
    """The reliability of cross-entropy at every temperature, beside two runs in which only one meaning holds."""
    test = tables("garden", "CrossEntropy").test
    temperatures = slider(
        "T, which divides the scores", [0.3, 0.4, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 2.5, 3], "{:g}", start=1
    )
    scaled = [replace(test, scores=test.scores.astype(np.float64) / T) for T in temperatures.values]
    found = [judged(table) for table in scaled]

    def drawn(table: LogitTable) -> go.Figure:
        figure = reliability(table).plot(theme is DARK).update_layout(title=None, height=HEIGHT)
        return figure.update_layout(margin={"l": 64, "r": 20, "t": 40, "b": 52})

    picture = Picture(
        tuple(drawn(table) for table in scaled),
        "Reliability diagram: in bins of confidence, how often the most probable class is right; the diagonal is perfect.",
        temperatures,
        tuple(
            f"T = {text}: the confidence is off by {percent(error)} on average; top-{K} sets hold {percent(accuracy)} of "
            "the labels."
            for text, (error, accuracy) in zip(temperatures.texts, found, strict=True)
        ),
    )
    at_one, at_three = found[temperatures.start], found[-1]
    noised = judged(tables("garden", "NoisedTopK").test)
    frequencies = judged(always_the_frequencies(test))
    words = (
        "A network returns a score for each class; the softmax makes probabilities of scores. The *temperature* T "
        "divides all scores before the softmax: above 1 the "
        "probabilities of a row come closer together, below 1 they move apart.",
        "A network for the garden, trained with cross-entropy, at T = 1: the classes it is p sure of are right about p "
        "of the time (its *calibration error*, the mean "
        f"distance between the two, is {percent(at_one[0])}), and its top-{K} sets hold {percent(at_one[1])} of the labels.",
    )
    choices = (
        Choice(
            "The confidences become wrong, and the sets worse",
            f"The first is true. But dividing by 3 keeps the order of the classes of a row, so its {K} most probable "
            f"ones are the same: {percent(at_three[1])} as before.",
        ),
        Choice(
            "The confidences become wrong, and the sets stay as they are",
            f"Right: the calibration error goes from {percent(at_one[0])} to {percent(at_three[0])}; the accuracy of "
            f"top-{K} sets stays at {percent(at_three[1])}.",
            right=True,
        ),
        Choice(
            "Nothing, since the order of the classes stays",
            "The order does; the probabilities do not: a score gap of 3 becomes a gap of 1.",
        ),
    )
    answer = (
        "**Calibrated probabilities**: of what is said with 80 %, 80 % are right. This is about *values*; it is "
        "measured by a reliability diagram and its calibration error, "
        "and mended after training, by a temperature for example.",
        "**A calibrated loss** (top-K calibrated, or consistent): whoever minimises it, with enough data and a network "
        "that can do anything, ends with the K most "
        "probable classes of every row at the top, that is with the best top-K sets. This is about the *order* of the "
        "scores; it is proved of a loss, not measured "
        "on a network. The scores need not be probabilities of anything.",
        f"Neither gives the other. A network trained with a top-{K} calibrated loss (the noised hinge) has top-{K} sets "
        f"nearly as good as those of cross-entropy, {percent(noised[1])} against "
        f"{percent(at_one[1])}, and probabilities that are off by {percent(noised[0])} on average against "
        f"{percent(at_one[0])}. The other way round: somebody who looks at no photograph and always states how "
        f"frequent each species is has a calibration error of {percent(frequencies[0], 2)} and top-{K} sets that hold "
        f"{percent(frequencies[1])}.",
        "A *proper* loss, such as cross-entropy, is minimal at the true probabilities; so in theory it gives both. "
        "Average-K and conformal sets compare probabilities between rows, so for them "
        "a good order within each row is not enough.",
    )
    asked = "All scores are divided by T = 3. What happens to the confidences, and what to the top-3 sets?"
    return Told(words, Question(asked, choices, picture=picture), answer)


LESSON = Lesson(
    "what_calibrated_means",
    "What calibrated means",
    "You will see confidences go wrong while the sets stay right: one word is used for two things.",
    "04_losses_as_landscapes",
    tell,
)
