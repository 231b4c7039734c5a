"""Pictures of set sizes: how large the sets are, and what accuracy their size buys."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import (
    Click,
    Figure,
    Move,
    Places,
    chosen_by,
    code_of_sets,
    code_with_sets,
    counted,
    paper,
    round_limit,
)
from workbench.figures.run_styles import Look
from workbench.figures.style import Theme
from workbench.metrics.rows import RowFilter
from workbench.sets.index import LARGEST_SIZE
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables.groups import rows_by

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MOST_GROUPS = 12
SHOWN = 0.995  # of the rows of every group have a bar of their own; larger sets share the last bar
FEWEST_BARS = STEP = 10
ALL_ROWS = "all rows"
OUTLINED = ", outlined"  # ends the name of a trace of the other sets
BELOW_THE_MEAN = 16  # pixels: there the name of a group does not meet the mean, wherever that is
THESE, OTHER = "these", "other"


def set_sizes(
    sets: PredictionSets,
    by: Any = None,
    other: PredictionSets | None = None,
    looks: Sequence[Look] = (),
    *,
    rows: Any = None,
) -> SetSizes:
    """Histogram of set sizes: clear rows get small sets, ambiguous rows large ones.

    Args:
        sets: The sets of some rows, what a fitted rule returns.

    `by` splits the rows: "shots" (few, medium or many training rows of the label), "groups", "label", the name of a
    row attribute such as "organ", or one entry per row. Shares are of the rows of a group. `other` sets of the same rows,
    by another rule or another model, are drawn over them as outlines; `looks` are the colours of both runs
    (`workbench.figures.run_styles`), where they are not split: the colours of groups say what the groups are. `rows` is a
    selection, as a mask or as row numbers: the bars are those of its rows, and the outlines those of all.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
    >>> set_sizes(wb.Threshold(0.25).fit(table)(table)).frame
          group  size  count  share
    0  all rows     0      0    0.0
    1  all rows     1      1    0.5
    2  all rows     2      1    0.5

    Paper: Garcin et al. 2023, Figure 4.
    """
    if rows is not None:
        return _of_selection(checked_sets(sets), rows, alone=by is None and other is None)
    checked_sets(sets)
    groups, names = (np.zeros(len(sets), int), (ALL_ROWS,)) if by is None else rows_by(sets.table, by)
    if len(names) > MOST_GROUPS:
        raise ValueError(f"by = {by!r} makes {len(names)} groups; a picture holds at most {MOST_GROUPS} of them")
    frame, outlined, of_outlined = _counted(sets.sizes, groups, names), "", ""
    if other is not None:
        if len(other) != len(sets):
            raise ValueError(
                f"the other sets are of {len(other)} rows and these of {len(sets)}; give sets of the same rows"
            )
        of_other = _counted(other.sizes, groups, names)
        frame = pd.concat([frame.assign(sets=THESE), of_other.assign(sets=OTHER)], ignore_index=True)
        outlined = f"; outlined: {other.sizes.mean():.2f} by {chosen_by(other)}"
        of_outlined = f" Outlined: other sets by {chosen_by(other)}, {other.sizes.mean():.2f} classes on average."
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
            f"{np.mean(sets.sizes == 0):.1%} none.{by_group}{of_outlined}"
        ),
        code=code_with_sets(
            f"wb.figures.set_sizes(sets{_by_in_code(by)}{'' if other is None else ', other=other'})",
            sets,
            setup=() if other is None else _code_of_other(other),
        ),
        by=by if isinstance(by, str) else None,
        n_classes=sets.table.n_classes,
        looks=tuple(looks),
    )


def _of_selection(sets: PredictionSets, rows: Any, alone: bool) -> SetSizes:
    """The sizes of the selected rows, outlined by those of all."""
    if not alone:
        raise ValueError(
            "rows= is outlined by all rows: leave out by= and other=, or give set_sizes(sets.rows(rows), …)"
        )
    chosen = sets.rows(rows)
    if not len(chosen):
        raise ValueError("no row is selected; give at least one in rows=")
    none, names = np.zeros(len(sets), int), (ALL_ROWS,)
    parts = {THESE: _counted(chosen.sizes, none[: len(chosen)], names), OTHER: _counted(sets.sizes, none, names)}
    mean, of_all = float(chosen.sizes.mean()), float(sets.sizes.mean())
    n = f"n = {counted(len(chosen))} selected of {counted(len(sets), 'set')} by {chosen_by(sets)}"
    return SetSizes(
        frame=pd.concat([part.assign(sets=whose) for whose, part in parts.items()], ignore_index=True),
        title="How many classes are returned",
        subtitle=f"{n}, {mean:.2f} classes on average; outlined, all: {of_all:.2f}",
        text=f"Histogram of the sizes of {n}: {mean:.2f} classes on average. Outlined: all sets, {of_all:.2f} on average.",
        code=code_with_sets(
            "wb.figures.set_sizes(sets, rows=rows)", sets, setup=["# rows: the numbers of the selected rows"]
        ),
        n_classes=sets.table.n_classes,
    )


def _counted(sizes: np.ndarray, groups: np.ndarray, names: tuple[str, ...]) -> pd.DataFrame:
    """Number of sets of each size in each group; a group without rows has no sizes."""
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


def _code_of_other(other: PredictionSets) -> tuple[str, ...]:
    made = code_of_sets(other, "other", "other_val", "other_test").setup
    comment = "# other_val, other_test: the tables of the other model, or val and test again"
    return made if other.rule is None else (comment, *made)


class Panel(NamedTuple):
    """The histogram of one group."""

    name: str
    caption: str
    mean: float
    colour: str
    bars: pd.DataFrame  # size, count, share; sizes beyond the last bar are pooled in it
    outlines: pd.DataFrame | None  # the same of the other sets


def last_bars(shares: np.ndarray, n_classes: int) -> np.ndarray:
    """(places,) the size from which on sets share a bar, from shares (places, histograms, sizes).

    Nearly all sets of every histogram have a bar of their own: a long tail would make all other bars thin. It goes in steps
    of ten, so that a picture stands still while a slider moves; no set holds more than all classes.
    """
    enough = np.all(np.cumsum(shares, axis=2) >= SHOWN, axis=1)  # (places, sizes)
    needed = np.where(enough.any(axis=1), enough.argmax(axis=1), shares.shape[2] - 1)
    last: np.ndarray = np.maximum(FEWEST_BARS, -(-needed // STEP) * STEP)
    held: np.ndarray = np.minimum(last, n_classes)
    return held


def end_of_sizes(last: int, largest: int, n_classes: int) -> int:
    """The last size on the axis of a picture at rest: where no set is so large, the axis ends with the largest."""
    return max(min(FEWEST_BARS, n_classes), min(last, largest))


def pooled(bars: np.ndarray, last: np.ndarray) -> np.ndarray:
    """(places, histograms, sizes): the bars beyond the last one of their place are added to it."""
    last = np.minimum(last, bars.shape[2] - 1)
    beyond = np.arange(bars.shape[2]) > last[:, None, None]
    kept = np.where(beyond, 0, bars)
    kept[np.arange(len(bars)), :, last] += (bars * beyond).sum(axis=2)
    return kept


def larger_sets(counts: np.ndarray, last: np.ndarray) -> np.ndarray:
    """(places,) bool: whether larger sets share the last bar. `SetIndex.compact` counts no further than `LARGEST_SIZE`."""
    shared = np.where(last == LARGEST_SIZE, last, last + 1)
    larger: np.ndarray = (counts * (np.arange(counts.shape[2]) >= shared[:, None, None])).sum(axis=(1, 2)) > 0
    return larger


def size_ticks(last: int, larger: bool) -> tuple[list[int], list[str]]:
    """Places and names of the ticks below the bars, about ten; `50+` names a bar that larger sets share.

    >>> size_ticks(20, larger=True)[1][-2:]
    ['18', '20+']
    >>> size_ticks(17, larger=False)[1][-2:]
    ['14', '16']
    """
    step = next(step * power for power in (1, 10, 100, 1000) for step in (1, 2, 5) if last <= 10 * step * power)
    ticks = list(range(0, last + 1, step))
    if larger:  # its name stands in for one that would touch it
        ticks = [*(tick for tick in ticks if tick <= last - step), last]
    return ticks, [f"{tick}+" if larger and tick == last else str(tick) for tick in ticks]


def bar_names(n_bars: int, last: int, larger: bool) -> list[str]:
    """Return the labels of the bars; the last bar may stand for all larger sets.

    >>> bar_names(3, 2, larger=True)
    ['0 classes', '1 class', '2 classes or more']
    """
    names = [counted(size, "class", "classes") for size in range(n_bars)]
    return [f"{name} or more" if larger and size == last else name for size, name in enumerate(names)]


def _mean_label(mean: float, last: int) -> dict[str, Any]:
    # Written as the label of its line: Plotly moves that alone, but draws all anew for a moving annotation.
    side = "left" if mean < last / 2 else "right"
    return {"text": f" mean {mean:.2f} ", "textangle": 0, "textposition": "end", "xanchor": side, "yanchor": "top"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SetSizes(Figure):
    """One histogram, or one for each group below one another on common axes."""

    by: str | None = None  # what the groups are, if it has a name
    n_classes: int
    looks: tuple[Look, ...] = ()  # of these sets and of the other ones

    def last_bar(self) -> int:
        """The size from which on sets share a bar."""
        by = ["group", "sets"] if self.overlaid else ["group"]
        shares = self.frame.pivot_table("share", by, "size", fill_value=0).to_numpy()
        return int(last_bars(shares[None], self.n_classes)[0])

    def end(self) -> int:
        """The last size on the axis."""
        return end_of_sizes(self.last_bar(), int(self.frame["size"].max()), self.n_classes)

    def panels(self, theme: Theme) -> list[Panel]:
        """Return the panels from top to bottom."""
        these = self.frame[self.frame["sets"] == THESE] if self.overlaid else self.frame
        groups = [(str(name), part) for name, part in these.groupby("group", sort=False)]
        panels = []
        colours = theme.colours([name for name, _ in groups])
        for (name, part), colour in zip(groups, colours, strict=True):
            caption = f"{name}, n = {counted(int(part['count'].sum()))}" if len(groups) > 1 else ""
            mean = float((part["size"] * part["count"]).sum() / part["count"].sum())
            outlines = None
            if self.overlaid:
                outlines = self._bars(self.frame[(self.frame["sets"] == OTHER) & (self.frame["group"] == name)])
            panels.append(Panel(name, caption, mean, colour, self._bars(part), outlines))
        return panels

    def edge(self, theme: Theme) -> tuple[str, float]:
        """Colour and width of the outlines."""
        return (self.looks[1].in_colour(theme), 2.5) if len(self.looks) > 1 else (theme.ink, 1.5)

    @property
    def overlaid(self) -> bool:
        """Whether there are other sets."""
        return "sets" in self.frame

    def _bars(self, part: pd.DataFrame) -> pd.DataFrame:
        last = np.array([self.last_bar()])
        bars = pooled(part[["count", "share"]].to_numpy().T[None], last)[0, :, : last[0] + 1]
        return pd.DataFrame({"size": np.arange(bars.shape[1]), "count": bars[0].astype(int), "share": bars[1]})

    def _larger(self) -> bool:
        """Whether larger sets share the last bar."""
        counts = np.bincount(self.frame["size"], self.frame["count"])
        return bool(larger_sets(counts[None, None], np.array([self.last_bar()]))[0])

    def _ticks(self) -> tuple[list[int], list[str]]:
        return size_ticks(self.end(), self._larger())

    def highest(self, panels: list[Panel]) -> float:
        """The end of the axis of shares."""
        drawn = [bars for panel in panels for bars in (panel.bars, panel.outlines) if bars is not None]
        return round_limit(max(bars["share"].max() for bars in drawn))

    def _plotly(self, theme: Theme) -> go.Figure:
        panels = self.panels(theme)
        last, end, highest, (ticks, names) = self.last_bar(), self.end(), self.highest(panels), self._ticks()
        words = bar_names(last + 1, last, self._larger())
        gap = 0.2 / len(panels)
        height = (1 - gap * (len(panels) - 1)) / len(panels)
        traces: list[dict[str, Any]] = []
        lines: list[dict[str, Any]] = []
        notes: list[dict[str, Any]] = []
        layout: dict[str, Any] = {}
        for place, panel in enumerate(panels):
            x, y = (f"{axis}{place + 1 if place else ''}" for axis in "xy")
            bars = _plotly_bars(panel.bars, words, {"color": panel.colour})
            traces.append({**bars, "name": panel.name, "xaxis": x, "yaxis": y})
            if panel.outlines is not None:
                colour, width = self.edge(theme)
                outline = {"color": "rgba(0, 0, 0, 0)", "line": {"color": colour, "width": width}}
                bars = _plotly_bars(panel.outlines, words, outline, "the other ")
                traces.append({**bars, "name": panel.name + OUTLINED, "xaxis": x, "yaxis": y})
            line = {"color": theme.threshold, "dash": "dash", "width": 2}
            upright = {"type": "line", "y0": 0, "y1": 1, "xref": x, "yref": f"{y} domain"}
            mean = {"name": panel.name, "x0": panel.mean, "x1": panel.mean, "label": _mean_label(panel.mean, last)}
            lines.append({**upright, **mean, "line": line})
            top = {"y": 1, "yref": f"{y} domain", "yanchor": "top", "yshift": -BELOW_THE_MEAN, "showarrow": False}
            notes.append({"text": html.escape(panel.caption), "x": 1, "xref": f"{x} domain", "xanchor": "right", **top})
            bottom = (len(panels) - 1 - place) * (height + gap)
            sizes = {"range": (-0.5, end + 0.5), "tickvals": ticks, "ticktext": names, "tickangle": 0}
            sizes |= {"showgrid": False, "anchor": y}
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

    def moves(self, places: Places, other: Places | None = None) -> list[Move]:
        """Moves of the histograms, their means and their axes along a slider; `other` are the places of the other sets.

        The axis of sizes ends with the bar that larger sets share, whether there are any or not: it moves in few steps.
        """
        names = list(self.frame["group"].unique())
        layers = [places] if other is None else [places, other]
        counts = np.stack([_histogram(layer, name) for name in names for layer in layers], axis=1)
        shares = counts / counts.sum(axis=2, keepdims=True)  # (places, panels · layers, sizes)
        last = last_bars(shares, self.n_classes)
        ends = list(zip(last.tolist(), larger_sets(counts, last).tolist(), strict=True))
        ticks = [size_ticks(*both) for both in ends]
        words = [bar_names(shares.shape[2], *both) for both in ends]
        counts, shares = pooled(counts, last), pooled(shares, last)
        highest = [[0, round_limit(share)] for share in shares.max(axis=(1, 2))]
        moves = []
        traces = [name + whose for name in names for whose in ("", OUTLINED)[: len(layers)]]
        for place, trace in enumerate(traces):
            moves += [
                Move("x", np.arange(shares.shape[2])[None], trace),
                Move("y", shares[:, place], trace),
                Move("customdata", counts[:, place], trace),
                Move("hovertext", words, trace),
            ]
        for place, name in enumerate(names):
            axis = "axis" if place == 0 else f"axis{place + 1}"
            means = _mean_sizes(places, name)
            labels = [_mean_label(*both) for both in zip(means.tolist(), last.tolist(), strict=True)]
            moves += [
                *(Move(end, means.tolist(), shape=name) for end in ("x0", "x1")),
                Move("label", labels, shape=name),
                Move(f"x{axis}.range", [[-0.5, bar + 0.5] for bar in last.tolist()]),
                Move(f"x{axis}.tickvals", [where for where, _ in ticks]),
                Move(f"x{axis}.ticktext", [words for _, words in ticks]),
                Move(f"y{axis}.range", highest),
            ]
        return moves

    def subtitles(self, places: Places, other: Places | None = None) -> list[str]:
        """Number of sets and their mean size at every position."""
        n = counted(places["n"], "set")
        if other is not None and other["n"] > places["n"]:  # a selection, outlined by all
            n = f"{counted(places['n'])} selected of {counted(other['n'], 'set')}"
        captions = [f"n = {n}, {mean:.2f} classes on average" for mean in places["mean_size"]]
        if other is None:
            return captions
        outlined = "outlined, all" if other["n"] > places["n"] else "outlined"
        return [f"{words}; {outlined}: {mean:.2f}" for words, mean in zip(captions, other["mean_size"], strict=True)]

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of a bar: of the other sets, if it is outlined. If larger sets share it, it holds more than its size."""
        size, name = int(click.point), str(click.trace).removesuffix(OUTLINED)
        of_bar = (self.frame["group"] == name) & (self.frame["size"] == size)
        if self.overlaid:
            of_bar &= self.frame["sets"] == (OTHER if self.outlined(click) else THESE)
        alone = self.frame["count"][of_bar].sum() == click.data
        largest = size if alone else max(int(self.frame["size"].max()), LARGEST_SIZE)
        return RowFilter(sizes=(size, largest), groups=() if self.by is None else ((self.by, name),))

    def outlined(self, click: Click) -> bool:
        """Whether a bar of the other sets was clicked."""
        return self.overlaid and str(click.trace).endswith(OUTLINED)

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
                colour, width = self.edge(theme)
                outline = {"fill": False, "edgecolor": colour, "linewidth": 0.8 * width}
                axes.bar(panel.outlines["size"], panel.outlines["share"], width=0.92, **outline)
            axes.axvline(panel.mean, color=theme.threshold, linestyle="--", linewidth=1.6)
            side = "left" if panel.mean < self.last_bar() / 2 else "right"
            axes.text(panel.mean, 0.97 * highest, f" mean {panel.mean:.2f} ", va="top", ha=side)
            axes.text(1, 0.97, panel.caption, transform=axes.transAxes, ha="right", va="top")
            axes.set(xlim=(-0.5, self.end() + 0.5), ylim=(0, highest), xlabel="", ylabel="")
            axes.set_xticks(*self._ticks())
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            axes.grid(visible=False, axis="x")
        axes.set_xlabel("classes in the set")
        figure.supylabel("share of sets", size="medium")
        return figure


def _histogram(places: Places, group: str) -> np.ndarray:
    """(places, sizes) how many sets of a group have each size."""
    return np.asarray(places["size_histogram"] if group == ALL_ROWS else places["histogram_by"][group])


def _mean_sizes(places: Places, group: str) -> np.ndarray:
    """(places,) the mean size of the sets of a group."""
    return np.asarray(places["mean_size"] if group == ALL_ROWS else places["mean_size_by"][group])


def _plotly_bars(bars: pd.DataFrame, words: list[str], marker: dict[str, Any], whose: str = "") -> dict[str, Any]:
    hover = f"%{{hovertext}}<br>%{{y:.1%}} of {whose}sets (%{{customdata}})<extra></extra>"
    numbers = {"x": bars["size"], "y": bars["share"], "customdata": bars["count"], "hovertext": words[: len(bars)]}
    return {"type": "bar", **numbers, "marker": marker, "hovertemplate": hover}


def _by_in_code(by: Any) -> str:
    if by is None:
        return ""
    return f", by={by!r}" if isinstance(by, str) else ", by=by"
