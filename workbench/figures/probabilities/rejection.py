"""Rows that belong to no class: is the network less sure of them, and from which confidence on should it answer?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import Click, Figure, Move, Places, counted, paper, round_limit
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics import auroc, confidences
from workbench.metrics.rows import RowFilter
from workbench.tables import LogitTable, checked_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

BINS = 40
WITH, WITHOUT, ALL = "with a label", "without a label", "all rows"
LINES = "threshold above", "threshold below"  # the lines at the threshold, by their names


def none_of_these(table: LogitTable, threshold: float = 0.5) -> NoneOfThese:
    """Histograms of the largest probability of rows with and without a label, and what a threshold does to both.

    Args:
        table: Rows with and without a label.
        threshold: The one that is marked.

    Where no class reaches the threshold the set is empty and says "none of these": right for a row without a label, a
    pity for a row with one. Below the histograms stand, against the threshold, the share of rows with a label that get
    an answer and the share of rows without one that are told "none of these". MMC is the mean of the largest
    probability, AU-ROC the chance that it is larger for a row with a label than for a row without.

    A table of one label a row, or of labels that are not known, has one kind of rows only.

    >>> import workbench as wb
    >>> table = wb.LogitTable([[2.0, -2.0], [-1.0, -2.0]], [[True, False], [False, False]], link="sigmoid")
    >>> none_of_these(table).answered(0.5)
    {'with a label': 1.0, 'without a label': 0.0}

    Paper: Liao et al., Table II (its numbers, MMC and AU-ROC; there is no such picture).
    """
    kinds = kinds_of_rows(checked_table(table))
    edges = np.linspace(0, 1, BINS + 1)
    parts = [
        {
            "rows": kind,
            "low": edges[:-1],
            "high": edges[1:],
            "count": np.histogram(values, edges)[0],
            "answered": share_answered(values, edges[:-1]),
        }
        for kind, values in kinds.items()
    ]
    frame = pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)
    frame["share"] = frame["count"] / frame.groupby("rows")["count"].transform("sum")
    about = [f"n = {counted(len(values), 'row')} {kind}, MMC {values.mean():.1%}" for kind, values in kinds.items()]
    if {WITH, WITHOUT} <= kinds.keys():
        about.append(f"AU-ROC {auroc(table.rows(table.labelled), table.rows(~table.labelled)):.3f}")
    shares = {kind: float(share_answered(values, threshold)) for kind, values in kinds.items()}
    return NoneOfThese(
        frame=frame,
        title="Which rows are told “none of these”?",
        subtitle="; ".join(about),
        text=f"The largest probability of a row: {'; '.join(about)}. {in_words(threshold, shares)}",
        code=Code(
            f"wb.figures.none_of_these(table, threshold={threshold!r})",
            [f"# table: {table.n} rows of {table.n_classes} classes"],
        ),
        threshold=threshold,
        n_classes=table.n_classes,
        kinds=kinds,
    )


def kinds_of_rows(table: LogitTable) -> dict[str, np.ndarray]:
    """The largest probabilities of the rows with a label and of those without, rising; of all rows if that is one kind."""
    largest = np.minimum(confidences(table), 1)  # a quasibinary q may be above 1
    if table.labels is None or (table.labelled.all() and not table.many_labels):
        return {ALL: np.sort(largest)}
    kinds = {WITH: largest[table.labelled], WITHOUT: largest[~table.labelled]}
    return {kind: np.sort(values) for kind, values in kinds.items() if len(values)}


def share_answered(rising: np.ndarray, thresholds: np.ndarray | float) -> np.ndarray:
    """The share of rows whose largest probability reaches each threshold."""
    return 1 - np.searchsorted(rising, thresholds, side="left") / len(rising)


def in_words(threshold: float, answered: Mapping[str, float]) -> str:
    """Describe the effect of a threshold on each kind of rows."""
    summary = [
        f"{1 - share:.1%} of the rows {kind} are told “none of these”"
        if kind == WITHOUT
        else f"{share:.1%} of {kind} get an answer"
        if kind == ALL
        else f"{share:.1%} of the rows {kind} get an answer"
        for kind, share in answered.items()
    ]
    return f"At the threshold {threshold:.3g}, {' and '.join(summary)}."


class Part(NamedTuple):
    """The histogram of one kind of rows, and the share of them that each threshold treats rightly."""

    kind: str
    caption: str  # of the curve
    colour: str
    bins: pd.DataFrame
    thresholds: np.ndarray
    right: np.ndarray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NoneOfThese(Figure):
    """Histograms above, what a threshold does to each kind of rows below, and a line at the threshold."""

    threshold: float
    n_classes: int
    kinds: dict[str, np.ndarray]  # largest probabilities, rising

    def answered(self, threshold: float) -> dict[str, float]:
        """The share of each kind of rows that get an answer at a threshold."""
        return {kind: float(share_answered(values, threshold)) for kind, values in self.kinds.items()}

    def judged(self) -> str:
        """Return the quantity of the curves; without labelled rows only the share of answers can be counted."""
        return "correct" if WITHOUT in self.kinds else "answered"

    def parts(self, theme: Theme) -> list[Part]:
        """Return the drawn parts of each kind of rows."""
        colours = {WITH: theme.accent, WITHOUT: theme.muted, ALL: theme.accent}
        parts = []
        for kind, bins in self.frame.groupby("rows", sort=False):
            answered = np.append(bins["answered"], self.answered(1.0)[str(kind)])
            right = 1 - answered if kind == WITHOUT else answered
            caption = f"{kind}: {'told “none of these”' if kind == WITHOUT else 'get an answer'}"
            parts.append(Part(str(kind), caption, colours[str(kind)], bins, np.append(bins["low"], 1.0), right))
        return parts

    def moves(self, places: Places) -> list[Move]:
        """Moves of the lines at the threshold along a slider."""
        ends = np.minimum(places["thresholds"], 1).tolist()
        return [Move(end, ends, shape=name) for name in LINES for end in ("x0", "x1")]

    def subtitles(self, places: Places) -> list[str]:
        """Return a short description of the effect of every threshold."""
        parts = []
        for kind, values in self.kinds.items():
            answered = share_answered(values, np.asarray(places["thresholds"]))
            verb, shares = ("refused", 1 - answered) if kind == WITHOUT else ("answered", answered)
            whose = f"of {kind}" if kind == ALL else kind
            parts.append([f"{share:.1%} {whose} {verb}" for share in shares])
        n = counted(sum(len(values) for values in self.kinds.values()), "row")
        return [f"n = {n}: {', '.join(words)}" for words in zip(*parts, strict=True)]

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of a bar; a curve has none."""
        if click.trace not in self.kinds:
            return None
        bar = self.frame[self.frame["rows"] == click.trace].iloc[click.point]
        n_labels = {WITH: (1, self.n_classes), WITHOUT: (0, 0)}
        return RowFilter(sure=(bar["low"], bar["high"]), n_labels=n_labels.get(click.trace))

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = make_subplots(rows=2, shared_xaxes=True, row_heights=[0.5, 0.5], vertical_spacing=0.1)
        width = 1 / BINS
        for kind, caption, colour, bins, thresholds, right in self.parts(theme):
            middle = (bins["low"] + bins["high"]) / 2
            bars = go.Bar(x=middle, y=bins["share"], width=width, name=kind, customdata=bins["count"])
            bars.update(marker={"color": colour, "opacity": 0.75, "line_width": 0})
            bars.update(hovertemplate="%{y:.1%} of the rows (%{customdata}) near %{x:.0%}<extra>" + kind + "</extra>")
            curve = go.Scatter(x=thresholds, y=right, mode="lines", line={"color": colour, "width": 3})
            curve.update(name=caption, showlegend=False)
            curve.update(hovertemplate="threshold %{x:.2f}: %{y:.1%}<extra>" + caption + "</extra>")
            figure.add_traces([bars, curve], rows=[1, 2], cols=1)
        line = {"color": theme.threshold, "dash": "dash", "width": 2}
        for panel, name in enumerate(LINES, start=1):
            figure.add_vline(x=self.threshold, name=name, line=line, row=panel, col=1)
        figure.update_xaxes(range=(0, 1), tickformat=".0%")
        figure.update_xaxes(title="largest probability of a row, and the threshold", row=2)
        figure.update_yaxes(range=(0, round_limit(self.frame["share"].max())), tickformat=".0%", title="rows", row=1)
        figure.update_yaxes(range=(0, 1.02), tickformat=".0%", title=self.judged(), row=2)
        return figure.update_layout(height=480, barmode="overlay", showlegend=True)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter

        figure = paper(6.4, 5.6)
        above, below = figure.subplots(2, sharex=True)
        for kind, caption, colour, bins, thresholds, right in self.parts(theme):
            above.bar(bins["low"], bins["share"], 1 / BINS, align="edge", color=colour, alpha=0.75, label=kind)
            below.plot(thresholds, right, color=colour, linewidth=2.2, label=caption)
        for axes in (above, below):
            axes.axvline(self.threshold, color=theme.threshold, linestyle="--", linewidth=1.6)
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            axes.legend()
        below.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        above.set(xlim=(0, 1), ylim=(0, round_limit(self.frame["share"].max())), ylabel="rows")
        below.set(ylim=(0, 1.02), ylabel=self.judged(), xlabel="largest probability of a row, and the threshold")
        return figure
