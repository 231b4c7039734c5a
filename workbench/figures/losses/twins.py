"""Two indistinguishable species, and the scores that a loss gives them step by step."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import Figure, checked_positive, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.sets import SetIndex
from workbench.tables import LogitTable
from workbench.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

    from workbench.losses import Loss

MOST_LOSSES = 4
MEASURED = 40  # steps at which the scores are looked at, closer together at the beginning
NEW = 400  # new photographs of each species
GENUS = 3.0  # distance of the flowers of the two genera: easy to separate
KNOWN, WHAT_IS_KNOWN = 0.5, "all that can be known"  # the probability of a twin, given its flower
# Photographs → the line of a panel → what it is in words.
LINES = {
    "training photographs": {"label": "the label", "twin": "its twin", "third": "the third species"},
    "new photographs": {
        "favoured": "the favoured twin",
        "other": "the other twin",
        "third": "the third species",
        "sets": "the set holds the label",
    },
}


def twins(
    losses: Sequence[Loss] | None = None,
    *,
    photographs: int = 20,
    details: int = 40,
    steps: int = 500,
    learning_rate: float = 0.1,
    seed: int = 0,
) -> Twins:
    r"""Scores of two species with the same flower, and of a clear third, while a linear head learns with each loss.

    Args:
        losses: One column each; None for cross-entropy, noised top-K and two heads.
        photographs: Training photographs of each species. Few invite a model to learn them by heart; try 100.
        details: How many numbers of a photograph say nothing of the species (its light, place, background); Gaussian.
        steps: Of gradient descent on all training photographs, at `learning_rate`, from scores that are all 0.
        seed: Of the photographs and of a loss that draws.

    A photograph is the flower of its genus and those details. From the flower a twin has probability ½ and nobody can do
    better. The upper panels are about training photographs of twins: the mean probability of the label, of its twin and of
    the third species. The lower ones are about new photographs of twins, where the details cannot help: which twin is favoured
    is chance, so the mean of the larger and of the smaller of both probabilities is shown, and how often the set of a rule
    holds the label. The rule is average-K with K = 5/3, just enough for two classes where there are twins and one where not.

    Cross-entropy pushes the twin down on every photograph of the other, $\partial \ell / \partial s_j = p_j$ for every
    $j \ne y$, and has no reason to stop until the twin is at 0. With many photographs the pushes cancel at ½; with few the
    details tell the training photographs apart, and on new ones the head is sure of one twin for no reason. A loss that asks
    for the label among two is content once both twins lead by its margin. Two heads learn the twin as a second label, for as
    long as the head that proposes it, which learns by cross-entropy, still does.

    >>> import workbench as wb
    >>> figure = wb.figures.twins([wb.losses.CrossEntropy(), wb.losses.NoisedTopK(K=2, epsilon=0.5)], steps=200)
    >>> figure.at_the_end()["other twin"].round(1).tolist()
    [0.2, 0.4]

    The argument is that of Garcin et al. 2023, section 4.
    """
    from workbench.losses import AverageKTwoHead, CrossEntropy, NoisedTopK

    usual = (CrossEntropy(), NoisedTopK(K=2, epsilon=0.5), AverageKTwoHead(K=1.67, alpha=1.0))
    chosen = usual if losses is None else _checked(losses)
    photographs, details = whole_number("photographs", photographs, least=2), whole_number("details", details, least=0)
    steps, seed = whole_number("steps", steps, least=2), whole_number("seed", seed, least=0)
    learning_rate = checked_positive("learning_rate", learning_rate)
    drawn = np.random.default_rng(seed)
    train, new = _photographs(photographs, details, drawn), _photographs(NEW, details, drawn)
    frame = pd.concat(
        [
            pd.DataFrame(_measured(step, *scores)).assign(loss=loss.title, step=step)
            for loss in chosen
            for step, scores in _learning(loss, train, new, steps, learning_rate, seed)
        ],
        ignore_index=True,
    )[["loss", "photographs", "step", "line", "value"]]
    given = {
        "photographs": photographs,
        "details": details,
        "steps": steps,
        "learning_rate": learning_rate,
        "seed": seed,
    }
    return twins_of(frame, given, _code_of(losses))


def twins_of(frame: pd.DataFrame, given: Mapping[str, Any], losses: str = "") -> Twins:
    """The picture of what was measured: the frame of `twins`, what it was given, and the losses as code has them."""
    photographs, details, steps = given["photographs"], given["details"], given["steps"]
    return Twins(
        frame=frame,
        title="Twins that nobody can tell apart",
        subtitle=(
            f"n = {counted(photographs, 'training photograph')} of each of 3 species, {counted(NEW)} new ones; "
            f"{counted(details, 'detail')} that say nothing; {counted(steps, 'step')}"
        ),
        text=(
            f"Mean probabilities of two species with the same flower over {steps} steps of training on n = {photographs} "
            f"photographs of each, with {details} details that say nothing of the species. At the end: {_summary(frame)}."
        ),
        code=Code(f"wb.figures.twins({losses}{', '.join(f'{name}={value!r}' for name, value in given.items())})"),
    )


def _checked(losses: Any) -> tuple[Loss, ...]:
    from workbench.losses import Loss

    given = tuple(losses) if isinstance(losses, Iterable) else (losses,)
    if not 1 <= len(given) <= MOST_LOSSES or not all(isinstance(loss, Loss) for loss in given):
        raise ValueError(f"expected 1 to {MOST_LOSSES} losses, such as [wb.losses.CrossEntropy()], got {losses!r}")
    if len({loss.title for loss in given}) < len(given):
        raise ValueError("two of the losses have the same title, by which the panels are named; give one of each kind")
    for loss in given:
        if loss.link != "softmax" or loss.head != "linear" or loss.state(n_rows=1, n_classes=3) is not None:
            raise ValueError(
                f"{loss!r} needs more than scores of a linear head that are read by softmax; give another loss"
            )
    return given


def _code_of(losses: Sequence[Loss] | None) -> str:
    return "" if losses is None else f"[{', '.join(f'wb.losses.{loss.at(1)!r}' for loss in losses)}], "


def _photographs(n: int, details: int, drawn: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (3n, 1 + details) and labels of n photographs of each species; 0 and 1 are the twins."""
    labels = np.repeat([0, 1, 2], n)
    flower = np.where(labels == 2, -GENUS, GENUS)
    return np.column_stack([flower, drawn.normal(size=(3 * n, details))]), labels


def _learning(
    loss: Loss,
    train: tuple[np.ndarray, np.ndarray],
    new: tuple[np.ndarray, np.ndarray],
    steps: int,
    learning_rate: float,
    seed: int,
) -> Iterator[tuple[int, tuple[LogitTable, LogitTable]]]:
    """Some steps of gradient descent, with the tables of both kinds of photographs after each."""
    import torch

    (inputs, labels), n_inputs = (torch.as_tensor(part) for part in train), train[0].shape[1]
    weights = torch.zeros(n_inputs, loss.heads * 3, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(loss.heads * 3, dtype=torch.float64, requires_grad=True)
    generator = torch.Generator().manual_seed(seed)
    looked_at = set(np.geomspace(1, steps, MEASURED).round().astype(int).tolist())

    def scores(rows: Any) -> Any:
        found = rows @ weights + bias
        return found if loss.heads == 1 else found.view(-1, loss.heads, 3)

    def table(rows: np.ndarray, labels: np.ndarray) -> LogitTable:
        found = scores(torch.as_tensor(rows)).detach().numpy()
        return LogitTable(found if loss.heads == 1 else found[:, 0], labels)

    for step in range(1, steps + 1):
        value = loss(scores(inputs), labels, generator=generator).mean()
        for parameter, gradient in zip((weights, bias), torch.autograd.grad(value, (weights, bias)), strict=True):
            parameter.data -= learning_rate * gradient
        if step in looked_at:
            yield step, (table(*train), table(*new))


def _measured(step: int, train: LogitTable, new: LogitTable) -> list[dict[str, Any]]:
    """The lines of both panels after one step."""

    def of_twins(table: LogitTable) -> tuple[np.ndarray, np.ndarray]:
        rows = np.flatnonzero(table.labels != 2)
        return table.rows(rows).probabilities(), np.asarray(table.labels)[rows]

    known, labels = of_twins(train)
    seen, _ = of_twins(new)
    rows = np.arange(len(labels))
    upper = {"label": known[rows, labels], "twin": known[rows, 1 - labels], "third": known[:, 2]}
    lower = {"favoured": seen[:, :2].max(1), "other": seen[:, :2].min(1), "third": seen[:, 2]}
    lower["sets"] = SetIndex(new, K_max=3).hits(K=5 / 3)[np.asarray(new.labels) != 2]
    return [
        {"photographs": photographs, "line": line, "value": float(np.mean(values))}
        for photographs, lines in zip(LINES, (upper, lower), strict=True)
        for line, values in lines.items()
    ]


def _at_the_end(frame: pd.DataFrame) -> pd.DataFrame:
    last = frame[frame["step"] == frame["step"].max()]
    names = {"favoured": "favoured twin", "other": "other twin", "sets": "set holds the label"}
    upper, lower = (
        last[last["photographs"] == photographs].pivot_table("value", index="loss", columns="line")
        for photographs in LINES
    )
    found = upper.join(lower.drop(columns="third").rename(columns=names))
    columns = ["label", "twin", "third", *names.values()]
    in_order: pd.DataFrame = found.loc[list(dict.fromkeys(last["loss"])), columns]
    return in_order.rename_axis(None, axis=1)


def _summary(frame: pd.DataFrame) -> str:
    return ". ".join(
        f"{name}: on training photographs the label has {row['label']:.2f} and its twin {row['twin']:.2f}; on new ones the "
        f"favoured twin has {row['favoured twin']:.2f}, the other {row['other twin']:.2f}, and {row['set holds the label']:.1%} "
        "of their sets hold the label"
        for name, row in _at_the_end(frame).iterrows()
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Twins(Figure):
    """A column for each loss; training photographs above, new ones below, the same scale everywhere."""

    def at_the_end(self) -> pd.DataFrame:
        """Return the values after the last step: one row for each loss."""
        return _at_the_end(self.frame)

    def looks(self, theme: Theme) -> dict[str, tuple[str, str]]:
        """Line → its colour and dash."""
        one, other = (theme.hit, "solid"), (theme.model_b, "solid")
        return {
            **{"label": one, "favoured": one, "twin": other, "other": other},
            "third": (theme.muted, "dash"),
            "sets": (theme.ink, "dot"),
        }

    def panels(self) -> Iterator[tuple[int, int, str, str, pd.DataFrame]]:
        """Row, column, loss, photographs and the lines of each panel."""
        for column, (loss, of_loss) in enumerate(self.frame.groupby("loss", sort=False)):
            for row, photographs in enumerate(LINES):
                yield row, column, str(loss), photographs, of_loss[of_loss["photographs"] == photographs]

    def _plotly(self, theme: Theme) -> go.Figure:
        names = list(dict.fromkeys(self.frame["loss"]))
        figure = make_subplots(
            2, len(names), shared_xaxes=True, shared_yaxes=True, vertical_spacing=0.22, horizontal_spacing=0.03,
            column_titles=[f"<b>{html.escape(name)}</b>" for name in names],
        )  # fmt: skip
        looks = self.looks(theme)
        for row, column, loss, photographs, part in self.panels():
            for line, words in LINES[photographs].items():
                colour, dash = looks[line]
                its = part[part["line"] == line]
                figure.add_scatter(
                    x=its["step"], y=its["value"], mode="lines", name=words, legend="legend" if row == 0 else "legend2",
                    showlegend=column == 0, line={"color": colour, "dash": dash, "width": 3},
                    hovertemplate=f"step %{{x}}: %{{y:.3f}}<extra>{html.escape(loss)}, {words}</extra>",
                    row=row + 1, col=column + 1,
                )  # fmt: skip
        for column in range(len(names)):
            figure.add_scatter(
                x=(1, self.frame["step"].max()), y=(KNOWN, KNOWN), mode="lines", name=WHAT_IS_KNOWN, legend="legend2",
                showlegend=column == 0, line={"color": theme.bayes, "width": 1.2, "dash": "dashdot"}, hoverinfo="skip",
                row=2, col=column + 1,
            )  # fmt: skip
        figure.update_xaxes(type="log", range=(0, np.log10(self.frame["step"].max())), dtick=1)
        figure.update_xaxes(title="step", row=2)
        figure.update_yaxes(range=(-0.02, 1.02), tickformat=".0%")
        for row, photographs in enumerate(LINES):
            figure.update_yaxes(title=photographs, row=row + 1, col=1)
        below = {"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "top"}
        return figure.update_layout(
            height=620, margin={"t": 110, "b": 110}, legend=below | {"y": 0.59}, legend2=below | {"y": -0.13}
        )

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter

        from workbench.figures.losses.profiles import DASHES

        names = list(dict.fromkeys(self.frame["loss"]))
        figure = paper(1.2 + 2.9 * len(names), 5.6)
        grid = figure.subplots(2, len(names), sharex=True, sharey=True, squeeze=False)
        looks = self.looks(theme)
        for row, column, loss, photographs, part in self.panels():
            axes = grid[row, column]
            for line, words in LINES[photographs].items():
                colour, dash = looks[line]
                its = part[part["line"] == line]
                axes.plot(its["step"], its["value"], color=colour, linestyle=DASHES[dash], linewidth=2.2, label=words)
            axes.set(xscale="log", xlim=(1, self.frame["step"].max()), ylim=(-0.02, 1.02))
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            axes.xaxis.set_major_formatter("{x:g}")
            if row == 1:
                axes.axhline(KNOWN, color=theme.bayes, linestyle="-.", linewidth=1, label=WHAT_IS_KNOWN)
            if row == 0:
                axes.set_title(loss, fontsize=11, loc="left")
            else:
                axes.set_xlabel("step")
            if column == 0:
                axes.set_ylabel(photographs)
            if column == len(names) - 1:
                axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=9)
        return figure
