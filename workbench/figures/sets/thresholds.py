"""G: how many classes reach a threshold, and back from a mean size to its threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, Move, Places, checked_index, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.sets import SetIndex
from workbench.tables.links import check_same_link

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

FITTED, JUDGED = "validation rows", "test rows"
LEFT = 1e-12  # a threshold that is left of every picture
ACROSS, DOWN, POINT = "across", "down", "marked"  # the path from K to its threshold, by the names of its parts
ABOVE = 40  # thresholds at which sets hold less than one class on average


def size_against_threshold(val: SetIndex, test: SetIndex, threshold: float | None = None) -> SizeAgainstThreshold:
    r"""G, the mean size of sets against the threshold, on the rows it is fitted on and on those it is used on.

    Args:
        val: `SetIndex` of the rows that rules are fitted on.
        test: `SetIndex` of the rows that they are used on.

    $$G(t) = \sum_{j=1}^L P(p_j(X) \ge t), \qquad \lambda_K = G^{-1}(K)$$

    From a threshold upwards and to the left one reads a mean size; from a mean size to the right and downwards its
    threshold, which is how average-K sets are fitted. With a `threshold` that path is drawn. Where the two curves part,
    sets will not have the size they were fitted for. Needs no labels.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.8, 0.1, 0.1], [0.4, 0.35, 0.25]])
    >>> index = wb.SetIndex(table, K_max=2, step=0.5)
    >>> size_against_threshold(index, index).frame.head(3)[["mean_size"]].to_numpy().ravel().tolist()
    [2.0, 1.5, 1.0]

    Paper: Garcin, thesis, Eq. 2.24–2.31; Garcin et al. 2023, Algorithm 1.
    """
    if threshold is not None and not threshold > 0:
        raise ValueError(f"threshold = {threshold:g} has no place on a logarithmic axis; give one above 0")
    val, test = checked_index(val), checked_index(test)
    check_same_link(val.table, test.table)
    of_K = np.unique(val.thresholds[val.thresholds > 0])
    lowest, highest = (of_K[0], of_K[-1]) if len(of_K) else (0.5, 0.5)
    thresholds = np.unique([*of_K, *np.geomspace(min(highest, 1), 1, ABOVE), lowest])
    frame = pd.concat(
        [
            pd.DataFrame(
                {"rows": name, "threshold": thresholds, "mean_size": [index.mean_size(value) for value in thresholds]}
            )
            for name, index in ((FITTED, val), (JUDGED, test))
        ],
        ignore_index=True,
    )
    step = float(np.diff(val.K_values)[0]) if len(val.K_values) > 1 else 0.1
    options = f"K_max={float(val.K_values[-1])!r}, step={round(step, 6)!r}"
    sentence, at = "", None
    if threshold is not None:
        at = (threshold, val.mean_size(threshold))
        sizes = f"{at[1]:.2f} classes where it is fitted and {test.mean_size(threshold):.2f} where it is used"
        sentence = f"Marked: at {threshold:.4g}, {sizes}."
    marked = "" if threshold is None else f", threshold={threshold!r}"
    unmarked = (
        f"Mean size of sets against the threshold, falling from {frame['mean_size'].max():.2f} classes at "
        f"{thresholds[0]:.3g} to {frame['mean_size'].min():.2f} at {thresholds[-1]:g}, on the n = {val.table.n} "
        f"validation rows and the {test.table.n} test rows."
    )
    return SizeAgainstThreshold(
        frame=frame,
        title="Set size against threshold",
        subtitle=f"n = {counted(val.table.n)} fitted rows and {counted(test.table.n)} judged rows",
        text=f"{unmarked} {sentence}".strip(),
        unmarked=unmarked,
        code=Code(
            f"wb.figures.size_against_threshold(val_index, test_index{marked})",
            [
                "# val: the table the threshold is fitted on; test: the table it is used on",
                f"val_index, test_index = wb.SetIndex(val, {options}), wb.SetIndex(test, {options})",
            ],
        ),
        K_max=float(val.K_values[-1]),
        at=at,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SizeAgainstThreshold(Figure):
    """Two falling curves over a logarithmic axis of thresholds, and the path from K to its threshold."""

    unmarked: str  # the text without what is marked
    K_max: float
    at: tuple[float, float] | None  # threshold and mean size that are marked

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Of thresholds and of mean sizes."""
        lowest = self.frame["threshold"].min()
        return (float(min(lowest, 0.5)), 1.0), (0.0, 1.05 * max(self.K_max, 2.0))

    def looks(self, theme: Theme) -> dict[str, dict[str, Any]]:
        """Curve → its colour, width and dash."""
        return {
            JUDGED: {"color": theme.model_b, "width": 2, "dash": "dot"},
            FITTED: {"color": theme.accent, "width": 3},
        }

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = go.Figure()
        for name, look in self.looks(theme).items():
            part = self.frame[self.frame["rows"] == name]
            figure.add_scatter(
                x=part["threshold"],
                y=part["mean_size"],
                name=name,
                mode="lines",
                line=look,
                hovertemplate=f"threshold %{{x:.4f}}<br>%{{y:.2f}} classes on average<extra>{name}</extra>",
            )
        thresholds, sizes = self.ranges()
        if self.at is not None:
            threshold, size = self.at
            dashed = {"type": "line", "line": {"color": theme.threshold, "width": 1.5, "dash": "dash"}}
            figure.add_shape(name=ACROSS, x0=LEFT, x1=threshold, y0=size, y1=size, **dashed)
            figure.add_shape(name=DOWN, x0=threshold, x1=threshold, y0=0, y1=size, **dashed)
            dot = {"color": theme.threshold, "size": 14, "line": {"color": theme.paper, "width": 2}}
            figure.add_scatter(
                x=[threshold],
                y=[size],
                name=POINT,
                mode="markers",
                marker=dot,
                showlegend=False,
                hoverinfo="skip",
                cliponaxis=False,
            )
        figure.update_xaxes(
            type="log", range=np.log10(thresholds).tolist(), title="threshold λ", dtick="D2", exponentformat="none"
        )
        figure.update_yaxes(range=sizes, title="classes in a set on average")
        return figure.update_layout(height=420)

    def moves(self, places: Places) -> list[Move]:
        """Moves of the path along a slider, if one is drawn; the places are those of the rows the threshold is fitted on."""
        if self.at is None:
            return []
        at, sizes = np.maximum(places["thresholds"], LEFT), places["mean_size"]
        return [
            Move("x1", at.tolist(), shape=ACROSS),
            *(Move(end, sizes.tolist(), shape=ACROSS) for end in ("y0", "y1")),
            *(Move(end, at.tolist(), shape=DOWN) for end in ("x0", "x1")),
            Move("y1", sizes.tolist(), shape=DOWN),
            Move("x", at[:, None], POINT),
            Move("y", sizes[:, None], POINT),
        ]

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        import seaborn
        from matplotlib.ticker import FuncFormatter

        figure = paper(7.2, 4.4)
        axes = figure.subplots()
        for name, look in self.looks(theme).items():
            part = self.frame[self.frame["rows"] == name]
            style = {
                "color": look["color"],
                "linewidth": 0.8 * look["width"],
                "linestyle": ":" if "dash" in look else "-",
            }
            seaborn.lineplot(part, x="threshold", y="mean_size", errorbar=None, label=name, ax=axes, **style)
        thresholds, sizes = self.ranges()
        if self.at is not None:
            threshold, size = self.at
            path = [thresholds[0], threshold, threshold], [size, size, 0]
            axes.plot(*path, "--", color=theme.threshold, linewidth=1.4)
            axes.plot(threshold, size, "o", color=theme.threshold)
        axes.set(xscale="log", xlim=thresholds, ylim=sizes, xlabel="threshold λ", ylabel="classes in a set on average")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.legend(loc="upper right")
        return figure
