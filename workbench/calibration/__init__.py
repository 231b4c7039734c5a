"""Recalibrators: what mends probabilities that promise too much or too little.

`RECALIBRATORS` lists them. One more is a frozen dataclass derived from `Recalibrator` (`base.py`) and a place in the tuple:
the Calibration view, the docs and the contract tests take it up.
"""

from workbench.calibration.base import FittedScaling, Recalibrator, of_one_class
from workbench.calibration.temperature import TemperatureScaling, at_temperature
from workbench.calibration.vector import VectorScaling

RECALIBRATORS: tuple[type[Recalibrator], ...] = (TemperatureScaling, VectorScaling)

__all__ = [
    "RECALIBRATORS",
    "FittedScaling",
    "Recalibrator",
    "TemperatureScaling",
    "VectorScaling",
    "at_temperature",
    "of_one_class",
]
