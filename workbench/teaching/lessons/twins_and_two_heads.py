"""Lesson 8: what cross-entropy does to two classes that look the same, and what a second head changes."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.style import Theme, plotly_template
from workbench.teaching.base import HEIGHT, Choice, Lesson, Picture, Question, Story, percent, slider
from workbench.teaching.machines import twins_apart
from workbench.teaching.published_numbers import CLAIMS, of_two_heads
from workbench.teaching.shipped_twins import NEW, shipped_twins

TRAINING = "training photographs"
CROSS_ENTROPY, NOISED, TWO_HEADS = "Cross-entropy", "Noised top-K", "Average-K two-head"


def tell(theme: Theme) -> Story:
    """The scores of twins over the steps of training under three losses."""
    figure = shipped_twins()
    values: dict[tuple[str, str, str, float], float] = {
        (line["loss"], line["photographs"], line["line"], line["step"]): float(line["value"])
        for line in figure.frame.to_dict("records")
    }
    steps = slider("step of the training", sorted({key[3] for key in values}), "{:.0f}", start=1)
    last = int(steps.values[-1])

    losses = {"cross-entropy": CROSS_ENTROPY, "noised top-2": NOISED, "two heads": TWO_HEADS}
    still = curves(values, losses, steps.values, theme)

    def drawn(step: float) -> go.Figure:
        line = {"color": theme.threshold, "width": 2}
        figure = go.Figure(still)
        for column in range(1, len(losses) + 1):
            figure.add_vline(step, line=line, row=1, col=column)
        return figure

    def caption(step: float) -> str:
        shares = [
            f"{name} {percent(values[loss, TRAINING, 'twin', step], 0)} and {percent(values[loss, NEW, 'other', step], 0)}"
            for name, loss in losses.items()
        ]
        return f"Step {step:.0f}. The other twin has, in training and on new photographs: {'; '.join(shares)}."

    picture = Picture(
        tuple(drawn(step) for step in steps.values),
        figure.text,
        steps,
        tuple(caption(step) for step in steps.values),
    )
    end = {
        loss: {line: values[loss, NEW, line, last] for line in ("favoured", "other", "sets")}
        for loss in (CROSS_ENTROPY, NOISED, TWO_HEADS)
    }
    learnt = {loss: values[loss, TRAINING, "label", last] for loss in end}
    all_rows, few = of_two_heads(), of_two_heads("few")
    average = CLAIMS["08-memorising-CIFAR-100"]["average-5 points of two heads over tuned cross-entropy"]
    single = CLAIMS["09-memorising-CIFAR-100"]["points by which cross-entropy has more sets of one class"]
    words = (
        "Two species are *twins*: their flowers are the same, and a photograph of a flower shows one or the other with "
        "probability one half. Each training photograph carries *one* name. The best answer is the set of both.",
        "A network learns with *cross-entropy* (−log of the softmax probability of the label) from a few photographs, which "
        "also show light, position and background: details that say nothing about the species.",
    )
    choices = (
        Choice(
            "It leaves the twin alone, since both are plausible",
            "For the loss one class is right, the one that was written down, and every other class is wrong.",
        ),
        Choice(
            "It pushes the twin down, harder than the clear third species",
            "Right: the push on a wrong class is its probability, and of all wrong classes the twin has the largest.",
            right=True,
        ),
        Choice(
            "It pushes all wrong classes down alike",
            "Each is pushed by its own probability, so the class that is most plausible is pushed most.",
        ),
    )
    answer = (
        "**Cross-entropy treats the twin as wrong.** With endless data the pushes cancel at one half. With few photographs the "
        "network learns each name by heart, from the details: its probability rises to "
        f"{percent(learnt[CROSS_ENTROPY], 0)} in training. On new photographs one twin gets "
        f"{percent(end[CROSS_ENTROPY]['favoured'], 0)}, the other "
        f"{percent(end[CROSS_ENTROPY]['other'], 0)}; sets have room for both, but only "
        f"{percent(end[CROSS_ENTROPY]['sets'], 0)} of them are correct. Noised top-2 stops once both twins lead: "
        f"{percent(end[NOISED]['favoured'], 0)}, {percent(end[NOISED]['other'], 0)}, "
        f"{percent(end[NOISED]['sets'], 0)} correct.",
        "**Two heads** are two last layers. The *candidate head* learns by cross-entropy. In each batch of n rows its "
        "(K − 1) · n largest probabilities outside the labels become *candidates*. The *predicting head* learns to accept the "
        "label, to accept candidates (with a weight w, α in the paper) and to reject all others (also with w). A twin that is "
        f"proposed rises, too. At the end: {percent(end[TWO_HEADS]['favoured'], 0)}, "
        f"{percent(end[TWO_HEADS]['other'], 0)}, {percent(end[TWO_HEADS]['sets'], 0)} correct.",
        f"**Does it pay?** Two heads against cross-entropy: on frozen features of our garden {all_rows} points of average-3 "
        f"accuracy (95 % interval), on rare classes {few}; in a network that memorises 3 000 images {average} points of "
        f"average-5 accuracy, and {single} points fewer sets of one class.",
    )
    asked = "Cross-entropy learns from a photograph of one twin. What happens to the score of the *other* twin?"
    return Story(words, Question(asked, choices, picture=picture), answer, (twins_apart(theme),))


def curves(
    values: dict[tuple[str, str, str, float], float], losses: dict[str, str], steps: tuple[float, ...], theme: Theme
) -> go.Figure:
    """Scores over the steps, one panel a loss: solid on training photographs, dotted on new ones."""
    figure = make_subplots(
        1,
        len(losses),
        shared_yaxes=True,
        subplot_titles=[name.replace("-e", "-<br>e").replace(" ", "<br>") for name in losses],
        horizontal_spacing=0.03,
    )
    lines = {
        "label": (TRAINING, "label", theme.hit, "solid"),
        "twin": (TRAINING, "twin", theme.miss, "solid"),
        "third species": (TRAINING, "third", theme.muted, "dash"),
        "new photos": (NEW, "favoured", theme.hit, "dot"),
        "the other": (NEW, "other", theme.miss, "dot"),
    }
    for column, loss in enumerate(losses.values(), start=1):
        for name, (photographs, line, colour, dash) in lines.items():
            y = [values[loss, photographs, line, step] for step in steps]
            looks = {"color": colour, "dash": dash, "width": 2.5}
            legend = {"name": name, "showlegend": column == 1 and line != "other"}
            figure.add_scatter(x=steps, y=y, mode="lines", line=looks, row=1, col=column, **legend)
    figure.update_xaxes(type="log", tickvals=[1, 10, 100])
    figure.update_xaxes(title_text="step of the training", col=2)
    figure.update_yaxes(range=(0, 1.02), tickformat=".0%")
    legend = {"orientation": "h", "yref": "container", "y": 1, "yanchor": "top", "x": 0, "xanchor": "left"}
    legend |= {"entrywidth": 0.45, "entrywidthmode": "fraction"}  # two in a line, also on a telephone
    margin = {"l": 64, "r": 20, "t": 108, "b": 52}
    return figure.update_layout(template=plotly_template(theme), height=HEIGHT, legend=legend, margin=margin)


LESSON = Lesson(
    "twins_and_two_heads",
    "Twins and two heads",
    "You will see two species that look the same, and what three losses make of them, step by step.",
    "05_training_for_sets",
    tell,
)
