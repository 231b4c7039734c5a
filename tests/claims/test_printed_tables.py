"""The tables as they are printed: whole, in their ranges, and in agreement with each other and with the recipes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import workbench as wb
from workbench import losses
from workbench.citations import PAPERS
from workbench.claims import NUMBERS, TABLES
from workbench.claims.data_requirements import NEEDS
from workbench.claims.measures import HISTORY, measure_of
from workbench.claims.table_spec import Number, numbers
from workbench.runs.recipes import RECIPES
from workbench.store import Store

EXPECTED = {  # paper → tables that must be there
    "000": [*("2.1", "3.1", "3.2", "3.3"), *(f"4.{n}" for n in range(1, 10)), *(f"5.{n}" for n in range(1, 5))],
    "001": ["1", "2"],
    "002": [str(n) for n in range(1, 10)],
    "003": [str(n) for n in range(1, 8)],
    "004": ["I", "I (supplement)", "II", "III"],
    "005": ["Pl@ntNet-300K"],
}
FIGURES = {  # paper → figures whose points are numbers
    "000": [
        *("3.2", "3.5", "3.6", "3.7", "3.8(a)", "3.8(b)", "3.9", "4.2", "4.3"),
        *("5.4(a)", "5.4(b)", "5.5", "5.6"),
    ],
    "003": ["1", "2 (left)", "2 (right)", "3", "4", "5"],
    "004": ["2", "3"],
}
PLACES = {"Table": "Table", "Fig.": "Figure", "Appendix": "Appendix"}
TRAINED = [name for name, table in TABLES.items() if table.protocol is not None]
AVERAGED = [
    *(
        "001 Table 1",
        "001 Table 2",
        "001 Appendix E",
        "000 Table 5.1",
        "000 Table 5.2",
        "000 Fig. 3.6",
        "000 Fig. 3.8(b)",
    ),
    *("000 Fig. 5.4(a)", "000 Fig. 5.4(b)", "000 Fig. 5.5", "000 Fig. 5.6"),
]
BY_SHOTS = ["001 Table 2", "000 Table 5.2", "002 Table 5", "000 Table 4.5", "002 Table 6", "000 Table 4.6"]

TEN_LOSSES = (  # of 002 Table 1, in its order
    *("TopKError", "CrossEntropy", "LDAM", "Focal", "TopKHinge", "ConvexTopKHinge", "CalibratedTopKHinge"),
    *("SmoothTopKHinge", "NoisedTopK", "NoisedTopKImbalanced"),
)
SYMBOLS = {"M": "B", "max m_y": "m_y"}  # ours → theirs


def test_all_tables_are_there_under_the_number_of_their_paper():
    names = [name for name in TABLES if name.split()[1] == "Table"]
    assert names == [f"{paper} Table {table}" for paper, tables in EXPECTED.items() for table in tables]
    names = [name for name in TABLES if name.split()[1] == "Fig."]
    assert names == [f"{paper} Fig. {figure}" for paper, figures in FIGURES.items() for figure in figures]
    for name, table in TABLES.items():
        assert table.name == name
        assert table.paper == NUMBERS[name[:3]]
        assert table.paper in PAPERS
        assert table.place.startswith(f"{PLACES[name.split()[1]]} {name.split()[2]}")
        assert PAPERS[table.paper] in table.citation


def test_a_table_that_does_not_exist_lists_those_that_do():
    with pytest.raises(
        KeyError,
        match=r"there is no table '001 Table 3'; there are 000 Table 2\.1, .*, 004 Fig\. 3, 005 Table Pl@ntNet-300K$",
    ):
        TABLES["001 Table 3"]
    assert TABLES.get("001 Table 3") is None


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_is_read_and_every_number_is_one(name):
    table = TABLES[name]
    assert len(table.cells) == len(table.rows) * len(table.columns)  # labels tell rows and columns apart
    assert len(table.printed) == sum(len(column.parts) for column in table.columns) * len(table.rows)
    for (row, column, part), number in table.printed.items():
        if np.isnan(number.value):
            assert table.cells[row, column] in ("×", "—", "?")
        else:
            assert f"{number.value:g}" in {f"{read.value:g}" for read in numbers(table.cells[row, column])}, part
    assert list(table.frame.columns) == ["row", "column", "part", "printed", "printed_low", "printed_high"]


@pytest.mark.parametrize("name", TRAINED)
def test_what_is_printed_of_a_share_is_one(name):
    table = TABLES[name]
    percent = {(column.label, part.name): part.percent for column in table.columns for part in column.parts}
    shares = {column.label for column in table.columns if not any(HISTORY in part.measure for part in column.parts)}
    for (_, column, part), number in table.printed.items():
        if column in shares and not np.isnan(number.value):
            assert 0 <= number.value <= (100 if percent[column, part] else 1)
            assert np.isnan(number.reach) or 0 <= number.reach < 1  # no interval of theirs is as wide as a point


@pytest.mark.parametrize("name", BY_SHOTS)
def test_classes_with_more_training_images_are_found_more_often(name):
    for cell in TABLES[name].cells.values():
        _, few, medium, many = (number.value for number in numbers(cell))
        assert few < medium < many


@pytest.mark.parametrize("name", ["002 Table 5", "000 Table 4.5"])
def test_the_mean_over_classes_is_that_of_its_groups(name):
    """48, 25 and 27 % of the classes of Pl@ntNet-300K are few-, medium- and many-shot: Garcin et al. 2023, section 6.3."""
    for cell in TABLES[name].cells.values():
        macro, *groups = (number.value for number in numbers(cell))
        assert macro == pytest.approx(np.dot([0.48, 0.25, 0.27], groups), abs=1.0)


def test_more_classes_in_a_set_find_more_labels():
    for name in ("001 Table 2", "000 Table 4.5"):
        table = TABLES[name]
        for row in table.rows:
            values = [table.printed[row.label, column.label, ""].value for column in table.columns]
            assert values == sorted(values) or row.label.startswith("Smoothed")
    for name in ("003 Table 1", "003 Table 2", "003 Table 3", "003 Table 4", "003 Table 6"):
        for cell in TABLES[name].cells.values():
            values = [number.value for number in numbers(cell)]
            assert values == sorted(values) or cell == "—"


def test_tables_that_repeat_each_other_agree():
    """P_K = [.5, 0, 0, 0, .5] and [.2, …] stand in several tables of Petersen et al.; the thesis prints the papers again."""
    for sort in ("NeuralSort", "SoftSort", "SinkhornSort", "DiffSortNets"):
        of_two = TABLES["003 Table 2"].cells[f"Top-k {sort}", "ImageNet-21K-P"]
        of_three = TABLES["003 Table 3"].cells[f"ImageNet-21K-P, {sort}", "[.5, 0, 0, 0, .5]"]
        of_six = TABLES["003 Table 6"].cells[f"@5 {sort}", "[.5, 0, …, 0, .5]"]
        assert of_two == of_three == of_six[: len(of_two)]
        of_four = TABLES["003 Table 4"].cells[sort, "[.2, .2, .2, .2, .2]"]
        assert TABLES["003 Table 1"].cells[f"Top-k {sort}", "CIFAR-100"] == of_four
    of_thesis, of_paper = TABLES["000 Table 4.5"], TABLES["002 Table 5"]
    for (row, column), cell in of_paper.cells.items():
        assert of_thesis.cells[column, f"K = {row}"] == cell
    main, more = TABLES["004 Table I"], TABLES["004 Table I (supplement)"]
    for theirs, name in (("Binary classifier", "binary"), ("Softmax classifier", "softmax")):
        assert main.cells[theirs, "CIFAR100"] == more.cells[f"ResNet18, {name}", "CIFAR100"]


@pytest.mark.parametrize("name", TRAINED)
def test_every_protocol_names_what_there_is(name):
    table = TABLES[name]
    assert table.rule == ("AverageK" if name in AVERAGED else "TopK")
    for data in table.data:
        assert table.recipe_of(data) in RECIPES
        assert set(data.needs) <= set(NEEDS)
    for row, column, setting in table.settings():
        loss = losses.class_named(setting.loss)
        assert row.setting is not None
        for knob in (*setting.grid, *row.setting.knobs, *column.setting.knobs):
            assert knob in loss.knobs() or setting.loss in (
                "CrossEntropy",
                "SmoothTopKHinge",
            )  # beside sorts, which have m
        for part in column.parts:
            if not part.measure.startswith(HISTORY):
                measure_of(part.measure.format(K=setting.K, row=1))
        assert setting.data == "" or setting.data in [data.name for data in table.data]


def test_a_table_says_at_once_how_it_is_run_and_what_is_reduced():
    table = TABLES["001 Table 2"]
    conditions = table.conditions()
    assert conditions["recipe"] == "plantnet300k-resnet18"
    assert conditions["epoch kept"] == "average-K accuracy, at each K"
    assert conditions["sets"] == "average K"
    assert "letters with long tail for Pl@ntNet-300K" in conditions["reduced scale"]
    assert "network: mlp for resnet18" in conditions["reduced scale"]
    for word in ("data: ", "network: ", "epochs: "):
        small = [name for name in TRAINED if TABLES[name].small is not None and name != "000 Fig. 4.2"]  # has one epoch
        assert all(word in TABLES[name].reduced for name in small)
    assert TABLES["000 Table 3.2"].conditions()["not run"]
    assert TABLES["002 Table 4"].command(small=False) == "workbench reproduce '002 Table 4' --data PATH"
    assert TABLES["003 Table 2"].command(small=False) == "workbench reproduce '003 Table 2' --data 'ImageNet-1K=PATH'"


def test_a_printed_number_keeps_its_digits_and_its_interval():
    assert Number.read("95.11 ± 0.18") == Number(95.11, 0.18, 2)
    assert Number.read("≈ 88.4").value == 88.4
    assert (Number.read("5e-4").value, Number.read("5e-4").digits) == (5e-4, 4)
    assert [Number.read(mark).value for mark in "✓✗"] == [1, 0]
    assert np.isnan(Number.read("×").value)


def test_a_table_is_laid_out_as_it_is_printed():
    assert TABLES["002 Table 9"].markdown() == (
        "| K | CE | Smoothed Hinge (τ = 0.1) | Noised bal. (ε = 0.5, 10 draws) |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| 1 | 72.24±0.15 | 71.43±0.14 | 72.46±0.15 |\n"
        "| 5 | 90.60±0.05 | 90.71±0.06 | 90.52±0.07 |\n"
    )
    assert r"Public & Top-1 & Top-5 \\" in TABLES["003 Table 5"].latex()
    assert r"CoAtNet-7 & $\times$ & 90.88 & --- \\" in TABLES["003 Table 5"].latex()
    html = TABLES["001 Table 1"]._repr_html_()
    assert "<td>97.35 ± 0.06</td>" in html
    assert "A two-head loss function" in html


def test_a_figure_tells_points_that_are_drawn_from_numbers_that_are_printed():
    times = TABLES["000 Fig. 4.3"]
    assert times.printed["Smoothed Hinge", "K = 10", ""].value == 90
    assert np.isnan(times.printed["CE", "K = 10", ""].value)
    assert times.conditions()["?"] == "the paper draws a point there and prints no number"
    assert "?" not in TABLES["000 Table 4.2"].conditions()
    assert TABLES["000 Fig. 5.5"].digits(("average-5 accuracy", "1.0", "")) == 2  # none is printed


@pytest.mark.parametrize("name", ["003 Fig. 1", "003 Fig. 4", "003 Fig. 5"])
def test_what_the_library_computes_of_a_figure_is_what_the_text_says(name, tmp_path):
    found = TABLES[name].reproduce(store=Store(tmp_path))
    assert found.agrees
    if name == "003 Fig. 5":
        last = found.frame[found.frame["run"] & (found.frame["column"] == TABLES[name].columns[-1].label)]
        assert sorted(last["ours"]) == [0, 1, 2, 3, 4]  # each of the top five has its wire


def test_numbers_of_figures_that_stand_in_tables_too_are_the_same():
    left, right = TABLES["003 Fig. 2 (left)"], TABLES["003 Fig. 2 (right)"]
    of_three = TABLES["003 Table 3"].cells
    for share, p_k in (("0.5", "[.5, 0, 0, 0, .5]"), ("0.75", "[.25, 0, 0, 0, .75]"), ("0.9", "[.1, 0, 0, 0, .9]")):
        assert left.cells["SinkhornSort", share] == of_three["ImageNet-1K, SinkhornSort", p_k]
    assert left.cells["SinkhornSort", "1"] == TABLES["003 Table 2"].cells["Top-5 SinkhornSort", "ImageNet-1K"]
    assert right.cells["SinkhornSort", "16"] == left.cells["SinkhornSort", "0.75"]
    of_two = TABLES["003 Table 2"].cells["Softmax", "ImageNet-1K"]
    assert TABLES["003 Fig. 3"].cells["32x48d", "Softmax"] == of_two
    errors = [part.value for (_, _, name), part in TABLES["004 Table III"].printed.items() if name == "ECE"][::2]
    assert [number.value for number in TABLES["004 Fig. 3"].printed.values()] == errors


def test_the_ten_losses_of_the_formulas_have_the_parameters_that_are_printed():
    ours = dict(zip(TABLES["002 Table 1"].rows, TEN_LOSSES, strict=True))
    for row, loss in ours.items():
        printed = TABLES["002 Table 1"].cells[row.label, "parameters"].replace("—", "").replace(" ", "")
        symbols = {knob.symbol or name for name, knob in losses.class_named(loss).knobs().items()}
        assert set(filter(None, printed.split(","))) <= {SYMBOLS.get(symbol, symbol) for symbol in symbols}, loss
    assert [row.label for row in TABLES["000 Table 4.1"].rows] == [row.label for row in ours]


def test_every_formulation_of_table_2_1_is_that_of_a_rule():
    estimated = {rule.formulation for rule in wb.sets.RULES}
    assert {row.label.lower() for row in TABLES["000 Table 2.1"].rows} <= estimated


def test_tables_are_read_without_torch():
    code = "import sys, workbench as wb; wb.claims.TABLES['001 Table 2'].markdown(); wb.claims.TABLES['001 Table 2'].reduced"
    heavy = "assert not {'torch', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{code}; {heavy}"], check=True)


def test_claims_are_public():
    assert wb.claims.TABLES is TABLES


def test_python_shows_a_table_and_its_reproduction_in_a_line(tmp_path):
    table = TABLES["003 Table 7"]
    assert repr(table).startswith("PaperTable('003 Table 7': Depths of networks that sort n values")
    shown = repr(table.reproduce(store=Store(tmp_path)))
    assert shown == "Reproduction('003 Table 7': 68 of 68 numbers; computed by the library: nothing is trained)"
