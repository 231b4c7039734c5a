"""What is on disk: one atomic writer, runs, and the shelf of the most recent live ones."""

from workbench.store.runs import StoredRun
from workbench.store.store import DEMO, Store, chosen_store, home

__all__ = ["DEMO", "Store", "StoredRun", "chosen_store", "home"]
