"""Which classes share their sets: all pairs at once, similar classes side by side, blocks of them boxed."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
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
from workbench.figures.sets.neighbours import co_members
from workbench.figures.style import Theme, sequential_scale
from workbench.metrics.rows import RowFilter
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables import LogitTable
from workbench.tables.map_reduce import over_parts
from workbench.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MOST = 60  # classes that are drawn
DARKEST = 50  # per cent: more is as dark; few pairs share more
LEVEL = 0.25  # of the share of a class with the others of its block
NAMED = 32  # classes whose names fit beside an axis
CELLS, BOXES, STRIPE = "pairs", "blocks", "groups"  # traces, by their names
STRIPE_AT = -1.6  # left of the cells
LONGEST_NAME = 18
Block = tuple[int, int]  # of the classes as drawn: the first, and the one after the last


def class_matrix(
    sets: PredictionSets, most: int = MOST, among: Sequence[int] | None = None, level: float = LEVEL
) -> ClassMatrix:
    r"""Every pair of classes, and how often they share a set; similar classes stand side by side.

    $$\mathrm{share}(i, j) = \frac{\#\{\text{sets with } i \text{ and } j\}}{\#\{\text{sets with } i \text{ or } j\}}$$

    The order comes from the probabilities alone (average linkage), so it is the same for every rule and every K. A block is
    a run of neighbours in which every class shares at least `level` with the others, on average; the longest are boxed. The
    stripe at the left shows the groups of the classes, where they are known: a block of several colours is a confusion that
    crosses groups. Needs no labels.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        most: Number of classes that are drawn; of more, those that compete most.
        among: The classes that are drawn, in this order; `similar_order` gives the default.
        level: Least mean share of a class with the others of its block.

    Returns:
        A figure whose frame has one line a pair; `.blocks()` lists the blocks.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.5, 0.1, 0.4], [0.6, 0.0, 0.4], [0.0, 1.0, 0.0]])
    >>> figure = class_matrix(wb.Threshold(0.3).fit(table)(table))
    >>> figure.blocks()[["classes", "rows"]].to_numpy().tolist()
    [['class 2, class 0', 2]]
    """
    table = checked_sets(sets).table
    if not 0 < level <= 1:
        raise ValueError(f"level = {level!r}; give a share above 0, at most 1")
    order = tuple(among) if among is not None else similar_order(table, whole_number("most", most, least=1))
    if len({*order}) != len(order) or not order or not {*order} <= {*range(table.n_classes)}:
        raise ValueError(f"among = {list(order)}; give some of the {table.n_classes} classes, each once")
    together = co_members(sets, order)
    shares = shared(together)
    names, groups = table.named_classes(), table.groups
    first, second = np.triu_indices(len(order), 1)
    chosen = np.array(order)
    columns: dict[str, Any] = {"class": chosen[first], "name": [names[each] for each in chosen[first]]}
    columns |= {"with_class": chosen[second], "with_name": [names[each] for each in chosen[second]]}
    if groups is not None:
        columns |= {"group": [groups[each] for each in chosen[first]]}
        columns |= {"with_group": [groups[each] for each in chosen[second]]}
    alone = np.diagonal(together)
    columns |= {"sets": alone[first] + alone[second] - together[first, second], "together": together[first, second]}
    blocks = blocks_of(shares, level)
    figure = ClassMatrix(
        frame=pd.DataFrame({**columns, "share": shares[first, second]}),
        title="Which classes share their sets",
        subtitle="",
        text="",
        code=code_with_sets(f"wb.figures.class_matrix(sets, among={list(order)}, level={level:g})", sets),
        sets=sets,
        order=order,
        shares=shares,
        level=level,
        boxed=tuple(blocks),
    )
    return replace(figure, subtitle=f"{figure.summary(blocks)}; sets by {chosen_by(sets)}", text=figure.in_words())


def similar_order(table: LogitTable, most: int = MOST) -> tuple[int, ...]:
    """Classes in an order that puts those side by side which share probability in the same rows; at most so many.

    Of more, those are taken for which Σ p (1 − p) is largest: the classes that compete.

    >>> similar_order(LogitTable.from_probabilities([[0.5, 0.0, 0.5], [0.1, 0.9, 0.0]]))
    (1, 0, 2)
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    competing = np.sum(list(over_parts(table, contested)), axis=0)
    chosen = np.sort(np.argsort(-competing, kind="stable")[:most])
    if len(chosen) < 3:
        return tuple(chosen.tolist())
    often = np.sum(list(over_parts(table, shared_in_pairs, chosen)), axis=0)
    distances = 1 - shared(often)
    np.fill_diagonal(distances, 0)
    tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    return tuple(chosen[leaves_list(tree)].tolist())


def contested(part: LogitTable, first_row: int) -> np.ndarray:
    """(L,) Σ p (1 − p) over the rows of a part."""
    blocks = (part.probabilities(rows).astype(float) for rows in part.spans())
    total: np.ndarray = np.sum([(block * (1 - block)).sum(axis=0) for block in blocks], axis=0)
    return total


def shared_in_pairs(part: LogitTable, first_row: int, classes: np.ndarray) -> np.ndarray:
    """(classes, classes) the sum over the rows of a part of the smaller of two probabilities."""
    total = np.zeros((len(classes), len(classes)))
    for rows in part.spans():
        block = part.probabilities(rows)[:, classes].astype(float)
        for line, of_line in enumerate(block.T):
            total[line] += np.minimum(of_line[:, None], block).sum(axis=0)
    return total


def shared(together: np.ndarray) -> np.ndarray:
    """(…, classes, classes) of what either class has, the share that both have; on the diagonal 1, or 0 of nothing."""
    alone = np.diagonal(together, axis1=-2, axis2=-1)
    either = alone[..., :, None] + alone[..., None, :] - together
    share: np.ndarray = together / np.where(either > 0, either, 1)
    return share


def blocks_of(shares: np.ndarray, level: float) -> list[Block]:
    """The longest runs of neighbours in which every class shares at least `level` with the others, on average.

    >>> shares = np.array([[1, 0.6, 0, 0], [0.6, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0.1, 1]])
    >>> blocks_of(shares, 0.25), blocks_of(shares, 0.1)
    ([(0, 2)], [(0, 2), (2, 4)])
    """
    n = len(shares)
    others = shares * ~np.eye(n, dtype=bool)
    before = np.concatenate([np.zeros((n, 1)), np.cumsum(others, axis=1)], axis=1)  # of each line, left of a column
    free, found = np.ones(n, bool), []
    for size in range(n, 1, -1):
        starts = np.arange(n - size + 1)
        lines, first = starts[:, None] + np.arange(size), starts[:, None]
        least = (before[lines, first + size] - before[lines, first]).min(axis=1)
        for start in np.flatnonzero(least >= level * (size - 1)).tolist():
            if free[start : start + size].all():
                found.append((start, start + size))
                free[start : start + size] = False
    return sorted(found)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClassMatrix(Figure):
    """A square of cells, boxes around blocks, and a stripe of groups."""

    sets: PredictionSets
    order: tuple[int, ...]  # the classes as drawn
    shares: np.ndarray
    level: float
    boxed: tuple[Block, ...]

    def blocks(self) -> pd.DataFrame:
        """The blocks, largest first.

        Returns:
            A frame with `classes` (names), `size`, `groups` (how many of each, where known), `n_groups`, `share` (mean of
            its pairs), `rows` (sets that hold two of its classes or more) and `members` (class numbers).
        """
        table, lines = self.sets.table, []
        names = table.named_classes()
        for start, end in self.boxed:
            members = self.order[start:end]
            part = self.shares[start:end, start:end]
            of_groups = pd.Series([table.groups[each] for each in members] if table.groups is not None else [""])
            counts = of_groups.value_counts(sort=True)
            lines.append(
                {
                    "classes": ", ".join(names[each] for each in members),
                    "size": len(members),
                    "groups": ", ".join(f"{name} {count}" for name, count in counts.items()) if table.groups else "",
                    "n_groups": len(counts),
                    "share": (part.sum() - np.trace(part)) / (len(members) * (len(members) - 1)),
                    "rows": len(RowFilter(two_of=members).rows(self.sets)),
                    "members": members,
                }
            )
        columns = ["classes", "size", "groups", "n_groups", "share", "rows", "members"]
        return pd.DataFrame(lines, columns=columns).sort_values(
            "size", ascending=False, kind="stable", ignore_index=True
        )

    def crossing(self, blocks: Sequence[Block]) -> list[Block]:
        """The blocks whose classes are of several groups."""
        groups = self.sets.table.groups
        if groups is None:
            return []
        return [(start, end) for start, end in blocks if len({groups[each] for each in self.order[start:end]}) > 1]

    def summary(self, blocks: Sequence[Block]) -> str:
        """How many classes and rows, and how many blocks."""
        words = f"n = {counted(len(self.order), 'class', 'classes')}, {counted(len(self.sets), 'row')}; "
        words += counted(len(blocks), "block")
        if self.sets.table.groups is None:
            return words
        return f"{words}, {len(self.crossing(blocks))} of several groups"

    def in_words(self) -> str:
        """The alternative text: the blocks that cross groups by name, else the largest."""
        frame = self.blocks()
        said = f"A matrix of {self.summary(self.boxed)}, with sets by {chosen_by(self.sets)}."
        if frame.empty:
            return f"{said} No classes share a {self.level:.0%} of their sets."
        crossing = frame[frame["n_groups"] > 1]
        chosen = frame if crossing.empty else crossing
        lead = "Largest" if crossing.empty else "Of several groups"
        first = zip(chosen["classes"].head(3), chosen["groups"].head(3), strict=True)
        listed = "; ".join(f"{classes} ({groups})" if groups else classes for classes, groups in first)
        return f"{said} {lead}: {listed}."

    def moves(self, places: Places) -> list[Move]:
        """Moves of cells and boxes along a slider, at the places of `co_members_at`. The classes stay where they are."""
        shares = shared(places["co_members"])
        boxes = np.array([self.outlines(blocks_of(each, self.level)) for each in shares], np.float32)
        return [
            Move("z", np.round(100 * shares).astype(np.uint8), CELLS),
            Move("x", boxes[..., 0], BOXES),
            Move("y", boxes[..., 1], BOXES),
        ]

    def subtitles(self, places: Places) -> list[str]:
        """Number of blocks at every position."""
        return [self.summary(blocks_of(each, self.level)) for each in shared(places["co_members"])]

    def outlines(self, blocks: Sequence[Block]) -> np.ndarray:
        """(points, 2) the corners of the boxes, one box after the other, NaN between two; as many as there can be blocks."""
        corners = np.full((len(self.order) // 2, 6, 2), np.nan)
        for box, (a, b) in zip(corners, blocks, strict=False):
            box[:5] = [(a, a), (b, a), (b, b), (a, b), (a, a)]
        return corners.reshape(-1, 2) - 0.5

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows whose sets hold both classes of a cell; of a cell on the diagonal, two classes of its block."""
        if click.trace != CELLS:
            return None
        line, column = click.point
        if line != column:
            return RowFilter(holds=tuple(sorted((self.order[line], self.order[column]))))
        block = next((self.order[a:b] for a, b in self.boxed if a <= line < b), None)
        return RowFilter(holds=(self.order[line],)) if block is None else RowFilter(two_of=tuple(sorted(block)))

    def ticks(self) -> tuple[list[float], list[str]]:
        """Where names stand beside the cells: of the classes, or of runs of a group where the classes are many."""
        table = self.sets.table
        names = table.named_classes()
        if len(self.order) <= NAMED or table.groups is None:
            step = -(-len(self.order) // NAMED)
            chosen = range(0, len(self.order), step)
            return [float(place) for place in chosen], [names[self.order[place]] for place in chosen]
        places, words, start = [], [], 0
        for name, run in groupby(table.groups[each] for each in self.order):
            length = len(list(run))
            if length > 1:
                places.append(start + (length - 1) / 2)
                words.append(name)
            start += length
        return places, words

    def stripe(self, theme: Theme) -> tuple[list[int], list[str], list[str]]:
        """Of each class the number of its group, the names of the groups, and their colours."""
        groups = self.sets.table.groups
        assert groups is not None
        names = sorted({groups[each] for each in self.order})
        colours = [theme.categories[place % len(theme.categories)] for place in range(len(names))]
        return [names.index(groups[each]) for each in self.order], names, colours

    def _plotly(self, theme: Theme) -> go.Figure:
        names = np.array([html.escape(self.sets.table.named_classes()[each]) for each in self.order], dtype=object)
        size = len(names)
        figure = go.Figure(
            go.Heatmap(
                z=np.round(100 * self.shares).astype(np.uint8), name=CELLS,
                customdata=np.stack(np.meshgrid(names, names, indexing="ij"), axis=-1),
                colorscale=sequential_scale(theme), zmin=0, zmax=DARKEST,
                colorbar={
                    "thickness": 12, "outlinewidth": 0, "tickvals": list(range(0, DARKEST + 1, 10)),
                    "ticktext": [*(f"{tick} %" for tick in range(0, DARKEST, 10)), f"≥ {DARKEST} %"],
                },
                hovertemplate="of the sets with <b>%{customdata[0]}</b> or <b>%{customdata[1]}</b><br>%{z} % hold both"
                "<extra></extra>",
            )
        )  # fmt: skip
        left = -0.5
        if self.sets.table.groups is not None:
            codes, groups, colours = self.stripe(theme)
            left = STRIPE_AT - 0.7
            edges = np.repeat(np.arange(len(groups) + 1), 2)[1:-1] / len(groups)
            figure.add_heatmap(
                x=[STRIPE_AT], y=list(range(size)), z=[[code] for code in codes], name=STRIPE, showscale=False,
                colorscale=[[edge, colours[place // 2]] for place, edge in enumerate(edges)],
                zmin=-0.5, zmax=len(groups) - 0.5, customdata=[[html.escape(groups[code])] for code in codes],
                hovertemplate="<b>%{customdata}</b><extra></extra>",
            )  # fmt: skip
        boxes = self.outlines(self.boxed)
        figure.add_scatter(
            x=boxes[:, 0], y=boxes[:, 1], mode="lines", name=BOXES, hoverinfo="skip",
            line={"color": theme.threshold, "width": 2},
        )  # fmt: skip
        places, words = self.ticks()
        axis = {"showgrid": False, "zeroline": False, "ticks": "", "showline": False}
        figure.update_xaxes(range=(left, size - 0.5), showticklabels=False, constrain="domain", **axis)
        figure.update_yaxes(
            range=(size - 0.5, -0.5), tickvals=places, scaleanchor="x", constrain="domain", automargin=True,
            ticktext=[html.escape(beside_an_axis(word, LONGEST_NAME)) for word in words], **axis,
        )  # fmt: skip
        return figure.update_layout(height=640, showlegend=False)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Rectangle
        from matplotlib.ticker import PercentFormatter

        size, left = len(self.order), -0.5
        figure = paper(7.4, 6.6)
        axes = figure.subplots()
        drawn = axes.imshow(self.shares, cmap=ListedColormap(theme.sequential), vmin=0, vmax=DARKEST / 100)
        if self.sets.table.groups is not None:
            codes, _, colours = self.stripe(theme)
            left = STRIPE_AT - 0.7
            for line, code in enumerate(codes):
                axes.add_patch(Rectangle((STRIPE_AT - 0.5, line - 0.5), 1, 1, color=colours[code], linewidth=0))
        for start, end in self.boxed:
            corner, side = (start - 0.5, start - 0.5), end - start
            axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=theme.threshold, linewidth=1.6))
        places, words = self.ticks()
        axes.set_yticks(places, [beside_an_axis(word, LONGEST_NAME) for word in words], size="small")
        axes.set(xlim=(left, size - 0.5), ylim=(size - 0.5, -0.5), xticks=[])
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        bar = figure.colorbar(drawn, ax=axes, shrink=0.8, format=PercentFormatter(1, decimals=0), extend="max")
        bar.outline.set_visible(False)
        return figure
