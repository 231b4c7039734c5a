"""Photographs of these tests are kept in a folder of their own, and the default garden is drawn once for all of them."""

from __future__ import annotations

import pytest

from workbench.datasets import Dataset, load_dataset


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("WORKBENCH_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def garden_data(home) -> Dataset:
    return load_dataset("garden")
