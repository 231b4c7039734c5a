"""From probabilities to sets: rules, the index that answers for every K at once, and the sets themselves.

`RULES` lists every rule. One more is a frozen dataclass with `title`, `formulation` and its knobs, derived from `Rule`
(`base.py`) or from `ConformalRule` (`conformal.py`), and a place in the tuple: choosers, the command line, the docs and the
contract tests take it up.
"""

import re

from workbench.knobs import from_text
from workbench.sets.adaptive import APS, RAPS, PointwiseError
from workbench.sets.aggregated import Aggregated
from workbench.sets.backward import Backward
from workbench.sets.base import FittedRule, Rule, checked_rule
from workbench.sets.basic_rules import AverageK, Threshold, TopK
from workbench.sets.clustered import Clustered
from workbench.sets.conformal import LAC, ConformalRule
from workbench.sets.coverage_band import coverage_band
from workbench.sets.fuzzy import Fuzzy
from workbench.sets.hierarchical import Hierarchical
from workbench.sets.index import SetIndex
from workbench.sets.marginal import SAPS, Margin, Rank, Sparse
from workbench.sets.per_class import ClassConditionalLAC
from workbench.sets.per_group import RC3P, InterpQ, Mondrian
from workbench.sets.prediction_sets import PredictionSets
from workbench.sets.prevalence import PAS
from workbench.sets.risk_control import RiskControl
from workbench.sets.weighted import LabelShift, MacroCoverage, VoteCalibrated, Weighted
from workbench.trusted_imports import resolve

__all__ = [
    "APS",
    "LAC",
    "PAS",
    "RAPS",
    "RC3P",
    "RULES",
    "SAPS",
    "Aggregated",
    "AverageK",
    "Backward",
    "ClassConditionalLAC",
    "Clustered",
    "ConformalRule",
    "FittedRule",
    "Fuzzy",
    "Hierarchical",
    "InterpQ",
    "LabelShift",
    "MacroCoverage",
    "Margin",
    "Mondrian",
    "PointwiseError",
    "PredictionSets",
    "Rank",
    "RiskControl",
    "Rule",
    "SetIndex",
    "Sparse",
    "Threshold",
    "TopK",
    "VoteCalibrated",
    "Weighted",
    "checked_rule",
    "coverage_band",
    "rule_from_text",
]

RULES: tuple[type[Rule], ...] = (
    *(TopK, AverageK, Threshold, LAC, APS, RAPS, ClassConditionalLAC, PointwiseError),
    *(PAS, SAPS, Margin, Rank, Sparse, Mondrian, Clustered, RC3P, InterpQ, Fuzzy),
    *(MacroCoverage, Weighted, LabelShift, VoteCalibrated, RiskControl, Backward),
    *(Hierarchical, Aggregated),
)


def rule_from_text(text: str, *, foreign: bool = False) -> Rule:
    """The rule a person wrote the way Python prints it; knobs left out keep their defaults.

    With `foreign` it may be one of another module, `module:Rule` or `module:Rule(knob=1)`, which is imported: only for a
    text that the person at the keyboard wrote, never for one that stands in a file or an address.

    >>> rule_from_text("LAC(confidence=0.95)")
    LAC(confidence=0.95, min_size=0)
    >>> rule_from_text("TopK").short()
    'TopK(K=5)'
    >>> rule_from_text("workbench.sets.adaptive:RAPS(penalty=0.1)", foreign=True).short()
    'RAPS(confidence=0.9, penalty=0.1)'
    """
    place = re.match(r"\s*([\w.]+:\w+)", text)
    if place is None or not foreign:
        return from_text(text, RULES, "rule")
    found = resolve(place[1], {rule.__name__: rule for rule in RULES}, "rule")
    if not (isinstance(found, type) and issubclass(found, Rule)):
        raise ValueError(f"{place[1]!r} is not a workbench.sets.Rule; derive it from Rule or ConformalRule")
    return from_text(found.__name__ + text[place.end() :], (found,), "rule")
