"""From a `Run` to tables: how a network learns, its features, sweeps and the papers' settings."""

from workbench.training.monitors import MONITORS
from workbench.training.run import Run
from workbench.training.trained import TrainedRun
from workbench.training.trainer import Cancelled, train
from workbench.training.weight_planes import weight_plane

__all__ = ["MONITORS", "Cancelled", "Run", "TrainedRun", "train", "weight_plane"]
