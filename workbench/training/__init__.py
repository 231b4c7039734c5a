"""Training: from a `Run` to tables of scores, cached features, and sweeps."""

from workbench.runs import Run
from workbench.training.trained_run import TrainedRun
from workbench.training.trainer import Cancelled, train
from workbench.training.weight_planes import weight_plane

__all__ = ["Cancelled", "Run", "TrainedRun", "train", "weight_plane"]
