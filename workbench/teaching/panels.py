"""Panels of the static site: the demo's views and the gallery of losses, computed at every position of their sliders."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import workbench as wb
from workbench.calibration import at_temperature
from workbench.figures.film import Film
from workbench.figures.losses.evaluation import fitting_three_classes
from workbench.figures.panel import Panel, PanelNumber, PanelSlider, grid_sliders
from workbench.figures.probabilities.temperature import TEMPERATURES
from workbench.figures.sets.neighbours import co_members_at, companions
from workbench.knobs import Knob, format_value
from workbench.tables.row_kinds import training_row
from workbench.teaching import demo_tables
from workbench.teaching.base import percent

if TYPE_CHECKING:
    from workbench.figures.sets.explorer import Explorer
    from workbench.losses import Loss

GRID = {1: 11, 2: 5}  # knobs beside K → values of each
STEPS = 25  # points along a side of a triangle
POSITIONS: dict[str, Any] = {
    "K_max": 10.0,
    "step": 0.25,
    "taus": (0, 0.5, 1),
}  # of the demo: the whole site is below 20 MB


def sets() -> Panel:
    """The demo's sets: the dashboard that a notebook has."""
    about = (
        "How large must the answer be? A class is in the set if its probability is at least λ. Choose λ, or the average "
        "size K, or the coverage 1 − α: the sliders move together. τ divides each probability by the share of its class, to "
        "that power: rare classes gain. All is fitted on validation rows; the pictures are of test rows."
    )
    return replace(_explorer().panel(), about=(about,))


def classes() -> Panel:
    """The demo's classes: which are missed, whether rare ones pay, and which share their sets."""
    explorer = _explorer()
    test, first, thresholds = explorer.test, explorer.pictures, explorer.linked.along["threshold"]
    smallest, judged = explorer.sets_at(0), explorer.judged()
    accuracy = wb.metrics.class_accuracy(explorer.sets_at(explorer.linked.nearest("K", wb.AverageK().K)))
    around = int(np.nan_to_num(accuracy, nan=1.0).argmin())
    among = companions(test.table, around)
    blocks = zip(explorer.tests, np.split(thresholds, len(explorer.taus)), strict=True)
    together = {"co_members": np.concatenate([co_members_at(index.table, among, block) for index, block in blocks])}
    about = (
        "An average hides the classes that are missed. Move K and see which classes are correct last, and with which others "
        "they share their sets."
    )
    films = (
        Film.along(first["classes"], judged, name="classes"),
        Film.along(wb.figures.accuracy_against_count(smallest), judged, name="rarity"),
        Film.along(wb.figures.shared_sets(smallest, around, among=among), together, name="shared"),
        Film.along(
            wb.figures.lorenz(np.asarray(test.table.class_counts), training_row(test.table)), None, name="lorenz"
        ),
    )
    return replace(explorer.panel(), about=(about,), pictures=films)


def _explorer() -> Explorer:
    """The dashboard of the demo run."""
    return wb.figures.explore(*demo_tables.tables("garden", "CrossEntropy"), **POSITIONS)


def calibration() -> Panel:
    """The demo's calibration: reliability before and after dividing the scores by a temperature."""
    val, test = demo_tables.tables("garden", "CrossEntropy")
    best = round(wb.TemperatureScaling().fit(val).temperature, 3)
    values = sorted({*TEMPERATURES, best})
    tables = [at_temperature(test, T) for T in values]
    before, after = wb.figures.reliability(test), [wb.figures.reliability(table) for table in tables]
    widest = max([before, *after], key=lambda figure: figure.most)
    curve = wb.figures.temperatures(val, test)
    errors = {
        "Calibration error": tuple(percent(wb.metrics.expected_calibration_error(each)) for each in tables),
        "Log loss": tuple(f"{wb.metrics.negative_log_likelihood(each):.3f}" for each in tables),
    }
    written = tuple(f"{T:g}{' (best)' if best == T else ''}" for T in values)
    place = tuple(range(len(values)))
    return Panel(
        about=(
            "A confidence is right when, of all rows that get 80 %, 80 % are correct. All scores are divided by T: above 1 the "
            "network is less sure of itself, below 1 surer. The best T is found on validation rows; all pictures are of test "
            "rows.",
        ),
        pictures=(
            Film.along(before.beside(widest), None, name="before", title="Before: is the confidence right?"),
            Film.of([each.beside(widest) for each in after], name="after", title="After: is the confidence right?"),
            Film.of([curve.marked(T) for T in values], name="temperatures"),
        ),
        sliders=(PanelSlider("Temperature T", place, written, place),),
        numbers=tuple(PanelNumber(label, texts) for label, texts in errors.items()),
        start=values.index(best),
    )


def loss(kind: type[Loss]) -> Panel:
    """A loss on the triangle of three scores, at every setting of the knobs that change its picture."""
    axes = knob_axes(kind)
    settings = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    usual = fitting_three_classes(kind.knobs())
    figures = [wb.figures.level_sets(kind(**{**usual, **each}).at(1), steps=STEPS) for each in settings]
    summary = (kind.__doc__ or kind.title).split("\n\n")[0]
    return Panel(
        about=(
            f"{summary} ({kind.paper}, {kind.equation}) Three scores add up to 2; the label is class 2, at the top. Pale is a "
            "low loss, dark a high one.",
        ),
        pictures=(Film.of(figures, name="levels"),),
        sliders=knob_sliders(kind.knobs(), axes),
        start=_usual(kind, axes),
    )


def knob_axes(kind: type[Loss]) -> dict[str, list[Any]]:
    """Knob → its values on the site, for the first two knobs beside K that change the picture on three classes."""
    usual = fitting_three_classes(kind.knobs())
    names = [name for name in kind.knobs() if name not in usual and _changes_picture(kind, name, usual)][:2]
    axes = {"K": [1, 2]} if "K" in usual else {}
    return axes | {name: _values(kind, name, GRID[len(names)]) for name in names}


def _values(kind: type[Loss], name: str, n: int) -> list[Any]:
    """The values of a knob on the site, its usual one among them."""
    knob = kind.knobs()[name]
    values = knob.values(n).tolist()
    return sorted({*values, _usual_value(kind, name)}) if knob.numeric else values


def _usual_value(kind: type[Loss], name: str) -> Any:
    """The value of a knob in the gallery: K = 2, the end of a schedule, otherwise the default."""
    return kind(**fitting_three_classes(kind.knobs())).at(1).settings()[name]


def _changes_picture(kind: type[Loss], name: str, usual: dict[str, Any]) -> bool:
    """Whether the picture of a loss follows a knob."""
    pictures = []
    for value in _values(kind, name, 3):
        try:
            drawn = wb.figures.level_sets(kind(**{**usual, name: value}).at(1), steps=11)
        except ValueError:  # not for three classes
            return False
        pictures.append(drawn.frame["value"].to_numpy())
    return not all(np.allclose(each, pictures[0], atol=1e-3) for each in pictures)


def _usual(kind: type[Loss], axes: dict[str, list[Any]]) -> int:
    """The position at which every knob has its usual value."""
    place = 0
    for name, values in axes.items():
        place = place * len(values) + values.index(_usual_value(kind, name))
    return place


def knob_sliders(knobs: dict[str, Knob], axes: dict[str, list[Any]]) -> tuple[PanelSlider, ...]:
    """A slider for each axis of the grid of knobs."""
    return grid_sliders(
        {_knob_label(name, knobs[name]): list(map(format_value, values)) for name, values in axes.items()}
    )


def _knob_label(name: str, knob: Knob) -> str:
    symbol = knob.symbol
    return name.replace("_", " ") + (f" {symbol}" if symbol and symbol != name else "")
