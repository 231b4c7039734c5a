"""The papers' tables in the Compare view: what is printed at once, ours beside it where it is stored, and what to type."""

from __future__ import annotations

import pytest

from workbench.claims import TABLES
from workbench.claims.reproduction import Reproduction, with_ours

PAPERS = {"compare": "Papers' tables"}


def reproduced(name: str, *, small: bool, value: float) -> Reproduction:
    """A reproduction of the first cell of a table."""
    table = TABLES[name]
    place = next(iter(table.printed))
    ours = {place: {"ours": value, "low": value - 1, "high": value + 1, "seeds": 3}}
    return Reproduction(table, with_ours(table, ours), small, "data of a test")


def test_what_is_printed_is_shown_at_once_with_its_protocol_and_the_command(drawn):
    app = drawn("compare", **PAPERS)
    (cells,) = app.dataframe
    assert cells.value.columns.tolist() == ["loss", "K = 2", "K = 3", "K = 5", "K = 10"]
    assert cells.value.iloc[2, 4] == "98.23 ± 0.03 (75.75/94.14/98.08)"
    said = " ".join(text.value for text in app.markdown)
    assert "A two\\-head loss function for deep average\\-K classification" in said
    assert "plantnet300k\\-resnet18" in said
    commands = [code.value for code in app.code]
    assert commands == [
        "workbench reproduce '001 Table 2' --small",
        "workbench reproduce '001 Table 2' --data PATH",
    ]


def asked(name: str, **more: str) -> dict[str, str]:
    """What the address of a table is."""
    return {**PAPERS, "table": f"{name} · {TABLES[name].paper}: {TABLES[name].title}", **more}


@pytest.mark.writes
def test_ours_stands_beside_theirs_where_it_is_stored(drawn, store):
    reproduced("002 Table 9", small=True, value=71.5).save(store)
    app = drawn("compare", **asked("002 Table 9"))
    (cells,) = app.dataframe
    assert cells.value.columns.tolist()[:3] == ["K", "CE", "ours: CE"]
    assert cells.value.iloc[0, 1:3].tolist() == ["72.24±0.15", "71.50 ± 1.00"]
    reproduced("002 Table 9", small=False, value=72.5).save(store)
    app = drawn("compare", **asked("002 Table 9", scale="the scale of the paper"))
    assert app.dataframe[0].value.iloc[0, 2] == "72.50 ± 1.00"
    app = drawn("compare", **asked("002 Table 9", scale="a reduced scale"))
    assert app.dataframe[0].value.iloc[0, 2] == "71.50 ± 1.00"


@pytest.mark.parametrize("name", ["000 Table 3.2", "000 Table 4.1", "003 Table 5"])
def test_tables_of_marks_of_formulas_and_of_other_people_are_shown_too(drawn, name):
    table = TABLES[name]
    app = drawn("compare", **asked(name))
    assert len(app.dataframe[0].value) == len(table.rows)
    assert app.dataframe[0].value.iloc[:, 0].tolist() == [row.label for row in table.rows]
    assert bool(app.code) == (not table.not_run)
