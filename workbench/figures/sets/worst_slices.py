"""The slices whose sets miss the label most often."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Click, Figure, beside_an_axis, chosen_by, code_with_sets, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics.rows import RowFilter
from workbench.metrics.slices import MIN_ROWS, NAMED, SELECTION, ranked_slices
from workbench.sets.prediction_sets import PredictionSets, checked_sets

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MOST = 12  # slices of a picture
LETTERS, NARROW = 72, 40  # of the name above a slice, and where the screen is narrow
LINE = 42  # pixels of a slice
ABOVE = -0.36  # where its name stands, in lines
CONFIDENCE = 0.95
WORSE, MAYBE, CHOSEN, OWN = "worse than luck explains", "may be luck", "your selection", "your slices"


def worst_slices(
    sets: PredictionSets,
    rows: Any = None,
    most: int = MOST,
    *,
    named: Mapping[str, RowFilter] | None = None,
    min_rows: int = MIN_ROWS,
    confidence: float = CONFIDENCE,
) -> WorstSlices:
    """Groups of rows whose sets miss the label most, with intervals and p-values that hold for all slices looked at.

    Args:
        sets: Sets of rows with labels.
        rows: a selection, as a mask or as row numbers, that is drawn as a slice of its own.
        most: Number of slices.
        named: Slices of your own: name → which rows. They count among the slices that are looked at.
        min_rows: Labelled rows that a slice has at least.
        confidence: Of all intervals together.

    Slices are the groups of each attribute, of shots and of classes, each class, and the rows whose two likeliest classes
    are the same. The frame is that of `workbench.metrics.slices.worst_slices`.

    >>> import numpy as np
    >>> import workbench as wb
    >>> organ = np.array(["leaf"] * 40 + ["bark"] * 40)
    >>> labels = np.where(organ == "leaf", 0, np.arange(80) % 3)
    >>> table = wb.LogitTable(np.tile([1.0, 0.0, -1.0], (80, 1)), labels, attributes={"organ": organ})
    >>> worst_slices(wb.TopK(1).fit(table)(table), min_rows=30).frame[["value", "n", "coverage"]].to_numpy().tolist()
    [['bark', 40, 0.325], ['leaf', 40, 1.0], ['class 0', 53, 1.0]]
    """
    frame, filters = ranked_slices(
        checked_sets(sets), most, rows=rows, named=named, min_rows=min_rows, confidence=confidence
    )
    looked_at = frame.attrs["looked_at"]
    labelled = int(np.count_nonzero(sets.labelled))
    coverage = float(np.count_nonzero(sets.hits) / labelled) if labelled else float("nan")
    n_worse = int(((frame["p_corrected"] < 1 - confidence) & ~frame["by"].isin((SELECTION, NAMED))).sum())
    defaults = {"most": (most, MOST), "min_rows": (min_rows, MIN_ROWS), "confidence": (confidence, CONFIDENCE)}
    arguments = "".join(f", {name}={value}" for name, (value, default) in defaults.items() if value != default)
    arguments = f"{f', named={dict(named)!r}' if named else ''}{arguments}"
    arguments = arguments if rows is None else f", rows=rows{arguments}"
    first = "; ".join(f"{name} {share:.0%}" for name, share in zip(_names(frame), frame["coverage"], strict=True))
    return WorstSlices(
        frame=frame,
        title="Where sets miss the label most",
        subtitle=(
            f"n = {counted(labelled, 'row')}, sets by {chosen_by(sets)}; {counted(looked_at, 'slice')} looked at, "
            f"{confidence:.0%} intervals for all of them together"
        ),
        text=(
            f"Coverage of the {len(frame)} worst of {counted(looked_at, 'slice')} of n = {counted(labelled, 'row')}, sets by "
            f"{chosen_by(sets)}; {coverage:.1%} over all rows. {n_worse} of them are worse than luck explains after Holm's "
            f"correction. {first or 'No slice has enough rows'}."
        ),
        code=code_with_sets(
            f"wb.figures.worst_slices(sets{arguments})",
            sets,
            setup=() if rows is None else ["# rows: the numbers of the selected rows"],
        ).after(Code(imports=["from workbench.metrics.rows import RowFilter"] if named else [])),
        filters=tuple(filters),
        coverage=coverage,
        alpha=1 - confidence,
    )


def _names(frame: pd.DataFrame) -> list[str]:
    """The slices in words."""
    return [by if by == SELECTION else f"{by}: {value}" for by, value in zip(frame["by"], frame["value"], strict=True)]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WorstSlices(Figure):
    """One dot a slice with its interval, and a line at the coverage of all rows."""

    filters: tuple[RowFilter, ...]  # the rows of each line of the frame
    coverage: float
    alpha: float
    letters: int = LETTERS

    def narrow(self) -> Self:
        """The same with fewer letters above each slice."""
        return replace(self, letters=NARROW)

    def names(self) -> list[str]:
        """The slices and how many rows they have."""
        names = (beside_an_axis(name, self.letters) for name in _names(self.frame))
        return [f"{name}, n = {counted(n)}" for name, n in zip(names, self.frame["n"], strict=True)]

    def parts(self, theme: Theme) -> list[tuple[str, str, pd.DataFrame]]:
        """(name, colour, slices) of what is drawn in one colour; `line` is the place of a slice."""
        lines = self.frame.assign(line=np.arange(len(self.frame)))
        chosen, own, worse = lines["by"] == SELECTION, lines["by"] == NAMED, lines["p_corrected"] < self.alpha
        parts = [
            (CHOSEN, theme.accent, chosen),
            (OWN, theme.model_a, own),
            (WORSE, theme.miss, worse & ~chosen & ~own),
            (MAYBE, theme.muted, ~worse & ~chosen & ~own),
        ]
        return [(name, colour, lines[which]) for name, colour, which in parts if which.any()]

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of a slice."""
        return None if click.data is None else self.filters[int(click.data[0])]

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = go.Figure()
        for name, colour, part in self.parts(theme):
            reach = {"array": part["high"] - part["coverage"], "arrayminus": part["coverage"] - part["low"]}
            hover_rows = zip(
                part["line"], part["n"], part["low"], part["high"], part["rest"], part["p_corrected"], strict=True
            )
            figure.add_scatter(
                x=part["coverage"], y=part["line"], mode="markers", name=name,
                marker={"color": colour, "size": 11}, customdata=[list(each) for each in hover_rows],
                error_x={"type": "data", "symmetric": False, **reach, "color": colour, "thickness": 3, "width": 0},
                hovertemplate=(
                    "%{x:.1%} correct of %{customdata[1]} rows, between %{customdata[2]:.0%} and %{customdata[3]:.0%}"
                    "<br>all other rows %{customdata[4]:.1%}; corrected p = %{customdata[5]:.2g}<extra></extra>"
                ),
            )  # fmt: skip
        figure.add_scatter(
            x=np.zeros(len(self.frame)), y=np.arange(len(self.frame)) + ABOVE, mode="text",
            text=[html.escape(name) for name in self.names()], textposition="middle right", textfont={"size": 13},
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
        if np.isfinite(self.coverage):
            line = {"color": theme.ink, "dash": "dot", "width": 1.5}
            figure.add_vline(
                x=self.coverage,
                line=line,
                annotation_text=f"all rows {self.coverage:.1%} ",
                annotation_position="top left",
            )
        figure.update_xaxes(range=(0, 1.02), tickformat=".0%", title="sets that contain the label")
        figure.update_yaxes(range=(max(len(self.frame), 1) - 0.5, -0.9), visible=False)
        return figure.update_layout(height=160 + LINE * max(len(self.frame), 1))

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter

        figure = paper(7.2, 1.8 + 0.44 * max(len(self.frame), 1))
        axes = figure.subplots()
        for name, colour, part in self.parts(theme):
            reach = [part["coverage"] - part["low"], part["high"] - part["coverage"]]
            axes.errorbar(part["coverage"], part["line"], xerr=reach, fmt="o", color=colour, elinewidth=2.4, label=name)
        for line, name in enumerate(self.names()):
            axes.text(0, line + ABOVE, f" {name}", va="center", size="small")
        axes.axvline(
            self.coverage, color=theme.ink, linestyle=":", linewidth=1.2, label=f"all rows {self.coverage:.1%}"
        )
        axes.set(
            xlim=(0, 1.02), ylim=(max(len(self.frame), 1) - 0.5, -0.9), yticks=[], xlabel="sets that contain the label"
        )
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside lower left", ncols=4, fontsize="small")
        return figure
