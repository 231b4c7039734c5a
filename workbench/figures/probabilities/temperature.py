"""Effect of the temperature on confidence and likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.calibration import TemperatureScaling
from workbench.calibration.base import mean_loss
from workbench.figures.base import Figure, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.row_sampling import evenly_spaced_rows
from workbench.tables import LogitTable, checked_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

# From four times surer to four times less sure, evenly in log T.
TEMPERATURES = tuple(round(2 ** (step / 8), 3) for step in range(-16, 17))
TICKS = (0.25, 0.5, 1, 2, 4)
ROWS = 2000  # a curve of more rows looks the same and costs more
SMALLEST = 1e-6  # of a temperature or a loss that is written out


def temperatures(val: LogitTable, test: LogitTable, at: float | None = None) -> Temperatures:
    """Negative log-likelihood against the temperature that divides the scores, with the best one on `val` marked.

    Args:
        val: The rows that the temperature is fitted on.
        test: The rows that it is evaluated on.

    Left of 1 the network is made surer, right of it less sure. The optimum is exact (`TemperatureScaling`); the curves
    are of at most 2 000 rows of each table, spread evenly over it. `at` marks a temperature. Softmax with many
    labels a row has no likelihood; there the loss is cross-entropy, of which the labels of a row share the weight equally.

    >>> import workbench as wb
    >>> table = wb.LogitTable(np.tile(3 * np.eye(2), (20, 1)), [0, 1] * 15 + [1, 0] * 5)
    >>> round(temperatures(table, table).best, 2)  # three quarters are right: 3 / T = log 3
    2.73

    Guo et al. 2017.
    """
    fitted = TemperatureScaling().fit(val)
    drawn = {
        name: table.rows(evenly_spaced_rows(table.n, ROWS))
        for name, table in {"validation": val, "test": checked_table(test)}.items()
    }
    records = [
        {"rows": name, "temperature": T, "loss": mean_loss(table, 1 / T)}
        for name, table in drawn.items()
        for T in TEMPERATURES
    ]
    shared = val.many_labels and val.link == "softmax"
    loss = "cross-entropy shared by the labels" if shared else "negative log-likelihood"
    some = f"at most {counted(ROWS)} rows of each" if max(val.n, test.n) > ROWS else ""
    unmarked = Temperatures(
        frame=pd.DataFrame(records),
        title="The temperature that makes the labels likeliest",
        subtitle=f"n = {counted(val.n)} validation and {counted(test.n)} test rows{some and f', curves of {some}'}; "
        f"best T = {_written(fitted.temperature)}",
        text=(
            f"{loss.capitalize()} of n = {val.n} validation and {test.n} test rows against the temperature T that "
            f"divides the scores{some and f', drawn of {some}, spread evenly'}. The best on the validation rows is "
            f"T = {_written(fitted.temperature)}, which takes their loss from "
            f"{_written(fitted.before)} to {_written(fitted.after)}: the "
            f"network is {_in_words(fitted.temperature)}."
        ),
        code=Code(),
        best=fitted.temperature,
        lowest=fitted.after,
        loss=loss,
        at=None,
    )
    return unmarked.marked(at)


def _written(number: float) -> str:
    """A number of three digits, as people write it: 1.27, 524 000, 0.0000012."""
    if 0 < number < SMALLEST:
        return f"less than {_written(SMALLEST)}"
    if number >= 1000:
        return f"{float(f'{number:.3g}'):,.0f}".replace(",", " ")
    return np.format_float_positional(number, precision=3, fractional=False, trim="-")


def _in_words(temperature: float) -> str:
    return "too sure of itself" if temperature > 1 else "not sure enough of itself" if temperature < 1 else "just right"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Temperatures(Figure):
    """Two curves, a star at the optimum, a line at the chosen temperature."""

    best: float
    lowest: float  # loss of the fitting rows at the optimum
    loss: str  # which one
    at: float | None

    def marked(self, at: float | None) -> Temperatures:
        """The same picture with another temperature marked: nothing is computed again."""
        code = Code(f"wb.figures.temperatures(val, test, at={at})", ["# val, test: tables with labels"])
        return replace(self, at=at, code=code)

    def limits(self) -> tuple[float, float]:
        """The ends of the axis of losses: the bottom of the curves, and what lies within a few times of it."""
        low = min(float(self.frame["loss"].min()), self.lowest)
        high = float(self.frame["loss"].max())
        room = max(min(high - low, 1.5 * low + 0.1), 1e-3)
        return low - 0.08 * room, low + 1.05 * room

    def lines(self, theme: Theme) -> list[tuple[str, str, str, pd.DataFrame]]:
        """(rows, colour, dash, points) of each curve."""
        looks = (("validation", theme.muted, "dot"), ("test", theme.accent, "solid"))
        return [(name, colour, dash, self.frame[self.frame["rows"] == name]) for name, colour, dash in looks]

    def _plotly(self, theme: Theme) -> go.Figure:
        traces: list[dict[str, Any]] = [
            {
                **{"type": "scatter", "name": name, "mode": "lines"},
                **{"x": points["temperature"], "y": points["loss"]},
                "line": {"color": colour, "dash": dash, "width": 3},
                "hovertemplate": "T = %{x:.3g}<br>loss %{y:.3f}<extra>" + name + "</extra>",
            }
            for name, colour, dash, points in self.lines(theme)
        ]
        star = {"symbol": "star", "size": 16, "color": theme.bayes, "line": {"color": theme.paper, "width": 1}}
        traces.append(
            {
                **{"type": "scatter", "name": "best on validation", "mode": "markers", "marker": star},
                **{"x": [self.best], "y": [self.lowest]},
                "hovertemplate": f"best on validation: T = {_written(self.best)}<extra></extra>",
            }
        )
        line = {"color": theme.threshold, "dash": "dash", "width": 2}
        marked = {"type": "line", "x0": self.at, "x1": self.at, "y0": 0, "y1": 1, "yref": "y domain", "line": line}
        ends = np.log10([TEMPERATURES[0], TEMPERATURES[-1]])
        ticks = {"tickvals": TICKS, "ticktext": [f"{tick:g}" for tick in TICKS]}
        layout = {
            "shapes": [] if self.at is None else [marked],
            "xaxis": {"type": "log", "range": ends.tolist(), "title": {"text": "temperature T"}, **ticks},
            "yaxis": {"range": self.limits(), "title": {"text": self.loss}},
        }
        return go.Figure(traces, {**layout, "height": 420})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure = paper(6.4, 4.4)
        axes = figure.subplots()
        for name, colour, dash, points in self.lines(theme):
            style = {"dot": ":", "solid": "-"}[dash]
            axes.plot(points["temperature"], points["loss"], linestyle=style, color=colour, linewidth=2.2, label=name)
        axes.plot(self.best, self.lowest, "*", color=theme.bayes, markersize=13, label="best on validation")
        if self.at is not None:
            axes.axvline(self.at, color=theme.threshold, linestyle="--", linewidth=1.6)
        axes.set_xscale("log")
        axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.minorticks_off()
        axes.set(xlim=(TEMPERATURES[0], TEMPERATURES[-1]), ylim=self.limits())
        axes.set(xlabel="temperature T", ylabel=self.loss)
        axes.legend()
        return figure
