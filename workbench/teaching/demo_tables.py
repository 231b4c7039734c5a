"""The runs that ship with the package, by what they were trained with: what lessons and exercises look at."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from workbench.metrics.bayes import posterior_table
from workbench.store import DEMO, Store
from workbench.tables import LogitTable

ORGANS = ("flower", "leaf", "fruit", "bark")  # of photographs that show one


class Tables(NamedTuple):
    """The two tables of a run that are looked at: one to fit on, one to judge on."""

    val: LogitTable
    test: LogitTable


@cache
def tables(dataset: str, loss: str) -> Tables:
    """The tables of the shipped run on that data with that loss, `tables("garden", "CrossEntropy")`."""
    for run in Store(DEMO).runs():
        about = run.record
        if (about.dataset or {}).get("name") == dataset and (about.loss or {}).get("loss") == loss:
            return Tables(run.tables["val"], run.tables["test"])
    raise FileNotFoundError(f"the run of {loss} on the {dataset} is not among those that ship; `make demo` makes them")


@cache
def truth() -> Tables:
    """The garden with its exact posterior in place of the scores of a network."""
    val, test = tables("garden", "CrossEntropy")
    return Tables(posterior_table(val), posterior_table(test))
