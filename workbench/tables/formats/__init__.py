"""Files that hold tables, one kind each. To read another one, write it in one file and put it into FORMATS."""

from __future__ import annotations

from workbench.tables.formats.base import Column, Contents, Format, Refused, Room, Stored
from workbench.tables.formats.csv_files import CSV
from workbench.tables.formats.numpy_files import NPY, NPZ
from workbench.tables.formats.parquet_files import PARQUET
from workbench.tables.formats.safetensors_files import SAFETENSORS

FORMATS: tuple[Format, ...] = (NPZ, NPY, CSV, PARQUET, SAFETENSORS)
SUFFIXES = tuple(suffix for form in FORMATS for suffix in form.suffixes)

__all__ = ["FORMATS", "SUFFIXES", "Column", "Contents", "Format", "Refused", "Room", "Stored"]
