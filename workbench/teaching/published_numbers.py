"""Numbers that lessons quote and that took hours to measure; a test compares each with its document."""

from __future__ import annotations

from typing import NamedTuple


class Measured(NamedTuple):
    """A number in per cent or in points, with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1f} ({self.interval})".replace("-", "−")

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"{self.low:.1f} to {self.high:.1f}".replace("-", "−")


def of_two_heads(group: str = "") -> Measured:
    """Average-3 points of two heads over cross-entropy on the garden, tuned, five seeds: of all rows, or of "few" classes."""
    from workbench.teaching import results

    of_garden = "data == 'garden' and loss == 'two heads' and metric == 'accuracy' and group == @group"
    (line,) = results.table("differences").query(of_garden).to_dict("records")
    return Measured(*(round(100 * line[name], 1) for name in ("difference", "low", "high")))


# docs/epsilon.md, the first table: top-5 on a small garden with a long tail, three seeds.
ALWAYS_THE_SAME = 53.2
JUST_CALIBRATED = "ε = 0.75, 95 % of the largest calibrated one"
TOP_5 = {
    "cross-entropy": Measured(71.7, 71.2, 72.3),
    "top-K hinge": Measured(61.7, 56.6, 66.6),
    "noised, ε = 0.2": Measured(62.7, 55.7, 69.1),
    JUST_CALIBRATED: Measured(70.8, 69.4, 72.2),
    "ε = 1": Measured(70.8, 68.9, 72.7),
    "ε = 3": Measured(69.9, 66.5, 73.1),
    "**ε = anneal(3, 0.2)**": Measured(70.8, 67.0, 74.4),
}
# The last column of the same table: share of rows with the most frequent top-5 set.
SAME_SET = {"top-K hinge": Measured(12.3, 9.7, 15.4), "noised, ε = 0.2": Measured(48.6, 12.9, 85.8)}
# docs/epsilon.md, letters with a tail of 20: top-5.
LETTERS = {"cross-entropy": Measured(92.0, 91.6, 92.4), "noised, ε = 0.2": Measured(92.4, 92.0, 92.7)}
# docs/claims, claim 21: top-1 accuracy in per cent by number of classes.
TOP_1_OF_CLASSES = {
    100: {"softmax": 96.2, "sigmoids": 95.3, "quasibinary": 92.7},
    300: {"softmax": 94.2, "sigmoids": 89.7, "quasibinary": 92.1},
}
# docs/claims: number of the claim, or its file → what was measured, as the claim words it.
CLAIMS: dict[int | str, dict[str, Measured]] = {
    5: {
        "top-5 points of noised top-5 over cross-entropy with 40% wrong labels": Measured(-2.29, -3.08, -1.58),
        "top-5 points of smooth top-5 over cross-entropy with 40% wrong labels": Measured(1.89, 1.02, 2.67),
    },
    "05-memorising-CIFAR-100": {
        "top-5 points of noised top-5 over tuned cross-entropy": Measured(1.33, -0.294, 2.85),
        "top-5 points of smooth top-5 over tuned cross-entropy": Measured(3.42, 1.46, 5.4),
    },
    6: {"few-shot top-3 points of uneven margins over cross-entropy": Measured(3.87, 2.47, 5.36)},
    "06-memorising-letters": {
        "few-shot top-3 points of uneven margins over tuned cross-entropy": Measured(2.33, 0.78, 4.0),
    },
    "06-memorising-CIFAR-100": {
        "few-shot top-3 points of uneven margins over tuned cross-entropy": Measured(-3.8, -5.91, -1.78),
    },
    "08-memorising-CIFAR-100": {
        "average-5 points of two heads over tuned cross-entropy": Measured(2.53, 0.733, 4.25),
    },
    "09-memorising-CIFAR-100": {
        "points by which cross-entropy has more sets of one class": Measured(5.52, 4.03, 6.88),
    },
    15: {
        "top-1 points of (.1, 0, 0, 0, .9) over (.5, 0, 0, 0, .5), soft_sort": Measured(-11.4, -13.1, -9.44),
        "top-1 points of (.1, 0, 0, 0, .9) over (.5, 0, 0, 0, .5), splitter": Measured(0.36, -0.266, 1.05),
    },
    21: {"top-1 points of sigmoids over softmax, 300 classes": Measured(-4.52, -6.37, -2.83)},
}
