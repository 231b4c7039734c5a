"""What is on disk: one atomic writer, one content-addressed cache, runs and their records, the shelf of recent live ones."""

from workbench.store.record import RunRecord
from workbench.store.runs import StoredRun
from workbench.store.store import DEMO, Store, chosen_store, home

__all__ = ["DEMO", "RunRecord", "Store", "StoredRun", "chosen_store", "home"]
