"""The plan of a sweep: a grid with a cell for every run."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from workbench import display_names
from workbench.figures.base import Figure, checked_frame, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

STORED, FAILED, WAITING = "trained", "failed", "to train"
OF_PLAN = ("state", "seconds", "accuracy")  # columns of a plan besides what is varied
CELL, MOST_HIGH = 64, 640  # pixels of a cell, and of the picture


def sweep_plan(plan: pd.DataFrame) -> SweepPlan:
    """The runs of a sweep, one cell each: what is trained already and how well, and how long the others will take.

    Args:
        plan: One row per run: the value of each varied knob (the first along the axis, the others one line each), its `state`
            ("trained", "failed" or "to train"), the `seconds` that its training is estimated to take, and its top-1 `accuracy`
            on the validation rows; missing where not known. `workbench.workers.estimates.planned_sweep` makes one.

    >>> plan = pd.DataFrame({"learning_rate": [0.1, 0.2], "state": ["trained", "to train"], "seconds": [None, 40.0]})
    >>> sweep_plan(plan.assign(accuracy=[0.5, None])).frame["cell"].tolist()
    ['50.0%', 'about 40 s']
    """
    checked_frame(plan, OF_PLAN, "workbench.workers.estimates.planned_sweep makes one")
    unknown = sorted(set(plan["state"]) - {STORED, FAILED, WAITING})
    varied = [str(name) for name in plan.columns if name not in OF_PLAN]
    if unknown or not varied or plan.empty:
        raise ValueError(
            f"a plan has a run, a column for what is varied and the states {STORED!r}, {FAILED!r} and {WAITING!r}; "
            f"this one has {len(plan)} runs, {', '.join(varied) or 'no column'}{''.join(f', {state!r}' for state in unknown)}"
        )
    first, *others = varied
    lines = [
        ", ".join(f"{display_names.of_varied(name)} = {display_names.of_value(row[name])}" for name in others)
        for row in plan.to_dict("records")
    ]
    frame = pd.DataFrame(
        {
            "value": [display_names.of_value(value) for value in plan[first]],
            "line": lines,
            **{name: plan[name].to_numpy() for name in OF_PLAN},
            "cell": [_in_cell(*row) for row in plan[list(OF_PLAN)].itertuples(index=False)],
        }
    ).astype({"seconds": float, "accuracy": float})
    n = {state: int((frame["state"] == state).sum()) for state in (STORED, FAILED, WAITING)}
    counts = [f"{number} {state}" for state, number in n.items() if number or state != FAILED]
    total = frame.loc[frame["state"] == WAITING, "seconds"].sum(skipna=False)
    of_time = f", about {duration(total)} in all" if n[WAITING] and not math.isnan(total) else ""
    subtitle = f"n = {counted(len(frame), 'run')}: {', '.join(counts)}{of_time}"
    ranked = frame[frame["accuracy"].notna()].sort_values("accuracy", kind="stable").to_dict("records")
    known = (
        f" The best that is trained has {ranked[-1]['accuracy']:.1%} at {_setting(first, ranked[-1])}."
        if ranked
        else ""
    )
    return SweepPlan(
        frame=frame,
        title="The plan, run by run",
        subtitle=f"{subtitle}; a percentage is the top-1 accuracy on the validation rows",
        text=f"Plan of a sweep over {' and '.join(map(display_names.of_varied, varied))}: {subtitle}.{known}",
        code=Code(
            "wb.figures.sweep_plan(plan)", ["# plan: one row per run, as planned_sweep(runs, settings) makes it"]
        ),
        knob=display_names.of_varied(first),
    )


def _setting(first: str, row: dict[Any, Any]) -> str:
    return f"{display_names.of_varied(first)} = {row['value']}{', ' if row['line'] else ''}{row['line']}"


def _in_cell(state: str, seconds: float | None, accuracy: float | None) -> str:
    """The words in a cell."""
    if state == STORED and not pd.isna(accuracy):
        return f"{accuracy:.1%}"
    return f"about {duration(seconds)}" if state == WAITING and not pd.isna(seconds) else state


def duration(seconds: float | None) -> str:
    """A time in words.

    >>> duration(0.42), duration(40), duration(800), duration(12_600)
    ('0.42 s', '40 s', '13 min', '3.5 h')
    """
    assert seconds is not None
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SweepPlan(Figure):
    """A cell for every run: full where it is trained, empty where it waits, crossed where it failed."""

    knob: str

    @property
    def values(self) -> list[str]:
        """Values along the axis."""
        return list(dict.fromkeys(self.frame["value"]))

    @property
    def lines(self) -> list[str]:
        """The lines, from above."""
        return list(dict.fromkeys(self.frame["line"]))

    def cells(self, theme: Theme) -> list[tuple[int, int, str, str, str]]:
        """Column, line, fill, ink and words of each cell."""
        looks = {
            STORED: (theme.accent, theme.paper),
            FAILED: (theme.miss, theme.paper),
            WAITING: (theme.panel, theme.ink),
        }
        return [
            (self.values.index(row["value"]), self.lines.index(row["line"]), *looks[row["state"]], row["cell"])
            for row in self.frame.to_dict("records")
        ]

    def _plotly(self, theme: Theme) -> go.Figure:
        figure, cells = go.Figure(), self.cells(theme)
        for column, line, fill, _, _ in cells:
            figure.add_shape(
                type="rect", x0=column - 0.47, x1=column + 0.47, y0=line - 0.45, y1=line + 0.45, layer="below",
                fillcolor=fill, line={"color": theme.grid, "width": 1},
            )  # fmt: skip
        figure.add_scatter(
            x=[cell[0] for cell in cells], y=[cell[1] for cell in cells], mode="text", text=[cell[4] for cell in cells],
            textfont={"size": 14, "color": [cell[3] for cell in cells]}, showlegend=False,
            customdata=[[f"{self.knob} = {row.value}", row.line, row.state] for row in self.frame.itertuples()],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]}: %{text}<extra></extra>",
        )  # fmt: skip
        named = [html.escape(line).replace(", ", "<br>") for line in self.lines]
        figure.update_xaxes(
            range=(-0.5, len(self.values) - 0.5), tickvals=list(range(len(self.values))), ticktext=self.values,
            title=self.knob, showgrid=False, showline=False, ticks="",
        )  # fmt: skip
        figure.update_yaxes(
            range=(len(named) - 0.5, -0.5), tickvals=list(range(len(named))), ticktext=named, showgrid=False, showline=False,
            ticks="", automargin=True,
        )  # fmt: skip
        return figure.update_layout(height=min(MOST_HIGH, 150 + CELL * len(named)))

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.patches import Rectangle

        figure = paper(8.0, 1.5 + 0.55 * len(self.lines))
        axes = figure.subplots()
        for column, line, fill, ink, words in self.cells(theme):
            axes.add_patch(Rectangle((column - 0.47, line - 0.45), 0.94, 0.9, facecolor=fill, edgecolor=theme.grid))
            axes.text(column, line, words, ha="center", va="center", color=ink, fontsize="small")
        axes.set(xlim=(-0.5, len(self.values) - 0.5), ylim=(len(self.lines) - 0.5, -0.5), xlabel=self.knob)
        axes.set_xticks(range(len(self.values)), self.values)
        axes.set_yticks(range(len(self.lines)), [line.replace(", ", "\n") for line in self.lines])
        axes.grid(visible=False)
        return figure
