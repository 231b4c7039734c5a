"""Stores and runs that are quick to make."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.store import Store
from workbench.store.imported_tables import keep_tables


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    return Store()


@pytest.fixture
def imported():
    """A function that puts a small run of a title into a store."""

    def keep(store, title):
        return keep_tables(wb.LogitTable(-np.eye(4), np.arange(4)), title=title, store=store)

    return keep
