"""Recalibrators: what mends probabilities that promise too much or too little.

`RECALIBRATORS` lists them. One more is a frozen dataclass derived from `Recalibrator` (`base.py`) and a place in the tuple:
the Calibration view, the docs and the contract tests take it up.
"""

from workbench.calibration.base import FittedRecalibrator, FittedScaling, Recalibrator, of_one_class
from workbench.calibration.isotonic import IsotonicScaling, VennAbers
from workbench.calibration.matrix import DirichletScaling, MatrixScaling
from workbench.calibration.small_sets import SmallSetScaling
from workbench.calibration.temperature import TemperatureScaling, at_temperature
from workbench.calibration.vector import VectorScaling

RECALIBRATORS: tuple[type[Recalibrator], ...] = (
    *(TemperatureScaling, SmallSetScaling, VectorScaling, MatrixScaling, DirichletScaling),
    *(IsotonicScaling, VennAbers),
)

__all__ = [
    "RECALIBRATORS",
    "DirichletScaling",
    "FittedRecalibrator",
    "FittedScaling",
    "IsotonicScaling",
    "MatrixScaling",
    "Recalibrator",
    "SmallSetScaling",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
    "at_temperature",
    "of_one_class",
]
