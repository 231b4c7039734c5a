"""TorchCP's predictors and scores, loaded from a folder that holds its wheel.

    pip install --no-deps --target FOLDER torchcp==1.2.1

It is not among the peers that pip installs with us: it requires torchvision, torch_geometric, torchsort and transformers, and
its wheel also installs packages named `tests` and `examples`. The parts that make sets need none of those four, so they are
loaded without the `__init__` that imports the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple


class TorchCP(NamedTuple):
    """Two of its modules."""

    predictor: ModuleType
    score: ModuleType


def load(folder: str | Path) -> TorchCP:
    """The modules of TorchCP in a folder."""
    root = Path(folder) / "torchcp"
    if not (root / "VERSION").exists():
        raise FileNotFoundError(f"no TorchCP in {folder}: pip install --no-deps --target {folder} torchcp==1.2.1")
    for name, path in (("torchcp", root), ("torchcp.classification", root / "classification")):
        module = ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module
    from torchcp.classification import predictor, score

    return TorchCP(predictor, score)
