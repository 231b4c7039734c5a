"""`Run`, the only description of a run: its checks, its key, its monitors, grids of runs, and the papers' recipes. No torch."""

from workbench.runs.monitors import MONITORS
from workbench.runs.run import Run

__all__ = ["MONITORS", "Run"]
