"""Accuracy against mean set size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.class_counts import SHOTS
from workbench.figures.base import Figure, Move, Places, checked_index, chosen_by, code_with_sets, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics import accuracy as accuracy_of
from workbench.metrics import bayes
from workbench.sets import PredictionSets, SetIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MACRO = "average-K, mean over classes"
BAYES = "best possible"
HERE = "here"  # the dot where a slider stands, by its name


def accuracy_against_size(index: SetIndex, sets: PredictionSets | None = None) -> AccuracyAgainstSize:
    """Accuracy of average-K sets against their mean size, beside top-K sets of the same size.

    Args:
        index: `SetIndex(table)` of the rows to judge on.

    Where the average-K curve runs above the top-K points, some rows are clearer than others and letting sets differ in
    size pays. With class counts, few, medium and many say which classes pay for small sets (each the mean over its
    classes); without, the mean over all classes is drawn. Where the true posterior is known and a row has one label, no
    classifier can be above the Bayes curve (but for luck with the labels); of several labels the posterior of each class
    does not say how often a set holds all of them, so there is none. `sets` of the same rows, by any rule, are marked.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.8, 0.1, 0.1], [0.4, 0.35, 0.25]], labels=[0, 1])
    >>> frame = accuracy_against_size(wb.SetIndex(table, K_max=2, step=0.5)).frame
    >>> frame[frame["curve"] == "average-K"][["mean_size", "accuracy"]].to_numpy().tolist()
    [[1.0, 0.5], [1.5, 1.0], [2.0, 1.0]]

    Paper: Garcin, thesis, Section 2.2.5.
    """
    checked_index(index).table.checked_labels()
    curve = index.curve()
    shots = [name for name in SHOTS if name in curve and curve[name].notna().any()]
    columns = {"average-K": "accuracy"} | ({name: name for name in shots} or {MACRO: "macro_accuracy"})
    parts = [
        curve[["K", "threshold", "mean_size"]].assign(curve=name, accuracy=curve[column])
        for name, column in columns.items()
    ]
    whole = range(1, int(index.K_values[-1]) + 1)
    ranks = index.label_ranks[index.table.labelled]
    top_k = [float(np.mean(ranks <= K)) if len(ranks) else np.nan for K in whole]
    parts.insert(1, pd.DataFrame({"K": whole, "mean_size": whole, "curve": "top-K", "accuracy": top_k}))
    if index.table.posterior is not None and not index.table.many_labels:
        halves = np.arange(2, 2 * index.K_values[-1] + 1) / 2
        distinct, times = np.unique(bayes.posterior_of(index.table), axis=0, return_counts=True)  # few, in the garden
        best = [bayes.average_k_accuracy(distinct, K, weights=times / times.sum()) for K in halves]
        parts.append(pd.DataFrame({"K": halves, "mean_size": halves, "curve": BAYES, "accuracy": best}))
    frame = pd.concat(parts, ignore_index=True)[["curve", "K", "threshold", "mean_size", "accuracy"]]

    n, K_max = index.table.n, float(index.K_values[-1])
    step = float(np.diff(index.K_values)[0]) if len(index.K_values) > 1 else 0.1
    summary = [
        f"at {K} {'class' if K == 1 else 'classes'} {_average_k(frame, K):.1%} against {top_k[K - 1]:.1%}"
        for K in whole
        if K in (1, 2, 5, 10, 20)
    ]
    options = f"K_max={K_max!r}, step={round(step, 6)!r}"
    plain = AccuracyAgainstSize(
        frame=frame,
        title="Accuracy against set size",
        subtitle=f"n = {counted(n, 'row')} of {counted(index.table.n_classes, 'class', 'classes')}",
        text=(
            f"Accuracy against mean set size on n = {n} rows, average-K sets against top-K sets: {'; '.join(summary)}. "
            f"Curves: {', '.join(frame['curve'].unique())}."
        ),
        code=Code(
            "wb.figures.accuracy_against_size(index)",
            [
                f"# table: {n} rows of {index.table.n_classes} classes, with labels",
                f"index = wb.SetIndex(table, {options})",
            ],
        ),
        options=options,
    )
    return plain if sets is None else plain.marking(sets)


def _average_k(frame: pd.DataFrame, K: float) -> float:
    curve = frame[frame["curve"] == "average-K"]
    return float(curve["accuracy"].iloc[int((curve["K"] - K).abs().argmin())])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AccuracyAgainstSize(Figure):
    """Lines for average-K sets, points for top-K sets and for the sets that are marked."""

    options: str  # of the index, in code
    marked: str = ""  # the curve that is one point
    here: tuple[float, float] | None = None  # mean size and accuracy where a slider stands

    def marking(self, sets: PredictionSets) -> AccuracyAgainstSize:
        """The same picture with the mean size and the accuracy of sets of the same rows, by any rule, as its one point."""
        name, size, accuracy = chosen_by(sets), float(sets.sizes.mean()), accuracy_of(sets)
        point = pd.DataFrame({"curve": [name], "mean_size": [size], "accuracy": [accuracy]})
        return replace(
            self,
            frame=pd.concat([self.frame[self.frame["curve"] != self.marked], point], ignore_index=True),
            text=f"{self.text.partition(' Marked: ')[0]} Marked: {size:.2f} classes on average and {accuracy:.1%} by {name}.",
            code=code_with_sets(
                "wb.figures.accuracy_against_size(index, sets)",
                sets,
                setup=[f"index = wb.SetIndex(test, {self.options})"],
            ),
            marked=name,
        )

    def standing_at(self, mean_size: float, accuracy: float) -> AccuracyAgainstSize:
        """The same picture with a dot where a slider stands, which `moves` moves."""
        return replace(self, here=(float(mean_size), float(accuracy)))

    def moves(self, places: Places) -> list[Move]:
        """Moves of the dot of `standing_at` along a slider."""
        if self.here is None:
            return []
        where = {"xanchor": places["mean_size"], "yanchor": places["accuracy"]}
        return [Move(name, values.tolist(), shape=HERE) for name, values in where.items()]

    def lines(self, theme: Theme) -> dict[str, dict[str, Any]]:
        """Curve → its colour and width, in the order they are drawn and listed."""
        looks: dict[str, dict[str, Any]] = {
            "average-K": {"color": theme.accent, "width": 3.5},
            "top-K": {"color": theme.ink, "width": 1.2},
            MACRO: {"color": theme.model_b, "width": 2.5, "dash": "dot"},
            BAYES: {"color": theme.bayes, "width": 2, "dash": "dash"},
        } | {shot: {"color": colour, "width": 2} for shot, colour in zip(SHOTS, theme.colours(SHOTS), strict=True)}
        looks[self.marked] = {"color": theme.threshold, "width": 0}
        return {name: looks[name] for name in self.frame["curve"].unique()}

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Of mean size, from 0 if a point lies below 1 or a dot may, and of accuracy, from the lowest rounded down to a tenth.

        Above 100 % there is room for the upper half of a mark.
        """
        lowest = np.floor(10 * self.frame["accuracy"].min()) / 10
        smallest, largest = 1.0 if self.here is None else 0.0, float(self.frame["K"].max())
        if self.marked:
            marked = float(self.frame["mean_size"].iloc[-1])
            smallest, largest = 1.0 if marked >= 1 else 0.0, max(largest, marked)
        return (smallest, max(2.0, largest)), (float(lowest), max(1.01, 1 + 0.04 * (1 - float(lowest))))

    def _plotly(self, theme: Theme) -> go.Figure:
        traces: list[dict[str, Any]] = []
        for name, look in self.lines(theme).items():
            part, point = self.frame[self.frame["curve"] == name], name in ("top-K", self.marked)
            at = "" if point else "<br>threshold %{customdata[1]:.4f}"
            size, accuracy, others = (part[at].to_numpy() for at in ("mean_size", "accuracy", ["K", "threshold"]))
            traces.append(
                {
                    **{"type": "scatter", "name": name, "mode": "markers" if point else "lines", "line": look},
                    **{"x": size, "y": accuracy, "customdata": others},
                    "zorder": {"average-K": 1, self.marked: 2}.get(name, 0),
                    "marker": _mark(theme, look["color"], filled=name == self.marked),
                    "hovertemplate": f"%{{x:.2f}} classes on average<br>accuracy %{{y:.1%}}{at}<extra>{name}</extra>",
                }
            )
        sizes, accuracies = self.ranges()
        margin = 0.02 * (sizes[1] - sizes[0])
        across, up = "classes in a set on average", "accuracy: the label is in the set"
        layout = {
            "xaxis": {"range": (sizes[0] - margin, sizes[1] + margin), "title": {"text": across}},
            "yaxis": {"range": accuracies, "tickformat": ".0%", "title": {"text": up}},
        }
        shapes = [] if self.here is None else [dot(theme, *self.here)]
        return go.Figure(traces, {**layout, "height": 460, **({"shapes": shapes} if shapes else {})})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        import seaborn
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        figure = paper(7.2, 4.6)
        axes = figure.subplots()
        for name, look in self.lines(theme).items():
            part = self.frame[self.frame["curve"] == name]
            if name in ("top-K", self.marked):
                fill = "full" if name == self.marked else "none"
                point = {"color": look["color"], "fillstyle": fill, "zorder": 4 if name == self.marked else 2}
                axes.plot(part["mean_size"], part["accuracy"], "o", label=name, **point)
            else:
                seaborn.lineplot(
                    part,
                    x="mean_size",
                    y="accuracy",
                    errorbar=None,
                    color=look["color"],
                    linewidth=0.8 * look["width"],
                    linestyle={"dot": ":", "dash": "--"}.get(look.get("dash", ""), "-"),
                    zorder=3 if name == "average-K" else 2,
                    label=name,
                    ax=axes,
                )
        sizes, accuracies = self.ranges()
        margin = 0.02 * (sizes[1] - sizes[0])
        axes.set(
            xlim=(sizes[0] - margin, sizes[1] + margin),
            ylim=accuracies,
            xlabel="classes in a set on average",
            ylabel="accuracy: the label is in the set",
        )
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="lower right")
        return figure


def dot(theme: Theme, x: float, y: float, name: str = HERE) -> dict[str, Any]:
    """A dot of 14 pixels. A shape and not a trace: Plotly moves it without drawing the curves again."""
    size = {"xsizemode": "pixel", "x0": -7, "x1": 7, "ysizemode": "pixel", "y0": -7, "y1": 7}
    looks = {"fillcolor": theme.threshold, "line": {"color": theme.paper, "width": 2}}
    return {"type": "circle", "name": name, "xanchor": x, "yanchor": y, **size, **looks}


def _mark(theme: Theme, colour: str, *, filled: bool) -> dict[str, Any]:
    if filled:
        return {"color": colour, "size": 14, "line": {"color": theme.paper, "width": 2}}
    return {"color": colour, "size": 8, "symbol": "circle-open", "line": {"width": 2}}
