"""`MetricSpec`: a metric with its K and its group, as reports, sweeps, monitors, claims and the command line name it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from workbench.class_counts import SHOTS

MACRO = "macro"
# Accuracy of top-K or average-K sets: of rows, the mean over classes, or over the classes of a shot group.
OF_SETS = re.compile(rf"(?:({'|'.join((MACRO, *SHOTS))})_)?(top_k|average_k)_accuracy")


@dataclass(frozen=True)
class MetricSpec:
    """A metric with its K and its group: `top_k_accuracy@K=3`, `shot_accuracy (few)`, `few_average_k_accuracy@K=5`.

    Args:
        metric: Name of the metric.
        K: Number of classes in a set, on average for average-K; None if it is not given.
        group: Group of classes or rows, such as "few"; "" for all.

    >>> MetricSpec.parse("top_k_accuracy@K=3.0")
    MetricSpec(metric='top_k_accuracy', K=3, group='')
    >>> str(MetricSpec("shot_accuracy", group="few")), str(MetricSpec("top_k_accuracy", K=3))
    ('shot_accuracy (few)', 'top_k_accuracy@K=3')
    >>> MetricSpec.parse("few_average_k_accuracy@K=5").sets, MetricSpec.parse("few_average_k_accuracy@K=5").part
    ('average_k', 'few')
    """

    metric: str
    K: float | None = None
    group: str = ""

    @classmethod
    def parse(cls, text: str, group: str = "") -> MetricSpec:
        """The metric of a text; `group` is that of a frame, whose column `metric` says the rest.

        Raises:
            ValueError: Its K is not a number above 0.
        """
        found = re.fullmatch(r"(.*?)(?:@K=(\S*))?(?: \((.+)\))?", text, re.DOTALL)
        assert found is not None  # every text is a name
        return cls(found[1], None if found[2] is None else _number(text, found[2]), group or found[3] or "")

    def __str__(self) -> str:
        at_K = "" if self.K is None else f"@K={int(self.K) if self.K == int(self.K) else self.K}"
        return f"{self.metric}{at_K}{f' ({self.group})' if self.group else ''}"

    def at(self, K: float) -> MetricSpec:
        """The same metric at another K; unchanged if it has none."""
        return self if self.K is None else replace(self, K=K)

    @property
    def without_K(self) -> MetricSpec:
        """The same metric at any K."""
        return replace(self, K=None)

    @property
    def sets(self) -> str:
        """ "top_k" or "average_k" for the accuracy of such sets, else ""."""
        found = OF_SETS.fullmatch(self.metric)
        return "" if found is None else found[2]

    @property
    def part(self) -> str:
        """Of the accuracy of such sets: "" for the share of rows, "macro" for the mean over classes, or a shot group."""
        found = OF_SETS.fullmatch(self.metric)
        return "" if found is None else found[1] or ""


def _number(text: str, K: str) -> float:
    """A number above 0; a whole one is an int."""
    try:
        number = float(K)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"{text!r}: K = {K}; give a number above 0, such as {text.partition('@')[0]}@K=3")
    return int(number) if number == int(number) else number
