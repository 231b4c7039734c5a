"""A run in many settings: `sweep` trains them, here or side by side, and a `Sweep` tells which was best on val."""

from workbench.training.sweeps.sweeping import sweep
from workbench.training.sweeps.swept import Sweep

__all__ = ["Sweep", "sweep"]
