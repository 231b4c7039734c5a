"""What every test shares: the real data beside the repository, where it is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], dict[str, np.ndarray]]:
    """`shared_data("leaf99")` loads real development data, or skips the test and says why."""

    def load(name: str) -> dict[str, np.ndarray]:
        path = SHARED_DATA / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"the development data {path.name} is not on this machine")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)

    return load
