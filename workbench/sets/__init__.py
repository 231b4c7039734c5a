"""From probabilities to sets: rules, the index that answers for every K at once, and the sets themselves.

`RULES` lists every rule. One more is a frozen dataclass with `title`, `formulation` and its knobs, derived from `Rule`
(`base.py`) or from `ConformalRule` (`conformal.py`), and a place in the tuple: choosers, the command line, the docs and the
contract tests take it up.
"""

import re

from workbench.knobs import from_text
from workbench.lookup import named
from workbench.sets.base import FittedRule, Rule, checked_rule
from workbench.sets.conformal import LAC, ClassConditionalLAC, ConformalRule
from workbench.sets.index import SetIndex
from workbench.sets.masses import APS, RAPS, PointwiseError
from workbench.sets.prediction_sets import PredictionSets
from workbench.sets.sizes import AverageK, Threshold, TopK

__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "RULES",
    "AverageK",
    "ClassConditionalLAC",
    "ConformalRule",
    "FittedRule",
    "PointwiseError",
    "PredictionSets",
    "Rule",
    "SetIndex",
    "Threshold",
    "TopK",
    "checked_rule",
    "rule_from_text",
]

RULES: tuple[type[Rule], ...] = (TopK, AverageK, Threshold, LAC, APS, RAPS, ClassConditionalLAC, PointwiseError)


def rule_from_text(text: str, *, foreign: bool = False) -> Rule:
    """The rule a person wrote the way Python prints it; knobs left out keep their defaults.

    With `foreign` it may be one of another module, `module:Rule` or `module:Rule(knob=1)`, which is imported: only for a
    text that the person at the keyboard wrote, never for one that stands in a file or an address.

    >>> rule_from_text("LAC(confidence=0.95)")
    LAC(confidence=0.95, min_size=0)
    >>> rule_from_text("TopK").short()
    'TopK(K=5)'
    >>> rule_from_text("workbench.sets.masses:RAPS(penalty=0.1)", foreign=True).short()
    'RAPS(confidence=0.9, penalty=0.1)'
    """
    place = re.match(r"\s*([\w.]+:\w+)", text)
    if place is None or not foreign:
        return from_text(text, RULES, "rule")
    found = named(place[1], {rule.__name__: rule for rule in RULES}, "rule")
    if not (isinstance(found, type) and issubclass(found, Rule)):
        raise ValueError(f"{place[1]!r} is not a workbench.sets.Rule; derive it from Rule or ConformalRule")
    return from_text(found.__name__ + text[place.end() :], (found,), "rule")
