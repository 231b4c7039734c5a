"""Lesson 3: the threshold of average-K counts classes, and counting needs no label."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.sets import AverageK
from workbench.tables import LogitTable
from workbench.teaching.base import Lesson, Picture, Question, Story, Target, axes, slider
from workbench.teaching.demo_tables import ORGANS, tables
from workbench.teaching.machines import head_or_tail, tail_of_names

K = 2
ROWS = (  # six rows of four classes: an example one can count
    (0.90, 0.06, 0.03, 0.01),
    (0.75, 0.15, 0.08, 0.02),
    (0.55, 0.35, 0.07, 0.03),
    (0.44, 0.32, 0.19, 0.05),
    (0.38, 0.29, 0.22, 0.11),
    (0.31, 0.26, 0.24, 0.19),
)


def cut(rows: tuple[tuple[float, ...], ...], K: int) -> tuple[float, float]:
    """The (K·n)-th and the next largest of all probabilities: any threshold between them gives K classes on average."""
    falling = -np.sort(-np.array(rows).ravel())
    return float(falling[K * len(rows) - 1]), float(falling[K * len(rows)])


def tell(theme: Theme) -> Story:
    """Six rows by hand, the same number from the library, and what happens to the mean size on other rows."""
    table = np.array(ROWS)
    last_in, first_out = cut(ROWS, K)
    fitted = AverageK(K).fit(LogitTable.from_probabilities(table))
    thresholds = slider("threshold", [round(0.02 * place, 2) for place in range(1, 46)], "{:.2f}", start=0.5)

    def drawn(threshold: float) -> go.Figure:
        inside = table >= threshold
        traces = []
        for name, chosen, colour in (("in a set", inside, theme.hit), ("outside", ~inside, theme.muted)):
            row, _ = np.nonzero(chosen)
            traces.append(
                go.Scatter(x=table[chosen], y=row + 1, mode="markers", name=name, marker={"size": 13, "color": colour})
            )
        figure = axes(theme, "probability of a class", "row", traces=traces)
        figure.add_vline(threshold, line={"color": theme.threshold, "width": 3})
        return figure.update_layout(xaxis_range=[0, 1], yaxis={"dtick": 1, "range": [6.6, 0.4]})

    counts = [int((table >= threshold).sum()) for threshold in thresholds.values]
    picture = Picture(
        tuple(drawn(threshold) for threshold in thresholds.values),
        "Twenty-four dots in six rows, each the probability of a class, and a line: the threshold.",
        thresholds,
        tuple(
            f"{count} of {table.size} probabilities reach {threshold:.2f}: {count / len(table):.2f} classes a row."
            for count, threshold in zip(counts, thresholds.values, strict=True)
        ),
    )
    val, test = tables("garden", "CrossEntropy")
    rule = AverageK(K).fit(val)
    sizes = rule(test).sizes
    shown = (test.attributes or {})["organs"]
    by_organ = {organ: float(sizes[shown == organ].mean()) for organ in ORGANS}
    wanted = K * len(table)
    words = (
        "*Average-K* names every class whose probability is at least one threshold, the same for all rows. The threshold is "
        f"chosen so that sets hold K classes on average. Take K = {K}.",
        f"The picture has {len(table)} rows of {table.shape[1]} classes; a dot is the probability of one class in one row. The "
        "labels are not known.",
    )
    target = Target(
        first_out + 1e-6,
        last_in,
        f"Too low: more than {wanted} dots are to the right of your line, so sets hold more than {K} classes on average.",
        f"Too high: fewer than {wanted} dots are to the right of your line, so sets hold fewer than {K} classes on average.",
        f"Exactly {wanted} dots reach it: {K} × {len(table)}.",
    )
    answer = (
        "The recipe (Algorithm 1 of the average-K paper): put the probabilities of all L classes of all n rows into one "
        f"list, here {table.size} numbers; sort it; cut between the (K·n)-th and the next. Here K·n = {wanted}: the "
        f"{wanted}th largest is {last_in:g}, the next {first_out:g}, and the library takes the midpoint, "
        f"{fitted.threshold:g}. Each row gets as many classes as it needs.",
        "**No label was used.** The threshold decides how large sets are, and sizes can be counted without labels. So unlabelled "
        "inputs are enough, if they resemble the inputs to come. Do not use the training rows: the network is too sure of "
        "them.",
        f"Average-K promises a mean size on rows like these, and **no accuracy**. In the garden the threshold for K = {K}, from "
        f"{val.n} validation rows, gives {sizes.mean():.2f} classes on {test.n} new rows; on photographs of flowers alone "
        f"{by_organ['flower']:.2f}, of bark alone {by_organ['bark']:.2f}. To promise that the label is in the set, you need "
        "labels: see the next lesson.",
    )
    asked = f"Move the threshold until sets hold {K} classes on average."
    return Story(
        words, Question(asked, target=target, picture=picture), answer, (head_or_tail(theme), tail_of_names(theme))
    )


LESSON = Lesson(
    "a_threshold_without_labels",
    "A threshold without labels",
    "You will see that one line through a heap of numbers sets the size of all sets, and that no label is needed to draw it.",
    "03_the_threshold",
    tell,
)
