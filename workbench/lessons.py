"""Four short lessons: the words a lecture and the notebooks share, one question each, and an answer that is computed.

Sentences and questions stand in the notebooks as well, word for word (a test compares them); the app adds the pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from workbench.metrics import accuracy, shot_accuracy
from workbench.metrics.bayes import posterior_of, posterior_table, top_k_against_average_k
from workbench.metrics.comparison import compare
from workbench.sets import AverageK, PointwiseError
from workbench.tables import LogitTable

Tables = Mapping[str, LogitTable]
CROSS_ENTROPY = "garden · cnn · CrossEntropy()"
TWO_HEADS = "garden · cnn · AverageKTwoHead(K=3.0, alpha=0.2)"


@dataclass(frozen=True)
class Lesson:
    """A story for one slide: a few sentences, a question, and what computes the answer.

    `notebooks` are those the words come from. `runs` are the titles of the demo runs the lesson is about; `answer` takes
    their tables, in that order.
    """

    title: str
    sentences: tuple[str, ...]  # Markdown
    question: str
    answer: Callable[..., str]
    notebooks: tuple[str, ...]
    runs: tuple[str, ...] = ()


def what_cannot_be_told_apart(tables: Tables) -> str:
    """How much doubt the posterior leaves when a photograph shows a flower, bark, or a flower and a leaf."""
    test = tables["test"]
    known, posterior, genera = posterior_table(test), posterior_of(test), np.array(test.groups)
    sizes = PointwiseError(confidence=0.9).fit(known).sets(known).sizes
    of_genera = np.stack([posterior[:, genera == genus].sum(1) for genus in np.unique(genera)], axis=1)
    shown = (test.attributes or {})["organs"]

    def told(organs: str) -> str:
        rows = shown == organs
        return (
            f"the best guess of one species is right {posterior[rows].max(1).mean():.0%} of the time, "
            f"and a set that holds 90 % of the posterior needs {sizes[rows].mean():.1f} species"
        )

    return (
        "Those that do not show what differs. From a flower alone the genus is known "
        f"({of_genera[shown == 'flower'].max(1).mean():.0%} of the posterior lies in one), yet {told('flower')}. "
        f"From bark alone even the genus is open ({of_genera[shown == 'bark'].max(1).mean():.0%} lies in one): "
        f"{told('bark')}. From a flower and a leaf, {told('flower+leaf')}. No training changes these numbers."
    )


def where_the_gap_is_largest(tables: Tables) -> str:
    """The K at which the best average-K sets gain most over the best top-K sets."""
    gaps = {line["K"]: line for line in top_k_against_average_k(tables["test"], range(1, 21)).to_dict("records")}
    best = max(gaps.values(), key=lambda line: line["gap"])
    K, points = int(best["K"]), {K: f"{100 * line['gap']:.1f}" for K, line in gaps.items()}
    return (
        f"At K = {K}: the best average-{K} sets hold the label of {best['average_k']:.1%} of the photographs, the best "
        f"top-{K} sets of {best['top_k']:.1%}, a gap of {points[K]} points. At K = 1 it is {points[1]} points, at K = 20 it "
        f"is {points[20]}: at first nothing to spend, in the end nothing left to gain."
    )


def how_much_noise_is_too_much() -> str:
    """The ε from which the noised loss of sets of two no longer asks for the best set."""
    from workbench.losses.noised import largest_calibrated_epsilon

    return (
        f"At ε = {largest_calibrated_epsilon(2):.2f}, one over the mean of the largest of three standard normal numbers. From "
        "there on the noise alone makes up the margin of 1: three equal scores cost nothing, whichever of them is the "
        "label, so nothing is learnt from a tie."
    )


def whether_pseudo_labels_help(cross_entropy: Tables, two_heads: Tables) -> str:
    """Average-3 sets of the two-head loss against those of cross-entropy, on all rows and on rare classes."""
    runs = {"cross-entropy": cross_entropy, "two heads": two_heads}
    tables, val = ({name: run[split] for name, run in runs.items()} for split in ("test", "val"))
    frame = compare(tables, AverageK(3.0), [accuracy, shot_accuracy], val=val, resamples=300)
    values = {(line["metric"], line["group"], line["table"]): line for line in frame.to_dict("records")}

    def told(metric: str, group: str = "") -> str:
        first, second = (values[metric, group, name] for name in runs)
        return (
            f"{second['value']:.1%} with two heads and {first['value']:.1%} with cross-entropy (a difference of "
            f"{100 * second['difference']:+.1f} points, 95 % interval {100 * second['difference_low']:+.1f} to "
            f"{100 * second['difference_high']:+.1f})"
        )

    found = values["accuracy", "", "two heads"]
    verdict = "No" if found["difference_high"] < 0 else "Yes" if found["difference_low"] > 0 else "Nobody can say"
    return (
        f"{verdict}, on this data with this small network: average-3 sets hold the label of {told('accuracy')}. The mean "
        f"accuracy of classes with few training photographs is {told('shot_accuracy', 'few')}. The papers report gains on "
        "large sets of photographs with deep networks; one small data set refutes nothing."
    )


LESSONS = (
    Lesson(
        title="What a set is, and why",
        sentences=(
            "A classifier that must name one class is wrong whenever its input does not show enough. Let it answer with a "
            "*set* of classes instead: small when the input is clear, larger when it is ambiguous.",
            "Species of a *genus* share their flower and differ in leaf, fruit or bark, and a photograph shows only one or "
            "two of these organs.",
        ),
        question="which photographs cannot be told apart, by anybody, and why?",
        answer=what_cannot_be_told_apart,
        notebooks=("00_start_here", "01_where_is_my_data_ambiguous"),
        runs=(CROSS_ENTROPY,),
    ),
    Lesson(
        title="Top-K, average-K and the threshold",
        sentences=(
            "*Top-K* returns the K most probable classes of every row. *Average-K* returns every class above one threshold, "
            "chosen so that sets hold K classes on average.",
            "Where the average-K curve runs above the top-K points, it pays; no classifier can be above the Bayes curve, but "
            "for luck with the labels.",
        ),
        question="At which K is the Bayes gap largest, in steps of 1 from 1 to 20?",
        answer=where_the_gap_is_largest,
        notebooks=("02_top_k_or_average_k",),
        runs=(CROSS_ENTROPY,),
    ),
    Lesson(
        title="Smoothing top-K with ε",
        sentences=(
            "With three classes the loss can be drawn: every point of a triangle is a vector of three scores that sum to 2; a "
            "corner is a class, and the label is the corner on top.",
            "A small ε is nearly the hard hinge, a large one rounds everything off.",
            "Let the label of a row be random: class 0 with probability 0.45, class 1 with 0.3, class 2 with 0.25. The best "
            "set of two is {0, 1}.",
        ),
        question="Find, to two digits, the ε at which `ExactNoisedTopK(K=2)` stops keeping the best set of our law.",
        answer=how_much_noise_is_too_much,
        notebooks=("04_losses_as_landscapes",),
    ),
    Lesson(
        title="Pseudo-labels, α and rare classes",
        sentences=(
            "the *two-head* loss lets a second head propose K − 1 further classes for a row and teaches the first head to "
            "accept them with weight α.",
            "The same rows judge all heads, so differences are known better than values: each is taken against "
            "cross-entropy with a paired 95 % interval over rows (one seed).",
        ),
        question="does a loss made for sets give better sets than cross-entropy?",
        answer=whether_pseudo_labels_help,
        notebooks=("05_training_for_sets",),
        runs=(CROSS_ENTROPY, TWO_HEADS),
    ),
)
