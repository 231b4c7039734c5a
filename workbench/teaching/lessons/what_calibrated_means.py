"""Lesson 7: one word, two things: probabilities that mean what they say, and a loss whose minimum is the best set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from workbench.figures.probabilities.reliability import reliability
from workbench.figures.style import DARK, Theme
from workbench.metrics import expected_calibration_error, top_k_accuracy
from workbench.tables import LogitTable
from workbench.teaching.base import HEIGHT, Choice, Lesson, Picture, Question, Story, percent, slider
from workbench.teaching.demo_tables import tables

K = 3


def judged(table: LogitTable) -> tuple[float, float]:
    """The calibration error of the probabilities, and the accuracy of their top-3 sets."""
    return float(expected_calibration_error(table)), float(top_k_accuracy(table, K))


def always_the_frequencies(table: LogitTable) -> LogitTable:
    """The table of a classifier that ignores the photograph and states how frequent each class is."""
    counts = np.asarray(table.class_counts, float)
    return LogitTable.from_probabilities(np.tile(counts / counts.sum(), (table.n, 1)), labels=table.labels)


def tell(theme: Theme) -> Story:
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
        "A network returns a score for each class; the softmax turns scores into probabilities. The *temperature* T divides "
        "all scores first: above 1 the probabilities of a row come closer together, below 1 they move apart.",
        "A network for the garden, trained with cross-entropy, at T = 1: its *calibration error*, the mean distance between "
        f"confidence and accuracy, is {percent(at_one[0])}; its top-{K} sets are correct for {percent(at_one[1])}.",
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
        "**Calibrated probabilities**: of all answers given with 80 %, 80 % are correct. This is about *values*. It is "
        "measured on a network, and mended after training, for example by a temperature.",
        "**A calibrated loss**: its minimum, with enough data and a flexible network, puts the K most probable classes of "
        "every row at the top. This is about the *order* of the scores: a theorem about the loss. (*Calibration rows* are a "
        "third thing: the labelled rows that a conformal rule is fitted on.)",
        "Neither implies the other. A network trained with a calibrated loss, the noised hinge, has top-3 sets nearly as good "
        f"as those of cross-entropy, {percent(noised[1])} against {percent(at_one[1])}, but its probabilities are off by "
        f"{percent(noised[0])} against {percent(at_one[0])}. A classifier that ignores the photograph and states how "
        f"frequent each species is has a calibration error of {percent(frequencies[0], 2)}, and its top-{K} sets are correct for "
        f"only {percent(frequencies[1])}.",
        "A *proper* loss, such as cross-entropy, has its minimum at the true probabilities: in theory it gives both. Average-K "
        "and conformal rules compare probabilities between rows, so a good order within each row is not enough for them.",
    )
    asked = "All scores are divided by T = 3. What happens to the confidences, and what to the top-3 sets?"
    return Story(words, Question(asked, choices, picture=picture), answer)


LESSON = Lesson(
    "what_calibrated_means",
    "What calibrated means",
    "You will see what one division does to confidences and to sets, and that one word is used for two things.",
    "04_losses_as_landscapes",
    tell,
)
