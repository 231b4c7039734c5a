"""`workbench reproduce`: lists the tables, shows what is printed, reproduces, and says what is wrong with what was asked."""

from __future__ import annotations

import pytest

from workbench.claims import TABLES
from workbench.cli.main import main


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))


def test_without_a_name_all_tables_are_listed_and_what_is_stored_of_them(capsys):
    assert main(["reproduce"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  ")[0].rstrip() for line in lines[:-1]] == list(TABLES)
    assert lines[-1].startswith("next: workbench reproduce")
    assert main(["reproduce", "--list"]) == 0


def test_what_is_printed_is_shown_at_once_with_its_protocol(capsys):
    assert main(["reproduce", "001 Table 2", "--printed"]) == 0
    shown = capsys.readouterr().out
    assert "98.23 ± 0.03 (75.75/94.14/98.08)" in shown
    assert "recipe: plantnet300k-resnet18" in shown
    assert "command: workbench reproduce '001 Table 2' --small" in shown


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("text", "Garcin. PhD thesis"),
        ("markdown", "| AVG-K | 5.0 | 5.0 |"),
        ("latex", r"\begin{tabular}{lrrrrrr}"),
        ("csv", "row,column,part,printed"),
    ],
)
def test_a_table_is_printed_in_every_format(how, said, capsys):
    assert main(["reproduce", "000 Table 5.4", "--format", how]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["001 Table 7"], "there is no table '001 Table 7'; there are 000 Table 2.1, "),
        (["001 Table 2"], "001 Table 2 is about Pl@ntNet-300K: give data=PATH (--data PATH)"),
        (["001 Table 2", "--data", "letters"], "001 Table 2 cannot be run on letters, which lacks: counts of training"),
        (["001 Table 2", "--data", "nowhere"], "there is no dataset 'nowhere' and no such path"),
        (["003 Table 2", "--data", "letters"], "is about ImageNet-1K, ImageNet-21K-P; give --data 'ImageNet-1K=PATH'"),
        (["004 Table III", "--data", "MS-COCO=letters"], "which lacks: many labels a row"),
        (["001 Table 2", "--small", "--share", "half"], "--share half; give which part of the runs to train"),
        (["000 Table 4.1"], "000 Table 4.1 is not run: it holds formulas and no results"),
    ],
)
def test_what_cannot_be_reproduced_is_said_in_one_line(asked, said, capsys):
    assert main(["reproduce", *asked]) == 2
    error = capsys.readouterr().err
    assert error.startswith("workbench: ")
    assert said in error
    assert error.count("\n") == 1
