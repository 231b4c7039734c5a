"""Runs side by side: how they differ on the same rows, and where they stand on two metrics."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, Move, Places, checked_frame, counted, paper, points, round_up
from workbench.figures.run_styles import Look, looks_of_each
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.knobs import format_value
from workbench.metric_spec import MetricSpec
from workbench.metrics import METRICS, Metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

COLUMNS = ("table", "metric", "group", "value", "low", "high", "difference", "n")
SOURCE = "wb.comparison.compare(tables, rule) makes one"
IN_POINTS = "improvement, in percentage points"
LESS_IS_BETTER = "less is better"
# What a clear difference is → the mark of Plotly and of matplotlib. Where neither way is better, a dot stays a dot.
MARKS = {"yes": ("triangle-up", "^"), "no": ("triangle-down", "v"), "open": ("circle", "o")}
VERDICTS = {"yes": ", better", "no": ", worse", "open": ""}
TOLD = ("# comparison: the frame that wb.comparison.compare gives",)


def on_two_metrics(
    comparison: pd.DataFrame,
    x: str = "accuracy",
    y: str = "macro_accuracy",
    looks: Mapping[str, Look] | None = None,
) -> OnTwoMetrics:
    """Runs as dots on any two metrics of `wb.comparison.compare`, each with its intervals.

    Args:
        comparison: What `wb.comparison.compare` returns.
        x: Metric along the horizontal axis.
        y: Metric along the vertical axis.
        looks: Colour and symbol of each run (`workbench.figures.run_styles`); by default one after the other.

    Right and up are better: the axis of an error or of a size runs from large to small.

    A metric of groups is named with its group: `shot_accuracy (few)`; one of a K may be named without it: `top_k_accuracy`.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1]], labels=[0, 1])
    >>> comparison = wb.comparison.compare({"one": table, "two": table}, wb.Threshold(0.5))
    >>> on_two_metrics(comparison, "accuracy", "mean_size").frame[["table", "x", "y"]].to_numpy().tolist()
    [['one', 0.5, 1.0], ['two', 0.5, 1.0]]

    Paper: Garcin, thesis, Figure 3.5 (top-1 accuracy and its macro average, of many networks).
    """
    checked_frame(comparison, COLUMNS, SOURCE)
    named = comparison.assign(named=names_of_metrics(comparison))
    known = list(dict.fromkeys(named["named"]))
    called = {without_K(name): name for name in reversed(known)} | {name: name for name in known}
    for metric in (x, y):
        if metric not in called:
            raise ValueError(f"{metric!r} is not in this comparison; it has {', '.join(known)}")
    code = f"wb.figures.on_two_metrics(comparison, {x!r}, {y!r})"
    x, y = called[x], called[y]
    columns = ["table", "value", "low", "high"]
    across, upward = (named.loc[named["named"] == metric, columns].set_index("table") for metric in (x, y))
    frame = pd.DataFrame({"table": across.index})
    for axis, values in (("x", across), ("y", upward.loc[across.index])):
        frame[axis] = values["value"].to_numpy()
        frame[f"{axis}_low"], frame[f"{axis}_high"] = values["low"].to_numpy(), values["high"].to_numpy()
    n = int(comparison["n"].max())
    placed = "; ".join(
        f"{name} at {_written(x, across)} and {_written(y, up)}"
        for name, across, up in frame[["table", "x", "y"]].to_numpy()
    )
    return OnTwoMetrics(
        frame=frame,
        title=f"{in_words(y)} against {in_words(x, within=True)}",
        subtitle=f"n = {counted(n, 'row')}, {counted(len(frame), 'run')}; lines are {_intervals(comparison)}",
        text=f"{in_words(y)} against {in_words(x, within=True)} of {counted(len(frame), 'run')} on n = {n} rows: {placed}.",
        code=Code(code, TOLD),
        metrics=(x, y),
        looks=looks or {},
    )


def paired_differences(
    comparison: pd.DataFrame, metrics: Sequence[str] | None = None, looks: Mapping[str, Look] | None = None
) -> PairedDifferences:
    """How far each run lies from the first of `wb.comparison.compare`, on every metric that is a share, with intervals.

    `metrics` are the names of those to draw, if not all: `top_k_accuracy` is every K of it, `top_k_accuracy@K=3` one,
    `shot_accuracy (few)` one group; what is not a share is left out. Both runs saw the same rows, so the interval of a
    difference is much narrower than those of the two values. A dot is filled where its interval does not hold 0; `better`
    is "yes" or "no" there (of an error, lower is better), and "open" elsewhere. The picture shows improvements: a dot to the
    right of 0 is better whatever the metric, so an error that falls by 2 points stands at +2. `looks` are the colour and the
    mark of each run (`workbench.figures.run_styles`); one after the other where they are not said.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1]] * 50, labels=[0, 1] * 50)
    >>> other = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.1, 0.9]] * 50, labels=[0, 1] * 50)
    >>> comparison = wb.comparison.compare({"one": table, "two": other}, wb.Threshold(0.5), [wb.metrics.accuracy])
    >>> paired_differences(comparison).frame[["metric", "table", "difference", "better"]].to_numpy().tolist()
    [['accuracy', 'two', 0.5, 'yes']]
    """
    checked_frame(comparison, COLUMNS, SOURCE)
    base = comparison["metric"].map(without_K)
    tables = list(dict.fromkeys(comparison["table"]))
    drawn = base.map(is_share) & comparison["difference"].notna()
    if metrics is not None:
        called = pd.DataFrame({"base": base, "metric": comparison["metric"], "grouped": names_of_metrics(comparison)})
        known = {*called.to_numpy().ravel(), *(metric.name for metric in METRICS)}
        if unknown := [name for name in metrics if name not in known]:
            there = ", ".join(dict.fromkeys(called["grouped"]))
            raise ValueError(f"{unknown[0]!r} is not the name of a metric; this comparison has {there}")
        drawn &= called.isin(list(metrics)).any(axis=1)
    found = comparison[drawn & (comparison["table"] != tables[0])]
    if found.empty:
        raise ValueError(
            "there is no difference to draw: give a comparison of two or more runs on a metric that is a share"
        )
    frame = pd.DataFrame(
        {
            "metric": names_of_metrics(found).to_numpy(),
            "table": found["table"].to_numpy(),
            "difference": found["difference"].to_numpy(),
            "low": found["difference_low"].to_numpy(),
            "high": found["difference_high"].to_numpy(),
            "clear": clear_of_0(found).to_numpy(),
            "better": better(found).to_numpy(),
        }
    )
    n, clear = int(comparison["n"].max()), frame[frame["better"] != "open"]
    summary = "; ".join(
        f"{name} on {in_words(metric, within=True)} by {points(difference)} ({'better' if how == 'yes' else 'worse'})"
        for name, metric, difference, how in clear[["table", "metric", "difference", "better"]].to_numpy()
    )
    chosen = "" if metrics is None else f", metrics={list(metrics)!r}"
    return PairedDifferences(
        frame=frame,
        title=f"From {tables[0]} to {tables[1] if len(tables) == 2 else 'each other run'}",
        subtitle=f"n = {counted(n, 'row')}, paired; right is better; lines are {_intervals(comparison)}, a filled mark is "
        "clear of 0: ▲\N{NO-BREAK SPACE}better, ▼\N{NO-BREAK SPACE}worse",
        text=f"Paired differences from {tables[0]} to {' and '.join(tables[1:])} on n = {n} rows. "
        + (f"Clear of 0: {summary}." if summary else "No interval is clear of 0."),
        code=Code(f"wb.figures.paired_differences(comparison{chosen})", TOLD),
        tables=tuple(tables),
        looks=looks or {},
    )


def _intervals(comparison: pd.DataFrame) -> str:
    """The intervals of a comparison in words; a frame that went through a file no longer knows their level."""
    level = comparison.attrs.get("interval")
    return "intervals" if level is None else f"{100 * level:g} % intervals"


def names_of_metrics(comparison: pd.DataFrame) -> pd.Series:
    """The metric of every line, with its group where it has one: `accuracy`, `shot_accuracy (few)`."""
    return comparison["metric"].combine(comparison["group"].astype(str), lambda *of: str(MetricSpec.parse(*of)))


def without_K(metric: str) -> str:
    """The name of a metric without its K: of `top_k_accuracy@K=3` the `top_k_accuracy`."""
    return str(MetricSpec.parse(metric).without_K)


def in_words(metric: str, within: bool = False) -> str:
    """The name of a metric as a person writes it, alone or within a sentence; its K, where it has one, is in it.

    >>> in_words("shot_accuracy (few)"), in_words("top_k_accuracy@K=3", within=True)
    ('Coverage by shots: few', 'top-3 accuracy')
    """
    known, spec = declared(metric), MetricSpec.parse(metric)
    name = metric if known is None else f"{known.title}{spec.metric.removeprefix(known.name)}"
    if known is not None and spec.K is not None:
        name, top = re.subn("(?i)(top)-k", rf"\1-{format_value(spec.K)}", name)
        name = name if top else f"{name}, K = {format_value(spec.K)}"
    title = f"{name}: {spec.group}" if known is not None and spec.group else name
    return title[:1].lower() + title[1:] if within and title[1:2].islower() else title[:1].upper() + title[1:]


def declared(metric: str) -> Metric | None:
    """The declared metric of a name that may say its K (`top_k_accuracy@K=3`) or its group (`shot_accuracy (few)`)."""
    name = MetricSpec.parse(metric).metric.partition(",")[0]  # other options follow a comma
    return next((known for known in METRICS if known.name == name), None)


def is_share(metric: str) -> bool:
    """Whether a metric is written in per cent, and its differences in points."""
    known = declared(metric)
    return known is not None and known.bounds == (0, 1)


def clear_of_0(comparison: pd.DataFrame) -> pd.Series:
    """Whether the interval of each difference leaves 0 out."""
    return (comparison["difference_low"] > 0) | (comparison["difference_high"] < 0)


def direction(metric: str) -> int:
    """1 where higher is better, −1 where lower is, 0 where neither is."""
    return {"higher": 1, "lower": -1}.get(getattr(declared(metric), "direction", "none"), 0)


def axis_title(metric: str) -> str:
    """The name of a metric beside an axis whose far end is the better one."""
    return f"{in_words(metric)} ({LESS_IS_BETTER})" if direction(metric) < 0 else in_words(metric)


def better(comparison: pd.DataFrame) -> pd.Series:
    """Of each difference "yes" if it is clearly for the better, "no" if for the worse, "open" if it may be none."""
    sign = comparison["metric"].map(direction)
    judged: pd.Series = np.sign(comparison["difference"]) * sign * clear_of_0(comparison)
    return judged.map({1.0: "yes", -1.0: "no"}).fillna("open")


def _at_places(places: Places) -> pd.DataFrame:
    """The comparisons of all places of a slider one below the other; `called` is the metric with its group, without its K."""
    comparisons = [checked_frame(each, COLUMNS, SOURCE) for each in places["comparisons"]]
    every = pd.concat(comparisons, ignore_index=True)
    named = names_of_metrics(every)
    place = np.repeat(np.arange(len(comparisons)), [len(each) for each in comparisons])
    return every.assign(place=place, metric_and_group=named, called=named.map(without_K))


def _pivoted(lines: pd.DataFrame, column: str, by: str, names: Sequence[str]) -> np.ndarray:
    """(places, names) a column of the lines."""
    cells = pd.MultiIndex.from_product([lines["place"].unique(), names])
    return lines.set_index(["place", by])[column].reindex(cells).to_numpy().reshape(-1, len(names))


def _hover_rows(metrics: Iterable[str], *of_each: Iterable[Any]) -> list[list[str]]:
    """The hover text of each dot: its metric, its difference with the ends of the interval, and the verdict."""
    return [
        [in_words(metric), *(points(value, 2) for value in (difference, low, high)), VERDICTS[verdict]]
        for metric, difference, low, high, verdict in zip(metrics, *of_each, strict=True)
    ]


def _improvements(metrics: Sequence[str], *ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Improvement, its lower and its upper end in points, of differences with their ends; metrics are the last axis."""
    sign = np.array([direction(metric) or 1 for metric in metrics])
    value, first, second = (100 * sign * end for end in ends)
    return value, np.minimum(first, second), np.maximum(first, second)


def _limits(values: np.ndarray, metric: str) -> tuple[float, float]:
    """Ends of an axis that hold all values with a little room: one of few, so that the axis seldom moves with a slider.

    The second one is the better end.
    """
    low, high = (float(end(values[np.isfinite(values)])) for end in (np.min, np.max))
    room = 0.04 * (high - low) or 0.05 * abs(high) or 0.05
    step = round_up(high - low + 2 * room) / 4
    ends = round(math.floor((low - room) / step) * step, 10), round(math.ceil((high + room) / step) * step, 10)
    return ends[::-1] if direction(metric) < 0 else ends


def _reach(differences: np.ndarray) -> float:
    """The reach of an axis of differences to both sides of 0, in points, likewise; never beyond 100."""
    reach = 100 * np.nanmax(np.abs(differences))
    return min(round_up(1.06 * reach), 100.0) if reach else 5.0


def _written(metric: str, value: float) -> str:
    return f"{value:.1%}" if is_share(metric) else f"{value:.3g}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OnTwoMetrics(Figure):
    """One dot a run, with a line for each of its two intervals."""

    metrics: tuple[str, str]  # to the right and upwards
    looks: Mapping[str, Look]

    def limits(self, axis: str) -> tuple[float, float]:
        """The ends of an axis, the better one last."""
        metric = dict(zip("xy", self.metrics, strict=True))[axis]
        return _limits(self.frame[[axis, f"{axis}_low", f"{axis}_high"]].to_numpy(float), metric)

    def moves(self, places: Places) -> list[Move]:
        """Moves of dots and intervals along a slider: `comparisons` has a comparison of these runs for every place."""
        every, runs = _at_places(places), self.frame["table"].tolist()
        found: list[Move] = []
        for axis, metric in zip("xy", self.metrics, strict=True):
            here = every.loc[every["called"] == without_K(metric)]
            value, low, high = (_pivoted(here, column, "table", runs) for column in ("value", "low", "high"))
            for run in range(len(runs)):
                ends = (axis, value), (f"error_{axis}.array", high - value), (f"error_{axis}.arrayminus", value - low)
                found += [Move(path, values[:, [run]], run) for path, values in ends]
            all_ends = np.stack([value, low, high], axis=1)
            found.append(Move(f"{axis}axis.range", [_limits(ends, metric) for ends in all_ends]))
            titles = [axis_title(metric) for metric in here.groupby("place")["metric_and_group"].first()]
            found.append(Move(f"{axis}axis.title.text", titles))
        return found

    def _plotly(self, theme: Theme) -> go.Figure:
        traces: list[dict[str, Any]] = []
        hover = "<br>".join(
            f"{in_words(metric)} %{{{axis}:{'.1%' if is_share(metric) else '.4g'}}}"
            for axis, metric in zip("xy", self.metrics, strict=True)
        )
        for run, look in zip(
            self.frame.to_dict("records"), looks_of_each(self.frame["table"], self.looks), strict=True
        ):
            colour = look.in_colour(theme)
            name = html.escape(str(run["table"]))
            line = {"color": colour, "thickness": 1.5, "width": 0}
            reach = {
                f"error_{axis}": {
                    **{"array": [run[f"{axis}_high"] - run[axis]], "arrayminus": [run[axis] - run[f"{axis}_low"]]},
                    **line,
                }
                for axis in ("x", "y")
            }
            traces.append(
                {
                    **{"type": "scatter", "name": name, "mode": "markers", "x": [run["x"]], "y": [run["y"]], **reach},
                    "marker": {
                        "color": colour,
                        "symbol": look.plotly,
                        "size": 14,
                        "line": {"color": theme.paper, "width": 2},
                    },
                    "hovertemplate": f"<b>{name}</b><br>{hover}<extra></extra>",
                }
            )
        layout = {
            **{
                f"{axis}axis": {
                    "range": self.limits(axis),
                    "title": {"text": axis_title(metric)},
                    "tickformat": "~%" if is_share(metric) else "~g",
                }
                for axis, metric in zip("xy", self.metrics, strict=True)
            },
            "legend": {"orientation": "v", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top"},
        }
        return go.Figure(traces, {**layout, "height": 460, "showlegend": True})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter

        figure = paper(6.4, 5.0)
        axes = figure.subplots()
        for run, look in zip(
            self.frame.to_dict("records"), looks_of_each(self.frame["table"], self.looks), strict=True
        ):
            colour = look.in_colour(theme)
            axes.plot([run["x_low"], run["x_high"]], [run["y"]] * 2, color=colour, linewidth=1.2)
            axes.plot([run["x"]] * 2, [run["y_low"], run["y_high"]], color=colour, linewidth=1.2)
            axes.plot(run["x"], run["y"], look.matplotlib, color=colour, markersize=9, label=str(run["table"]))
        for axis, metric in zip("xy", self.metrics, strict=True):
            axes.set(**{f"{axis}lim": self.limits(axis), f"{axis}label": axis_title(metric)})
            if is_share(metric):
                getattr(axes, f"{axis}axis").set_major_formatter(PercentFormatter(1))
        axes.legend()
        return figure


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PairedDifferences(Figure):
    """A line for each metric; on it a dot with its interval for each run, in the colour that `OnTwoMetrics` gives it."""

    tables: tuple[str, ...]  # the first is the one the others are compared with
    looks: Mapping[str, Look]

    def metrics(self) -> list[str]:
        """The metrics from top to bottom."""
        return list(dict.fromkeys(self.frame["metric"]))

    def limit(self) -> float:
        """The reach of the axis to both sides of 0, in points: all dots and all intervals, or 100 if that is farther."""
        return _reach(self.frame[["difference", "low", "high"]].to_numpy(float))

    def moves(self, places: Places) -> list[Move]:
        """Moves of dots and intervals along a slider: `comparisons` has a comparison of these runs for every place."""
        every, names = _at_places(places), [without_K(metric) for metric in self.metrics()]
        every = every.assign(better=better(every), clear=clear_of_0(every))
        found, ends = [], []
        for number, name in enumerate(self.tables[1:]):
            here = every[every["table"] == name]
            difference, low, high, clear, how, metric = (
                _pivoted(here, column, "called", names)
                for column in ("difference", "difference_low", "difference_high", "clear", "better", "metric_and_group")
            )
            ends.append(np.stack([difference, low, high], axis=1))
            improvement, worst, best = _improvements(names, difference, low, high)
            values = {
                "x": improvement,
                "error_x.array": best - improvement,
                "error_x.arrayminus": improvement - worst,
                "selectedpoints": [np.flatnonzero(line).tolist() for line in clear],
                "marker.symbol": [[MARKS[each][0] for each in line] for line in how],
                "customdata": [_hover_rows(*line) for line in zip(metric, difference, low, high, how, strict=True)],
            }
            found += [Move(path, each, number) for path, each in values.items()]
        limits = [(-limit, limit) for limit in map(_reach, np.concatenate(ends, axis=2))]
        ticks = [[in_words(each) for each in line] for line in metric]
        return [*found, Move("xaxis.range", limits), Move("yaxis.ticktext", ticks)]

    def runs(self, theme: Theme) -> list[tuple[str, str, pd.DataFrame]]:
        """(run, colour, dots) of every run but the first.

        Of a dot, `improvement`, `worst` and `best` are in points, and `place` counts from the top.
        """
        place = {metric: position for position, metric in enumerate(self.metrics())}
        others = self.tables[1:]
        # The dots of a metric stand nearer to each other than to those of the next.
        apart = min(0.24, 0.6 / len(others))
        drawn = []
        for position, name in enumerate(others, start=1):
            dots = self.frame[self.frame["table"] == name]
            ends = _improvements(dots["metric"].tolist(), *dots[["difference", "low", "high"]].to_numpy(float).T)
            dots = dots.assign(**dict(zip(("improvement", "worst", "best"), ends, strict=True)))
            dots = dots.assign(place=dots["metric"].map(place) + apart * (position - (len(others) + 1) / 2))
            drawn.append((name, looks_of_each(self.tables, self.looks)[position].in_colour(theme), dots))
        return drawn

    def _plotly(self, theme: Theme) -> go.Figure:
        traces: list[dict[str, Any]] = []
        for name, colour, dots in self.runs(theme):
            written = html.escape(name)
            reach = {"array": dots["best"] - dots["improvement"], "arrayminus": dots["improvement"] - dots["worst"]}
            hover_rows = _hover_rows(*(dots[column] for column in ("metric", "difference", "low", "high", "better")))
            traces.append(
                {
                    **{"type": "scatter", "name": written, "mode": "markers"},
                    **{"x": dots["improvement"], "y": dots["place"]},
                    "error_x": {**reach, "color": colour, "thickness": 2, "width": 0},
                    "marker": {
                        **{"color": colour, "symbol": [MARKS[how][0] for how in dots["better"]]},
                        **{"size": 11, "line": {"color": colour, "width": 2}},
                    },
                    "selectedpoints": np.flatnonzero(dots["clear"]).tolist(),
                    "unselected": {"marker": {"color": theme.paper, "opacity": 1}},
                    "customdata": hover_rows,
                    "hovertemplate": f"<b>{written}</b><br>%{{customdata[0]}} %{{customdata[1]}}%{{customdata[4]}}"
                    "<br>%{customdata[2]} to %{customdata[3]}<extra></extra>",
                }
            )
        metrics, limit = self.metrics(), self.limit()
        ticks = {"tickvals": list(range(len(metrics))), "ticktext": [in_words(metric) for metric in metrics]}
        across = {"range": (-limit, limit), "tickformat": "+~g"}
        no_difference = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "y domain"}
        layout = {
            "shapes": [{**no_difference, "line": {"color": theme.ink, "width": 1}}],
            "xaxis": {**across, "title": {"text": IN_POINTS}},
            "yaxis": {"range": (len(metrics) - 0.5, -0.5), "automargin": True, **ticks},
            "legend": {"orientation": "v", "x": 0, "xanchor": "left", "y": -0.18, "yanchor": "top"},
        }
        return go.Figure(traces, {**layout, "height": 200 + 34 * len(metrics), "showlegend": len(self.tables) > 2})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        metrics = self.metrics()
        figure = paper(7.2, 1.8 + 0.36 * len(metrics))
        axes = figure.subplots()
        for name, colour, dots in self.runs(theme):
            axes.hlines(dots["place"], dots["worst"], dots["best"], color=colour, linewidth=1.6)
            look: dict[str, Any] = {"edgecolor": colour, "linewidth": 1.6, "zorder": 3}
            axes.scatter([], [], 44, color=colour, label=name, **look)
            for (how, clear), part in dots.groupby(["better", "clear"]):
                fill = colour if clear else theme.paper
                axes.scatter(part["improvement"], part["place"], 44, color=fill, marker=MARKS[str(how)][1], **look)
        axes.axvline(0, color=theme.ink, linewidth=0.8)
        axes.set_yticks(range(len(metrics)), [in_words(metric) for metric in metrics])
        axes.set(xlim=(-self.limit(), self.limit()), ylim=(len(metrics) - 0.5, -0.5), xlabel=IN_POINTS)
        axes.xaxis.set_major_formatter("{x:+g}")
        if len(self.tables) > 2:
            axes.legend()
        return figure
