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
    "import_table": "files",
    "SetIndex": "index",
    "TopK": "sets",
    "AverageK": "sets",
    "Threshold": "sets",
    "PredictionSets": "prediction_sets",
    "LAC": "conformal",
    "APS": "conformal",
    "RAPS": "conformal",
    "ClassConditionalLAC": "conformal",
    "PointwiseError": "conformal",
    "TemperatureScaling": "calibration",
    "VectorScaling": "calibration",
    "report": "reporting",
    "open_app": "launching",
    "Dataset": "datasets",
    "load_dataset": "datasets",
    "Run": "training",
    "train": "training",
    "cache_features": "features",
    "sweep": "sweeps",
    "bayes": "bayes",
    "comparison": "comparison",
    "counts": "counts",
    "figures": "figures",
    "glossary": "glossary",
    "knobs": "knobs",
    "losses": "losses",
    "metrics": "metrics",
    "operators": "operators",
    "recipes": "recipes",
    "votes": "votes",
}

__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from workbench import (
        bayes,
        comparison,
        counts,
        figures,
        glossary,
        knobs,
        losses,
        metrics,
        operators,
        recipes,
        votes,
    )
    from workbench.calibration import TemperatureScaling, VectorScaling
    from workbench.conformal import APS, LAC, RAPS, ClassConditionalLAC, PointwiseError
    from workbench.datasets import Dataset, load_dataset
    from workbench.features import cache_features
    from workbench.files import import_table
    from workbench.index import SetIndex
    from workbench.launching import open_app
    from workbench.prediction_sets import PredictionSets
    from workbench.reporting import report
    from workbench.sets import AverageK, Threshold, TopK
    from workbench.sweeps import sweep
    from workbench.tables import LogitTable
    from workbench.training import Run, train


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}; it has {', '.join(__all__)}")
    module = importlib.import_module(f"workbench.{_HOMES[name]}")
    found = module if _HOMES[name] == name else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
