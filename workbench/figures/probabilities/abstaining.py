"""The reject option: how often the rows that get an answer get a wrong one, against how many rows get one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, counted, paper, round_limit
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics import confidences, risk_coverage_area
from workbench.sets.thresholds import checked_m, threshold_among
from workbench.tables import LogitTable, checked_table
from workbench.tables.ordering import likeliest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure as StaticFigure

MOST_POINTS = 400  # of the curve
REJECT = "reject option"


def risk_against_coverage(table: LogitTable, K: Sequence[float] = (2, 3, 5)) -> RiskAgainstCoverage:
    """Error rate of the rows that are answered with one class, against their share; beside it, sets for every row.

    Args:
        table: Rows with one label each; those without one are left out.
        K: Mean sizes of the average-K sets that are drawn; those above the number of classes are left out. Their threshold
            is that of these same rows.

    A classifier with a reject option answers the rows it is most confident of, with the most probable class, and none of the
    others. A set-valued classifier answers all rows and errs as rarely; where its dashed line meets the curve stands how many
    rows the reject option would leave without an answer for the same error. The area under the curve is AURC.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> figure = risk_against_coverage(table, K=(2,))
    >>> figure.frame[["curve", "coverage", "risk"]].to_numpy().tolist()
    [['reject option', 0.5, 0.0], ['reject option', 1.0, 0.5], ['average-2 sets', 1.0, 0.0]]

    Paper: Garcin, thesis, section 2.1 (Herbei & Wegkamp 2006); Geifman, Uziel & El-Yaniv 2019.
    """
    labels = checked_table(table).checked_labels()
    if table.many_labels:
        raise ValueError("the reject option answers with one class, and these rows have many labels; see none_of_these")
    if not table.labelled.all():
        return risk_against_coverage(table.rows(table.labelled), K)
    probabilities = table.probabilities()
    first = likeliest(probabilities, np.asarray(table.scores), table.link)
    order = np.argsort(-confidences(table), kind="stable")
    answered = np.arange(1, table.n + 1)
    risk = np.cumsum((first != labels)[order]) / answered
    shown = np.unique(np.linspace(0, table.n - 1, min(table.n, MOST_POINTS)).round().astype(int))
    parts = [pd.DataFrame({"curve": REJECT, "coverage": answered[shown] / table.n, "risk": risk[shown]})]
    sizes = [size for size in K if size <= table.n_classes]
    of_label = probabilities[np.arange(table.n), labels]
    errors = {
        f"average-{size:g} sets": float(np.mean(of_label < threshold_among(probabilities, checked_m(size, table))))
        for size in sizes
    }
    parts += [pd.DataFrame({"curve": [name], "coverage": 1.0, "risk": error}) for name, error in errors.items()]
    area = risk_coverage_area(table)
    summary = [
        f" {name.capitalize()} err on {error:.1%} of all rows, which the reject option reaches if it answers "
        f"{_coverage_at(risk, error):.1%}."
        for name, error in errors.items()
    ]
    return RiskAgainstCoverage(
        frame=pd.concat(parts, ignore_index=True),
        title="Answer fewer rows, or answer with sets?",
        subtitle=f"n = {counted(table.n, 'row')}; area under the curve (AURC) {area:.3f}",
        text=f"Error rate against the share of rows that are answered, n = {table.n} rows: {risk[-1]:.1%} if all are, area "
        f"{area:.3f}.{''.join(summary)}",
        code=Code(
            f"wb.figures.risk_against_coverage(table, K={tuple(K)!r})",
            [f"# table: {table.n} rows of {table.n_classes} classes, with labels"],
        ),
    )


def _coverage_at(risk: np.ndarray, error: float) -> float:
    """The largest share of rows that can be answered with no more than this error.

    >>> _coverage_at(np.array([0.0, 0.5, 1 / 3, 0.5]), 0.4)
    0.75
    """
    return float((np.flatnonzero(risk <= error)[-1:] + 1).sum() / len(risk))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RiskAgainstCoverage(Figure):
    """A curve for the reject option, and a dashed line for each size of sets."""

    def curve(self) -> pd.DataFrame:
        return self.frame[self.frame["curve"] == REJECT]

    def sets(self) -> list[tuple[str, float]]:
        """Name and error rate of the sets."""
        others = self.frame[self.frame["curve"] != REJECT]
        return list(zip(others["curve"], others["risk"], strict=True))

    def top(self) -> float:
        return round_limit(max(self.frame["risk"].max(), 0.01))

    def _plotly(self, theme: Theme) -> go.Figure:
        figure, curve = go.Figure(), self.curve()
        figure.add_scatter(
            x=curve["coverage"], y=curve["risk"], name=REJECT, mode="lines", line={"color": theme.accent, "width": 3},
            hovertemplate="%{x:.1%} answered: %{y:.1%} of them wrong<extra></extra>",
        )  # fmt: skip
        for place, (name, risk) in enumerate(self.sets(), start=1):
            figure.add_scatter(
                x=[0, 1], y=[risk, risk], name=name, mode="lines",
                hovertemplate="%{y:.1%} of all rows<extra>" + name + "</extra>",
                line={"color": theme.categories[place % len(theme.categories)], "width": 2, "dash": "dash"},
            )  # fmt: skip
        figure.update_xaxes(title="rows that get an answer", range=(0, 1), tickformat=".0%")
        figure.update_yaxes(title="error rate of these rows", range=(0, self.top()), tickformat=".0%")
        return figure.update_layout(height=440, showlegend=True)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter

        figure, curve = paper(6.4, 4.4), self.curve()
        axes = figure.subplots()
        axes.plot(curve["coverage"], curve["risk"], color=theme.accent, linewidth=2.2, label=REJECT)
        for place, (name, risk) in enumerate(self.sets(), start=1):
            axes.axhline(risk, color=theme.categories[place % len(theme.categories)], linestyle="--", label=name)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set(xlim=(0, 1), ylim=(0, self.top()), xlabel="rows that get an answer", ylabel="error rate of these rows")
        axes.legend()
        return figure
