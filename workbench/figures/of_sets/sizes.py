"""Pictures of set sizes: how large the sets are, and what accuracy their size buys."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, chosen_by, code_of_sets, counted, paper, round_limit
from workbench.figures.style import Theme
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables.groups import rows_by

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MOST_GROUPS = 12
SHOWN = 0.995  # of the rows of every group have a bar of their own; larger sets share the last bar
FEWEST_BARS = 10
THESE, OTHER = "these", "other"


def set_sizes(sets: PredictionSets, by: Any = None, other: PredictionSets | None = None) -> SetSizes:
    """Histogram of set sizes: clear rows get small sets, ambiguous rows large ones.

    - `sets`: the sets of some rows, what a fitted rule returns.

    `by` splits the rows: "shots" (few, medium or many training images of the label), "groups", "label", the name of a
    row attribute such as "organ", or one entry per row. Shares are of the rows of a group. `other` sets of the same rows,
    by another rule or another model, are drawn over them as outlines.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
    >>> set_sizes(wb.Threshold(0.25).fit(table)(table)).frame
          group  size  count  share
    0  all rows     0      0    0.0
    1  all rows     1      1    0.5
    2  all rows     2      1    0.5

    Paper: Garcin et al. 2023, Figure 4.
    """
    checked_sets(sets)
    groups, names = (np.zeros(len(sets), int), ("all rows",)) if by is None else rows_by(sets.table, by)
    if len(names) > MOST_GROUPS:
        raise ValueError(f"by = {by!r} makes {len(names)} groups; a picture holds at most {MOST_GROUPS} of them")
    frame, outlined, told = _counted(sets.sizes, groups, names), "", ""
    if other is not None:
        if len(other) != len(sets):
            raise ValueError(
                f"the other sets are of {len(other)} rows and these of {len(sets)}; give sets of the same rows"
            )
        of_other = _counted(other.sizes, groups, names)
        frame = pd.concat([frame.assign(sets=THESE), of_other.assign(sets=OTHER)], ignore_index=True)
        outlined = f"; outlined: {other.sizes.mean():.2f} by {chosen_by(other)}"
        told = f" Outlined: other sets by {chosen_by(other)}, {other.sizes.mean():.2f} classes on average."
    mean = float(sets.sizes.mean())
    present = np.bincount(groups, minlength=len(names)) > 0
    parts = [f"{name} {sets.sizes[groups == code].mean():.2f}" for code, name in enumerate(names) if present[code]]
    by_group = "" if by is None else f" Classes on average by group: {', '.join(parts)}."
    return SetSizes(
        frame=frame,
        title="How many classes are returned",
        subtitle=f"n = {counted(len(sets), 'set')} by {chosen_by(sets)}, {mean:.2f} classes on average{outlined}",
        text=(
            f"Histogram of the sizes of n = {len(sets)} sets by {chosen_by(sets)}: {mean:.2f} classes on average, from "
            f"{sets.sizes.min()} to {sets.sizes.max()}; {np.mean(sets.sizes == 1):.1%} of the sets hold one class, "
            f"{np.mean(sets.sizes == 0):.1%} none.{by_group}{told}"
        ),
        code=(
            code_of_sets(sets)
            + ("" if other is None else _code_of_other(other))
            + f"figure = wb.figures.set_sizes(sets{_by_in_code(by)}{'' if other is None else ', other=other'})\nfigure.plot()\n"
        ),
    )


def _counted(sizes: np.ndarray, groups: np.ndarray, names: tuple[str, ...]) -> pd.DataFrame:
    """How many sets of each group have each size; a group without rows has no sizes."""
    n_sizes = int(sizes.max()) + 1
    counts = np.bincount(groups * n_sizes + sizes, minlength=len(names) * n_sizes).reshape(len(names), n_sizes)
    n_rows = counts.sum(axis=1, keepdims=True)  # (groups, 1)
    frame = pd.DataFrame(
        {
            "group": np.repeat(names, n_sizes),
            "size": np.tile(np.arange(n_sizes), len(names)),
            "count": counts.ravel(),
            "share": (counts / np.maximum(n_rows, 1)).ravel(),
        }
    )
    return frame[np.repeat(n_rows > 0, n_sizes)].reset_index(drop=True)


def _code_of_other(other: PredictionSets) -> str:
    if other.rule is None:
        return f"# other: {len(other)} sets that no rule chose\n"
    return (
        "# other_val, other_test: the tables of the other model, or val and test again\n"
        f"other = wb.{other.rule.rule!r}.fit(other_val)(other_test)\n"
    )


class Panel(NamedTuple):
    """The histogram of one group."""

    caption: str
    mean: float
    colour: str
    bars: pd.DataFrame  # size, count, share; sizes beyond the last bar are pooled in it
    outlines: pd.DataFrame | None  # the same of the other sets


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SetSizes(Figure):
    """One histogram, or one for each group below one another on common axes."""

    def last_bar(self) -> int:
        """The size from which on sets share a bar: a long tail would make all other bars thin."""
        by = ["group", "sets"] if self.overlaid else ["group"]
        below = self.frame[self.frame.groupby(by)["share"].cumsum() < SHOWN]
        return max(FEWEST_BARS, 0 if below.empty else int(below["size"].max()) + 1)

    def panels(self, theme: Theme) -> list[Panel]:
        """What is drawn, from top to bottom."""
        these = self.frame[self.frame["sets"] == THESE] if self.overlaid else self.frame
        groups = [(str(name), part) for name, part in these.groupby("group", sort=False)]
        panels = []
        for (name, part), colour in zip(groups, theme.colours([name for name, _ in groups]), strict=True):
            caption = f"{name}, n = {counted(int(part['count'].sum()))}" if len(groups) > 1 else ""
            mean = float((part["size"] * part["share"]).sum())
            outlines = None
            if self.overlaid:
                outlines = self._bars(self.frame[(self.frame["sets"] == OTHER) & (self.frame["group"] == name)])
            panels.append(Panel(caption, mean, colour, self._bars(part), outlines))
        return panels

    @property
    def overlaid(self) -> bool:
        """Whether there are other sets."""
        return "sets" in self.frame

    def _bars(self, part: pd.DataFrame) -> pd.DataFrame:
        pooled = part.assign(size=part["size"].clip(upper=self.last_bar()))
        return pooled.groupby("size", as_index=False)[["count", "share"]].sum()

    def _ticks(self) -> tuple[list[int], list[str]]:
        """Places and names of the ticks below the bars; `40+` names a bar that larger sets share."""
        last = self.last_bar()
        step = max(1, round(last / 15))
        ticks = list(range(0, last + 1, step))
        if self.frame["size"].max() <= last:
            return ticks, [str(tick) for tick in ticks]
        ticks = [tick for tick in ticks if tick <= last - step] + [last]
        return ticks, [*map(str, ticks[:-1]), f"{last}+"]

    def highest(self, panels: list[Panel]) -> float:
        """The end of the axis of shares."""
        drawn = [bars for panel in panels for bars in (panel.bars, panel.outlines) if bars is not None]
        return round_limit(max(bars["share"].max() for bars in drawn))

    def _plotly(self, theme: Theme) -> go.Figure:
        panels = self.panels(theme)
        last, highest, (ticks, names) = self.last_bar(), self.highest(panels), self._ticks()
        gap = 0.2 / len(panels)
        height = (1 - gap * (len(panels) - 1)) / len(panels)
        traces: list[dict[str, Any]] = []
        lines: list[dict[str, Any]] = []
        notes: list[dict[str, Any]] = []
        layout: dict[str, Any] = {}
        for place, panel in enumerate(panels):
            x, y = (f"{axis}{place + 1 if place else ''}" for axis in "xy")
            traces.append({**_plotly_bars(panel.bars, {"color": panel.colour}), "xaxis": x, "yaxis": y})
            if panel.outlines is not None:
                outline = {"color": "rgba(0, 0, 0, 0)", "line": {"color": theme.ink, "width": 1.5}}
                traces.append({**_plotly_bars(panel.outlines, outline, "the other "), "xaxis": x, "yaxis": y})
            line = {"color": theme.threshold, "dash": "dash", "width": 2}
            upright = {"type": "line", "y0": 0, "y1": 1, "xref": x, "yref": f"{y} domain"}
            lines.append({**upright, "x0": panel.mean, "x1": panel.mean, "line": line})
            top = {"y": 1, "yref": f"{y} domain", "yanchor": "top", "showarrow": False}
            side = "left" if panel.mean < last / 2 else "right"
            notes.append({"text": f" mean {panel.mean:.2f} ", "x": panel.mean, "xref": x, "xanchor": side, **top})
            notes.append({"text": html.escape(panel.caption), "x": 1, "xref": f"{x} domain", "xanchor": "right", **top})
            bottom = (len(panels) - 1 - place) * (height + gap)
            sizes = {"range": (-0.5, last + 0.5), "tickvals": ticks, "ticktext": names, "showgrid": False, "anchor": y}
            shares = {"range": (0, highest), "tickformat": ".0%", "nticks": 5, "anchor": x}
            layout[f"xaxis{x[1:]}"] = {**sizes, "matches": f"x{len(panels)}", "showticklabels": False}
            layout[f"yaxis{y[1:]}"] = {**shares, "domain": (bottom, min(bottom + height, 1))}
            if place == len(panels) - 1:
                layout[f"xaxis{x[1:]}"] = {**sizes, "title": {"text": "classes in the set"}}
            if place == (len(panels) - 1) // 2:
                layout[f"yaxis{y[1:]}"]["title"] = {"text": "share of sets"}
        tall = 400 if len(panels) == 1 else 190 + 130 * len(panels)
        looks = {"barmode": "overlay", "showlegend": False, "height": tall}
        return go.Figure(traces, {**layout, **looks, "shapes": lines, "annotations": notes})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        import seaborn
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        panels = self.panels(theme)
        highest = self.highest(panels)
        figure = paper(7.2, 4.2 if len(panels) == 1 else 1.9 + 1.3 * len(panels))
        for axes, panel in zip(figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0], panels, strict=True):
            bars = {"color": panel.colour, "saturation": 1, "width": 0.92, "native_scale": True}
            seaborn.barplot(panel.bars, x="size", y="share", ax=axes, **bars)
            if panel.outlines is not None:
                outline = {"fill": False, "edgecolor": theme.ink, "linewidth": 1.2}
                axes.bar(panel.outlines["size"], panel.outlines["share"], width=0.92, **outline)
            axes.axvline(panel.mean, color=theme.threshold, linestyle="--", linewidth=1.6)
            side = "left" if panel.mean < self.last_bar() / 2 else "right"
            axes.text(panel.mean, 0.97 * highest, f" mean {panel.mean:.2f} ", va="top", ha=side)
            axes.text(1, 0.97, panel.caption, transform=axes.transAxes, ha="right", va="top")
            axes.set(xlim=(-0.5, self.last_bar() + 0.5), ylim=(0, highest), xlabel="", ylabel="")
            axes.set_xticks(*self._ticks())
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            axes.grid(visible=False, axis="x")
        axes.set_xlabel("classes in the set")
        figure.supylabel("share of sets", size="medium")
        return figure


def _plotly_bars(bars: pd.DataFrame, marker: dict[str, Any], whose: str = "") -> dict[str, Any]:
    hover = f"%{{x}} classes<br>%{{y:.1%}} of {whose}sets (%{{customdata}})<extra></extra>"
    numbers = {"x": bars["size"], "y": bars["share"], "customdata": bars["count"]}
    return {"type": "bar", **numbers, "marker": marker, "hovertemplate": hover}


def _by_in_code(by: Any) -> str:
    if by is None:
        return ""
    return f", by={by!r}" if isinstance(by, str) else ", by=by"
