"""Lesson 4: what conformal sets promise, on what condition, and for whom the promise does not hold."""

from __future__ import annotations

import math
import warnings

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.sets import APS, LAC, PredictionSets
from workbench.sets.conformal import ConformalRule
from workbench.teaching.base import Choice, Lesson, Picture, Question, Told, axes, percent, slider
from workbench.teaching.demo import ORGANS, truth

CONFIDENCE = 0.9
FEW = 10  # labelled rows of the example about the + 1


def held(sets: PredictionSets) -> np.ndarray:
    """(n,): the probability that each set holds the label, by the exact posterior."""
    masses: np.ndarray = (sets.table.probabilities() * sets.matrix()).sum(1)
    return masses


def by_organ(rule: ConformalRule) -> dict[str, tuple[float, float]]:
    """Coverage and mean size on photographs of one organ and on all, of a rule fitted on all validation rows."""
    val, test = truth()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # APS leaves some sets empty, on purpose
        sets = rule.fit(val)(test)
    covered, shown = held(sets), (test.attributes or {})["organs"]
    parts = {organ: shown == organ for organ in ORGANS} | {"all": np.ones(test.n, bool)}
    return {name: (float(covered[rows].mean()), float(sets.sizes[rows].mean())) for name, rows in parts.items()}


def coverage_without_the_one(n: int, confidence: float) -> tuple[float, float]:
    """Coverage that the ⌈n · confidence⌉-th and the ⌈(n + 1) · confidence⌉-th of n calibration scores give, on average."""
    without, right = math.ceil(round(n * confidence, 9)), math.ceil(round((n + 1) * confidence, 9))
    return without / (n + 1), right / (n + 1)


def shifted() -> float:
    """Coverage on photographs of bark of a threshold that was fitted on photographs of flowers."""
    val, test = truth()
    flowers, bark = (
        table.rows((table.attributes or {})["organs"] == organ) for table, organ in ((val, "flower"), (test, "bark"))
    )
    return float(held(LAC(CONFIDENCE).fit(flowers)(bark)).mean())


def tell(theme: Theme) -> Told:
    """Coverage by organ of LAC and APS with the exact posterior, at every confidence."""
    promised = slider(
        "promised confidence", [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98], "{:.0%}", start=CONFIDENCE
    )
    found = {name: [by_organ(rule(each)) for each in promised.values] for name, rule in (("LAC", LAC), ("APS", APS))}
    names = [*ORGANS, "all"]

    def drawn(place: int) -> go.Figure:
        bars = [
            go.Bar(x=names, y=[found[rule][place][name][0] for name in names], name=rule, marker={"color": colour})
            for rule, colour in (("LAC", theme.model_a), ("APS", theme.model_b))
        ]
        figure = axes(theme, "what the photograph shows", "sets that hold the label", traces=bars, barmode="group")
        figure.add_hline(promised.values[place], line={"color": theme.threshold, "width": 3, "dash": "dash"})
        return figure.update_layout(yaxis_range=[0, 1], yaxis_tickformat=".0%", bargap=0.25)

    def caption(place: int) -> str:
        lac, aps = found["LAC"][place], found["APS"][place]
        return (
            f"Promised {promised.texts[place]} over all. LAC: flower {percent(lac['flower'][0])}, bark "
            f"{percent(lac['bark'][0])}, "
            f"{lac['all'][1]:.1f} classes a set. APS: flower {percent(aps['flower'][0])}, bark {percent(aps['bark'][0])}, "
            f"{aps['all'][1]:.1f} classes."
        )

    picture = Picture(
        tuple(drawn(place) for place in range(len(promised.values))),
        "Bars: how often LAC and APS sets hold the label, for photographs of each organ and for all; a line at the promise.",
        promised,
        tuple(caption(place) for place in range(len(promised.values))),
    )
    lac, aps = (found[rule][promised.start] for rule in ("LAC", "APS"))
    without, right = coverage_without_the_one(FEW, CONFIDENCE)
    needed = math.ceil(round((FEW + 1) * CONFIDENCE, 9))
    words = (
        "A *conformal* rule makes a promise: the set of a new row holds its label with a probability of at least, say, "
        "90 %, whatever the network "
        "is worth. To keep it, it needs labelled rows that were not used for training, the *calibration rows*.",
        "The simplest such rule is *LAC* (least ambiguous classifier): note the probability that the network gives to "
        "the true label of each of n "
        f"calibration rows, and take as threshold the value that a share of {percent(CONFIDENCE, 0)} of them reaches. A "
        "class is in a set if its probability reaches "
        "the threshold.",
        "Take the garden, and a perfect network: its probabilities are the true ones. Flowers tell much, bark tells little.",
    )
    choices = (
        Choice(
            f"About {percent(CONFIDENCE, 0)}, as promised",
            "The promise is an average over all photographs. Nothing in it speaks of those of bark.",
        ),
        Choice(
            f"More than {percent(CONFIDENCE, 0)}: bark is hard, so sets are larger there",
            f"Sets are larger ({lac['bark'][1]:.1f} classes against {lac['flower'][1]:.1f} for flowers), but not by "
            "enough: one threshold leaves out "
            "the many small probabilities of an ambiguous row.",
        ),
        Choice(
            f"Clearly less than {percent(CONFIDENCE, 0)}",
            f"Right: {percent(lac['bark'][0])} on bark and {percent(lac['flower'][0])} on flowers, which together make "
            f"{percent(lac['all'][0])}.",
            right=True,
        ),
    )
    answer = (
        "**What is promised.** P(label in the set) ≥ 1 − α for the next row, for any network, good or bad (α, the share "
        "of misses allowed, is 0.1 here; the loss with two heads has an α of its own, a weight). "
        "**On one condition**: calibration rows and new rows are *exchangeable*: all drawn from the same urn, so that "
        "no order of them is more "
        "probable than another. Then the new row is equally likely to be at any of n + 1 places among the n calibration "
        "rows. So the "
        "threshold is the ⌈(n + 1)(1 − α)⌉-th of their values, the largest first, "
        f"not the ⌈n(1 − α)⌉-th. With n = {FEW} that is number {needed}: coverage {percent(right)}; without the + 1 it "
        f"is {percent(without)}, less than promised. With fewer than 9 rows nothing but the set of all classes keeps a "
        "promise of 90 %.",
        "**What is not promised.** (1) Nothing for a kind of row, or for a class: the promise is *marginal* (an average "
        "over all rows), not "
        "*conditional*. That is the price you saw: LAC spends classes where they are cheap. (2) Nothing after a "
        "*shift*: a threshold fitted on flowers covers "
        f"{percent(shifted())} on bark. Nor if the calibration rows also chose the model. (3) Nothing about size: a poor "
        "network keeps its promise with large sets.",
        "*APS* (adaptive prediction sets) adds classes, the most probable first, until the set holds enough "
        "probability. How much is enough, calibration rows say again: note for each how much probability one has "
        "collected on the way down to its label, the label included, and take the ⌈(n + 1)(1 − α)⌉-th of these sums, "
        "the smallest first. (A random part of the last class is left out, so that the promise is met and not "
        "exceeded.) That evens out the coverage: "
        f"{percent(aps['flower'][0])} on flowers, {percent(aps['bark'][0])} on bark. It costs size: {aps['bark'][1]:.1f} "
        "classes on bark in place of "
        f"{lac['bark'][1]:.1f}, {aps['all'][1]:.1f} in place of {lac['all'][1]:.1f} over all. Both rules adapt the size "
        "to the row; what differs is who is covered. "
        "LAC is the smallest on average for the same promise, APS is fairer.",
    )
    asked = (
        f"LAC is fitted for {percent(CONFIDENCE, 0)} over all photographs. How often do its sets hold the label when a "
        "photograph shows bark alone?"
    )
    return Told(words, Question(asked, choices, picture=picture), answer)


LESSON = Lesson(
    "a_promise_and_its_price",
    "A promise and its price",
    "You will see a promise that is kept over all photographs and broken for one kind of them, and what it costs to be fair.",
    "03_the_threshold",
    tell,
)
