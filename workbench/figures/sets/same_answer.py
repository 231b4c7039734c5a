"""Rows with the same answer: the most frequent sets."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Click, Figure, chosen_by, code_with_sets, counted, paper, round_count
from workbench.figures.style import Theme
from workbench.metrics.frequent_sets import frequent_sets
from workbench.metrics.rows import RowFilter
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MOST = 12  # sets of a picture
LETTERS, NARROW = 96, 44  # of the names above a bar, and where the screen is narrow
LINE = 42  # pixels of a bar with its names
BAR, ABOVE = 0.34, -0.36  # how high a bar is, and where its names stand, in lines
GHOST = 0.25  # opacity of rows that are not selected
ROWS = "rows"


def same_answer(sets: PredictionSets, rows: Any = None, most: int = MOST) -> SameAnswer:
    """The most frequent sets: what the rows with one answer have in common is what the network cannot tell apart.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        rows: a selection, as a mask or as row numbers; all other rows are drawn pale, and sets with the most selected rows
            come first.
        most: Number of sets in the picture; the frame has all.

    The frame is that of `workbench.metrics.frequent_sets.frequent_sets`.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1], [0.4, 0.6]], labels=[1, 1, 1])
    >>> same_answer(wb.Threshold(0.3).fit(table)(table)).frame[["names", "count"]].to_numpy().tolist()
    [['class 0, class 1', 2], ['class 0', 1]]
    """
    frame = frequent_sets(checked_sets(sets), rows)
    shown = frame.head(whole_number("most", most))
    of = "count" if rows is None else "selected"
    covered = shown[of].sum() / max(frame[of].sum(), 1)
    n = ("" if rows is None else f"{counted(int(frame[of].sum()))} selected of ") + counted(len(sets), "row")
    first = [
        f"{names} ({counted(count, 'row')})" for names, count in shown[["names", "count"]].head(3).to_numpy().tolist()
    ]
    different = counted(len(frame), "different set")
    return SameAnswer(
        frame=frame,
        title="Rows with the same answer",
        subtitle=f"n = {n}, {different} by {chosen_by(sets)}; the {len(shown)} shown cover {covered:.0%}",
        text=(
            f"The {len(shown)} most frequent of {different} by {chosen_by(sets)} on n = {n}. They are the answer of "
            f"{covered:.0%} of {'the' if rows is None else 'the selected'} rows. First: {'; '.join(first)}."
        ),
        code=code_with_sets(
            f"wb.figures.same_answer(sets{'' if rows is None else ', rows=rows'}{'' if most == MOST else f', most={most}'})",
            sets,
            setup=() if rows is None else ["# rows: the numbers of the selected rows"],
        ),
        most=most,
    )


class Layer(NamedTuple):
    """Bars of one colour: rows with one verdict, of all or of the selected ones."""

    name: str
    colour: str
    start: np.ndarray
    length: np.ndarray
    ghost: bool


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SameAnswer(Figure):
    """One bar a set, its classes above it; correct rows first, then missed ones."""

    most: int
    letters: int = LETTERS

    def narrow(self) -> Self:
        """The same with fewer letters above each bar."""
        return replace(self, letters=NARROW)

    def shown(self) -> pd.DataFrame:
        """The sets of the picture."""
        return self.frame.head(self.most)

    def layers(self, theme: Theme) -> list[Layer]:
        """Return the bars from back to front: all rows, pale where some are selected, then those."""
        prefixes = ["", "selected_"] if "selected" in self.frame else [""]
        return [
            Layer(name, colour, start, length, ghost=prefix == "" and len(prefixes) > 1)
            for prefix in prefixes
            for name, colour, start, length in self._verdicts(prefix, theme)
            if length.any()
        ]

    def _verdicts(self, prefix: str, theme: Theme) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
        shown = self.shown()
        total = shown[prefix.removesuffix("_") or "count"].to_numpy()
        if "hits" not in shown:
            return [(ROWS, theme.accent, np.zeros(len(shown)), total)]
        hits, misses = shown[f"{prefix}hits"].to_numpy(), shown[f"{prefix}misses"].to_numpy()
        return [
            ("correct", theme.hit, np.zeros(len(shown)), hits),
            ("missed", theme.miss, hits, misses),
            ("without a label", theme.muted, hits + misses, total - hits - misses),
        ]

    def names(self) -> list[str]:
        """The classes above each bar, as many as there is room for."""
        lines = zip(self.shown()["names"], self.shown()["size"], strict=True)
        return [_shortened(names, size, self.letters) for names, size in lines]

    def end(self) -> float:
        """The last number of the axis of rows."""
        return round_count(int(self.shown()["count"].max()))

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows with that set."""
        if click.data is None:
            return None
        return RowFilter(exactly=tuple(int(member) for member in str(click.data[0]).split(".") if member))

    def _plotly(self, theme: Theme) -> go.Figure:
        figure, shown = go.Figure(), self.shown()
        lines = np.arange(len(shown))
        hover_rows = [
            [classes, "<br>".join(map(html.escape, textwrap.wrap(names, 64))), counted(count, "row")]
            for classes, names, count in shown[["classes", "names", "count"]].to_numpy().tolist()
        ]
        for layer in self.layers(theme):
            whose = "" if layer.ghost or "selected" not in shown else "selected, "
            figure.add_bar(
                y=lines, x=layer.length, base=layer.start, orientation="h", width=BAR, name=layer.name,
                marker={"color": layer.colour, "opacity": GHOST if layer.ghost else 1}, legendgroup=layer.name,
                showlegend=not layer.ghost and "hits" in shown, customdata=hover_rows,
                hovertemplate=f"<b>%{{customdata[1]}}</b><br>%{{customdata[2]}}, %{{x}} {whose}{layer.name}<extra></extra>",
            )  # fmt: skip
        figure.add_scatter(
            x=np.zeros(len(shown)), y=lines + ABOVE, text=[html.escape(name) for name in self.names()], mode="text",
            textposition="middle right", textfont={"size": 13}, hoverinfo="skip", showlegend=False,
        )  # fmt: skip
        figure.update_xaxes(range=(0, self.end()), title="rows with that set")
        figure.update_yaxes(range=(len(shown) - 0.5, -0.6), visible=False)
        return figure.update_layout(barmode="overlay", height=140 + LINE * len(shown))

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        lines = np.arange(len(self.shown()))
        figure = paper(7.2, 1.6 + 0.44 * len(lines))
        axes = figure.subplots()
        for layer in self.layers(theme):
            alpha = GHOST if layer.ghost else 1
            name = f"_{layer.name}" if layer.ghost or layer.name == ROWS else layer.name
            axes.barh(lines, layer.length, BAR, layer.start, color=layer.colour, alpha=alpha, linewidth=0, label=name)
        for line, name in zip(lines, self.names(), strict=True):
            axes.text(0, line + ABOVE, f" {name}", va="center", size="small")
        axes.set(xlim=(0, self.end()), ylim=(len(lines) - 0.5, -0.6), xlabel="rows with that set", yticks=[])
        axes.grid(visible=False, axis="y")
        if "hits" in self.frame:
            axes.legend(loc="lower right")
        return figure


def _shortened(names: str, size: int, letters: int) -> str:
    """Names on one line: the first that fit, and how many more there are.

    >>> _shortened("oak, elm, ash, yew", 4, 16)
    'oak, elm and 2 more'
    """
    if len(names) <= letters:
        return names
    parts = names.split(", ")
    while len(parts) > 1 and len(", ".join(parts)) > letters - 6:
        parts.pop()
    rest = size - len(parts)
    return textwrap.shorten(", ".join(parts), letters, placeholder=" …") + (f" and {rest} more" if rest > 0 else "")
