"""The papers' tables and claims as objects that can be run.

`CLAIMS` are what the papers say, each with the experiment that tries it. `TABLES` holds the tables, and the
figures with numbers, by the number of the paper and their own; the numbers of the papers are those of `NUMBERS`.

>>> TABLES["001 Table 2"].printed["AVG-K", "K = 10", "few"].value
75.75
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.claims.printed import ding_2025, figures, garcin_2022, garcin_2023, garcin_thesis, liao, petersen_2022
from workbench.claims.reproduction import Reproduction
from workbench.claims.table import PaperTable, Tables

if TYPE_CHECKING:
    from workbench.claims.checks import CLAIMS

NUMBERS = {
    "000": "Garcin, thesis",
    "001": "Garcin et al. 2023",
    "002": "Garcin et al. 2022",
    "003": "Petersen et al. 2022",
    "004": "Liao et al.",
    "005": "Ding et al. 2025",
}
TABLES = Tables(
    {
        table.name: table
        for number in NUMBERS
        for paper in (garcin_thesis, garcin_2023, garcin_2022, petersen_2022, liao, ding_2025, figures)
        for table in paper.TABLES
        if table.name.startswith(number)
    }
)

__all__ = ["CLAIMS", "NUMBERS", "TABLES", "PaperTable", "Reproduction", "Tables"]


def __getattr__(name: str) -> Any:
    """`CLAIMS` when it is first asked for: claims train, and tables can be read without torch."""
    if name == "CLAIMS":
        from workbench.claims.checks import CLAIMS

        return CLAIMS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
