"""Lesson 10: a softmax cannot tell none from many; sigmoids and the quasibinary link can."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.base import counted
from workbench.figures.style import Theme
from workbench.tables import LogitTable
from workbench.tables.links import quasibinary, sigmoid, softmax
from workbench.teaching.base import Choice, Lesson, Picture, Question, Story, axes, percent, slider
from workbench.teaching.demo_tables import tables
from workbench.teaching.published_numbers import CLAIMS, TOP_1_OF_CLASSES

SCORES = (2.0, 1.5, -1.0, -2.0)
NAMES = ("daisy", "poppy", "lily", "tulip")
LOG_C = 2.0
RUNS = {"softmax": "SoftmaxUniform", "sigmoids": "BinaryCrossEntropy", "quasibinary": "Quasibinary"}


def empty_share(table: LogitTable, n_labels: int) -> float:
    """Share of empty sets at the threshold 0.5 among the rows with that many labels."""
    rows = np.asarray(table.labels).sum(1) == n_labels
    return float((table.probabilities()[rows].max(1) < 0.5).mean())


def tell(theme: Theme) -> Story:
    """Three links on the same scores while all of them fall, and the meadow, with none to three labels a row."""
    moved = slider("added to all scores", [round(-4 + 0.5 * step, 1) for step in range(11)], "{:+.1f}", start=0)
    scores = np.array([SCORES])
    links = {"softmax": softmax, "sigmoids": sigmoid, "quasibinary": quasibinary}
    colours = dict(zip(links, (theme.model_a, theme.model_b, theme.hit), strict=True))
    found = [{name: link(scores + shift, LOG_C)[0] for name, link in links.items()} for shift in moved.values]

    def drawn(place: int) -> go.Figure:
        bars = [go.Bar(x=NAMES, y=found[place][name], name=name, marker={"color": colours[name]}) for name in links]
        figure = axes(theme, "class", "probability", traces=bars, barmode="group")
        figure.add_hline(0.5, line={"color": theme.threshold, "dash": "dash"})
        return figure.update_layout(yaxis_range=[0, 2.9], bargap=0.25)

    def caption(place: int) -> str:
        told = [
            f"{name} {counted(int((values >= 0.5).sum()), 'class', 'classes')} (sum {values.sum():.2f})"
            for name, values in found[place].items()
        ]
        return f"All scores {moved.texts[place].replace('-', '−')}. At the threshold 0.5: {', '.join(told)}."

    picture = Picture(
        tuple(drawn(place) for place in range(len(moved.values))),
        "Bars: the probabilities of four classes under softmax, sigmoids and the quasibinary link, and a threshold at one half.",
        moved,
        tuple(caption(place) for place in range(len(moved.values))),
    )
    empty = {name: tuple(empty_share(tables("meadow", loss).test, n) for n in (0, 3)) for name, loss in RUNS.items()}
    hundred, many = TOP_1_OF_CLASSES[100], TOP_1_OF_CLASSES[300]
    behind = CLAIMS[21]["top-1 points of sigmoids over softmax, 300 classes"]
    words = (
        "A *link* turns the scores z of a row into probabilities. The *softmax* divides e^z of each class by the sum of e^z "
        "**of that row**. *Sigmoids* take each class alone: 1 / (1 + e^−z).",
        "A photograph of a meadow may show no flower that we know, or three. A class is in the set if its probability is at "
        "least 0.5.",
        "A network gives four flowers the scores 2, 1.5, −1 and −2. For the next photograph, of bare soil, it lowers all "
        "four scores by 3.",
    )
    choices = (
        Choice(
            "Small probabilities for all four: none of these", "The four always sum to 1, so they cannot all be small."
        ),
        Choice(
            "The same as before",
            "Right: each e^z and their sum shrink by the same factor, e^−3, which cancels. It still says "
            f"{percent(found[moved.start]['softmax'][0], 0)} daisy.",
            right=True,
        ),
        Choice(
            "One quarter for each",
            "That is what equal scores give. Here all fall by the same amount, so they stay as different as before.",
        ),
    )
    answer = (
        "**Under a softmax only differences of scores count**, and each row sums to 1. A set can be empty: when the probability "
        "is spread over many classes. But three flowers must share the same 1, so a softmax **cannot tell none from many**. "
        "Shares of empty sets in the meadow, of photographs with 0 and with 3 plants: "
        + "; ".join(f"{name} {percent(none, 0)} and {percent(three, 0)}" for name, (none, three) in empty.items())
        + ".",
        "**Sigmoids** can tell them apart. They ask a separate question for each of the L classes, and nearly all answers are "
        "no. With many classes that can cost accuracy: on 300 classes of random clouds the top-1 accuracy of a linear model "
        f"differs from that with softmax by {behind} points (95 % interval).",
        "**Quasibinary** is q = e^z / C with **one constant C for all rows** in place of each row's own sum; C is such that all "
        "q of a batch sum to its number of labels. Then q can exceed 1, and is no probability. The loss is the sum of −log q "
        "over the labels of a row, plus log q for each class whose q exceeds 1. Top-1 accuracy on the same 300 classes: "
        f"quasibinary {many['quasibinary']} %, softmax {many['softmax']} %; on 100 classes quasibinary "
        f"{hundred['quasibinary']} %, sigmoids {hundred['sigmoids']} %.",
    )
    asked = "What does the softmax say of the photograph of bare soil?"
    return Story(words, Question(asked, choices, picture=picture), answer)


LESSON = Lesson(
    "none_and_many",
    "None and many",
    "You will see three ways to read the same scores, and which of them can tell “none of these” from “three of these”.",
    "07_zero_and_many_labels",
    tell,
)
