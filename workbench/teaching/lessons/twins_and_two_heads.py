"""Lesson 8: what cross-entropy does to two classes that nobody can tell apart, and what a second head does about it."""

from __future__ import annotations

import plotly.graph_objects as go

from workbench.figures.style import DARK, Theme
from workbench.teaching.base import Choice, Lesson, Picture, Question, Told, percent, slider
from workbench.teaching.measured import CLAIMS
from workbench.teaching.shipped_twins import shipped_twins

TRAINING, NEW = "training photographs", "new photographs"
CROSS_ENTROPY, NOISED, TWO_HEADS = "Cross-entropy", "Noised top-K", "Average-K two-head"


def tell(theme: Theme) -> Told:
    """The scores of twins over the steps of training under three losses."""
    figure = shipped_twins()
    values = {
        (line["loss"], line["photographs"], line["line"], line["step"]): float(line["value"])
        for line in figure.frame.to_dict("records")
    }
    steps = slider("step of the training", sorted({key[3] for key in values}), "{:.0f}", start=1)
    last = int(steps.values[-1])

    still = figure.plot(theme is DARK).update_layout(title=None, margin={"l": 64, "r": 20, "t": 60, "b": 110})
    # Three names fit side by side on a telephone too.
    still.for_each_annotation(lambda name: name.update(text=name.text.replace(" ", "<br>"), font_size=13))

    def drawn(step: float) -> go.Figure:
        line = {
            "type": "line",
            "x0": step,
            "x1": step,
            "y0": 0,
            "y1": 1,
            "line": {"color": theme.threshold, "width": 2},
        }
        axes = range(1, 7)
        return go.Figure(still).update_layout(
            shapes=[
                {**line, "xref": f"x{number if number > 1 else ''}", "yref": f"y{number if number > 1 else ''}"}
                for number in axes
            ]
        )

    def caption(step: float) -> str:
        told = [
            f"{name}: on its training photographs the twin has {percent(values[loss, TRAINING, 'twin', step], 0)}, on "
            "new ones the other twin "
            f"{percent(values[loss, NEW, 'other', step], 0)}"
            for name, loss in (("cross-entropy", CROSS_ENTROPY), ("noised top-2", NOISED), ("two heads", TWO_HEADS))
        ]
        return f"After step {step:.0f}, {'; '.join(told)}."

    picture = Picture(
        tuple(drawn(step) for step in steps.values),
        figure.text,
        steps,
        tuple(caption(step) for step in steps.values),
    )
    end = {
        loss: {line: values[loss, NEW, line, last] for line in ("favoured", "other", "sets")}
        for loss in (CROSS_ENTROPY, NOISED, TWO_HEADS)
    }
    learnt = {loss: values[loss, TRAINING, "label", last] for loss in end}
    all_rows, two, few = (
        CLAIMS[8][f"average-{K} points of two heads over cross-entropy, {rows}"]
        for K, rows in ((3, "all rows"), (2, "all rows"), (3, "few-shot classes"))
    )
    words = (
        "Two species are *twins*: their flowers are the same, and a photograph of a flower is one or the other with "
        "probability one half. A third species is clear. Each "
        "training photograph carries *one* name, the one that was written down. The best answer to a twin is the set of both.",
        "*Cross-entropy*, the usual loss, is −log of the softmax probability of the label. A network learns with it "
        "from a few photographs, which also show light, place and "
        "background: details that say nothing of the species.",
    )
    choices = (
        Choice(
            "It leaves the twin alone, since both are plausible",
            "The loss knows one right class, the one that was written down. Every other class is wrong to it.",
        ),
        Choice(
            "It pushes the twin down, harder than the clear third species",
            "Right: the push on a wrong class is its probability, and of all wrong classes the twin has the largest.",
            right=True,
        ),
        Choice(
            "It pushes all wrong classes down alike",
            "Each is pushed by its own probability, so the class that is most plausible is pushed most.",
        ),
    )
    answer = (
        "**Why cross-entropy hurts ambiguous classes.** The probabilities of a row share one unit, and on each "
        "photograph the twin is punished as if it were wrong. With endless data the pushes from "
        "both twins cancel, and each ends at one half: cross-entropy is *proper*. With few photographs and a network "
        "that can tell them apart by their details it goes on: "
        f"the written name rises to {percent(learnt[CROSS_ENTROPY], 0)} on training photographs: a coin toss, learnt by "
        "heart. On new photographs it is as sure for no reason: "
        f"{percent(end[CROSS_ENTROPY]['favoured'], 0)} for one twin and {percent(end[CROSS_ENTROPY]['other'], 0)} for "
        "the other, where all that can be known is one half. So sets are too small just where they should be large: "
        f"of sets with room for both twins, {percent(end[CROSS_ENTROPY]['sets'], 0)} hold the label. (A loss that only "
        "asks for the label *among two* stops once both twins lead: noised top-2 ends at "
        f"{percent(end[NOISED]['favoured'], 0)} and {percent(end[NOISED]['other'], 0)}, and its sets hold "
        f"{percent(end[NOISED]['sets'], 0)}.)",
        "**What two heads do.** The network gets two last layers (*heads*) on the same features. The *candidate head* "
        "learns by cross-entropy. In each batch of n rows its (K − 1) · n largest probabilities, labels left "
        "out, are taken as *candidates*: classes that nobody wrote down but that are plausible. "
        "The *predicting head* has a sigmoid for each class, so that classes do not share one unit, and "
        "learns: the label yes; candidates yes, with weight α (they are *pseudo-labels*); all others no, with weight α "
        "(not the α of conformal sets, a share of misses). "
        "So a twin is raised with its twin, not pushed down. The predicting head makes the sets.",
        "It works for as long as the candidate head, which learns by cross-entropy, proposes the twin: here "
        f"it ends at {percent(end[TWO_HEADS]['favoured'], 0)} and {percent(end[TWO_HEADS]['other'], 0)}, with "
        f"{percent(end[TWO_HEADS]['sets'], 0)} of the sets right.",
        "**Why two heads, if noised top-2 does well here?** Two classes suit every row of this example. Noised top-K "
        "asks for K places on every row, clear ones too. Two heads are made for K *on average*: candidates go where "
        "plausible, not to clear rows.",
        "**Does it pay?** The paper reports gains on large collections of photographs. On our garden, tuned, with five "
        f"seeds, it does not: average-3 accuracy differs from cross-entropy by {all_rows} points, average-2 by {two}, "
        f"and on classes with few photographs average-3 by {few}. An argument is not a result; measure.",
    )
    asked = "A training photograph of a twin is used with cross-entropy. What happens to the score of the *other* twin on it?"
    return Told(words, Question(asked, choices, picture=picture), answer)


LESSON = Lesson(
    "twins_and_two_heads",
    "Twins and two heads",
    "You will see two species that nobody can tell apart, and what three losses make of them, step by step.",
    "05_training_for_sets",
    tell,
)
