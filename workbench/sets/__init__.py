"""From probabilities to sets: rules, the index that answers for every K at once, and the sets themselves."""

from workbench.sets.conformal import (
    APS,
    LAC,
    RAPS,
    RULES,
    ClassConditionalLAC,
    ConformalRule,
    PointwiseError,
    rule_from_text,
)
from workbench.sets.index import SetIndex
from workbench.sets.prediction_sets import PredictionSets
from workbench.sets.rules import AverageK, FittedRule, Rule, Threshold, TopK, checked_rule

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
