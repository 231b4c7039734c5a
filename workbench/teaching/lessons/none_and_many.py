"""Lesson 10: a softmax always says one; sigmoids and the quasibinary link can say none and many."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.metrics import top_k_calibration_error
from workbench.tables import LogitTable
from workbench.tables.links import quasibinary, sigmoid, softmax
from workbench.teaching.base import Choice, Lesson, Picture, Question, Told, axes, percent, slider
from workbench.teaching.demo import tables
from workbench.teaching.measured import CLAIMS

SCORES = (2.0, 1.5, -1.0, -2.0)
NAMES = ("daisy", "poppy", "lily", "tulip")
LOG_C = 2.0
RUNS = {"softmax": "SoftmaxUniform", "sigmoids": "BinaryCrossEntropy", "quasibinary": "Quasibinary"}


def mean_sum(table: LogitTable, labels: int) -> float:
    """What the probabilities of a row sum to, on average over rows with that many labels."""
    rows = np.asarray(table.labels).sum(1) == labels
    return float(table.probabilities()[rows].sum(1).mean())


def tell(theme: Theme) -> Told:
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
            f"{name} {int((values >= 0.5).sum())} classes (sum {values.sum():.2f})"
            for name, values in found[place].items()
        ]
        return f"All scores {moved.texts[place]}. At the threshold 0.5: {', '.join(told)}."

    picture = Picture(
        tuple(drawn(place) for place in range(len(moved.values))),
        "Bars: the probabilities of four classes under softmax, sigmoids and the quasibinary link, and a threshold at one half.",
        moved,
        tuple(caption(place) for place in range(len(moved.values))),
    )
    sums = {name: [mean_sum(tables("meadow", loss).test, n) for n in range(4)] for name, loss in RUNS.items()}
    errors = {name: float(top_k_calibration_error(tables("meadow", loss).test, K=4)) for name, loss in RUNS.items()}
    behind = CLAIMS[21]["top-1 points of sigmoids over softmax, 300 classes"]
    tuned = CLAIMS[18]["points of top-4 calibration error of quasibinary over sigmoids"]
    here = errors["quasibinary"] - errors["sigmoids"]
    words = (
        "A *link* turns the scores z of a row into probabilities. The *softmax* divides e^z of each class by the sum of "
        "e^z over the classes **of that row**. "
        "*Sigmoids* take each class alone: 1 / (1 + e^−z).",
        "A photograph of a meadow may show no flower that we know, or three. A class is in the set if its probability "
        "is at least 0.5; an empty set says: none of these.",
        "A network scores four flowers with 2, 1.5, −1 and −2. For the next photograph, of bare soil, it lowers all "
        "four scores by 3.",
    )
    choices = (
        Choice(
            "Small probabilities for all four: none of these", "They sum to 1, always. Something must take the mass."
        ),
        Choice(
            "The same as before",
            "Right: e^−3 stands above and below the line and cancels. It still says "
            f"{percent(found[moved.start]['softmax'][0], 0)} daisy.",
            right=True,
        ),
        Choice(
            "One quarter for each",
            "That is what equal scores give. Here all fell by the same amount, and the differences stay.",
        ),
    )
    answer = (
        "**A softmax can say neither none nor many.** Its probabilities sum to 1 on every row: on bare soil they must "
        "go somewhere, and three flowers must share. Only "
        "differences of scores count.",
        "**Sigmoids** can say both. But they turn the question into L separate yes-or-no questions, most of whose "
        "answers are no, and nothing ties the classes together as a softmax does: "
        f"on 300 clouds of points a linear model with sigmoids was {-behind.value:g} points of top-1 accuracy behind the "
        f"softmax (95 % interval of the difference {behind.interval}).",
        "**Quasibinary** keeps the exponential of the softmax and changes what it is divided by: q = e^z / C with **one "
        "constant C for all classes and all rows**, in place of the row's own sum. C is "
        "set in training so that the q of a batch sum to its number of labels, and remembered as a running mean. So "
        "classes share one scale, as in a softmax, and yet each is judged by itself: if all are small the answer is "
        "none, if three "
        "are large it is three, and one threshold serves for all rows. q may exceed 1 (the loss pays max(log q, 0) for "
        "that); it is read as sure.",
        "In the meadow, rows with 0, 1, 2 and 3 labels have probabilities that sum to, on average: "
        + "; ".join(f"{name} {', '.join(f'{value:.2f}' for value in values)}" for name, values in sums.items())
        + ".",
        "Is it better than sigmoids? For probabilities of many labels: tuned and trained to the end, its calibration "
        f"error is lower by {-tuned.value:g} points (difference {tuned.interval}). In the three short runs that ship it "
        f"is {'higher' if here > 0 else 'lower'}: {percent(errors['quasibinary'])} against "
        f"{percent(errors['sigmoids'])}, and {percent(errors['softmax'])} for the softmax. A comparison of undertrained "
        "runs says little.",
    )
    asked = "What does the softmax say of the photograph of bare soil?"
    return Told(words, Question(asked, choices, picture=picture), answer)


LESSON = Lesson(
    "none_and_many",
    "None and many",
    "You will see three ways to read the same scores, only two of which can answer “none of these” or “three of these”.",
    "07_zero_and_many_labels",
    tell,
)
