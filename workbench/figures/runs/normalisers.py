"""Does what the scores are divided by settle? The normaliser of several runs against the epoch."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import Figure, checked_frame, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

COLUMNS = {"mean": "normaliser_mean", "variance": "normaliser_variance"}  # panel → column of the history


def normalisers(histories: Mapping[str, pd.DataFrame]) -> Normalisers:
    """Mean and variance of what exp(score) is divided by, epoch by epoch, one line for each run.

    `histories` maps a name to the history of a trained run. A softmax divides by the sum of each row, so that its
    normaliser varies over the validation rows; quasibinary divides by one constant C, which varies over the batches of the
    epoch until it settles.

    >>> history = pd.DataFrame({"epoch": [0, 1], "normaliser_mean": [8.0, 9.0], "normaliser_variance": [2.0, 0.5]})
    >>> normalisers({"quasibinary": history}).frame.to_numpy().tolist()[1:3]
    [['quasibinary', 'mean', 2, 9.0], ['quasibinary', 'variance', 1, 2.0]]

    Paper: Liao et al., Fig. 2 (there against steps).
    """
    if not isinstance(histories, Mapping) or not histories:
        given = type(histories).__name__
        raise ValueError(f"expected histories of runs, got {given}: {{'name': wb.train(run).history, …}}")
    for history in histories.values():
        checked_frame(
            history,
            ["epoch", *COLUMNS.values()],
            "that of a run with a softmax or quasibinary link has them, train it anew",
        )
    frame = pd.concat(
        [
            pd.DataFrame({"run": name, "of": panel, "epoch": history["epoch"] + 1, "value": history[column]})
            for name, history in histories.items()
            for panel, column in COLUMNS.items()
        ],
        ignore_index=True,
    )
    epochs = int(frame["epoch"].max())
    last = frame.groupby(["run", "of"], sort=False)["value"].last()
    summary = "; ".join(
        f"{name}: mean {last[name, 'mean']:.3g}, variance {last[name, 'variance']:.3g}" for name in histories
    )
    return Normalisers(
        frame=frame,
        title="Does the normaliser settle?",
        subtitle=f"n = {counted(epochs, 'epoch')}; Σ exp(scores) of validation rows for softmax, C of batches for quasibinary",
        text=f"Mean and variance of the normaliser over n = {counted(epochs, 'epoch')}. At the end of {summary}.",
        code=Code(
            "wb.figures.normalisers(histories)",
            ["# histories: {name: wb.train(run).history} of some runs"],
        ),
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Normalisers(Figure):
    """A panel for the mean and one for the variance, both on a logarithmic axis: softmax spans many powers of ten."""

    def lines(self) -> list[tuple[str, str, pd.DataFrame]]:
        """Panel, run and its part of the frame; what is 0 or too large for a number is not drawn."""
        shown = self.frame.assign(value=self.frame["value"].where(lambda value: np.isfinite(value) & (value > 0)))
        return [(str(panel), str(name), part) for (panel, name), part in shown.groupby(["of", "run"], sort=False)]

    def decades(self, panel: str) -> tuple[float, float]:
        """The ends of the axis of a panel: powers of ten."""
        values = pd.concat([part["value"] for of, _, part in self.lines() if of == panel]).dropna()
        if values.empty:
            return 0.1, 10.0
        low, high = np.log10(values.min()), np.log10(values.max())
        return float(10.0 ** math.floor(low)), float(10.0 ** max(math.ceil(high), math.floor(low) + 1))

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = make_subplots(1, len(COLUMNS), horizontal_spacing=0.12)
        colours = dict(zip(dict.fromkeys(self.frame["run"]), theme.categories, strict=False))
        for panel, name, part in self.lines():
            colour = colours.get(name, theme.ink)
            figure.add_scatter(
                x=part["epoch"], y=part["value"], mode="lines+markers", name=html.escape(name), legendgroup=name,
                showlegend=panel == "mean", line={"color": colour, "width": 2.5}, marker={"size": 6, "color": colour},
                hovertemplate=f"epoch %{{x}}: %{{y:.4g}}<extra>{html.escape(name)}, {panel}</extra>",
                row=1, col=list(COLUMNS).index(panel) + 1,
            )  # fmt: skip
        for place, panel in enumerate(COLUMNS, start=1):
            ends = np.log10(self.decades(panel)).tolist()
            title = f"{panel} of the normaliser"
            figure.update_yaxes(type="log", exponentformat="power", range=ends, title=title, col=place)
        figure.update_xaxes(title="epoch", tickformat="d", range=(0.5, self.frame["epoch"].max() + 0.5))
        return figure.update_layout(height=400)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import MaxNLocator

        figure = paper(9.0, 3.4)
        axes = dict(zip(COLUMNS, figure.subplots(1, len(COLUMNS)), strict=True))
        colours = dict(zip(dict.fromkeys(self.frame["run"]), theme.categories, strict=False))
        for panel, name, part in self.lines():
            axes[panel].plot(part["epoch"], part["value"], "o-", color=colours.get(name), markersize=4, label=name)
        for panel, each in axes.items():
            each.set(yscale="log", ylim=self.decades(panel), xlabel="epoch", ylabel=f"{panel} of the normaliser")
            each.yaxis.set_major_formatter("{x:.0e}")
            each.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes["mean"].legend(fontsize=8)
        return figure
