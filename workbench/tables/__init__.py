"""LogitTable, the only type shared by training and evaluation: validation, on-disk layout and importers."""

from workbench.tables.table import LogitTable, checked_table

__all__ = ["LogitTable", "checked_table"]
