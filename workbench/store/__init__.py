"""The store on disk: runs and their records, tags, trash, and an LRU store of temporary runs."""

from workbench.store.record import RunRecord
from workbench.store.runs import StoredRun
from workbench.store.store import DEMO, Store, chosen_store, home

__all__ = ["DEMO", "RunRecord", "Store", "StoredRun", "chosen_store", "home"]
