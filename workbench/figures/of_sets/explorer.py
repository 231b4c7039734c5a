"""A picture with its own slider: every K at once, alive in a notebook and in a saved page, no kernel needed."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import Figure, Move, Places, counted, moved, paper, plotly_frames, round_limit
from workbench.figures.code import Code
from workbench.figures.of_sets.sizes import end_of_sizes, larger_sets, last_bars, pooled, size_ticks
from workbench.figures.style import PLOTLY_CONFIG, Theme
from workbench.sets import SetIndex
from workbench.tables import LogitTable, checked_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

FIRST_K = 5.0  # where the slider stands when the page opens, if the classes allow
BARS, MEAN, POINT = "sizes", "mean", "here"  # what moves, by the names of the traces


def explore(val: LogitTable, test: LogitTable, K_max: float = 10.0, step: float = 0.1) -> Explorer:
    """Move K and see what average-K sets do: their sizes, their accuracy, the threshold and the confidence K means.

    - `K_max`: where the slider ends.
    - `step`: the distance between its values.

    Thresholds are fitted on `val`, everything drawn is of `test`. `confidence` is the accuracy on `val` at the same
    threshold; on n rows a conformal rule with that threshold (`LAC`) would have promised n/(n + 1) of it. All values of K
    travel with the picture, so the slider asks nobody.

    >>> import numpy as np, workbench as wb
    >>> scores = np.random.default_rng(0).normal(size=(40, 6))
    >>> table = wb.LogitTable(scores, labels=scores.argmax(1))
    >>> figure = wb.figures.explore(*table.split(), K_max=3, step=0.5)
    >>> figure.frame["K"].tolist()
    [1.0, 1.5, 2.0, 2.5, 3.0]

    Paper: Garcin et al. 2023, Algorithm 1.
    """
    if checked_table(val).n_classes != checked_table(test).n_classes:
        raise ValueError(f"val has {val.n_classes} classes and test {test.n_classes}; they must have the same ones")
    test.checked_labels()
    val_index, test_index = SetIndex(val, K_max, step), SetIndex(test, K_max, step)
    compact = test_index.compact(val_index.thresholds)
    columns = {"K": val_index.K_values, **{name: compact[name] for name in ("mean_size", "accuracy", "macro_accuracy")}}
    columns["threshold"] = compact["thresholds"]
    if val.labels is not None:
        columns["confidence"] = val_index.curve()["accuracy"].to_numpy()
    frame = pd.DataFrame(columns)
    ends = frame.iloc[[0, _first(frame), -1]]
    told = "; ".join(f"K = {row.K:g}: {row.mean_size:.2f} classes, {row.accuracy:.1%}" for row in ends.itertuples())
    return Explorer(
        frame=frame,
        title="Average-K sets, every K",
        subtitle=f"n = {counted(test.n, 'test row')}, thresholds fitted on {counted(val.n, 'validation row')}",
        text=(
            f"Size and accuracy of average-K sets on n = {test.n} test rows for K from {frame['K'].iloc[0]:g} to "
            f"{frame['K'].iloc[-1]:g}, thresholds fitted on {val.n} validation rows. Mean size and accuracy at {told}."
        ),
        code=Code(
            f"wb.figures.explore(val, test, K_max={K_max!r}, step={step!r})",
            [f"# val: {val.n} rows, to fit thresholds; test: {test.n} rows with labels, to look at"],
        ),
        n_classes=test.n_classes,
        histograms=compact["size_histogram"],
    )


def _first(frame: pd.DataFrame) -> int:
    return int((frame["K"] - FIRST_K).abs().argmin())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Explorer(Figure):
    """Set sizes on the left, accuracy against mean size on the right, K on a slider below."""

    n_classes: int
    histograms: np.ndarray  # (values of K, sizes) sets of size 0, 1, 2, …; the last column holds all larger ones

    def _last_bar(self) -> np.ndarray:
        """That of the largest K, for every K: the axis of sizes does not move."""
        of_largest_K = self.histograms[-1:, None]
        (last,) = last_bars(of_largest_K / of_largest_K.sum(axis=2, keepdims=True), self.n_classes)
        largest = np.flatnonzero(self.histograms.sum(axis=0))[-1]
        return np.full(len(self.histograms), end_of_sizes(int(last), int(largest), self.n_classes))

    def shares(self) -> np.ndarray:
        """The histograms as shares, up to a size that nearly all sets keep below; the last column pools the rest."""
        last = self._last_bar()
        bars = pooled(self.histograms[:, None], last)[:, 0, : last[0] + 1]
        return np.asarray(bars / bars.sum(axis=1, keepdims=True))

    def moves(self, places: Places) -> list[Move]:
        """What changes with K: the bars, the axis of their shares, their mean, the point on the curve.

        At small K one bar holds nearly all sets: the axis of shares follows in a few coarse steps.
        """
        shares = replace(self, histograms=places["size_histogram"]).shares()
        mean_size, accuracy = (np.asarray(places[name])[:, None] for name in ("mean_size", "accuracy"))
        return [
            Move("y", shares.round(5), BARS),
            Move("x", np.repeat(mean_size, 2, axis=1), MEAN),
            Move("x", mean_size, POINT),
            Move("y", accuracy, POINT),
            Move("yaxis.range", [(0.0, round_limit(share)) for share in shares.max(axis=1)]),
        ]

    def _places(self) -> Places:
        return {"size_histogram": self.histograms, **self.frame}

    def _in_words(self, place: int) -> str:
        row = self.frame.iloc[place]
        parts = [f"K = {row['K']:g}", f"threshold {row['threshold']:.4f}", f"{row['mean_size']:.2f} classes on average"]
        parts.append(f"accuracy {row['accuracy']:.1%}")
        if "confidence" in row:
            parts.append(f"on validation {row['confidence']:.1%}")
        return " · ".join(parts)

    def _plotly(self, theme: Theme) -> go.Figure:
        start, shares, ranges, (ticks, names) = _first(self.frame), self.shares(), self.ranges(), self.ticks()
        figure = make_subplots(cols=2, horizontal_spacing=0.12)
        curve = go.Scatter(
            x=self.frame["mean_size"], y=self.frame["accuracy"], customdata=self.frame["K"], mode="lines"
        )
        hover = "K = %{customdata:g}<br>%{x:.2f} classes on average<br>accuracy %{y:.1%}<extra></extra>"
        curve.update(line={"color": theme.accent, "width": 3}, hovertemplate=hover)
        bars = go.Bar(name=BARS, x=np.arange(shares.shape[1]), marker_color=theme.accent)
        bars.update(hovertemplate="%{x} classes<br>%{y:.1%} of sets<extra></extra>")
        dash = {"color": theme.threshold, "dash": "dash", "width": 2}
        dot = {"color": theme.threshold, "size": 13, "line": {"color": theme.paper, "width": 2}}
        mean = go.Scatter(name=MEAN, y=[0, 1], mode="lines", line=dash, hoverinfo="skip")
        point = go.Scatter(name=POINT, mode="markers", marker=dot, hoverinfo="skip")
        figure.add_traces([curve, bars, mean, point], rows=1, cols=[2, 1, 1, 2])
        figure.update_xaxes(range=ranges["size"], tickvals=ticks, ticktext=names, showgrid=False, col=1)
        figure.update_xaxes(title="classes in the set", col=1)
        figure.update_yaxes(tickformat=".0%", title="share of sets", col=1)
        figure.update_xaxes(range=ranges["mean_size"], title="classes on average", col=2)
        figure.update_yaxes(range=ranges["accuracy"], tickformat=".0%", title="accuracy", col=2)
        figure.update_layout(sliders=[self._slider(start, theme)], showlegend=False, height=520)
        moves = self.moves(self._places())
        figure = moved(figure, moves, start)
        figure.frames = plotly_frames(figure, moves, [f"{K:g}" for K in self.frame["K"]])
        return figure

    def _slider(self, start: int, theme: Theme) -> dict[str, Any]:
        at_once = {"mode": "immediate", "frame": {"duration": 0, "redraw": False}, "transition": {"duration": 0}}
        steps = [
            {"label": self._in_words(place), "method": "animate", "args": [[f"{K:g}"], at_once]}
            for place, K in enumerate(self.frame["K"])
        ]
        return {
            "active": start,
            "steps": steps,
            "currentvalue": {"font": {"size": 15, "color": theme.ink}, "offset": 14},
            "font": {"color": "rgba(0, 0, 0, 0)"},  # a label below each step would be a smear: the one above says it
            "pad": {"t": 62},
            "ticklen": 0,
            "minorticklen": 0,
            "bgcolor": theme.grid,
            "activebgcolor": theme.threshold,
            "bordercolor": theme.muted,
        }

    def _for_a_page(self) -> str:
        """Alive once plotly.js is fetched; until then, and without a network, a still picture.

        The library itself would weigh 5 MB in every notebook, so only its address is in it; `page()` holds all of it.
        """
        options: Any = {"full_html": False, "include_plotlyjs": "cdn", "config": PLOTLY_CONFIG, "auto_play": False}
        name = f"explorer-{uuid.uuid4().hex[:8]}"
        return (
            f'<div id="{name}-still">{super()._for_a_page()}</div>'
            f'<div id="{name}-alive">{self.plot().to_html(**options)}</div>'
            f'<script>document.getElementById("{name}-" + (window.Plotly ? "still" : "alive")).remove();</script>'
        )

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The axes that are the same for every K."""
        shares = self.shares()
        lowest = float(np.floor(10 * self.frame["accuracy"].min()) / 10)
        return {
            "size": (-0.5, shares.shape[1] - 0.5),
            "mean_size": (0.0, 1.03 * float(self.frame["mean_size"].max())),
            "accuracy": (lowest, 1.01),
        }

    def ticks(self) -> tuple[list[int], list[str]]:
        """Places and names of the ticks below the bars."""
        last = self._last_bar()
        return size_ticks(int(last[0]), bool(larger_sets(self.histograms[:, None], last).any()))

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        import seaborn
        from matplotlib.colors import LinearSegmentedColormap, PowerNorm
        from matplotlib.ticker import PercentFormatter

        percent = PercentFormatter(1, decimals=0)
        shares, ranges, K = self.shares(), self.ranges(), self.frame["K"]
        figure = paper(9.6, 4.4)
        left, right = figure.subplots(1, 2)
        colours = LinearSegmentedColormap.from_list("sequential", theme.sequential)
        norm = PowerNorm(0.5, vmin=0, vmax=1)  # small shares are most of the picture
        mesh = left.pcolormesh(K, np.arange(shares.shape[1]), shares.T, cmap=colours, norm=norm, shading="nearest")
        left.plot(K, self.frame["mean_size"], color=theme.threshold, linewidth=2)
        left.text(
            K.iloc[-1], self.frame["mean_size"].iloc[-1], "mean size  ", color=theme.threshold, ha="right", va="bottom"
        )
        left.set(xlabel="K", ylabel="classes in the set", ylim=ranges["size"])
        left.set_yticks(*self.ticks())
        left.grid(visible=False)
        figure.colorbar(mesh, ax=left, label="share of sets", format=percent).outline.set_visible(False)
        seaborn.lineplot(
            self.frame, x="mean_size", y="accuracy", color=theme.accent, linewidth=2.5, errorbar=None, ax=right
        )
        right.set(xlabel="classes on average", ylabel="accuracy", xlim=ranges["mean_size"], ylim=ranges["accuracy"])
        right.yaxis.set_major_formatter(percent)
        return figure
