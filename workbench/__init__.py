"""A workbench for set-valued classification: train, threshold, judge and see classifiers that answer with a set.

Names resolve when they are first used, so that `import workbench` is quick and loads no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name → the module that holds it. A module maps to itself.
_HOMES = {
    "LogitTable": "tables",
    "import_table": "tables.files",
    "SetIndex": "sets",
    "TopK": "sets",
    "AverageK": "sets",
    "Threshold": "sets",
    "PredictionSets": "sets",
    "LAC": "sets",
    "APS": "sets",
    "RAPS": "sets",
    "ClassConditionalLAC": "sets",
    "PointwiseError": "sets",
    "SetClassifier": "estimators",
    "TemperatureScaling": "calibration",
    "VectorScaling": "calibration",
    "report": "metrics.reporting",
    "open_app": "launching",
    "Dataset": "datasets",
    "load_dataset": "datasets",
    "Run": "training",
    "train": "training",
    "cache_features": "training.features",
    "sweep": "training.sweeps",
    "bayes": "metrics.bayes",
    "claims": "claims",
    "cluster": "cluster",
    "comparison": "metrics.comparison",
    "counts": "counts",
    "exercises": "teaching.exercises",
    "figures": "figures",
    "glossary": "glossary",
    "knobs": "knobs",
    "losses": "losses",
    "metrics": "metrics",
    "operators": "operators",
    "recipes": "training.recipes",
    "schedules": "schedules",
    "votes": "metrics.votes",
}

# The same names once more, in the one form that type checkers read.
__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "AverageK",
    "ClassConditionalLAC",
    "Dataset",
    "LogitTable",
    "PointwiseError",
    "PredictionSets",
    "Run",
    "SetClassifier",
    "SetIndex",
    "TemperatureScaling",
    "Threshold",
    "TopK",
    "VectorScaling",
    "bayes",
    "cache_features",
    "claims",
    "cluster",
    "comparison",
    "counts",
    "exercises",
    "figures",
    "glossary",
    "import_table",
    "knobs",
    "load_dataset",
    "losses",
    "metrics",
    "open_app",
    "operators",
    "recipes",
    "report",
    "schedules",
    "sweep",
    "train",
    "votes",
]

if TYPE_CHECKING:
    from workbench import claims, cluster, counts, figures, glossary, knobs, losses, metrics, operators, schedules
    from workbench.calibration import TemperatureScaling, VectorScaling
    from workbench.datasets import Dataset, load_dataset
    from workbench.estimators import SetClassifier
    from workbench.launching import open_app
    from workbench.metrics import bayes, comparison, votes
    from workbench.metrics.reporting import report
    from workbench.sets import (
        APS,
        LAC,
        RAPS,
        AverageK,
        ClassConditionalLAC,
        PointwiseError,
        PredictionSets,
        SetIndex,
        Threshold,
        TopK,
    )
    from workbench.tables import LogitTable
    from workbench.tables.files import import_table
    from workbench.teaching import exercises
    from workbench.training import Run, recipes, train
    from workbench.training.features import cache_features
    from workbench.training.sweeps import sweep


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        if (listed := _listed(name)) is not None:
            return listed
        raise AttributeError(f"module 'workbench' has no attribute {name!r}; it has {', '.join(__all__)}")
    try:
        module = importlib.import_module(f"workbench.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        from workbench.lookup import with_extra

        raise with_extra(error) from None
    found = module if _HOMES[name].split(".")[-1] == name else getattr(module, name)
    globals()[name] = found
    return found


def _listed(name: str) -> Any:
    """A rule or a recalibrator that is in its tuple is public: `wb.Name` is how pictures and reports print it."""
    if not name[:1].isupper():  # no class
        return None
    from workbench.calibration import RECALIBRATORS
    from workbench.sets import RULES

    return next((kind for kind in (*RULES, *RECALIBRATORS) if kind.__name__ == name), None)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
