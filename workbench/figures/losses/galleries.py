"""Many triangles on one sheet: the losses of the catalogue side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from workbench.figures.base import HEADER, Figure, paper
from workbench.figures.losses.ternary import (
    BANDS,
    CORNERS,
    LevelSets,
    all_marks,
    colour_bar,
    draw_on,
    outlines,
    ticks,
)
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

COLUMNS, NARROW_COLUMNS = 5, 2
ACROSS, DOWN = 1.34, 1.6  # from one triangle to the next, in sides of a triangle
CELL_HEIGHT = 230  # pixels
TITLE_WIDTH = 18  # letters


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Gallery(Figure):
    """Triangles in lines, all with the same label and the same colours."""

    panels: tuple[LevelSets, ...]
    captions: tuple[str, ...]  # the knobs of each loss
    columns: int = COLUMNS

    def narrow(self) -> Gallery:
        """Two triangles in a line."""
        return replace(self, columns=NARROW_COLUMNS)

    def places(self) -> np.ndarray:
        """Bottom left corner of each triangle: (triangles, 2)."""
        number = np.arange(len(self.panels))
        return np.stack([ACROSS * (number % self.columns), -DOWN * (number // self.columns)], axis=1)

    def _plotly(self, theme: Theme) -> go.Figure:
        # The bands of one colour are one trace, whatever the number of triangles: the page stays light.
        shapes: list[list[np.ndarray]] = [[] for _ in range(BANDS)]
        gap = np.full((1, 2), np.nan)
        for panel, place in zip(self.panels, self.places(), strict=True):
            for band, outline in outlines(panel):
                shapes[band] += [(outline + place).astype(np.float32), gap]
        figure = go.Figure()
        for colour, parts in zip(theme.sequential, shapes, strict=True):
            if parts:
                x, y = np.concatenate(parts).T
                line = {"color": colour, "width": 0.6}
                figure.add_scatter(x=x, y=y, mode="lines", fill="toself", fillcolor=colour, line=line, hoverinfo="skip")
        sides = np.concatenate([np.vstack([CORNERS[[0, 1, 2, 0]] + place, gap]) for place in self.places()])
        line = {"color": theme.muted, "width": 1}
        figure.add_scatter(x=sides[:, 0], y=sides[:, 1], mode="lines", line=line, hoverinfo="skip")
        marks = np.array(
            [
                mark.place @ CORNERS + place
                for panel, place in zip(self.panels, self.places(), strict=True)
                for mark in all_marks(panel)
            ]
        )
        dot = {"color": theme.threshold, "size": 9, "line": {"color": theme.paper, "width": 1.5}}
        figure.add_scatter(x=marks[:, 0], y=marks[:, 1], mode="markers", marker=dot, hoverinfo="skip")
        middles = self.places() + CORNERS.mean(axis=0)
        figure.add_scatter(
            x=middles[:, 0],
            y=middles[:, 1],
            mode="markers",
            marker={"size": 90, "opacity": 0},  # what the pointer finds, and a click
            customdata=[
                f"<b>{panel.title}</b><br>{caption}" for panel, caption in zip(self.panels, self.captions, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
        figure.add_trace(colour_bar(self.panels[0], theme, x=1, xanchor="right", len=0.4))
        for panel, caption, (x, y) in zip(self.panels, self.captions, self.places(), strict=True):
            title = "<br>".join(wrap(panel.title, TITLE_WIDTH, break_on_hyphens=False))
            text = f'<b>{title}</b><br><span style="color: {theme.muted}; font-size: 11px">{caption}</span>'
            figure.add_annotation(x=x + 0.5, y=y - 0.04, text=text, yanchor="top", showarrow=False, font_size=12)
        n_rows = -(-len(self.panels) // self.columns)
        columns = min(self.columns, len(self.panels))
        figure.update_xaxes(
            range=(-0.12, ACROSS * (columns - 1) + 1.12), visible=False, fixedrange=True, constrain="domain"
        )
        upright = {"scaleanchor": "x", "constrain": "domain", "constraintoward": "top"}
        figure.update_yaxes(range=(0.94 - DOWN * n_rows, 0.94), visible=False, fixedrange=True, **upright)
        margin = {"l": 16, "r": 16, "t": 76, "b": 70}
        return figure.update_layout(
            showlegend=False, hovermode="closest", height=CELL_HEIGHT * n_rows + 146, margin=margin
        )

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        n_rows, columns = -(-len(self.panels) // COLUMNS), min(COLUMNS, len(self.panels))
        figure = paper(0.9 + 2.0 * columns, HEADER + 2.2 * n_rows)
        grid = figure.subplots(n_rows, columns, squeeze=False)
        for axes in grid.flat:
            axes.axis("off")
        for axes, panel, caption in zip(grid.flat, self.panels, self.captions, strict=False):
            filled = draw_on(axes, panel, theme, named=False)
            title = wrap(panel.title, TITLE_WIDTH, break_on_hyphens=False)
            below: dict[str, Any] = {
                "ha": "center",
                "va": "top",
                "in_layout": False,
            }  # long names must not push triangles about
            axes.text(0.5, -0.05, "\n".join(title), weight="bold", size=9.5, **below)
            axes.text(0.5, -0.06 - 0.105 * len(title), caption, color=theme.muted, size=8.5, **below)
            axes.set_ylim(-0.5, 0.92)
        shrink = 0.5 if n_rows > 1 else 0.9  # a bar of one line of triangles has no height to spare
        looks: dict[str, Any] = {"shrink": shrink, "aspect": 30, "ticks": ticks(panel), "format": "%.2g"}
        bar = figure.colorbar(filled, ax=grid, label=panel.units, **looks)
        bar.outline.set_visible(False)
        return figure
