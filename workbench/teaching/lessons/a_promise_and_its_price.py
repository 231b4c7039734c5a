"""Lesson 4: what conformal sets promise, on what condition, and for whom the promise does not hold."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.sets import APS, LAC, PredictionSets
from workbench.sets.conformal import ConformalRule
from workbench.sets.coverage_band import coverage_band
from workbench.tables import LogitTable
from workbench.teaching.base import Choice, Lesson, Picture, Question, Story, axes, percent, slider
from workbench.teaching.demo_tables import ORGANS, truth
from workbench.teaching.machines import coverage_machine, shifted_world
from workbench.warning_capture import captured_warnings

CONFIDENCE = 0.9
FEW = 10  # labelled rows of the example about the + 1
DRAWS = 9  # of calibration rows


def held(sets: PredictionSets) -> np.ndarray:
    """(n,): the probability that each set holds the label, by the exact posterior."""
    masses: np.ndarray = (sets.table.probabilities() * sets.matrix()).sum(1)
    return masses


@cache
def calibration_draws() -> tuple[tuple[LogitTable, LogitTable], ...]:
    """Calibration rows and new rows, drawn several times: the promise is an average over both."""
    val, test = truth()
    halves = [test.split(seed=seed) for seed in range(DRAWS - 1)]
    return ((val, test), *halves)


def by_organ(rule: ConformalRule) -> dict[str, tuple[float, float]]:
    """Coverage and mean size on photographs of one organ and on all, averaged over the calibration draws."""
    draws = [_by_organ_once(rule, *draw) for draw in calibration_draws()]
    return {
        name: (float(np.mean([each[name][0] for each in draws])), float(np.mean([each[name][1] for each in draws])))
        for name in draws[0]
    }


def _by_organ_once(rule: ConformalRule, val: LogitTable, test: LogitTable) -> dict[str, tuple[float, float]]:
    with captured_warnings():  # APS leaves some sets empty, on purpose
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


def tell(theme: Theme) -> Story:
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
    needed, too_few = (math.ceil(round(n * CONFIDENCE, 9)) for n in (FEW + 1, FEW))
    n_rows = truth().val.n
    low, high = coverage_band(n_rows, CONFIDENCE, level=0.95)
    words = (
        "A *conformal* rule promises, for any network: the set of a new row contains its label with probability at least "
        f"1 − α. α is the share of misses, here {percent(1 - CONFIDENCE, 0)}. It needs *calibration rows*: labelled rows "
        "not used for training.",
        "The simplest is *LAC* (least ambiguous sets). Take the probability of the true label of each "
        f"calibration row. The threshold is set so that about {percent(CONFIDENCE, 0)} of them reach it.",
        "Suppose that the probabilities of the network are the true ones. Flowers tell the species well, bark badly.",
    )
    choices = (
        Choice(
            f"About {percent(CONFIDENCE, 0)}, as promised",
            "The promise is an average over all photographs. It says nothing about those of bark.",
        ),
        Choice(
            f"More than {percent(CONFIDENCE, 0)}: bark is hard, so sets are larger there",
            f"Sets are larger ({lac['bark'][1]:.1f} classes against {lac['flower'][1]:.1f} for flowers), but not by "
            "enough: one threshold leaves out "
            "the many small probabilities of an ambiguous row.",
        ),
        Choice(
            f"Clearly less than {percent(CONFIDENCE, 0)}",
            f"Right: {percent(lac['bark'][0])} on bark and {percent(lac['flower'][0])} on flowers; over all photographs "
            f"{percent(lac['all'][0])}.",
            right=True,
        ),
    )
    answer = (
        "**One condition**: calibration rows and new rows are *exchangeable*, drawn from the same urn. Then the new row has each "
        "rank among the n + 1 with equal probability. So the threshold is the ⌈(n + 1)(1 − α)⌉-th largest: for "
        f"n = {FEW} number {needed}, which covers {percent(right)}. Without the + 1 it would be number "
        f"{too_few}, which covers {percent(without)}. The promise is an average over calibration draws: with {n_rows} "
        f"rows, 95 % of the draws cover {percent(low)} to {percent(high)}.",
        "**Not promised**: coverage of one kind of row or class (the promise is *marginal*, over all rows); coverage after "
        f"a *shift* (a threshold fitted on flowers covers {percent(shifted())} on bark); small sets.",
        "*APS* (adaptive prediction sets) adds classes, the most probable first, until the set holds enough probability. "
        "For each calibration row, add up the probabilities from the largest to the label's: enough is the "
        "⌈(n + 1)(1 − α)⌉-th smallest sum. Coverage becomes even: "
        f"{percent(aps['flower'][0])} on flowers, {percent(aps['bark'][0])} on bark. The price: "
        f"{aps['all'][1]:.1f} classes in place of {lac['all'][1]:.1f}. LAC has the smallest sets, APS treats kinds of rows "
        "alike.",
    )
    asked = (
        f"LAC is fitted for {percent(CONFIDENCE, 0)} over all photographs. How often do its sets contain the label when a "
        "photograph shows bark alone?"
    )
    return Story(
        words, Question(asked, choices, picture=picture), answer, (coverage_machine(theme), shifted_world(theme))
    )


LESSON = Lesson(
    "a_promise_and_its_price",
    "A promise and its price",
    "You will see one promise for all photographs, what it means for each kind of them, and what it costs to be fair.",
    "03_the_threshold",
    tell,
    drawing_pad=True,
)
