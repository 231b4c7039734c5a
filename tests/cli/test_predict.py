"""`workbench predict`: sets of new rows, written as a whole or not at all."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from torch import nn

import workbench as wb
from workbench.cli.main import main
from workbench.datasets import Dataset
from workbench.store import Store
from workbench.training import TrainedRun, train

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = ("oak", "elm", "fir", "yew")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _in_that_home(home, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(home))


def leaves(names=NAMES) -> Dataset:
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 4
    rows = pd.DataFrame(rng.normal(size=(240, 2)) + 2 * np.eye(4, 2)[labels], columns=["length", "width"])
    return Dataset.from_arrays(rows, labels, class_names=names)


@pytest.fixture(scope="module")
def key(home):
    return train(wb.Run(leaves(), model="linear", epochs=2, device="cpu"), store=Store(home), progress=False).stored.key


@pytest.fixture
def new(tmp_path):
    """New rows, with names and a column more than the network needs."""
    rows = pd.DataFrame(np.float64(leaves().test.inputs), columns=["length", "width"])
    rows.assign(id=[f"leaf {i}" for i in range(len(rows))], colour="green").to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


def test_predict_writes_the_sets_of_new_rows_as_csv_and_as_json(key, new, tmp_path, home, capsys):
    trained = TrainedRun.open(key, Store(home))
    expected = wb.AverageK(K=2).fit(trained.tables["val"])(trained.tables["test"]).to_frame()
    for name in ("sets.csv", "sets.json"):
        wanted = ["predict", key[:10], new, "--rule", "AverageK", "--K", 2, "--output", tmp_path / name]
        assert main([str(each) for each in wanted]) == 0
        assert f"written to {tmp_path / name}" in capsys.readouterr().err
    frame = pd.read_csv(tmp_path / "sets.csv")
    assert frame["id"].tolist() == [f"leaf {i}" for i in range(24)]
    assert frame["classes"].str.split(";").tolist() == expected["classes"].tolist()
    assert frame["size"].tolist() == expected["size"].tolist()
    written = json.loads((tmp_path / "sets.json").read_text())
    assert written["run"] == key
    assert written["rule"].startswith("AverageK(K=2.0, min_size=0) at ")
    assert [row["classes"] for row in written["rows"]] == expected["classes"].tolist()
    np.testing.assert_allclose(written["rows"][0]["probabilities"], expected["probabilities"][0], rtol=1e-12)


def test_without_a_file_the_sets_are_printed_and_a_rule_brings_its_knobs(key, new, capsys):
    assert main(["predict", key, str(new), "--rule", "TopK(K=3)"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "id,size,classes,probabilities"
    assert lines[1].startswith("leaf 0,3,")
    assert main(["predict", key, str(new)]) == 0  # average-K at the K of the run: 5, or as many as there can be
    assert len(capsys.readouterr().out.splitlines()) == 25


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["KEY", "nowhere.csv"], "there is no file and no folder nowhere.csv; give a .csv or .npy file with 2 columns"),
        (["nothing", "NEW"], "no run has a key that starts with 'nothing'"),
        (["KEY", "NEW", "--rule", "LAC", "--K", "2"], "--K 2: LAC has no K; it has confidence, min_size"),
        (["KEY", "NEW", "--K", "few"], "K = 'few' is not allowed"),
        (["KEY", "NEW", "--rule", "LAG"], "there is no rule named 'LAG'"),
        (["KEY", "NEW", "--output", "OUT/sets.xls"], "sets are written as .csv or .json"),
        (["KEY", "NEW", "--output", "OUT/no/sets.csv"], "there is no folder"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(key, new, tmp_path, capsys, arguments, error):
    out = tmp_path / "out"
    out.mkdir()
    known = {"KEY": key, "NEW": str(new)}
    arguments = [known.get(each, each).replace("OUT", str(out)) for each in arguments]
    assert main(["predict", *arguments]) == 2
    assert error in capsys.readouterr().err
    assert list(out.iterdir()) == []


def test_a_row_that_fails_leaves_the_file_of_before_as_it_was(key, new, tmp_path, capsys):
    (tmp_path / "sets.csv").write_text("of before")
    new.write_text("length,width\n1,2\n3,\n")
    assert main(["predict", key, str(new), "--output", str(tmp_path / "sets.csv")]) == 2
    assert "NaN or infinite numbers, first in row 1" in capsys.readouterr().err
    assert (tmp_path / "sets.csv").read_text() == "of before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "sets.csv"]


def test_a_run_that_was_given_a_module_is_told_what_makes_it(home, new, tmp_path, monkeypatch, capsys):
    (tmp_path / "my_networks.py").write_text("from torch import nn\ndef made(shape): return nn.Linear(*shape, 4)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    run = wb.Run(leaves(), model=nn.Linear(2, 4), epochs=1, device="cpu")
    key = train(run, store=Store(home), progress=False).stored.key
    assert main(["predict", key, str(new)]) == 2
    assert "was a Module (Linear)" in capsys.readouterr().err
    assert main(["predict", key, str(new), "--model", "my_networks:made"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 25


def test_names_with_the_mark_between_classes_go_into_json(home, new, tmp_path, capsys):
    run = wb.Run(leaves(("oak", "elm", "fir;yew", "ash")), model="linear", epochs=1, device="cpu")
    key = train(run, store=Store(home), progress=False).stored.key
    assert main(["predict", key, str(new)]) == 2
    assert "write --output FILE.json" in capsys.readouterr().err
    assert main(["predict", key, str(new), "--rule", "TopK(K=3)", "--output", str(tmp_path / "sets.json")]) == 0
    rows = json.loads((tmp_path / "sets.json").read_text())["rows"]
    assert any("fir;yew" in row["classes"] for row in rows)
