"""A contact sheet: photographs with the sets that were predicted for them, hit or miss at a glance."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import HEADER, Figure, chosen_by, code_with_sets, counted, paper
from workbench.figures.data.row_pictures import RowPictures, row_pictures
from workbench.figures.data.sprites import as_photos, data_url
from workbench.figures.style import Theme
from workbench.row_sampling import evenly_spaced_rows
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables.row_kinds import IMAGE, ROW, kind_of_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

COLUMNS = 6
COLUMNS_ON_A_PAGE = 4  # there the width is not ours to choose, and names must not run into each other
MOST_PHOTOS = 60
LINES = 3  # of the set are written below a photograph; the pointer shows the rest
LETTERS = 24  # of a line; longer names are cut
MOST_HOVERED = 30
SIDE, FRAME = 144, 6  # pixels of a photograph on the sheet, and of the coloured frame around it
CELL_HEIGHT = 264  # pixels of a photograph with its lines


def samples(sets: PredictionSets, images: Any = None, rows: Sequence[int] | None = None) -> Samples:
    """Photographs with their predicted sets: a green frame and ✓ for a hit, a terracotta frame and ✗ for a miss.

    Args:
        sets: The sets of some rows, what a fitted rule returns.

    `images` are the photographs of all rows of the table, in its order (those the table carries, or pictures of its strokes,
    sounds or texts, unless given); `rows`
    says which to show: twelve spread evenly over the table, unless given. The frame has one line for each class of each
    set, `rank` 1 being the most probable; an empty set has one line of rank 0.

    >>> import numpy as np, workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1]], labels=[1, 1], class_names=["oak", "elm"])
    >>> figure = samples(wb.Threshold(0.3).fit(table)(table), np.zeros((2, 8, 8, 3), np.uint8))
    >>> figure.frame[["row", "label", "hit", "rank", "name"]].to_numpy().tolist()
    [[0, 'elm', True, 1, 'oak'], [0, 'elm', True, 2, 'elm'], [1, 'elm', False, 1, 'oak']]
    """
    table = checked_sets(sets).table
    photos = _photos(sets, images)
    shown = evenly_spaced_rows(table.n, 2 * COLUMNS) if rows is None else _checked_rows(rows, table.n)
    names = table.named_classes()
    lines = []
    for row in shown:
        labels = _labels(sets, row)
        about = {
            "row": row,
            "id": sets.table.row_ids[row],
            "label": ", ".join(names[label] for label in labels),
            "size": int(sets.sizes[row]),
        }
        about["hit"] = bool(sets.hits[row]) if sets.labelled[row] else None
        members = zip(*sets.members(row), strict=True)
        lines += [
            {
                **about,
                "rank": rank,
                "name": names[member],
                "probability": float(probability),
                "is_label": member in labels,
            }
            for rank, (member, probability) in enumerate(members, 1)
        ] or [{**about, "rank": 0, "name": "", "probability": np.nan, "is_label": False}]
    frame = pd.DataFrame(lines)

    noun = (
        "photograph" if (kind := kind_of_rows(table)) in (IMAGE, ROW) else kind
    )  # it is shown as a picture in any case
    hits = f" {int(sets.hits[shown].sum())} of them contain their label." if sets.labelled[shown].any() else ""
    return Samples(
        frame=frame,
        title=f"What is returned for a {noun}",
        subtitle=f"{counted(len(shown), noun)} of n = {counted(table.n)}, sets by {chosen_by(sets)}",
        text=(
            f"{counted(len(shown), noun)} of n = {table.n} with their sets by {chosen_by(sets)}.{hits} "
            + " ".join(_in_words(part) for _, part in frame.groupby("row", sort=False))
        ),
        code=code_with_sets(
            f"wb.figures.samples(sets, images, rows={[int(row) for row in shown]})",
            sets,
            setup=["# images: the photographs of test, in the same order"],
        ),
        photos=photos[shown],
    )


class Cell(NamedTuple):
    """One photograph of the sheet."""

    picture: np.ndarray  # with its frame
    heading: list[str]  # the lines of the label, with the sign of a hit or a miss
    colour: str  # of a hit or a miss
    lines: list[tuple[str, bool]]  # the beginning of the set, and whether each line names the label
    members: list[str]  # the whole set


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Samples(Figure):
    """Rows of photographs, each with the beginning of its set written below it."""

    photos: np.ndarray  # (photographs, height, width, 3) bytes, in the order of the frame

    def cells(self, theme: Theme) -> list[Cell]:
        """The photographs as they are drawn, row by row."""
        cells, labelled = [], self.frame["hit"].notna().any()
        for photo, (_, part) in zip(self.photos, self.frame.groupby("row", sort=False), strict=True):
            first = part.iloc[0]
            sign, colour = {True: ("✓ ", theme.hit), False: ("✗ ", theme.miss), None: ("", theme.muted)}[first["hit"]]
            members = part[part["rank"] > 0]
            pairs = list(zip(members["name"], members["probability"], members["is_label"], strict=True))
            lines = [
                (f"{_cut(name, LETTERS - 5)} {probability:.0%}", is_label)
                for name, probability, is_label in pairs[:LINES]
            ]
            if len(pairs) > LINES:
                lines.append((f"and {len(pairs) - LINES} more", any(is_label for *_, is_label in pairs[LINES:])))
            listed = [f"{name} {probability:.1%}" for name, probability, _ in pairs]
            heading = [
                _cut(line) for line in wrap(f"{sign}{first['label'] or ('no label' if labelled else '')}", LETTERS)
            ]
            cells.append(Cell(_framed(photo, colour), heading, colour, lines or [("no class", False)], listed))
        return cells

    def _plotly(self, theme: Theme) -> go.Figure:
        cells, columns = self.cells(theme), COLUMNS_ON_A_PAGE
        n_rows = -(-len(cells) // columns)
        across, down = np.arange(len(cells)) % columns + 0.5, np.arange(len(cells)) // columns
        figure = go.Figure()
        for cell, x, y in zip(cells, across, down, strict=True):
            figure.add_layout_image(
                **{"source": data_url(cell.picture), "xref": "x", "yref": "y", "sizing": "contain"},
                **{"x": x, "y": y, "sizex": 0.94, "sizey": 0.62, "xanchor": "center", "yanchor": "top"},
            )
            lines = [f"<b>{html.escape(text)}</b>" if is_label else html.escape(text) for text, is_label in cell.lines]
            label = "<br>".join(html.escape(line) for line in cell.heading)
            heading = f'<b><span style="color: {cell.colour}">{label}</span></b>'
            text = "<br>".join([heading, *lines])
            figure.add_annotation(x=x, y=y + 0.63, text=text, yanchor="top", showarrow=False, font_size=13)
        hover = ["<br>".join(html.escape(member) for member in cell.members[:MOST_HOVERED]) for cell in cells]
        unseen = {"size": SIDE, "symbol": "square", "opacity": 0}
        template = "%{customdata}<extra></extra>"
        figure.add_scatter(
            x=across, y=down + 0.31, mode="markers", marker=unseen, customdata=hover, hovertemplate=template
        )
        figure.update_xaxes(range=(0, columns), visible=False, fixedrange=True)
        figure.update_yaxes(range=(n_rows, 0), visible=False, fixedrange=True)
        margin = {"l": 16, "r": 16, "t": 80, "b": 8}
        return figure.update_layout(
            height=CELL_HEIGHT * n_rows + 88, margin=margin, showlegend=False, hovermode="closest"
        )

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        cells = self.cells(theme)
        width, height, line = 1.6, 2.6, 0.175  # inches of a cell, and of a line of text in it
        n_rows = -(-len(cells) // COLUMNS)
        figure = paper(COLUMNS * width, HEADER + n_rows * height, arranged=False)
        full_width, full_height = figure.get_size_inches()
        for place, cell in enumerate(cells):
            left, top = place % COLUMNS * width, full_height - HEADER - place // COLUMNS * height
            side = 0.93 * width
            corner = ((left + (width - side) / 2) / full_width, (top - side) / full_height)
            axes = figure.add_axes((*corner, side / full_width, side / full_height))
            axes.imshow(cell.picture)
            axes.axis("off")
            lines = [(text, theme.ink, "bold" if is_label else "normal") for text, is_label in cell.lines]
            heading = [(text, cell.colour, "bold") for text in cell.heading]
            for number, (text, colour, weight) in enumerate(heading + lines):
                middle, down = (left + width / 2) / full_width, (top - side - 0.08 - number * line) / full_height
                figure.text(middle, down, text, color=colour, weight=weight, size=8.5, ha="center", va="top")
        return figure


def _photos(sets: PredictionSets, images: Any) -> Any:
    images = row_pictures(sets.table) if images is None else images
    if images is None:
        raise ValueError("this table carries no photographs; give images= those of its rows, in its order")
    photos = images if isinstance(images, RowPictures) else as_photos(images)
    if len(photos) != sets.table.n:
        raise ValueError(
            f"there are {len(photos)} images and {sets.table.n} rows; give one image per row, in the same order"
        )
    return photos


def _checked_rows(rows: Sequence[int], n: int) -> np.ndarray:
    chosen = np.asarray(rows)
    if chosen.ndim != 1 or not 1 <= chosen.size <= MOST_PHOTOS or chosen.dtype.kind not in "iu":
        raise ValueError(f"rows must be 1 to {MOST_PHOTOS} row numbers, not {rows!r}")
    if chosen.min() < 0 or chosen.max() >= n or len(np.unique(chosen)) < chosen.size:
        raise ValueError(f"rows must be different numbers from 0 to {n - 1}, not {chosen.tolist()}")
    return chosen


def _labels(sets: PredictionSets, row: int) -> list[int]:
    return [] if sets.table.labels is None else sets.table.rows([row]).positives()[1].tolist()


def _cut(text: str, letters: int = LETTERS) -> str:
    """The text, or so many letters of it."""
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _in_words(part: pd.DataFrame) -> str:
    first = part.iloc[0]
    label = f", label {first['label']}" if first["label"] else ""
    verdict = {True: ", hit", False: ", miss", None: ""}[first["hit"]]
    return f"Row {first['id']}{label}{verdict}: {counted(first['size'], 'class', 'classes')}."


def _framed(photo: np.ndarray, colour: str) -> np.ndarray:
    """The photograph at the size of the sheet, with a frame of that colour."""
    from PIL import Image, ImageColor

    height, width = photo.shape[:2]
    scale = SIDE / max(height, width)
    size = (max(1, round(scale * width)), max(1, round(scale * height)))
    large = np.asarray(Image.fromarray(photo).resize(size, Image.Resampling.BICUBIC))
    framed = np.empty((SIDE + 2 * FRAME, SIDE + 2 * FRAME, 3), np.uint8)
    framed[:] = ImageColor.getrgb(colour)
    top, left = (SIDE + 2 * FRAME - size[1]) // 2, (SIDE + 2 * FRAME - size[0]) // 2
    framed[top : top + size[1], left : left + size[0]] = large
    return framed
