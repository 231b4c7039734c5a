"""Losses along a line: what one score costs while the others stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench import display_names
from workbench.figures.base import Figure, checked_positive, checked_range, counted, paper, round_range
from workbench.figures.losses.evaluation import checked_loss, listed, loss_values, losses_in_code
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as StaticFigure

    from workbench.losses import Loss

MOST_LINES = 8
DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}  # Plotly's name → matplotlib's


def binary_surrogates(reach: float = 2.5, steps: int = 201) -> Lines:
    r"""The four losses of a binary classifier against its margin: why one trains with a stand-in for the error.

    Args:
        reach: The margins drawn are those in [−reach, reach].
        steps: Number of points of a line.

    $$t = f(x)\,y: \quad \mathbb 1[t \le 0], \quad (1 - t)_+, \quad e^{-t}, \quad \ln(1 + e^{-t})$$

    The error is flat, so it teaches nothing; hinge and exponential lie above it and are steep. The logistic loss lies
    above it only after division by ln 2.

    >>> frame = binary_surrogates(steps=3).frame
    >>> frame[frame["t"] == 0].set_index("loss")["value"].round(3).to_dict()
    {'0/1': 1.0, 'hinge': 1.0, 'exponential': 1.0, 'logistic': 0.693}

    Paper: Garcin, thesis, Figure 2.2 and Eq. 2.33–2.35.
    """
    reach, steps = checked_positive("reach", reach), whole_number("steps", steps, least=2)
    t = np.linspace(-reach, reach, steps)
    values = {
        "0/1": (t <= 0).astype(float),
        "hinge": np.maximum(0, 1 - t),
        "exponential": np.exp(-t),
        "logistic": np.log1p(np.exp(-t)),
    }
    frame = pd.concat([pd.DataFrame({"loss": name, "t": t, "value": value}) for name, value in values.items()])
    return Lines(
        frame=frame.reset_index(drop=True),
        title="Surrogates of the error",
        subtitle=f"n = {counted(steps, 'margin')}, two classes",
        text=(
            f"Four binary losses at n = {steps} margins from {-reach:g} to {reach:g}. At margin 0 the 0/1 error, the hinge "
            "and the exponential loss are 1 and the logistic loss is 0.693; beyond margin 1 the hinge is 0."
        ),
        code=Code(f"wb.figures.binary_surrogates(reach={reach!r}, steps={steps})"),
        x="t",
        x_title="margin t = f(x)·y",
        value_range=(0.0, 1 + reach),
    )


def line_profile(
    losses: Loss | Sequence[Loss],
    others: Sequence[float] = (0.0, -1.0),
    reach: float = 3.0,
    steps: int = 241,
    *,
    value_range: tuple[float, float] | None = None,
) -> Lines:
    """Losses while the score of the label climbs past the scores of the other classes, which stay where they are.

    Args:
        losses: One loss or several.
        others: The scores of the other classes.
        reach: How far the score of the label goes to both sides.
        steps: Number of points of a line.

    Dotted lines show the others: a top-K loss lets go when the label has climbed past all but K − 1 of them, by its
    margin. A noised loss is drawn with its expectation. At most eight losses fit on a picture. The axis of the losses
    ends at a round number; `value_range` fixes its ends, so that two settings can be compared.

    >>> import workbench as wb
    >>> figure = line_profile([wb.losses.CalibratedTopKHinge(K=1)], others=(0.0, -1.0), reach=2, steps=5)
    >>> figure.frame[["score", "value"]].to_numpy().tolist()
    [[-2.0, 2.0], [-1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [2.0, 0.0]]
    """
    losses, others = listed(losses), [float(score) for score in others]
    if not 1 <= len(losses) <= MOST_LINES:
        raise ValueError(f"there are {len(losses)} losses; a picture holds 1 to {MOST_LINES}")
    if not others or not np.isfinite(others).all():
        raise ValueError(f"others = {others}; give the score of at least one other class")
    for loss in losses:
        checked_loss(loss, n_classes=1 + len(others))
    reach, steps = checked_positive("reach", reach), whole_number("steps", steps, least=2)
    ends = None if value_range is None else checked_range(value_range)
    scores = np.linspace(-reach, reach, steps)
    rows = np.column_stack([scores, np.tile(others, (steps, 1))])  # the label is class 0
    frames = [
        pd.DataFrame(
            {"loss": display_names.of_thing(loss), "score": scores, "value": loss_values(loss.exact(), rows, 0)}
        )
        for loss in losses
    ]
    frame = pd.concat(frames, ignore_index=True)
    imports, names = losses_in_code(losses)
    fixed = "" if ends is None else f", value_range={ends}"
    summary = "; ".join(
        f"{part['loss'].iloc[0]} from {part['value'].iloc[0]:.3g} to {part['value'].iloc[-1]:.3g}" for part in frames
    )
    return Lines(
        frame=frame,
        title="A loss while the label's score climbs",
        subtitle=f"n = {counted(steps, 'score')}, the {counted(len(others), 'other')} at {', '.join(f'{s:g}' for s in others)}",
        text=(
            f"Losses at n = {steps} scores of the label from {-reach:g} to {reach:g}, the other classes at "
            f"{', '.join(f'{score:g}' for score in others)}: {summary}."
        ),
        code=Code(
            f"wb.figures.line_profile(losses, others={tuple(others)!r}, reach={reach!r}, steps={steps}{fixed})",
            [f"losses = [{', '.join(names)}]"],
            imports,
        ),
        x="score",
        x_title="score of the label",
        value_range=ends or round_range(1.05 * frame["value"].min(), 1.05 * frame["value"].max()),
        marks=tuple(others),
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Lines(Figure):
    """One line for each loss, told apart by colour and by dash."""

    x: str  # the column that runs along the axis
    x_title: str
    value_range: tuple[float, float]
    y: str = "value"
    y_title: str = "loss"
    logarithmic: bool = False  # both axes
    marks: tuple[float, ...] = ()  # scores of the other classes

    def looks(self, theme: Theme) -> list[tuple[str, str, str]]:
        """(loss, colour, dash) in the order of the frame."""
        names = list(self.frame["loss"].unique())
        dashes = list(DASHES)
        colours = theme.categories
        return [(name, colours[place], dashes[place % len(dashes)]) for place, name in enumerate(names)]

    def x_range(self) -> tuple[float, float]:
        """From the first to the last place of the frame."""
        return float(self.frame[self.x].min()), float(self.frame[self.x].max())

    def _ends(self, limits: tuple[float, float]) -> list[float]:
        """The ends of an axis as Plotly wants them: exponents on a logarithmic one."""
        return np.log10(limits).tolist() if self.logarithmic else list(limits)

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = go.Figure()
        for name, colour, dash in self.looks(theme):
            part = self.frame[self.frame["loss"] == name]
            line = {"color": colour, "dash": dash, "width": 3, "shape": "vh" if _jumps(part[self.y]) else "linear"}
            template = f"{self.x} %{{x:.3g}}<br>{self.y} %{{y:.3f}}<extra>{name}</extra>"
            figure.add_scatter(
                x=part[self.x], y=part[self.y], mode="lines", name=name, line=line, hovertemplate=template
            )
        for mark in self.marks:
            figure.add_vline(x=mark, line={"color": theme.threshold, "width": 1.5, "dash": "dot"})
        scale: dict[str, Any] = {"type": "log"} if self.logarithmic else {}
        figure.update_xaxes(range=self._ends(self.x_range()), title=self.x_title, **scale)
        figure.update_yaxes(range=self._ends(self.value_range), title=self.y_title, **scale)
        if self.logarithmic:
            figure.update_xaxes(dtick=1).update_yaxes(tickvals=few_ticks(self.value_range))
        below = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top"}
        return figure.update_layout(height=480, legend=below)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        import seaborn

        looks = self.looks(theme)
        figure = paper(6.6, 4.4 + 0.2 * len(looks))
        axes = figure.subplots()
        for name, colour, dash in looks:
            part = self.frame[self.frame["loss"] == name]
            steps = {"drawstyle": "steps-pre"} if _jumps(part[self.y]) else {}
            style = {
                **steps,
                "color": colour,
                "linestyle": DASHES[dash],
                "linewidth": 2.2,
                "label": name,
                "errorbar": None,
            }
            seaborn.lineplot(part, x=self.x, y=self.y, ax=axes, legend=False, **style)
        for mark in self.marks:
            axes.axvline(mark, color=theme.threshold, linewidth=1.2, linestyle=":")
        axes.set(xlim=self.x_range(), ylim=self.value_range, xlabel=self.x_title, ylabel=self.y_title)
        if self.logarithmic:
            logarithmic(axes)
        figure.legend(loc="outside lower left")
        return figure


def _jumps(values: pd.Series) -> bool:
    """Whether a line knows 0 and 1 only, and so jumps where it changes."""
    return bool(values.isin((0, 1)).all())


def few_ticks(limits: tuple[float, float]) -> list[float]:
    """1, 2, 5, 10, … between the ends of a logarithmic axis.

    >>> few_ticks((0.9, 30))
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    decades = range(math.floor(math.log10(limits[0])), math.ceil(math.log10(limits[1])))
    ticks = [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 5)]
    return [tick for tick in ticks if limits[0] <= tick <= limits[1]]


def logarithmic(axes: Axes) -> None:
    """Logarithmic scales with plain numbers on the ticks (names may hold dollars, so matplotlib typesets no maths)."""
    limits = axes.get_ylim()
    axes.set(xscale="log", yscale="log")
    if limits[1] < 1000 * limits[0]:
        axes.set_yticks(few_ticks(limits))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.minorticks_off()
