"""A table laid out as it is printed, ours beside theirs: as Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from workbench.metrics.reporting import LATEX

if TYPE_CHECKING:
    from workbench.claims.table import PaperTable
    from workbench.claims.table_spec import Column, Place

OURS = "ours"
DIVERGED, UNDEFINED = "×", "—"  # no run ended; they ended, and there was nothing to measure
SIGNS = LATEX | {"±": r"$\pm$", "×": r"$\times$", "✓": r"\checkmark{}", "✗": r"$\times$", "—": "---", "γ": r"$\gamma$"}
SIGNS |= {"β": r"$\beta$", "<": "$<$", ">": "$>$", "|": r"\textbar{}"}


class Grid(NamedTuple):
    """The text of a table: a heading and lines; the first entry of a line is its label."""

    heading: list[str]
    lines: list[list[str]]


def grid(table: PaperTable, ours: pd.DataFrame | None = None) -> Grid:
    """The cells as they are printed, and in the next column what was reproduced of them."""
    found = {} if ours is None else _run(ours)
    run = {column for _, column, _ in found}
    heading = [table.corner]
    lines = [[row.label] for row in table.rows]
    for column in table.columns:
        heading += [column.label, OURS] if column.label in run else [column.label]
        for row, line in zip(table.rows, lines, strict=True):
            line.append(table.cells[row.label, column.label])
            if column.label in run:
                line.append(_cell(table, row.label, column, found))
    return Grid(heading, lines)


def _run(ours: pd.DataFrame) -> dict[Place, tuple[float, float, float, int]]:
    """Place → ours, the ends of its interval and the number of seeds, of the cells that were run."""
    ran = ours[ours["run"]]
    places = zip(ran["row"], ran["column"], ran["part"], strict=True)
    return dict(zip(places, zip(ran["ours"], ran["low"], ran["high"], ran["seeds"], strict=True), strict=True))


def _cell(table: PaperTable, row: str, column: Column, found: Mapping[Place, tuple[float, float, float, int]]) -> str:
    """Format the reproduced value of a cell with as many digits as the printed one."""
    texts = []
    for part in column.parts:
        place = (row, column.label, part.name)
        if place not in found:
            return ""
        ours, low, high, seeds = found[place]
        digits = table.digits(place)
        text = f"{ours:.{digits}f}" if pd.notna(ours) else UNDEFINED if seeds else DIVERGED
        with_interval = not part.name or len(column.parts) == 1
        texts.append(f"{text} ± {(high - low) / 2:.{digits}f}" if with_interval and pd.notna(high) else text)
    if len(texts) > 1 and not column.parts[0].name:
        return f"{texts[0]} ({'/'.join(texts[1:])})"
    return " | ".join(texts)


def as_markdown(table: PaperTable, ours: pd.DataFrame | None = None) -> str:
    """The grid as Markdown."""
    heading, lines = grid(table, ours)
    rows = [heading, ["---"] + ["---:"] * (len(heading) - 1), *lines]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def as_latex(table: PaperTable, ours: pd.DataFrame | None = None) -> str:
    """The grid for a document that loads booktabs (and amssymb, for marks); every text is escaped."""
    heading, lines = grid(table, ours)

    def line(cells: list[str]) -> str:
        return "    " + " & ".join("".join(SIGNS.get(sign, sign) for sign in cell) for cell in cells) + r" \\"

    return "\n".join(
        [
            rf"\begin{{tabular}}{{l{'r' * (len(heading) - 1)}}}  % {table.name}: {table.citation}",
            *(r"    \toprule", line(heading), r"    \midrule"),
            *map(line, lines),
            *(r"    \bottomrule", r"\end{tabular}", ""),
        ]
    )


def as_html(table: PaperTable, ours: pd.DataFrame | None = None, conditions: str = "") -> str:
    """The grid for a notebook, below its name, with what was said of it; ours is bold."""
    heading, lines = grid(table, ours)
    bold = [name == OURS for name in heading]

    def line(cells: list[str], tag: str) -> str:
        return "".join(
            f"<{tag}>{f'<b>{escape(cell)}</b>' if strong and cell else escape(cell)}</{tag}>"
            for cell, strong in zip(cells, bold, strict=True)
        )

    body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in lines)
    words = "".join(f"<p>{escape(text)}</p>" for text in (table.citation, conditions) if text)
    title = f"<b>{escape(table.name)}: {escape(table.title)}</b>"
    return f"<div>{title}<table><thead><tr>{line(heading, 'th')}</tr></thead><tbody>{body}</tbody></table>{words}</div>"
