"""What a trained network sees in its training rows, computed once and kept: `python -m workbench.workers.similar_process KEY`.

`workbench.workers.similar` starts it, so that whoever only reads runs needs no torch.
"""

from __future__ import annotations

import json
import sys

from workbench.store import Store
from workbench.store.cache import FEATURES_OF_RUNS
from workbench.training import TrainedRun
from workbench.training.features import cache_features
from workbench.workers.similar import FILE


def keep_training_features(key: str, store: Store) -> None:
    """Compute the features of a run's data with its own network, and note under which key they lie."""
    trained = TrainedRun.open(key, store)
    data = cache_features(trained.run.data, trained, store=store, progress=False)
    with FEATURES_OF_RUNS.writing(store, trained.stored.key) as folder:
        (folder / FILE).write_text(json.dumps({"key": data.key}), encoding="utf-8")


if __name__ == "__main__":
    keep_training_features(sys.argv[1], Store())
