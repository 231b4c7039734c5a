"""Do rare classes pay?"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.class_counts import FEW, MANY, SHOTS
from workbench.figures.base import Click, Figure, Move, Places, chosen_by, code_with_sets, counted, paper
from workbench.figures.sets.classes import (
    HOVER,
    classes_with_rows,
    names_and_hovers,
    per_class,
    rows_of_class,
    rows_of_classes,
)
from workbench.figures.style import Theme
from workbench.metrics.rows import RowFilter
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables.groups import known_class_counts
from workbench.tables.row_kinds import training_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

SMALLEST, LARGEST = 5, 22  # pixels of the dot of a class with next to no rows, and of the one with the most
MEAN = ", mean"  # ends the name of the line of a shot group
MOVING_HOVER = (
    "<b>%{{customdata[0]}}</b><br>accuracy %{{y:.1%}} on %{{customdata[2]}} rows"
    "<br>%{{customdata[1]}} {training}<extra></extra>"
)


def accuracy_against_count(sets: PredictionSets) -> AccuracyAgainstCount:
    """Accuracy of each class against its number of training rows, with the mean of each shot group.

    Args:
        sets: The sets of some rows, what a fitted rule returns.

    The frame is that of `per_class`. A class without training rows is drawn at one. The area of a dot grows with the rows
    of its class: the accuracy of one row is 0 or 1 and says little.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1]], labels=[0, 1], class_counts=[500, 3])
    >>> accuracy_against_count(wb.Threshold(0.5).fit(table)(table)).frame[["count", "shots", "accuracy"]].to_numpy().tolist()
    [[500, 'many', 1.0], [3, 'few', 0.0]]

    Paper: Garcin et al. 2023, Table 2 (the shot groups).
    """
    known_class_counts(checked_sets(sets).table)
    training = training_rows(sets.table)
    frame = per_class(sets).frame
    present = frame[frame["n"] > 0]
    of_shots = present.groupby("shots")["accuracy"].mean()
    means = ", ".join(f"{shot} {of_shots[shot]:.1%}" for shot in SHOTS if shot in of_shots)
    n_classes = classes_with_rows(frame["n"].to_numpy())
    return AccuracyAgainstCount(
        frame=frame,
        title="Are rare classes missed more often?",
        subtitle=f"n = {counted(len(sets), 'row')} of {n_classes}, sets by {chosen_by(sets)}",
        text=(
            f"Accuracy against {training} of {n_classes} on n = {len(sets)} rows, sets by {chosen_by(sets)}. Mean "
            f"accuracy of the classes with few (under {FEW}), medium and many (over {MANY}) {training}: {means}."
        ),
        code=code_with_sets("wb.figures.accuracy_against_count(sets)", sets),
        training=training,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AccuracyAgainstCount(Figure):
    """One dot a class; a line across each shot group at its mean."""

    training: str  # what class counts count, such as "training images"

    @property
    def counts_title(self) -> str:
        """The title of the axis of class counts."""
        return f"{self.training} of a class; a larger dot has more test rows"

    def parts(self) -> list[tuple[str, pd.DataFrame]]:
        """Each shot group that has rows, with its classes; `x` is where a class is drawn, `pixels` how large its dot is."""
        present = self.frame[self.frame["n"] > 0].assign(
            x=lambda frame: frame["count"].clip(lower=1),
            pixels=lambda frame: SMALLEST + (LARGEST - SMALLEST) * np.sqrt(frame["n"] / frame["n"].max()),
        )
        return [(shot, present[present["shots"] == shot]) for shot in SHOTS if shot in set(present["shots"])]

    def decades(self) -> tuple[float, float]:
        """The ends of the axis of counts, as powers of ten."""
        largest = max(part["x"].max() for _, part in self.parts())
        return -0.15, float(np.ceil(np.log10(largest) + 0.05))

    def _plotly(self, theme: Theme) -> go.Figure:
        figure, parts = go.Figure(), self.parts()
        for shot, part in parts:
            colour = getattr(theme, shot)
            mark = {"color": colour, "size": part["pixels"], "opacity": 0.7, "line": {"color": theme.paper, "width": 1}}
            figure.add_scatter(
                x=part["x"],
                y=part["accuracy"],
                mode="markers",
                name=shot,
                marker=mark,
                legendgroup=shot,
                cliponaxis=False,
            )
            figure.data[-1].update(customdata=names_and_hovers(part, self.training), hovertemplate=HOVER)
            mean = part["accuracy"].mean()
            line = {"color": colour, "width": 4}
            figure.add_scatter(
                x=[part["x"].min(), part["x"].max()], y=[mean, mean], mode="lines", line=line, legendgroup=shot,
                name=f"{shot}{MEAN}",
                showlegend=False, hovertemplate=f"{shot}: {mean:.1%} on average<extra></extra>",
            )  # fmt: skip
        figure.update_xaxes(type="log", range=self.decades(), dtick=1, title=self.counts_title)
        figure.update_yaxes(range=(-0.03, 1.03), tickformat=".0%", title="accuracy")
        return figure.update_layout(height=420, showlegend=len(parts) > 1)

    def moves(self, places: Places) -> list[Move]:
        """Moves of the dots and the mean of each shot group along a slider."""
        moves = []
        for shot, part, accuracy in self._at_places(places):
            hover_rows = part[["name", "count", "n", "class"]].assign(name=part["name"].map(html.escape))
            means = np.repeat(accuracy.mean(axis=1)[:, None], 2, axis=1)
            moves += [
                Move("y", accuracy, shot),
                Move("customdata", [hover_rows.to_numpy().tolist()], shot),
                Move("hovertemplate", [MOVING_HOVER.format(training=self.training)], shot),
                Move("y", means, f"{shot}{MEAN}"),
                Move("hovertemplate", [f"{shot}: %{{y:.1%}} on average<extra></extra>"], f"{shot}{MEAN}"),
            ]
        return moves

    def subtitles(self, places: Places) -> list[str]:
        """Number of rows and mean of each shot group at every position."""
        means = {shot: accuracy.mean(axis=1) for shot, _, accuracy in self._at_places(places)}
        summaries = [
            ", ".join(f"{shot} {mean:.1%}" for shot, mean in zip(means, row, strict=True))
            for row in zip(*means.values(), strict=True)
        ]
        return [f"{rows_of_classes(places)}; mean over classes: {summary}" for summary in summaries]

    def _at_places(self, places: Places) -> list[tuple[str, pd.DataFrame, np.ndarray]]:
        """Each shot group, its classes, and their accuracy (places, classes)."""
        accuracy = places["class_hits"] / np.maximum(places["class_rows"], 1)
        return [(shot, part, accuracy[:, part["class"].to_numpy()]) for shot, part in self.parts()]

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of a class."""
        return rows_of_class(click)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter, StrMethodFormatter

        figure = paper(7.2, 4.6)
        axes = figure.subplots()
        for shot, part in self.parts():
            colour, mean = getattr(theme, shot), part["accuracy"].mean()
            area = (0.6 * part["pixels"]) ** 2
            axes.scatter(part["x"], part["accuracy"], area, color=colour, alpha=0.7, linewidth=0, label=shot)
            axes.plot([part["x"].min(), part["x"].max()], [mean, mean], color=colour, linewidth=3)
        low, high = self.decades()
        axes.set_xscale("log")
        axes.set(xlim=(10**low, 10**high), ylim=(-0.03, 1.03), xlabel=self.counts_title, ylabel="accuracy")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        figure.legend(loc="upper right", ncols=3)
        return figure
