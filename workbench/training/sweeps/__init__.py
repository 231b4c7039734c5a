"""A run in many settings: `sweep` trains them, here or side by side, and a `Sweep` tells which was best on val."""

from workbench.training.sweeps.result import Sweep
from workbench.training.sweeps.sweeping import sweep

__all__ = ["Sweep", "sweep"]
