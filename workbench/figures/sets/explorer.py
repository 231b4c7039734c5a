"""The dashboard of a notebook: linked sliders and the pictures of sets that follow them; on a page, one slider of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import Click, Figure, Places, counted, paper, round_limit
from workbench.figures.film import Film, Move, moved, moves_along, plotly_frames, untitled
from workbench.figures.panel import Panel
from workbench.figures.sets.classes import per_class
from workbench.figures.sets.curves import accuracy_against_size
from workbench.figures.sets.linked_sliders import LinkedSliders, adjusted, linked_sliders, numbers, usual_taus
from workbench.figures.sets.sizes import end_of_sizes, larger_sets, last_bars, pooled, set_sizes, size_ticks
from workbench.figures.sets.thresholds import LEFT, size_against_threshold
from workbench.figures.snippet import Code
from workbench.figures.style import PLOTLY_CONFIG, Theme
from workbench.metrics.along_slider import joined
from workbench.metrics.rows import RowFilter
from workbench.optional_dependencies import check_installed
from workbench.sets import PredictionSets, Rule, SetIndex
from workbench.tables import LogitTable, checked_table
from workbench.tables.links import check_same_link

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

    from workbench.figures.sets.explorer_widget import ExplorerWidget

OF_SETS: dict[str, Callable[[PredictionSets], Figure]] = {"sizes": set_sizes, "classes": per_class}
FIRST_K = 5.0  # where the slider stands when the page opens, if the classes allow
BARS, MEAN, POINT = "sizes", "mean", "here"  # what moves, by the names of the traces


def explore(
    val: LogitTable,
    test: LogitTable,
    K_max: float = 10.0,
    step: float = 0.1,
    taus: Sequence[float] | None = None,
) -> Explorer:
    """The dashboard of a notebook: average-K sets at every K, and the threshold and the coverage that K means.

    In JupyterLab, VS Code, Colab and marimo (with `anywidget`, the extra `notebooks`) linked sliders move the pictures of the
    panel in the browser: K, the threshold, the promised coverage and, where the tables know how common classes are, τ, which
    divides probabilities by class shares. Another cell reads where they stand: `explorer.K`, `explorer.threshold`,
    `explorer.confidence` (the promised coverage), `explorer.tau`, `explorer.rule`, `explorer.sets`, and after a click on a bar
    `explorer.selected_rows`. `explorer.move(K=3)` moves them from Python, and `explorer.to_html()` is the dashboard as a page.
    Without `anywidget`, and on a page without a kernel, `plot()` is shown: sizes and accuracy with a slider for K. Execute a
    notebook that will only be read (`nbconvert --execute`) with `WORKBENCH_WITHOUT_WIDGETS=1`, as widgets need a kernel.

    Args:
        val: Rows on which thresholds are fitted.
        test: Rows with labels, which are drawn.
        K_max: Largest K of the slider.
        step: Distance between its values.
        taus: Values of the slider τ, which begins at 0. By default five from 0 to 1, if the tables have `class_counts` and are
            not too large, and no slider otherwise.

    Returns:
        The figure. Its frame has one line per K; `confidence` there is the accuracy on `val` at the same threshold; on n
        rows a conformal rule with that threshold (`LAC`) would have promised n/(n + 1) of it.

    Example:
        >>> import numpy as np, workbench as wb
        >>> scores = np.random.default_rng(0).normal(size=(40, 6))
        >>> table = wb.LogitTable(scores, labels=scores.argmax(1))
        >>> explorer = wb.figures.explore(*table.split(), K_max=3, step=0.5)
        >>> explorer.frame["K"].tolist()
        [1.0, 1.5, 2.0, 2.5, 3.0]
        >>> explorer.K, explorer.rule
        (3.0, AverageK(K=3.0, min_size=0))

    Paper: Garcin et al. 2023, Algorithm 1.
    """
    if checked_table(val).n_classes != checked_table(test).n_classes:
        raise ValueError(f"val has {val.n_classes} classes and test {test.n_classes}; they must have the same ones")
    check_same_link(val, test)
    test.checked_labels()
    chosen = usual_taus(val, test) if taus is None else _checked_taus(taus)
    val_index, test_index = SetIndex(val, K_max, step), SetIndex(test, K_max, step)
    compact = test_index.compact(val_index.thresholds)
    columns = {"K": val_index.K_values, **{name: compact[name] for name in ("mean_size", "accuracy", "macro_accuracy")}}
    columns["threshold"] = compact["thresholds"]
    if val.labels is not None:
        columns["confidence"] = val_index.curve()["accuracy"].to_numpy()
    frame = pd.DataFrame(columns)
    ends = frame.iloc[[0, _first(frame), -1]]
    summary = "; ".join(f"K = {row.K:g}: {row.mean_size:.2f} classes, {row.accuracy:.1%}" for row in ends.itertuples())
    return Explorer(
        frame=frame,
        title="Average-K sets, every K",
        subtitle=f"n = {counted(test.n, 'test row')}, thresholds fitted on {counted(val.n, 'validation row')}",
        text=(
            f"Size and accuracy of average-K sets on n = {test.n} test rows for K from {frame['K'].iloc[0]:g} to "
            f"{frame['K'].iloc[-1]:g}, thresholds fitted on {val.n} validation rows. Mean size and accuracy at {summary}."
        ),
        code=Code(
            f"wb.figures.explore(val, test, K_max={K_max!r}, step={step!r}{'' if taus is None else f', taus={chosen!r}'})",
            [f"# val: {val.n} rows, to fit thresholds; test: {test.n} rows with labels, to look at"],
        ),
        n_classes=test.n_classes,
        histograms=compact["size_histogram"],
        val=val_index,
        test=test_index,
        step=step,
        taus=chosen,
    )


def _checked_taus(taus: Sequence[float]) -> tuple[float, ...]:
    given = tuple(float(tau) for tau in taus)
    if given[:1] != (0.0,) or list(given) != sorted({*given}) or given[-1] > 1:
        raise ValueError(f"taus = {taus!r}; give rising numbers from 0 to 1, the first one 0")
    return given


def _plain(value: Any) -> Any:
    """An array as a list: of equal lists one is sent."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def _first(frame: pd.DataFrame) -> int:
    return int((frame["K"] - FIRST_K).abs().argmin())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Explorer(Figure):
    """Set sizes on the left, accuracy against mean size on the right, K on a slider below; in a notebook, the dashboard."""

    n_classes: int
    histograms: np.ndarray  # (values of K, sizes) sets of size 0, 1, 2, …; the last column holds all larger ones
    val: SetIndex
    test: SetIndex
    step: float  # between values of K
    taus: tuple[float, ...]

    @cached_property
    def vals(self) -> list[SetIndex]:
        """The validation rows, whose probabilities are divided by class shares to each power τ."""
        return [self.val, *(self._adjusted(self.val, tau) for tau in self.taus[1:])]

    @cached_property
    def tests(self) -> list[SetIndex]:
        """The test rows, likewise."""
        return [self.test, *(self._adjusted(self.test, tau) for tau in self.taus[1:])]

    def _adjusted(self, index: SetIndex, tau: float) -> SetIndex:
        return SetIndex(adjusted(index.table, tau), float(self.frame["K"].iloc[-1]), self.step)

    @cached_property
    def linked(self) -> LinkedSliders:
        """The sliders of the dashboard."""
        return linked_sliders(self.vals, self.taus)

    def judged(self) -> dict[str, Any]:
        """What `SetIndex.compact` gives of the test rows at every position."""
        thresholds = np.split(self.linked.along["threshold"], len(self.taus))
        return joined([index.compact(each) for index, each in zip(self.tests, thresholds, strict=True)])

    @cached_property
    def pictures(self) -> dict[str, Figure]:
        """The pictures of the dashboard by their names, at its first position."""
        first = self.sets_at(0)
        here = self.linked.nearest("K", FIRST_K)
        return {
            "sizes": set_sizes(first),
            "curve": accuracy_against_size(self.test).standing_at(first.sizes.mean(), first.hits.mean()),
            "thresholds": size_against_threshold(
                self.val, self.test, threshold=max(LEFT, float(self.linked.along["threshold"][here]))
            ),
            "classes": per_class(first),
        }

    def panel(self, *, height: int | None = None, night: bool = False) -> Panel:
        """The dashboard: linked sliders, numbers and pictures of a height at every position; `night`: for either theme."""
        thresholds, judged = self.linked.along["threshold"], self.judged()
        blocks = zip(self.vals, np.split(thresholds, len(self.taus)), strict=True)
        fitted = {
            "thresholds": thresholds,
            "mean_size": np.array([index.mean_size(each) for index, block in blocks for each in block]),
        }
        films = []
        for name, figure in self.pictures.items():
            film = Film.along(figure, fitted if name == "thresholds" else judged, name=name, height=height)
            if name == "thresholds":
                film = replace(film, moves=[*film.moves, *self._curves_of_taus()])
            films.append(replace(film, night=untitled(figure.plot(dark=True)) if night else None))
        sliders, values, start = self.linked.sliders(), numbers(judged), self.linked.nearest("K", FIRST_K)
        return Panel(about=(), pictures=tuple(films), sliders=sliders, numbers=values, start=start)

    def _curves_of_taus(self) -> list[Move]:
        """Moves of the curves of size against threshold, which are the first traces, along τ."""
        curves = [size_against_threshold(*both).plot() for both in zip(self.vals, self.tests, strict=True)]
        of_curves = [each for each in moves_along(curves) if each.trace is not None or each.property == "xaxis.range"]
        every_tau = np.repeat(range(len(self.taus)), self.linked.block)
        return [Move(each.property, [_plain(each.at(tau)) for tau in every_tau], each.trace) for each in of_curves]

    @cached_property
    def widget(self) -> ExplorerWidget:
        """The dashboard as a widget, whose traits can be observed."""
        check_installed("anywidget")
        from workbench.figures.sets.explorer_widget import ExplorerWidget

        return ExplorerWidget(self)

    @property
    def place(self) -> int:
        """The position of the sliders."""
        return int(self.widget.place) if "widget" in vars(self) else self.linked.nearest("K", FIRST_K)

    @property
    def K(self) -> float:
        """The mean size on the validation rows where the sliders stand."""
        return float(self.linked.along["K"][self.place])

    @property
    def threshold(self) -> float:
        """The threshold where the sliders stand."""
        return float(self.linked.along["threshold"][self.place])

    @property
    def confidence(self) -> float:
        """The promised coverage where the sliders stand; NaN if the validation rows have no labels."""
        return float(self.linked.along["confidence"][self.place]) if "confidence" in self.linked.along else float("nan")

    @property
    def tau(self) -> float:
        """The power of the class share where the sliders stand; 0 without a slider τ."""
        return self.taus[self.place // self.linked.block]

    @property
    def rule(self) -> Rule:
        """The rule that the slider moved last stands for: average-K, a threshold, or LAC (PAS with τ)."""
        return self.linked.rule(self.place)

    @property
    def sets(self) -> PredictionSets:
        """The sets of the test rows where the sliders stand."""
        return self.sets_at(self.place)

    @property
    def selected_rows(self) -> np.ndarray:
        """Numbers of the test rows behind the part of a picture that was clicked; none before a click."""
        return np.asarray(self.widget.selected_rows) if "widget" in vars(self) else np.array([], int)

    def move(self, **slider: float) -> None:
        """Move the sliders to the position nearest to `K=`, `threshold=`, `confidence=` or `tau=`."""
        for name, value in slider.items():
            self.widget.place = self.linked.nearest(name, value, self.place)

    def rows_behind_click(self, picture: str, click: Click) -> RowFilter | None:
        """Filter of the rows behind a part of a picture at the present slider positions; None if there are none."""
        return OF_SETS[picture](self.sets).rows_behind(click) if picture in OF_SETS else None

    def sets_at(self, place: int) -> PredictionSets:
        """The sets of the test rows at a position."""
        return self.linked.rule(place).fit(self.val.table).sets(self.test.table)

    def _last_bar(self) -> np.ndarray:
        """Last bar at the largest K, used for every K so that the axis of sizes does not move."""
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
        """Return the changes with K: bars, axis of shares, mean, and the point on the curve.

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
