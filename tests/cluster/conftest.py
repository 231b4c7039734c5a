"""One cluster of threads for all tests, and one of two processes for those that need some to die."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from workbench.cluster import connected


@pytest.fixture(scope="session")
def threads() -> Iterator[Any]:
    with connected("threads", 2) as client:
        yield client


@pytest.fixture(scope="session")
def processes() -> Iterator[Any]:
    with connected("processes", 2) as client:
        yield client
