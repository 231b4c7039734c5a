"""One point of a landscape in numbers: its scores and probabilities, the loss there, and its gradient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench import display_names
from workbench.figures.base import Figure, paper, round_up
from workbench.figures.losses.evaluation import (
    Background,
    checked_loss,
    checked_point,
    listed,
    loss_gradients,
    loss_values,
    losses_in_code,
)
from workbench.figures.snippet import Code
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

    from workbench.losses import Loss

MOST_LOSSES = 2
POINT = (1.0, 0.6, 0.4)  # classes 0 and 1 lead, class 2 waits
PANELS = {"score": "score s", "probability": "softmax(s)", "gradient": "gradient ∂ℓ/∂s"}
BETWEEN = 0.08  # two panels, as a share of the height of all
HIGH = (1 - (len(PANELS) - 1) * BETWEEN) / len(PANELS)
PATTERNS = {"": "", "/": "///"}  # of the first and of the second loss: Plotly's name → matplotlib's


def probe(
    losses: Loss | Iterable[Loss],
    scores: Sequence[float] = POINT,
    label: int = 2,
    *,
    K: int | None = None,
    head: str = "both",
    background: Background | None = None,
    sampled: bool = False,
) -> Probe:
    r"""One point of the triangle: the scores, their softmax, the loss and its gradient, the set, the rank of the label.

    $$\ell(s, y), \qquad \nabla_s \ell(s, y), \qquad \mathrm{softmax}(s)_j = \frac{e^{s_j}}{\sum_k e^{s_k}}$$

    Args:
        losses: One loss, or two whose gradients stand side by side.
        scores: The scores s of the three classes.
        label: The class y, counted from 0.
        K: Size of the set, the K largest scores; by default the K of the first loss, or 1.
        head: Head that moves, of a loss with two; as in `level_sets`.
        background: Rows that join the batch of a batch-coupled loss; as in `level_sets`.
        sampled: Draw the noise of a noised loss instead of taking its expectation.

    Returns:
        A figure whose frame has one row for each loss and class, with the value of the loss in each.

    Raises:
        ValueError: If the scores are not three finite numbers, or a loss does not fit three classes.

    >>> import workbench as wb
    >>> figure = wb.figures.probe(wb.losses.CrossEntropy(), (2.0, 0.0, 0.0), label=0)
    >>> figure.frame["gradient"].round(3).tolist()
    [-0.213, 0.107, 0.107]
    """
    chosen = _checked(losses, label, head, background)
    point = checked_point(scores)
    K = _size(chosen[0], K)
    order = np.lexsort((np.arange(3), -point))  # by falling score, then by class
    frame = pd.concat([_rows(loss, point, label, head, background, sampled) for loss in chosen], ignore_index=True)
    frame["in_set"] = np.isin(frame["class"], order[:K])
    rank = int(np.flatnonzero(order == label)[0]) + 1
    members = ", ".join(map(str, sorted(order[:K].tolist())))
    values = frame.groupby("loss", sort=False)["value"].first()
    verdict = "contains" if rank <= K else "misses"
    imports, names = losses_in_code(chosen)
    options = {
        "K": K,
        "head": head if any(loss.heads == 2 for loss in chosen) else None,
        "background": None if background is None else tuple(np.asarray(part).tolist() for part in background),
        "sampled": True if sampled else None,
    }
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    return Probe(
        frame=frame,
        title=f"{'Loss' if len(values) == 1 else 'Losses'} {' and '.join(f'{value:.4g}' for value in values)}",
        subtitle=f"n = 3 scores; label {label}: rank {rank}; set {{{members}}} {verdict} it",
        text=(
            f"One point of n = 3 scores, s = ({', '.join(f'{score:.2f}' for score in point)}), with label {label}. "
            f"The label has rank {rank}, and the set {{{members}}} of the K = {K} largest scores {verdict} it. "
            f"{' '.join(_in_words(part) for _, part in frame.groupby('loss', sort=False))}"
        ),
        code=Code(
            f"wb.figures.probe(losses, {tuple(point.tolist())}, label={label}{given})",
            [f"losses = [{', '.join(names)}]"],
            imports,
        ),
        label=label,
        rank=rank,
    )


def _checked(losses: Any, label: int, head: str, background: Background | None) -> list[Loss]:
    given = list(dict.fromkeys(listed(losses)))  # the same twice is one
    if not 1 <= len(given) <= MOST_LOSSES:
        raise ValueError(f"{len(given)} losses were given; a probe shows one or {MOST_LOSSES}")
    coupled = [getattr(loss, "couples_batch", False) for loss in given]
    joined = [couples or not any(coupled) for couples in coupled]  # of two losses a background may concern one
    return [
        checked_loss(loss, label, head, background if each else None) for loss, each in zip(given, joined, strict=True)
    ]


def _size(loss: Loss, K: int | None) -> int:
    given = getattr(loss, "K", 1) if K is None else K
    if K is None and given not in (1, 2):
        return 1
    if isinstance(given, bool) or given not in (1, 2):
        raise ValueError(f"K = {given!r}; of three classes a set holds 1 or 2")
    return int(given)


def _rows(
    loss: Loss, point: np.ndarray, label: int, head: str, background: Background | None, sampled: bool
) -> pd.DataFrame:
    """The numbers of one loss, one row for each class."""
    drawn, beside = loss if sampled else loss.exact(), background if loss.couples_batch else None
    (value,) = loss_values(drawn, point[None], label, head, beside)
    (gradient,) = loss_gradients(drawn, point[None], label, head, beside)
    shares = np.exp(point - point.max())
    numbers = {"score": point, "probability": shares / shares.sum(), "gradient": gradient, "value": value}
    return pd.DataFrame({"loss": display_names.of_thing(loss), "class": range(3), **numbers})


def _in_words(part: pd.DataFrame) -> str:
    pulls = ", ".join(f"{each:.3g}" for each in part["gradient"])
    return f"{part['loss'].iloc[0]} is {part['value'].iloc[0]:.4g} there, with gradient ({pulls})."


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Probe(Figure):
    """Three lines of bars: scores, probabilities and gradients of the classes."""

    label: int
    rank: int  # of the label, from 1

    def ticks(self) -> list[str]:
        """Labels below the bars of each class."""
        first = self.frame.head(3)
        return [
            f"{'label' if number == self.label else 'class'} {number}<br>{'in the set' if inside else 'outside'}"
            for number, inside in zip(first["class"], first["in_set"], strict=True)
        ]

    def ends(self, column: str) -> tuple[float, float]:
        """The ends of the axis of a panel: they move in few steps."""
        values = self.frame[column]
        if column == "probability":
            return 0.0, 1.25
        if column == "score":
            return min(0.0, 1.25 * values.min()), 1.25 * max(2.0, values.max())
        reach = 1.6 * round_up(float(values.abs().max()))  # the number above a bar stays below the title of the panel
        return -reach, reach

    def bars(self, column: str, theme: Theme) -> list[tuple[str, pd.Series, list[str], str]]:
        """(loss, values, colours, pattern) of each group of bars in a panel."""
        losses = self.frame["loss"].unique()
        if column != "gradient" or len(losses) == 1:
            colours = [theme.threshold if number == self.label else theme.accent for number in range(3)]
            return [(losses[0], self.frame[column].head(3), colours, "")]
        looks = zip(losses, (theme.model_a, theme.model_b), PATTERNS, strict=False)
        return [(loss, self._of(loss, column), [colour] * 3, pattern) for loss, colour, pattern in looks]

    def _of(self, loss: str, column: str) -> pd.Series:
        return self.frame.loc[self.frame["loss"] == loss, column]

    def _plotly(self, theme: Theme) -> go.Figure:
        of_x = {"showticklabels": False, "ticks": "", "showgrid": False, "showline": False, "fixedrange": True}
        of_y = {"zeroline": True, "zerolinecolor": theme.muted, "showline": False, "showgrid": False}
        of_y |= {"showticklabels": False, "ticks": "", "fixedrange": True}
        traces: list[dict[str, Any]] = []
        axes: dict[str, dict[str, Any]] = {}
        titles: list[dict[str, Any]] = []
        for row, (column, title) in enumerate(PANELS.items()):
            number = f"{row + 1}" if row else ""
            top = 1 - row * (HIGH + BETWEEN)
            for loss, values, colours, pattern in self.bars(column, theme):
                traces.append(
                    {
                        **{"type": "bar", "name": loss, "xaxis": f"x{number}", "yaxis": f"y{number}"},
                        **{"x": [0, 1, 2], "y": values, "text": [f"{value:.2f}" for value in values]},
                        "marker": {"color": colours, "pattern": {"shape": pattern, "fgcolor": theme.paper, "size": 6}},
                        **{"textposition": "outside", "cliponaxis": False, "showlegend": column == "gradient"},
                        "hovertemplate": f"class %{{x}}: %{{y:.4f}}<extra>{loss}</extra>",
                    }
                )
            below = {"range": (-0.6, 2.6), "tickvals": [0, 1, 2], "ticktext": self.ticks()}
            axes[f"xaxis{number}"] = {**of_x, **below, "anchor": f"y{number}", "domain": (0, 1)}
            place = {"anchor": f"x{number}", "domain": (max(top - HIGH, 0), top)}
            axes[f"yaxis{number}"] = {**of_y, "range": self.ends(column), **place}
            titles.append(
                {
                    **{"text": title, "font": {"size": 13}, "showarrow": False},
                    **{"x": 0, "xref": "paper", "xanchor": "left", "y": top, "yref": "paper", "yanchor": "bottom"},
                }
            )
        axes["xaxis3"] |= {"showticklabels": True, "tickfont": {"size": 12}}
        two = self.frame["loss"].nunique() == 2
        margin = {"l": 12, "r": 12, "t": 110, "b": 48}
        layout = {"height": 560, "bargap": 0.3, "barmode": "group", "showlegend": two, "margin": margin}
        # A whole figure at once: adding to one part by part takes Plotly ten times as long.
        return go.Figure(traces, {**axes, **layout, "annotations": titles})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure = paper(4.2, 6.2)
        panels = figure.subplots(3, 1, sharex=True)
        for axes, column in zip(panels, PANELS, strict=True):
            groups = self.bars(column, theme)
            width = 0.7 / len(groups)
            for place, (loss, values, colours, pattern) in enumerate(groups):
                x = np.arange(3) + width * (place - (len(groups) - 1) / 2)
                drawn = axes.bar(
                    x, values, width, color=colours, hatch=PATTERNS[pattern], edgecolor=theme.paper, label=loss
                )
                axes.bar_label(drawn, fmt="{:.2f}", padding=2, size=9)
            axes.axhline(0, color=theme.muted, linewidth=0.8)
            axes.set(ylim=self.ends(column), yticks=[])
            axes.set_title(PANELS[column], size=10.5, weight="normal", pad=4)
            axes.grid(visible=False)
            axes.spines[["left", "bottom"]].set_visible(False)
        axes.set_xticks(range(3), [tick.replace("<br>", "\n") for tick in self.ticks()])
        if len(groups) == 2:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left")
        return figure
