"""Metrics of a sweep against a knob, as small multiples."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench import display_names
from workbench.figures.base import Figure, checked_frame, counted, paper
from workbench.figures.run_styles import looks
from workbench.figures.runs.comparisons import declared, in_words, is_share
from workbench.figures.runs.learning import ACROSS, small_multiples
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metric_spec import MetricSpec
from workbench.metrics.reporting import PROBABILITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MOST_TICKS = 6  # that an axis has room for
WIDE = 20  # a knob whose largest value is so many times its smallest gets a logarithmic axis
LEGEND_WIDTH = 100  # letters
OF_SUMMARY = ("split", "metric", "mean", "seeds", "low", "high")
ROWS = {"val": "validation rows", "test": "test rows"}
ARROWS = {"higher": " ↑", "lower": " ↓", "none": ""}  # which way is better


def against_knob(summary: pd.DataFrame, knob: str, split: str = "test", *, mark: float | None = None) -> AgainstKnob:
    """Every metric of a sweep against one of its knobs, one panel each: the mean over seeds with its 95 % interval.

    Args:
        knob: The column of `summary` along the axis, such as "loss.epsilon".
        split: The rows that were evaluated on, "test" or "val".
        mark: a value of the knob at which a dashed line stands, such as the one in use.

    `summary` is that of `wb.sweep(...)`. What else was varied tells the lines apart, and so do rules where there are several.
    The interval is Student's, of the mean over seeds (on a scale that ends where the metric does): it tells how much
    training varies. With one seed there is none. Of `wb.sweep(...).intervals(metric)` it is of seeds and rows. Metrics that
    are a number for each group have a panel for each. An arrow says which way is better. A line has the colour and the mark
    that its name says, so that they stay with it when others are drawn beside it.

    >>> rows = [(epsilon, "test", "accuracy", epsilon / 2, 1, None, None) for epsilon in (0.1, 0.5, 1.0)]
    >>> summary = pd.DataFrame(rows, columns=["loss.epsilon", "split", "metric", "mean", "seeds", "low", "high"])
    >>> against_knob(summary, "loss.epsilon").frame[["x", "mean"]].to_numpy().tolist()
    [[0.1, 0.05], [0.5, 0.25], [1.0, 0.5]]
    """
    checked_frame(summary, OF_SUMMARY, "wb.sweep(...).summary() makes one")
    varied = [name for name in summary.columns if name not in (*OF_SUMMARY, "group", "rule")]
    if knob not in varied or not pd.api.types.is_numeric_dtype(summary[knob]):
        numbers = [name for name in varied if pd.api.types.is_numeric_dtype(summary[name])]
        raise ValueError(f"{knob!r} is not a number that was varied; give one of {', '.join(numbers) or 'none'}")
    chosen = summary[(summary["split"] == split) & summary["mean"].notna()]
    if chosen.empty:
        raise ValueError(f"split = {split!r} has no values; the summary has {', '.join(sorted(set(summary['split'])))}")
    others = [name for name in varied if name != knob]
    lines = [", ".join(_setting(name, row[name]) for name in others) for row in chosen.to_dict("records")]
    if "rule" in chosen and chosen.groupby([*varied, "metric"], dropna=False)["rule"].nunique().max() > 1:
        rules = [rule or PROBABILITIES for rule in chosen["rule"]]
        lines = [f"{line}, {rule}" if line else rule for line, rule in zip(lines, rules, strict=True)]
    frame = pd.DataFrame(
        {
            "metric": [str(MetricSpec.parse(row["metric"], row.get("group", ""))) for row in chosen.to_dict("records")],
            "line": lines,
            "x": chosen[knob].to_numpy(float),
            **{name: chosen[name].to_numpy() for name in ("mean", "low", "high", "seeds")},
        }
    ).astype({"low": float, "high": float})
    frame = frame.sort_values(["metric", "line", "x"], key=_in_given_order, kind="stable", ignore_index=True)

    seeds = sorted(set(frame["seeds"].tolist()))
    of = f"n = {seeds[0]}" if len(seeds) == 1 else f"n = {seeds[0]} to {seeds[-1]}"
    over = summary.attrs.get("intervals", "the mean over seeds")
    known = bool(frame[["low", "high"]].notna().any(axis=None))
    interval = f"lines are 95 % intervals of {over}" if known else "no interval"
    ends = [
        f"{in_words(str(metric))} from {part['mean'].iloc[0]:.3g} at {part['x'].iloc[0]:g} to {part['mean'].iloc[-1]:.3g} at "
        f"{part['x'].iloc[-1]:g}" + (f" ({line})" if line else "")
        for (metric, line), part in frame.groupby(["metric", "line"], sort=False)
    ]
    return AgainstKnob(
        frame=frame,
        title=f"What {display_names.of_varied(knob)} does",
        subtitle=f"{of} {'seed' if seeds == [1] else 'seeds'} a setting, {ROWS.get(split, split)}; {interval}",
        text=f"Metrics of the {ROWS.get(split, split)} against {display_names.of_varied(knob)}, "
        f"{counted(frame['x'].nunique(), 'value')}, {of} seeds a setting: {'; '.join(ends)}.",
        code=Code(
            f"wb.figures.against_knob(summary, {knob!r}, split={split!r}{'' if mark is None else f', mark={mark!r}'})",
            ["# summary: that of a sweep, as wb.sweep(...).summary()"],
        ),
        knob=display_names.of_varied(knob),
        mark=None if mark is None else float(mark),
    )


def _setting(name: str, value: Any) -> str:
    return str(value) if name == "loss" else f"{display_names.of_varied(name)} = {value}"


def _in_given_order(column: pd.Series) -> pd.Series:
    """Metrics and lines stay in the order they came in, numbers are sorted."""
    return column if pd.api.types.is_numeric_dtype(column) else pd.Series(pd.factorize(column)[0], column.index)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AgainstKnob(Figure):
    """One small panel for each metric, one line for each setting of the rest."""

    knob: str
    mark: float | None = None
    columns: int = ACROSS

    def narrow(self) -> AgainstKnob:
        """The panels below one another."""
        return replace(self, columns=1)

    def panels(self) -> dict[str, pd.DataFrame]:
        """Metric → its lines of the frame."""
        return {name: self.frame[self.frame["metric"] == name] for name in dict.fromkeys(self.frame["metric"])}

    def limits(self, metric: str) -> tuple[float, float]:
        """The ends of the axis of a metric: all means and intervals (but no share below 0 or above 1), and a little room."""
        values = self.panels()[metric][["mean", "low", "high"]].to_numpy(float)
        values = values.clip(0, 1) if is_share(metric) else values
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        room = 0.1 * (high - low) or 0.05 * abs(high) or 0.05
        return low - room, high + room

    @property
    def logarithmic(self) -> bool:
        """Whether the knob spans so much that its logarithm is drawn."""
        return bool(self.frame["x"].min() > 0 and self.frame["x"].max() / self.frame["x"].min() >= WIDE)

    def ends(self) -> tuple[float, float]:
        """The ends of the axis of the knob; of its logarithm to the base of ten where that is drawn."""
        values = np.log10(self.frame["x"]) if self.logarithmic else self.frame["x"]
        low, high = float(values.min()), float(values.max())
        room = 0.06 * (high - low) or 0.5
        return low - room, high + room

    def legend_lines(self) -> int:
        """About how many lines the names of the lines fill."""
        return math.ceil(sum(len(name) + 6 for name in self.frame["line"].unique()) / LEGEND_WIDTH)

    def ticks(self) -> list[float]:
        """Values of the knob to write below the axis: those that were tried, but none that would touch its neighbour.

        Many values along a logarithm are steps between powers of ten, and those are written.
        """
        values = np.unique(self.frame["x"])
        low, high = self.ends()
        powers = 10.0 ** np.arange(math.ceil(low), math.floor(high) + 1)
        if self.logarithmic and len(values) > MOST_TICKS and len(powers) > 1:
            return list(powers)
        places = (np.log10(values) if self.logarithmic else values).tolist()
        chosen = places[:1]
        for place in places[1:]:
            if place - chosen[-1] >= (high - low) / MOST_TICKS:
                chosen.append(place)
        ticks: list[float] = values[np.isin(places, chosen)].tolist()
        return ticks

    def _plotly(self, theme: Theme) -> go.Figure:
        panels, names = self.panels(), list(dict.fromkeys(self.frame["line"]))
        rows = math.ceil(len(panels) / self.columns)
        titles = [f"<b>{html.escape(in_words(metric))}</b>{_arrow(metric)}" for metric in panels]
        first = {
            name: list(panels).index(self.frame.loc[self.frame["line"] == name, "metric"].iloc[0]) for name in names
        }
        figure = small_multiples(len(panels), self.columns, subplot_titles=titles)
        for place, (metric, part) in enumerate(panels.items()):
            where = {"row": place // self.columns + 1, "col": place % self.columns + 1}
            for name, look in looks(names).items():
                its = part[part["line"] == name]
                if its.empty:
                    continue
                colour = look.in_colour(theme)
                figure.add_scatter(
                    x=its["x"], y=its["mean"], mode="lines+markers", name=html.escape(name), legendgroup=name,
                    showlegend=place == first[name] and len(names) > 1, line={"color": colour, "width": 2.5},
                    marker={"size": 8, "symbol": look.plotly},
                    error_y={
                        "array": its["high"] - its["mean"], "arrayminus": its["mean"] - its["low"],
                        "color": colour, "thickness": 1.5, "width": 0,
                    },
                    customdata=its["seeds"],
                    hovertemplate=f"{self.knob} %{{x:g}}: %{{y:.4g}}<br>mean over %{{customdata}} seeds"
                    f"<extra>{html.escape(name)}</extra>",
                    **where,
                )  # fmt: skip
            if self.mark is not None:
                figure.add_scatter(
                    x=[self.mark] * 2, y=self.limits(metric), mode="lines", name=f"{self.knob} = {self.mark:g}",
                    line={"color": theme.ink, "width": 1, "dash": "dash"}, hoverinfo="skip", showlegend=False, **where,
                )  # fmt: skip
            figure.update_yaxes(range=self.limits(metric), tickformat="~%" if is_share(metric) else "~g", **where)
        figure.update_xaxes(range=self.ends(), type="log" if self.logarithmic else "linear", title=self.knob)
        figure.update_annotations(font_size=13)  # the longest name is as wide as a panel
        figure.update_xaxes(tickvals=self.ticks(), ticktext=[f"{value:g}" for value in self.ticks()])
        below = len(names) > 1 and self.legend_lines() > 1  # above the panels there is room for one line
        height = {"y": -0.3 / rows, "yanchor": "top"} if below else {"y": 1 + 0.16 / rows, "yanchor": "bottom"}
        legend = {"orientation": "h", "x": 0, "xanchor": "left", **height}
        return figure.update_layout(
            height=180 + 220 * rows + 24 * self.legend_lines() * below,
            showlegend=len(names) > 1,
            legend=legend,
            margin={"t": 132},
        )

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter

        panels, names = self.panels(), list(dict.fromkeys(self.frame["line"]))
        rows = math.ceil(len(panels) / ACROSS)
        columns = max(1, min(4, len(names), LEGEND_WIDTH // (max(map(len, names)) + 6)))
        below = self.legend_lines() > 1
        figure = paper(9.0, 0.6 + 2.5 * rows + 0.22 * math.ceil(len(names) / columns) * below)
        grid = figure.subplots(rows, min(ACROSS, len(panels)), squeeze=False).ravel()
        low, high = self.ends()
        for axes, (metric, part) in zip(grid, panels.items(), strict=False):
            for name, look in looks(names).items():
                its = part[part["line"] == name]
                colour = look.in_colour(theme)
                axes.plot(its["x"], its["mean"], f"{look.matplotlib}-", color=colour, markersize=4, label=name)
                axes.vlines(its["x"], its["low"], its["high"], color=colour, linewidth=1.2)
            if self.mark is not None:
                axes.axvline(self.mark, color=theme.ink, linewidth=0.8, linestyle="--")
            axes.set_xscale("log" if self.logarithmic else "linear")
            axes.set(xlim=(10**low, 10**high) if self.logarithmic else (low, high), ylim=self.limits(metric))
            axes.set_xticks(self.ticks(), [f"{value:g}" for value in self.ticks()])
            axes.minorticks_off()
            axes.set(xlabel=self.knob)
            axes.set_title(f"{in_words(metric)}{_arrow(metric)}", fontsize=10.5, loc="left")
            if is_share(metric):
                axes.yaxis.set_major_formatter(PercentFormatter(1))
        if len(names) > 1:
            figure.legend(
                *grid[0].get_legend_handles_labels(),
                loc="outside lower left" if below else "upper right",
                ncols=columns,
            )
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        return figure


def _arrow(metric: str) -> str:
    known = declared(metric)
    return ARROWS["none" if known is None else known.direction]
