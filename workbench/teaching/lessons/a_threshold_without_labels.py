"""Lesson 3: the threshold of average-K counts classes, and counting needs no label."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.sets import AverageK
from workbench.tables import LogitTable
from workbench.teaching.base import Lesson, Picture, Question, Target, Told, axes, slider
from workbench.teaching.demo import ORGANS, tables

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


def tell(theme: Theme) -> Told:
    """Six rows by hand, the same number from the library, and what happens to the mean size on other rows."""
    law = np.array(ROWS)
    last_in, first_out = cut(ROWS, K)
    fitted = AverageK(K).fit(LogitTable.from_probabilities(law))
    thresholds = slider("threshold", [round(0.02 * place, 2) for place in range(1, 46)], "{:.2f}", start=0.5)

    def drawn(threshold: float) -> go.Figure:
        inside = law >= threshold
        traces = []
        for name, chosen, colour in (("in a set", inside, theme.hit), ("outside", ~inside, theme.muted)):
            row, _ = np.nonzero(chosen)
            traces.append(
                go.Scatter(x=law[chosen], y=row + 1, mode="markers", name=name, marker={"size": 13, "color": colour})
            )
        figure = axes(theme, "probability of a class", "row", traces=traces)
        figure.add_vline(threshold, line={"color": theme.threshold, "width": 3})
        return figure.update_layout(xaxis_range=[0, 1], yaxis={"dtick": 1, "range": [6.6, 0.4]})

    counts = [int((law >= threshold).sum()) for threshold in thresholds.values]
    picture = Picture(
        tuple(drawn(threshold) for threshold in thresholds.values),
        "Twenty-four dots in six rows, each the probability of a class, and a line: the threshold.",
        thresholds,
        tuple(
            f"{count} of {law.size} probabilities reach {threshold:.2f}: {count / len(law):.2f} classes a row."
            for count, threshold in zip(counts, thresholds.values, strict=True)
        ),
    )
    val, test = tables("garden", "CrossEntropy")
    rule = AverageK(K).fit(val)
    sizes = rule(test).sizes
    shown = (test.attributes or {})["organs"]
    by_organ = {organ: float(sizes[shown == organ].mean()) for organ in ORGANS}
    wanted = K * len(law)
    words = (
        "*Average-K* answers with every class whose probability is at least one threshold, the same for all rows. The "
        "threshold is to "
        f"be chosen such that sets hold K classes on average. Take K = {K}.",
        f"Below are {len(law)} rows of {law.shape[1]} classes; a dot is the probability that a network gives to a class "
        "of a row. "
        "Which class is the label, nobody has written down.",
    )
    target = Target(
        first_out + 1e-6,
        last_in,
        f"Too low: more than {wanted} dots are to the right of your line, so sets hold more than {K} classes on average.",
        f"Too high: fewer than {wanted} dots are to the right of your line, so sets hold fewer than {K} classes on average.",
        f"Exactly {wanted} dots reach it: {K} × {len(law)}.",
    )
    answer = (
        "The recipe (Algorithm 1 of the paper on average-K): write the probabilities of all classes of all rows into "
        "one list, here "
        f"{law.size} = n × L numbers; sort it; cut between the (K·n)-th and the next. Here K·n = {wanted}; the "
        f"{wanted}th largest is "
        f"{last_in:g}, the next is {first_out:g}, and the library takes the middle, {fitted.threshold:g}. Then {wanted} "
        "classes are in sets, "
        f"{K} a row on average, and each row has as many as it needs.",
        "**No label was used.** A label says whether a set is right; the threshold only decides how large sets are, and "
        "sizes can be counted "
        "without knowing what is right. So any heap of unlabelled inputs will do, as long as it is like the inputs to "
        "come; it should not be "
        "the rows the network was trained on, of which it is too sure.",
        "What is promised is a mean size, on rows like these, and **no accuracy**. In the garden the threshold for K = "
        f"{K}, found on "
        f"{val.n} validation rows, gives {sizes.mean():.2f} classes on {test.n} new rows. On other rows it gives another mean: "
        f"{by_organ['flower']:.2f} if all photographs show a flower, {by_organ['bark']:.2f} if all show bark. To promise "
        "that the label is in the "
        "set one needs labels: that is the next lesson. (Equal probabilities at the cut enter together, and the mean is "
        "then a little above K.)",
    )
    asked = f"Move the threshold until sets hold {K} classes on average."
    return Told(words, Question(asked, target=target, picture=picture), answer)


LESSON = Lesson(
    "a_threshold_without_labels",
    "A threshold without labels",
    "You will see that one line through a heap of numbers sets the size of all sets, and that no label is needed to draw it.",
    "03_the_threshold",
    tell,
)
