"""Recalibrators: what mends probabilities that promise too much or too little."""

from workbench.calibration.recalibrators import TemperatureScaling, VectorScaling, at_temperature

RECALIBRATORS = (TemperatureScaling, VectorScaling)

__all__ = ["RECALIBRATORS", "TemperatureScaling", "VectorScaling", "at_temperature"]
