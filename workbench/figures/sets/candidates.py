"""One batch as the two-head loss sees it: the label of every row, and the classes that the candidate head proposes beside it."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, beside_an_axis, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics import bayes
from workbench.tables import LogitTable, checked_table
from workbench.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

OTHER, CANDIDATE, LABEL = ROLES = ("negative", "candidate", "label")
MARKS = ("", "+", "●")  # of the roles, for eyes that colours do not help
LONGEST_NAME = 20  # letters of a name below the columns
MOST_CLASSES = 60  # that are drawn


def candidates(table: LogitTable, K: float = 2, batch: int = 16, seed: int = 0) -> Candidates:
    """A batch of rows by classes: labels, the candidates beside them, and classes that are pushed down.

    Args:
        table: Scores of the candidate head, such as `trained.tables["val/candidates"]`, with one label a row.
        K: Mean size of the sets, labels included: (K − 1) · `batch` candidates are chosen.
        batch: Number of rows of the batch.
        seed: Seed of the order in which rows come into batches.

    The candidates are the largest probabilities of the whole batch once the labels are taken out, so a row that is sure of
    itself has none and an ambiguous one several. Classes that are neither in any row are not drawn. Where the true posterior
    is known, a candidate is right if it is in the best possible set of its row of the same mean size.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.9, 0.1, 0.0], [0.5, 0.3, 0.2]], labels=[0, 0])
    >>> figure = candidates(table, K=1.5, batch=2)
    >>> figure.frame[figure.frame["role"] == "candidate"][["row", "name"]].to_numpy().tolist()
    [[1, 'class 1']]

    Paper: Garcin et al. 2023, Fig. 3 and Eq. 11–12.
    """
    labels = checked_table(table).checked_labels()
    if table.many_labels:
        raise ValueError("candidates stand beside one label, and these rows have many; give a table of one label a row")
    if not table.labelled.all():
        return candidates(table.rows(table.labelled), K, batch, seed)
    batch = min(whole_number("batch", batch), table.n)
    if not 1 <= K <= table.n_classes:
        raise ValueError(f"K = {K!r}; give a mean size from 1 to the number of classes, {table.n_classes}")
    order = np.random.default_rng(seed).permutation(table.n)
    rows = np.sort(order[:batch])
    proposed = bayes.candidates(table.probabilities(rows), labels[rows], K)
    roles = proposed.astype(int)
    roles[np.arange(batch), labels[rows]] = ROLES.index(LABEL)
    drawn = np.flatnonzero(roles.any(0))[:MOST_CLASSES]
    names = table.named_classes()
    frame = pd.DataFrame(
        {
            "row": np.repeat(rows, len(drawn)),
            "name": [names[j] for j in drawn] * batch,
            "role": np.array(ROLES, dtype=object)[roles[:, drawn].ravel()],
            "probability": table.probabilities(rows)[:, drawn].ravel(),
        }
    )
    per_row = proposed.sum(1)
    words = f"{counted(int(per_row.sum()), 'candidate')}, {per_row.min()} to {per_row.max()} a row"
    shares = bayes.right_candidates(table, K, batch, seed) if table.posterior is not None else np.array([])
    right = f"; over all batches {shares.mean():.0%} are right" if len(shares) else ""
    return Candidates(
        frame=frame,
        title="The candidates of a batch",
        subtitle=f"n = {counted(batch, 'row')}, K = {K:g}: {words}{right}",
        text=f"A batch of n = {batch} rows and the {len(drawn)} classes that are a label or a candidate in it, K = {K:g}: "
        f"{words}{right}.",
        code=Code(
            f"wb.figures.candidates(table, K={K!r}, batch={batch}, seed={seed})",
            [f"# table: {table.n} rows of {table.n_classes} classes, with labels"],
        ),
        n_rows=batch,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Candidates(Figure):
    """A cell for every row and class: light for a label, dark for a candidate, pale for the others."""

    n_rows: int

    def cells(self) -> np.ndarray:
        """(rows, classes) the number of the role of each cell."""
        numbers = self.frame["role"].map({role: place for place, role in enumerate(ROLES)})
        cells: np.ndarray = numbers.to_numpy(int).reshape(self.n_rows, -1)
        return cells

    def columns(self) -> list[str]:
        names = list(dict.fromkeys(self.frame["name"]))
        return [beside_an_axis(name, LONGEST_NAME) for name in names]

    def rows(self) -> list[str]:
        return [str(row) for row in dict.fromkeys(self.frame["row"])]

    def colours(self, theme: Theme) -> dict[str, str]:
        return {OTHER: theme.grid, CANDIDATE: theme.model_b, LABEL: theme.accent}

    def _plotly(self, theme: Theme) -> go.Figure:
        cells, colours = self.cells(), list(self.colours(theme).values())
        steps = [(place / 3, colour) for place, colour in enumerate(colours)]
        scale = [end for (low, colour) in steps for end in ((low, colour), (low + 1 / 3, colour))]
        words = self.frame.assign(name=self.frame["name"].map(html.escape))
        texts = (words["name"] + ", row " + words["row"].astype(str) + ": " + words["role"]).to_numpy()
        figure = go.Figure(
            go.Heatmap(
                z=cells, zmin=-0.5, zmax=2.5, colorscale=scale, xgap=1, ygap=1,
                text=np.array(MARKS)[cells], texttemplate="%{text}", textfont={"color": theme.paper},
                customdata=np.dstack([texts.reshape(cells.shape), self.frame["probability"].to_numpy().reshape(cells.shape)]),
                hovertemplate="%{customdata[0]} (%{customdata[1]:.1%})<extra></extra>",
                colorbar={"tickvals": [0, 1, 2], "ticktext": list(ROLES), "thickness": 14, "len": 0.6},
            )
        )  # fmt: skip
        wide, high = cells.shape[1], cells.shape[0]
        ticks = {
            "tickvals": list(range(wide)),
            "ticktext": [html.escape(name) for name in self.columns()],
            "tickangle": -60,
        }
        figure.update_xaxes(range=(-0.5, wide - 0.5), showgrid=False, **ticks)
        rows = {"tickvals": list(range(high)), "ticktext": self.rows()}
        figure.update_yaxes(title="row", range=(high - 0.5, -0.5), showgrid=False, **rows)
        return figure.update_layout(height=240 + 20 * high)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        cells, colours = self.cells(), self.colours(theme)
        figure = paper(7.2, 2.4 + 0.2 * len(cells))
        axes = figure.subplots()
        axes.pcolormesh(cells, cmap=ListedColormap(list(colours.values())), vmin=-0.5, vmax=2.5, edgecolors=theme.paper)
        for (row, column), role in np.ndenumerate(cells):
            axes.text(
                column + 0.5, row + 0.5, MARKS[role], color=theme.paper, ha="center", va="center", fontsize="small"
            )
        axes.invert_yaxis()
        axes.set_xticks(np.arange(cells.shape[1]) + 0.5, self.columns(), rotation=60, ha="right", fontsize="small")
        axes.set_yticks(np.arange(len(cells)) + 0.5, self.rows(), fontsize="small")
        axes.set_ylabel("row")
        shown = [Patch(color=colour, label=role) for role, colour in colours.items()]
        figure.legend(handles=shown, loc="outside lower center", ncols=3, frameon=False)
        return figure
