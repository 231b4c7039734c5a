"""File formats of tables, one module each. To add one, write a module and list it in FORMATS."""

from __future__ import annotations

from workbench.tables.formats.arrow_files import FEATHER
from workbench.tables.formats.base import AmbiguousScores, Column, Contents, Format, RefusedFile, Room, StoredArray
from workbench.tables.formats.csv_files import CSV
from workbench.tables.formats.json_files import JSON
from workbench.tables.formats.numpy_files import NPY, NPZ
from workbench.tables.formats.parquet_files import PARQUET
from workbench.tables.formats.safetensors_files import SAFETENSORS

FORMATS: tuple[Format, ...] = (NPZ, NPY, CSV, PARQUET, FEATHER, JSON, SAFETENSORS)
SUFFIXES = tuple(suffix for form in FORMATS for suffix in form.suffixes)

__all__ = [
    "FORMATS",
    "SUFFIXES",
    "AmbiguousScores",
    "Column",
    "Contents",
    "Format",
    "RefusedFile",
    "Room",
    "StoredArray",
]
