"""See it learn: every column of a history against the epoch."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import display_names
from workbench.figures.base import Figure, checked_frame, counted, paper, round_range
from workbench.figures.snippet import Code
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

OF_SETS = "average-K"  # the curves of the sets that a run is judged by; with its K, where that is known
# Panel → column of the history → its name beside the panel's.
PANELS = {
    "learning rate": {"learning_rate": "at the beginning of the epoch"},
    "loss": {"train_loss": "training", "val_loss": "validation"},
    "accuracy": {"train_accuracy": "top-1, training", "val_accuracy": "top-1", "val_average_K_accuracy": OF_SETS},
    "rows with the same set": {"val_same_set": "of K classes"},
    "classes in a set": {"val_mean_size": OF_SETS},
    "scores with a gradient": {"nonzero_gradients": "of a training row"},
    "log normaliser": {"val_log_normaliser": "mean of the rows", "log_C": "log C"},
}
MEASURED = "all but the training loss and the gradients is of the validation rows"
ACROSS = 3  # panels in a line
MONITORS = "monitors"  # a panel for the metrics with a K that chose epochs
SHARES = ("accuracy", MONITORS, "rows with the same set")  # panels from 0 to 1


def learning_curves(history: pd.DataFrame, epochs: int | None = None, K: float | None = None) -> LearningCurves:
    """Learning curves of a run by epoch: loss, accuracy, sameness and size of the sets, sparsity of the gradient, normaliser.

    `history` is that of a trained run, or its first rows while it trains; `epochs` is how many there will be, and `K` that of
    its sets, by which their curves are named. What a history does not have gets no panel, and a knob that follows a schedule
    has one. A plan (`workbench.runs.plan.planned(run)`) is a history of what is set beforehand: the learning rate, and such
    knobs. In the frame epochs count from 1.

    >>> history = pd.DataFrame({"epoch": [0, 1], "train_loss": [2.0, 1.0], "val_loss": [2.1, 1.4]})
    >>> learning_curves(history).frame.to_numpy().tolist()[:2]
    [['loss', 'training', 1, 2.0], ['loss', 'training', 2, 1.0]]

    Paper: Liao et al., Fig. 2 (normalisers over time; here their logarithms). Scores with a gradient are those that Garcin
    et al. 2022 count in Fig. 2, there against ε: `gradient_sparsity` draws that.
    """
    checked_frame(history, ["epoch"], "a trained run has one, wb.train(run).history")
    monitors = {column: words for column in history.columns if (words := _monitor_in_words(str(column)))}
    first = ("learning rate", "loss", "accuracy")
    panels = {name: PANELS[name] for name in first} | {MONITORS: monitors} | PANELS
    panels |= {name: {name: "in its last step"} for name in map(str, history) if name.startswith("loss.")}
    parts = [
        pd.DataFrame(
            {
                "panel": panel,
                "curve": name if K is None else name.replace(OF_SETS, f"average-{K:g}"),
                "epoch": history["epoch"] + 1,
                "value": history[column],
            }
        )
        for panel, columns in panels.items()
        for column, name in columns.items()
        if len(history) and column in history
    ]
    if not parts:
        raise ValueError("the history has no epoch with a loss or an accuracy; give that of a trained run")
    frame = pd.concat(parts, ignore_index=True).astype({"epoch": int, "value": float})
    done = int(frame["epoch"].max())
    last = frame[frame["epoch"] == done]
    summary = ", ".join(f"{line.panel} ({line.curve}) {line.value:.3g}" for line in last.itertuples())
    epochs_text = f"n = {counted(done, 'epoch')}" if epochs is None else f"n = {done} of {counted(epochs, 'epoch')}"
    is_plan = not set(frame["panel"]) & PANELS.keys() - {"learning rate"} and not monitors.keys() & set(history)
    beginning = f"Plan of {epochs_text}. In" if is_plan else f"Learning curves of {epochs_text}. After"
    about = "the learning rate at the beginning of each" if is_plan else MEASURED
    given = [f"{name}={value!r}" for name, value in (("epochs", epochs), ("K", K)) if value is not None]
    return LearningCurves(
        frame=frame,
        title="What changes while it learns" if is_plan else "How it learns",
        subtitle=f"{epochs_text}; {about}",
        text=f"{beginning} epoch {done}: {summary}.",
        code=Code(
            f"wb.figures.learning_curves({', '.join(['history', *given])})",
            ["# history: one row per epoch, as wb.train(run).history"],
        ),
        epochs=done if epochs is None else epochs,
    )


def _monitor_in_words(column: str) -> str:
    """Return the title of a monitor column with its K; "" for any other column.

    >>> _monitor_in_words("val_few_average_k_accuracy@K=3")
    'few average-3'
    """
    found = re.fullmatch(r"val_(?:(\w+)_)?(top|average)_k_accuracy@K=(.+)", column)
    return "" if found is None else f"{found[1] or ''} {found[2]}-{found[3]}".strip()


def _titled(panel: str) -> str:
    """The title of a panel: a knob of the loss by its symbol."""
    return display_names.of_varied(panel) if panel.startswith("loss.") else panel


def small_multiples(n: int, columns: int = ACROSS, **options: Any) -> go.Figure:
    """An empty figure of n panels, so many in a line; the place of a panel that is not there stays empty."""
    lines, across = math.ceil(n / columns), min(columns, n)
    specs: list[list[Any]] = [
        [{} if line * columns + place < n else None for place in range(across)] for line in range(lines)
    ]
    return make_subplots(
        lines, across, specs=specs, vertical_spacing=0.8 / (lines + 1), horizontal_spacing=0.09, **options
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LearningCurves(Figure):
    """One small panel for each kind of number."""

    epochs: int
    columns: int = ACROSS

    def narrow(self) -> LearningCurves:
        """The panels below one another."""
        return replace(self, columns=1)

    def panels(self) -> dict[str, pd.DataFrame]:
        """Panel → its lines of the frame."""
        return {name: self.frame[self.frame["panel"] == name] for name in dict.fromkeys(self.frame["panel"])}

    def limits(self, panel: str) -> tuple[float, float]:
        """The ends of the axis of a panel: they change in few, large steps while the run learns."""
        values = self.frame.loc[self.frame["panel"] == panel, "value"].to_numpy()
        values = values[np.isfinite(values)]
        if panel in SHARES or not len(values):
            return 0.0, 1.03
        low, high = float(values.min()), float(values.max())
        return round_range(1.05 * low, 1.05 * high)

    def _plotly(self, theme: Theme) -> go.Figure:
        panels = self.panels()
        lines = math.ceil(len(panels) / self.columns)
        figure = small_multiples(len(panels), self.columns)
        for place, (panel, part) in enumerate(panels.items()):
            where = {"row": place // self.columns + 1, "col": place % self.columns + 1}
            names = []
            for (curve, its), colour in zip(part.groupby("curve", sort=False), theme.categories, strict=False):
                figure.add_scatter(
                    x=its["epoch"], y=its["value"], mode="lines+markers", showlegend=False,
                    line={"color": colour, "width": 2.5}, marker={"size": 6, "color": colour},
                    hovertemplate=f"epoch %{{x}}: %{{y:.4g}}<extra>{panel}, {curve}</extra>", **where,
                )  # fmt: skip
                names.append(f'<span style="color: {colour}">{curve}</span>')
            title = f"<b>{_titled(panel)}</b>"
            named = f"{title}  {', '.join(names)}" if len(names) > 1 else title
            axis = next(figure.select_yaxes(**where)).plotly_name.replace("yaxis", "")
            figure.add_annotation(
                text=named, xref=f"x{axis} domain", yref=f"y{axis} domain",
                x=0, y=1.02, xanchor="left", yanchor="bottom", showarrow=False, font={"size": 13},
            )  # fmt: skip
            figure.update_yaxes(range=self.limits(panel), tickformat=".0%" if panel in SHARES else "~g", **where)
            figure.update_xaxes(range=(0.5, self.epochs + 0.5), tickformat="d", title="epoch", **where)
        return figure.update_layout(height=120 + 200 * lines)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        panels = self.panels()
        lines = math.ceil(len(panels) / ACROSS)
        figure = paper(9.0, 0.6 + 2.5 * lines)
        grid = figure.subplots(lines, min(ACROSS, len(panels)), squeeze=False).ravel()
        for axes, (panel, part) in zip(grid, panels.items(), strict=False):
            for (curve, its), colour in zip(part.groupby("curve", sort=False), theme.categories, strict=False):
                axes.plot(its["epoch"], its["value"], "o-", color=colour, markersize=4, label=curve)
            axes.set(xlim=(0.5, self.epochs + 0.5), ylim=self.limits(panel), xlabel="epoch")
            axes.set_title(_titled(panel), fontsize=10.5, loc="left")
            if len(axes.lines) > 1:
                axes.legend(fontsize=8)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            if panel in SHARES:
                axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        return figure
