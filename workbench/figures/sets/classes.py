"""Coverage of each class, and the classes that pay for small sets."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.class_counts import SHOTS, shot_groups
from workbench.figures.base import (
    Click,
    Figure,
    Move,
    Places,
    beside_an_axis,
    chosen_by,
    code_with_sets,
    counted,
    paper,
    round_count,
)
from workbench.figures.style import LIGHT, Theme
from workbench.metrics import class_accuracy
from workbench.metrics.intervals import wilson_interval
from workbench.metrics.rows import RowFilter
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables.groups import means
from workbench.tables.row_kinds import training_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as StaticFigure

MOST_NAMES, MOST_BARS = 30, 100  # more classes than that: bars without names; a histogram
BINS = 20  # of accuracy, when there are too many classes for bars
HOVER = "%{customdata[1]}<extra></extra>"
MOVING_HOVER = "<b>%{customdata[0]}</b><br>accuracy %{y:.1%} on %{customdata[1]} rows<extra></extra>"
MACRO = "mean over classes"  # the line, by its name


def per_class(sets: PredictionSets) -> PerClass:
    """Accuracy of each class: the share of its rows whose set contains it.

    Args:
        sets: The sets of some rows, what a fitted rule returns.

    One bar a class, the one with most training rows first where class counts are known and the most accurate first elsewhere.
    Hundreds of classes are drawn as a histogram of their accuracies; the frame always has one row a class, with the
    number of rows `n`, a 95 % Wilson interval (`low`, `high`) and the mean size of the sets.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1], [0.3, 0.7]], labels=[0, 1, 1])
    >>> per_class(wb.Threshold(0.5).fit(table)(table)).frame[["name", "n", "accuracy"]].to_numpy().tolist()
    [['class 0', 1, 1.0], ['class 1', 2, 0.5]]
    """
    table = checked_sets(sets).table
    rows, classes = table.positives()
    n = np.bincount(classes, minlength=table.n_classes)
    accuracy = class_accuracy(sets)  # NaN for a class without rows
    hits = np.rint(np.nan_to_num(accuracy) * n).astype(int)
    columns: dict[str, Any] = {"class": np.arange(table.n_classes), "name": table.named_classes()}
    if table.groups is not None:
        columns["group"] = table.groups
    if table.class_counts is not None:
        columns |= {"count": table.class_counts, "shots": shot_groups(table.class_counts)}
    low, high = wilson_interval(hits, n)
    columns |= {"n": n, "hits": hits, "accuracy": accuracy, "low": low, "high": high}
    columns["mean_size"] = means(sets.sizes[rows], classes, table.n_classes)
    frame = pd.DataFrame(columns)

    present = frame[frame["n"] > 0].sort_values("accuracy", kind="stable")
    macro = float(present["accuracy"].mean())
    worst = ", ".join(f"{name} {accuracy:.0%}" for name, accuracy in present[["name", "accuracy"]].head(3).to_numpy())
    return PerClass(
        frame=frame,
        title="Correct sets, class by class",
        subtitle=f"n = {counted(len(sets), 'row')} of {classes_with_rows(n)}, sets by {chosen_by(sets)}; "
        f"mean over classes {macro:.1%}",
        text=(
            f"Accuracy of {classes_with_rows(n)}, on n = {len(sets)} rows, sets by {chosen_by(sets)}: "
            f"{macro:.1%} on average over classes, {present['accuracy'].median():.1%} in the middle. "
            f"The least accurate: {worst}."
        ),
        code=code_with_sets("wb.figures.per_class(sets)", sets),
        macro=macro,
        training=training_rows(table),
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PerClass(Figure):
    """Bars, or for hundreds of classes a histogram of their accuracies; shot groups have their colours."""

    macro: float  # accuracy on average over classes
    training: str  # what class counts count, such as "training images"

    def ordered(self) -> pd.DataFrame:
        """The classes that have rows, in the order they are drawn, with their `place` and the `part` of the legend."""
        present = self.frame[self.frame["n"] > 0]
        column = "count" if "count" in present else "accuracy"
        ordered = present.sort_values(column, ascending=False, kind="stable")
        return ordered.assign(place=np.arange(len(ordered)), part=ordered.get("shots", "classes"))

    def parts(self, theme: Theme) -> list[tuple[str, str, pd.DataFrame]]:
        """(name, colour, classes) of each shot group that has classes, or of all classes together."""
        ordered = self.ordered()
        names = [name for name in (*SHOTS, "classes") if name in set(ordered["part"])]
        return [
            (name, colour, ordered[ordered["part"] == name])
            for name, colour in zip(names, theme.colours(names), strict=True)
        ]

    @property
    def histogram(self) -> bool:
        """Whether there are too many classes for a bar each."""
        return len(self.ordered()) > MOST_BARS

    def bins(self, theme: Theme) -> list[tuple[str, str, np.ndarray]]:
        """(name, colour, number of classes in each bin of accuracy) of each part."""
        edges = np.linspace(0, 1, BINS + 1)
        return [(name, colour, np.histogram(part["accuracy"], edges)[0]) for name, colour, part in self.parts(theme)]

    def _plotly(self, theme: Theme) -> go.Figure:
        macro = {"type": "line", "name": MACRO, "line": {"color": theme.threshold, "dash": "dash", "width": 2}}
        percent = {"range": (0, 1), "tickformat": ".0%"}
        traces: list[dict[str, Any]] = []
        if self.histogram:
            bins = self.bins(theme)
            for name, colour, counts in bins:
                hover = "%{y} classes with accuracy near %{x:.1%}<extra>" + name + "</extra>"
                bars = {"type": "bar", "name": name, "marker": {"color": colour}, "hovertemplate": hover}
                traces.append({**bars, "x": (np.arange(BINS) + 0.5) / BINS, "y": counts})
            highest = round_count(np.sum([counts for _, _, counts in bins], axis=0).max())
            layout: dict[str, Any] = {
                "shapes": [{**macro, "x0": self.macro, "x1": self.macro, "y0": 0, "y1": 1, "yref": "y domain"}],
                "xaxis": {**percent, "title": {"text": "accuracy of a class"}, "showgrid": False},
                "yaxis": {"range": (0, highest), "title": {"text": "classes"}},
            }
            looks = {"barmode": "stack", "bargap": 0.06, "height": 420, "showlegend": len(bins) > 1}
            return go.Figure(traces, {**layout, **looks})

        ordered, parts = self.ordered(), self.parts(theme)
        for name, colour, part in parts:
            bars = {"type": "bar", "name": name, "marker": {"color": colour}, "x": part["place"], "y": part["accuracy"]}
            if len(ordered) <= MOST_NAMES:
                reach = {"array": part["high"] - part["accuracy"], "arrayminus": part["accuracy"] - part["low"]}
                bars["error_y"] = {**reach, "color": theme.ink, "thickness": 1, "width": 0}
            traces.append({**bars, "customdata": names_and_hovers(part, self.training), "hovertemplate": HOVER})
        ticks: dict[str, Any] = {"showticklabels": False, "ticks": ""}
        if len(ordered) <= MOST_NAMES:
            ticks = {"tickvals": ordered["place"], "ticktext": ordered["name"].map(beside_an_axis).map(html.escape)}
            ticks |= {"tickangle": -45, "automargin": True}
        title = {"text": self._order_in_words()}
        layout = {
            "shapes": [{**macro, "x0": 0, "x1": 1, "xref": "x domain", "y0": self.macro, "y1": self.macro}],
            "xaxis": {"range": (-0.6, len(ordered) - 0.4), "title": title, "showgrid": False, **ticks},
            "yaxis": {**percent, "title": {"text": "accuracy"}},
        }
        return go.Figure(traces, {**layout, "barmode": "overlay", "height": 420, "showlegend": len(parts) > 1})

    def moves(self, places: Places) -> list[Move]:
        """Moves of the bars and of the mean over classes along a slider; the order of the classes stays."""
        parts = [(name, part) for name, _, part in self.parts(LIGHT)]
        hits, n = places["class_hits"], places["class_rows"]
        accuracy, macro = hits / np.maximum(n, 1), places["macro_accuracy"].tolist()
        if self.histogram:
            edges = np.linspace(0, 1, BINS + 1)
            bars = [np.array([np.histogram(row[part["class"]], edges)[0] for row in accuracy]) for _, part in parts]
            highest = [[0, round_count(most)] for most in np.sum(bars, axis=0).max(axis=1)]
            return [
                *(Move("y", counts, name) for (name, _), counts in zip(parts, bars, strict=True)),
                *(Move(end, macro, shape=MACRO) for end in ("x0", "x1")),
                Move("yaxis.range", highest),
            ]
        moves = [Move(end, macro, shape=MACRO) for end in ("y0", "y1")]
        if "count" not in self.frame:
            moves.append(Move("xaxis.title.text", ["classes, most accurate at the smallest K first"]))
        low, high = wilson_interval(hits, n)
        for name, part in parts:
            here = part["class"].to_numpy()
            moves.append(Move("y", accuracy[:, here], name))
            if len(self.ordered()) <= MOST_NAMES:
                moves.append(Move("error_y.array", (high - accuracy)[:, here], name))
                moves.append(Move("error_y.arrayminus", (accuracy - low)[:, here], name))
            hover_rows = list(zip(part["name"].map(html.escape), part["n"].tolist(), here.tolist(), strict=True))
            moves += [Move("customdata", [hover_rows], name), Move("hovertemplate", [MOVING_HOVER], name)]
        return moves

    def subtitles(self, places: Places) -> list[str]:
        """Number of rows and mean over classes at every position."""
        about = rows_of_classes(places)
        return [f"{about}; mean over classes {mean:.1%}" for mean in places["macro_accuracy"]]

    @property
    def opens_rows(self) -> bool:
        """A bar of the histogram stands for many classes."""
        return not self.histogram

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of a class."""
        return None if self.histogram else rows_of_class(click)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.patches import Patch
        from matplotlib.ticker import PercentFormatter

        figure = paper(7.2, 4.6)
        axes = figure.subplots()
        if self.histogram:
            stacked = np.zeros(BINS, int)
            for _, colour, counts in self.bins(theme):
                axes.bar((np.arange(BINS) + 0.5) / BINS, counts, 0.94 / BINS, bottom=stacked, color=colour)
                stacked += counts
            axes.axvline(self.macro, color=theme.threshold, linestyle="--", linewidth=1.6)
            axes.set(xlim=(0, 1), ylim=(0, round_count(stacked.max())), xlabel="accuracy of a class", ylabel="classes")
            axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        else:
            self._bars_on(axes, theme)
            axes.axhline(self.macro, color=theme.threshold, linestyle="--", linewidth=1.6)
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.grid(visible=False, axis="x")
        handles = [Patch(color=colour, label=name) for name, colour, _ in self.parts(theme)]
        if len(handles) > 1:
            figure.legend(handles=handles, loc="upper right", ncols=3)
        return figure

    def _bars_on(self, axes: Axes, theme: Theme) -> None:
        import seaborn

        ordered, parts = self.ordered(), self.parts(theme)
        colours = {name: colour for name, colour, _ in parts}
        looks = {"palette": colours, "saturation": 1, "width": 0.9, "dodge": False, "native_scale": True}
        seaborn.barplot(
            ordered, x="place", y="accuracy", hue="part", hue_order=list(colours), legend=False, ax=axes, **looks
        )
        if len(ordered) <= MOST_NAMES:
            reach = [ordered["accuracy"] - ordered["low"], ordered["high"] - ordered["accuracy"]]
            axes.errorbar(ordered["place"], ordered["accuracy"], reach, fmt="none", ecolor=theme.ink, elinewidth=0.8)
            names = ordered["name"].map(beside_an_axis)
            axes.set_xticks(ordered["place"], names, rotation=45, ha="right", rotation_mode="anchor")
        else:
            axes.set_xticks([])
        axes.set(xlim=(-0.6, len(ordered) - 0.4), ylim=(0, 1), xlabel=self._order_in_words(), ylabel="accuracy")

    def _order_in_words(self) -> str:
        return f"classes, most {self.training} first" if "count" in self.frame else "classes, most accurate first"


def classes_with_rows(n: np.ndarray) -> str:
    """How many classes have rows, of the number of rows of each, and why the others are left out.

    >>> classes_with_rows(np.array([3, 1])), classes_with_rows(np.array([3, 1, 0]))
    ('2 classes', '2 of 3 classes (1 has no row here)')
    """
    present = int(np.count_nonzero(n))
    if (absent := len(n) - present) == 0:
        return counted(present, "class", "classes")
    return f"{counted(present)} of {counted(len(n))} classes ({counted(absent)} {'has' if absent == 1 else 'have'} no row here)"


def rows_of_classes(places: Places) -> str:
    """How many rows of how many classes the places are of, in words."""
    return f"n = {counted(places['n'], 'row')} of {classes_with_rows(places['class_rows'])}"


def rows_of_class(click: Click) -> RowFilter | None:
    """The rows of the class whose number ends the custom data of what was clicked; None if it has none."""
    return None if click.data is None else RowFilter(label=int(click.data[-1]))


def names_and_hovers(part: pd.DataFrame, training: str) -> list[tuple[str, str, int]]:
    """The name of each class, as HTML, what the pointer tells about it, and its number."""
    trained_on = f"<br>{{count}} {training}" if "count" in part else ""
    template = (
        "<b>{name}</b><br>accuracy {accuracy:.1%} ({hits} of {n} rows)<br>95 % interval {low:.0%} to {high:.0%}"
        + trained_on
        + "<br>{mean_size:.1f} classes in a set"
    )
    part = part.assign(name=part["name"].map(html.escape))
    hover_rows = [template.format(**dict(zip(part.columns, row, strict=True))) for row in part.itertuples(index=False)]
    return list(zip(part["name"], hover_rows, part["class"].tolist(), strict=True))
