"""LogitTable, the waist of the workbench: what it accepts, how it lies on disk, and the files that people bring."""

from workbench.tables.table import LogitTable, checked_table

__all__ = ["LogitTable", "checked_table"]
