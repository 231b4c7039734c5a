"""Classes that occur together in the sets."""

from __future__ import annotations

import html
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import (
    Click,
    Figure,
    Move,
    Places,
    beside_an_axis,
    chosen_by,
    code_with_sets,
    counted,
    paper,
)
from workbench.figures.style import Theme, sequential_scale
from workbench.metrics.rows import RowFilter
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables import LogitTable
from workbench.tables.map_reduce import over_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

LONGEST_NAME = 20  # letters of a name beside an axis: names stand beside both, and the cells are what is looked at
NOBODY = "no other class stands beside it in a set"


def co_members(sets: PredictionSets, classes: Sequence[int] | None = None) -> np.ndarray:
    """In how many sets two of the classes (default: of all L) stand together; on the diagonal, in how many one stands.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.5, 0.5], [0.9, 0.1]])
    >>> co_members(wb.Threshold(0.3).fit(table)(table)).tolist()
    [[2, 1], [1, 1]]
    """
    members = _membership(sets)
    members = members if classes is None else members[:, np.array(classes)]
    together: np.ndarray = (members.T @ members).toarray()
    return together


def ranked_pairs(sets: PredictionSets, most: int = 50) -> pd.DataFrame:
    """The pairs of classes that stand together in the most sets, most often first.

    Args:
        sets: the sets of some rows, what a fitted rule returns.
        most: number of pairs.

    Returns:
        A frame with `name`, `with_name`, `together` (sets that hold both) and `share` (of the sets that hold either).

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.5, 0.4, 0.1], [0.5, 0.5, 0.0], [0.1, 0.5, 0.4]])
    >>> ranked_pairs(wb.Threshold(0.3).fit(table)(table))[["name", "with_name", "together"]].to_numpy().tolist()
    [['class 0', 'class 1', 2], ['class 1', 'class 2', 1]]
    """
    members = _membership(checked_sets(sets))
    pairs = (members.T @ members).tocoo()  # as many entries as pairs that occur, never L × L
    alone = np.bincount(sets.classes, minlength=sets.table.n_classes)
    upper = pairs.row < pairs.col
    first, second, together = pairs.row[upper], pairs.col[upper], pairs.data[upper]
    order = np.lexsort((second, first, -together))[:most]
    first, second, together = first[order], second[order], together[order]
    names = np.array(sets.table.named_classes(), dtype=object)
    columns = {"name": names[first], "with_name": names[second], "together": together}
    return pd.DataFrame({**columns, "share": together / (alone[first] + alone[second] - together)})


def _membership(sets: PredictionSets) -> Any:
    """(n, L) sparse: 1 where a class is in the set of a row."""
    from scipy.sparse import csr_array

    ones = np.ones(len(sets.classes), np.int64)
    return csr_array((ones, sets.classes, sets.offsets), shape=sets.table.scores.shape)


def co_members_at(table: LogitTable, classes: Sequence[int], thresholds: Iterable[float]) -> np.ndarray:
    """(places, classes, classes) the same of some classes, and of the sets of one threshold after the other.

    Two classes are in a set iff the smaller of their probabilities reaches the threshold. So it is enough to count, in one
    pass for all thresholds, how many of them each row reaches with both.

    >>> table = LogitTable.from_probabilities([[0.5, 0.4, 0.1], [0.7, 0.3, 0.0]])
    >>> co_members_at(table, (0, 1), thresholds=[0.6, 0.35]).tolist()
    [[[1, 0], [0, 0]], [[2, 1], [1, 1]]]
    """
    thresholds = np.array(list(thresholds), float)
    rising = np.argsort(thresholds, kind="stable")
    reached = np.sum(list(over_parts(table, reached_together, thresholds[rising], np.array(classes))), axis=0)
    together = np.empty((len(thresholds), len(classes), len(classes)), np.int64)
    together[rising] = np.moveaxis(np.cumsum(reached[..., :0:-1], axis=-1)[..., ::-1], -1, 0)
    return together


def reached_together(part: LogitTable, first_row: int, rising: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(classes, classes, places + 1) how many rows of a part reach 0, 1, … of the thresholds with both classes."""
    counts = np.zeros((len(classes), len(classes), len(rising) + 1), np.int64)
    first = counts.shape[2] * np.arange(len(classes))
    for rows in part.spans():
        reached = np.searchsorted(rising, part.probabilities(rows)[:, classes], side="right")  # (rows, classes)
        for line, of_line in enumerate(reached.T):
            both = np.minimum(of_line[:, None], reached) + first
            counts[line] += np.bincount(both.ravel(), minlength=counts[line].size).reshape(counts[line].shape)
    return counts


def companions(table: LogitTable, around: int, most: int = 16) -> tuple[int, ...]:
    """A class and the `most` that stand beside it most often, all thresholds taken together; ordered by group.

    They are what `shared_sets` can draw `among` at every place of a slider. A row puts two classes together at every
    threshold up to the smaller of their probabilities, so its sum over the rows says how often that is.

    >>> table = LogitTable.from_probabilities([[0.5, 0.4, 0.1], [0.7, 0.3, 0.0]])
    >>> companions(table, around=1, most=1)
    (0, 1)
    """
    often = np.sum(list(over_parts(table, shared_probability, around)), axis=0)
    return _as_drawn(table, around, _nearest(often, around, most))


def shared_probability(part: LogitTable, first_row: int, around: int) -> np.ndarray:
    """(L,) the sum over the rows of a part of the smaller probability: of a class, and of `around`."""
    blocks = (part.probabilities(rows) for rows in part.spans())
    shared: np.ndarray = np.sum(
        [np.minimum(block, block[:, [around]]).sum(axis=0, dtype=float) for block in blocks], axis=0
    )
    return shared


def _nearest(often: np.ndarray, around: int, most: int) -> np.ndarray:
    """The classes that stand beside another one at all, those that do so most often first; at most so many."""
    beside = np.delete(np.arange(len(often)), around)
    beside = beside[often[beside] > 0]
    return beside[np.argsort(-often[beside], kind="stable")][:most]


def _as_drawn(table: LogitTable, around: int, beside: np.ndarray) -> tuple[int, ...]:
    """A class and those beside it, ordered by group."""
    chosen = np.sort(np.append(beside, around))
    if table.groups is not None:
        chosen = chosen[np.argsort(np.array(table.groups)[chosen], kind="stable")]
    return tuple(chosen.tolist())


def shared_sets(
    sets: PredictionSets, around: int | str, most: int = 16, among: Sequence[int] | None = None
) -> SharedSets:
    """The classes that share the sets of the class `around`, and how they share each other's.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        around: The number of a class, or its name.
        among: The classes that are drawn, `around` one of them, in this order.

    A cell is the share of the sets with the class of its line that also hold the class of its column. Unless `among` says
    otherwise, of many classes the `most` that stand beside `around` most often are drawn; they are ordered by group, so that
    a group that is easily confused within itself is a dark square on the diagonal. Needs no labels.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.5, 0.4, 0.1], [0.9, 0.1, 0.0]])
    >>> shared_sets(wb.Threshold(0.3).fit(table)(table), around=0).frame[["name", "with_name", "share"]].to_numpy().tolist()
    [['class 0', 'class 1', 0.5], ['class 1', 'class 0', 1.0]]
    """
    table = checked_sets(sets).table
    if isinstance(around, str):
        if around not in table.named_classes():
            raise ValueError(
                f"around = {around!r}; no class is called so, give one such as {table.named_classes()[0]!r}"
            )
        around = table.named_classes().index(around)
    if not isinstance(around, numbers.Integral):
        raise TypeError(f"around is {type(around).__name__}; give the number of a class, or its name")
    if not 0 <= around < table.n_classes:
        raise ValueError(f"around = {around}; give one of the {table.n_classes} classes, 0 to {table.n_classes - 1}")
    if among is not None and (around not in among or not {*among} <= {*range(table.n_classes)}):
        raise ValueError(f"among = {list(among)}; give some of the {table.n_classes} classes, {around} one of them")
    members = _membership(sets)
    alone = np.bincount(sets.classes, minlength=table.n_classes)
    beside = np.asarray((members[:, [around]].T @ members).todense()).ravel()
    nearest = _nearest(beside, around, most)
    chosen = np.array(_as_drawn(table, around, nearest) if among is None else among)
    together, position = co_members(sets, chosen), np.zeros(table.n_classes, np.int64)
    position[chosen] = np.arange(len(chosen))
    groups = np.array(table.groups if table.groups is not None else [""] * table.n_classes)
    names = np.array(table.named_classes(), dtype=object)
    lines, columns = (each.ravel() for each in np.meshgrid(chosen, chosen, indexing="ij"))
    pairs = lines != columns if len(chosen) > 1 else np.ones(1, bool)
    lines, columns = lines[pairs], columns[pairs]
    frame = pd.DataFrame(
        {
            **{"class": lines, "name": names[lines], "group": groups[lines]},
            **{"with_class": columns, "with_name": names[columns], "with_group": groups[columns]},
            **{"sets": alone[lines], "together": together[position[lines], position[columns]]},
            "share": together[position[lines], position[columns]] / np.maximum(alone[lines], 1),
        }
    )
    often = ", ".join(f"{names[each]} in {beside[each] / alone[around]:.0%}" for each in nearest[:3])
    company = f"Beside it most often: {often}" if often else "No other class stands beside it"
    drawn = f"most={most}" if among is None else f"among={list(among)}"
    return SharedSets(
        frame=frame,
        title=f"Who shares the sets of {names[around]}",
        subtitle=f"{_with_it(alone[around], len(sets))}; sets by {chosen_by(sets)}",
        text=(
            f"{names[around]} is in n = {alone[around]} of {len(sets)} sets by {chosen_by(sets)}. {company}. "
            f"The heat map shows {counted(len(chosen), 'class', 'classes')}, ordered by group."
        ),
        code=code_with_sets(f"wb.figures.shared_sets(sets, around={around}, {drawn})", sets),
        around=around,
        order=tuple(chosen.tolist()),
        n=len(sets),
    )


def _with_it(alone: int, n: int) -> str:
    """In how many sets the class stands."""
    return f"n = {counted(int(alone), 'set')} with it, of {counted(n)}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SharedSets(Figure):
    """A heat map with a line around the chosen class and lines between groups."""

    around: int
    order: tuple[int, ...]  # the classes as drawn
    n: int  # sets

    def moves(self, places: Places) -> list[Move]:
        """Moves of the shares along a slider, at the places of `co_members_at`. The classes stay where they are."""
        together = places["co_members"]
        shares = together / np.maximum(np.diagonal(together, axis1=1, axis2=2), 1)[..., None]
        shares[:, np.eye(len(self.order), dtype=bool)] = np.nan
        return [Move("z", shares, 0)]

    def subtitles(self, places: Places) -> list[str]:
        """In how many sets the class stands, at every place."""
        place = self.order.index(self.around)
        return [_with_it(alone, self.n) for alone in places["co_members"][:, place, place]]

    def heights(self) -> np.ndarray:
        """(classes, classes) shares in the order drawn; NaN on the diagonal, where every share is 1."""
        shares = np.full((len(self.order), len(self.order)), np.nan)
        place = {each: position for position, each in enumerate(self.order)}
        for line, column, share in self.frame[["class", "with_class", "share"]].to_numpy():
            if line != column:
                shares[place[int(line)], place[int(column)]] = share
        return shares

    def labels(self) -> list[str]:
        """The names of the classes in the order drawn."""
        names = dict(zip(self.frame["class"], self.frame["name"], strict=True))
        return [names[each] for each in self.order]

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows whose sets hold both classes of a cell."""
        return RowFilter(holds=tuple(sorted({self.order[place] for place in click.point})))

    def borders(self) -> list[float]:
        """Boundaries between groups."""
        groups = dict(zip(self.frame["class"], self.frame["group"], strict=True))
        named = [groups[each] for each in self.order]
        return [place - 0.5 for place in range(1, len(named)) if named[place] != named[place - 1]]

    def _plotly(self, theme: Theme) -> go.Figure:
        labels, size, place = (
            [html.escape(name) for name in self.labels()],
            len(self.order),
            self.order.index(self.around),
        )
        names = np.array(labels, dtype=object)
        customdata = np.stack(np.meshgrid(names, names, indexing="ij"), axis=-1)
        figure = go.Figure(
            go.Heatmap(
                z=self.heights(),
                customdata=customdata,
                colorscale=sequential_scale(theme),
                **{"zmin": 0, "zmax": 1, "xgap": 1, "ygap": 1},
                colorbar={"thickness": 12, "outlinewidth": 0, "tickformat": ".0%"},
                hoverongaps=False,  # a class and itself
                hovertemplate="of the sets with <b>%{customdata[0]}</b><br>%{z:.1%} also hold <b>%{customdata[1]}</b>"
                "<extra></extra>",
            )
        )
        for border in self.borders():
            figure.add_shape(
                type="line", x0=border, x1=border, y0=-0.5, y1=size - 0.5, line_color=theme.muted, line_width=1
            )
            figure.add_shape(
                type="line", y0=border, y1=border, x0=-0.5, x1=size - 0.5, line_color=theme.muted, line_width=1
            )
        if size == 1:
            figure.add_annotation(x=0, y=0, text=NOBODY, showarrow=False, font_color=theme.muted)
        frame = {"color": theme.threshold, "width": 2}
        figure.add_shape(type="rect", x0=-0.5, x1=size - 0.5, y0=place - 0.5, y1=place + 0.5, line=frame)
        ticks = [html.escape(beside_an_axis(name, LONGEST_NAME)) for name in self.labels()]
        written = [f"<b>{name}</b>" if position == place else name for position, name in enumerate(ticks)]
        axis = {"tickvals": list(range(size)), "ticktext": written, "showgrid": False, "automargin": True, "ticks": ""}
        figure.update_xaxes(range=(-0.5, size - 0.5), tickangle=-90, title="it also contains …", **axis)
        figure.update_yaxes(range=(size - 0.5, -0.5), title="when the set contains …", **axis)
        return figure.update_layout(height=640, showlegend=False)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Rectangle
        from matplotlib.ticker import PercentFormatter

        size, place = len(self.order), self.order.index(self.around)
        figure = paper(7.6, 7.0)
        axes = figure.subplots()
        shares = np.ma.masked_invalid(self.heights())
        drawn = axes.imshow(shares, cmap=ListedColormap(theme.sequential), vmin=0, vmax=1, aspect="auto")
        for border in self.borders():
            axes.axvline(border, color=theme.muted, linewidth=0.8)
            axes.axhline(border, color=theme.muted, linewidth=0.8)
        axes.add_patch(Rectangle((-0.5, place - 0.5), size, 1, fill=False, edgecolor=theme.threshold, linewidth=1.6))
        if size == 1:
            axes.text(0, 0, NOBODY, ha="center", color=theme.muted)
        ticks = [beside_an_axis(name, LONGEST_NAME) for name in self.labels()]
        axes.set_xticks(range(size), ticks, rotation=90)
        axes.set_yticks(range(size), ticks)
        axes.set(xlabel="it also contains …", ylabel="when the set contains …")
        axes.grid(visible=False)
        bar = figure.colorbar(drawn, ax=axes, shrink=0.8, format=PercentFormatter(1, decimals=0))
        bar.outline.set_visible(False)
        return figure
