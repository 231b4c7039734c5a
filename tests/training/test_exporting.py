"""A trained network leaves the workbench: as an ONNX file, and as a folder that a short script can use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import safetensors.numpy
from small_runs import CLOUDS, small, stripes, tags

import workbench as wb
from workbench.losses import AverageKTwoHead, NoisedTopKImbalanced, Quasibinary, Sparsemax
from workbench.training import TrainedRun, train

pytestmark = pytest.mark.usefixtures("one_thread")
SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "guide" / "predict_with_bundle.py"
# As on a machine that never heard of us.
BLOCKED = f"""
import runpy, sys
sys.modules |= dict.fromkeys(("workbench", "torch", "onnx", "sklearn"))
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    from workbench.store import Store

    return Store(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def rows_of_numbers(shop):
    return TrainedRun.open(train(small(), store=shop, progress=False).stored.key, shop)


def answers(path, inputs):
    return onnxruntime.InferenceSession(str(path)).run(["scores", "probabilities"], {"inputs": inputs})


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (stripes(), {"model": "cnn", "epochs": 1, "batch_size": 16}),
        (CLOUDS, {"loss": AverageKTwoHead(K=2), "model": "mlp"}),
        (CLOUDS, {"loss": NoisedTopKImbalanced(K=2)}),
        (CLOUDS, {"loss": Sparsemax()}),
        (tags(), {"loss": Quasibinary()}),
    ],
    ids=["photographs", "two heads", "cosines", "sparsemax", "quasibinary"],
)
def test_an_onnx_file_gives_the_scores_and_probabilities_of_the_tables(shop, data, fields, tmp_path):
    trained = TrainedRun.open(train(small(data, **fields), store=shop, progress=False).stored.key, shop)
    assert trained.export(tmp_path / "model.onnx") == tmp_path / "model.onnx"
    test = trained.tables["test"]
    for rows in (slice(None), slice(1)):  # any number of them
        scores, probabilities = answers(tmp_path / "model.onnx", data.test.inputs[rows])
        np.testing.assert_allclose(scores, test.scores[rows], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(probabilities, test.probabilities(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rule", [wb.AverageK(K=2), wb.TopK(2), wb.LAC(0.8, min_size=1), None], ids=repr)
def test_a_script_without_workbench_gives_the_sets_of_a_bundle(rows_of_numbers, tmp_path, rule):
    rows_of_numbers.export(tmp_path / "bundle", rule)
    np.save(tmp_path / "new.npy", CLOUDS.test.inputs)
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, tmp_path / "bundle", tmp_path / "new.npy"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    expected = rows_of_numbers.predictor(rule or wb.AverageK(5))(CLOUDS.test.inputs).to_frame()["classes"]
    assert [line.split(";") for line in done.stdout.splitlines()] == expected.tolist()


def test_a_bundle_holds_weights_link_names_rule_threshold_and_preparation(rows_of_numbers, tmp_path):
    bundle = rows_of_numbers.export(tmp_path / "bundle", wb.AverageK(K=2))
    assert sorted(path.name for path in bundle.iterdir()) == ["bundle.json", "model.onnx", "weights.safetensors"]
    said = json.loads((bundle / "bundle.json").read_text())
    fitted = wb.AverageK(K=2).fit(rows_of_numbers.tables["val"])
    assert said["threshold"] == fitted.threshold
    assert said["rule"] == {"rule": "AverageK", "knobs": {"K": 2.0, "tau": 0.0, "min_size": 0}}
    assert (said["link"], said["link_constant"]) == ("softmax", None)
    assert said["class_names"] == list(rows_of_numbers.tables["val"].named_classes())
    assert (said["inputs"]["shape"], said["inputs"]["dtype"]) == ([5], "float32")
    np.testing.assert_allclose(said["inputs"]["mean"], CLOUDS.train.inputs.mean(0), rtol=1e-5, atol=1e-6)
    weights = safetensors.numpy.load_file(bundle / "weights.safetensors")
    inputs = (CLOUDS.test.inputs - weights["mean"]) / weights["deviation"]
    scores = inputs @ weights["head.weight"].T + weights["head.bias"]
    np.testing.assert_allclose(scores, rows_of_numbers.tables["test"].scores, rtol=1e-4, atol=1e-5)
    rows_of_numbers.export(bundle, wb.AverageK(K=3))  # a bundle makes way for the next
    assert json.loads((bundle / "bundle.json").read_text())["rule"]["knobs"]["K"] == 3


def test_what_cannot_be_exported_is_said_and_nothing_is_left(rows_of_numbers, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"APS\(.*more than a threshold of probabilities.*give AverageK"):
        rows_of_numbers.export(tmp_path / "bundle", wb.APS(0.9))
    with pytest.raises(ValueError, match="holds a network and no rule; give a folder"):
        rows_of_numbers.export(tmp_path / "model.onnx", wb.AverageK(2))
    monkeypatch.setattr("workbench.optional_dependencies.importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=r"this needs onnx, .*pip install 'set-workbench\[export\]'"):
        rows_of_numbers.export(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "ours", [(), ("bundle.json", "model.onnx", "weights.safetensors")], ids=["a folder", "a bundle"]
)
@pytest.mark.parametrize("link", [False, True], ids=["", "a link to it"])
def test_an_export_removes_no_other_file_from_a_folder(rows_of_numbers, tmp_path, ours, link):
    (tmp_path / "mine").mkdir()
    for name in (*ours, "notes.txt"):
        (tmp_path / "mine" / name).write_text(name)
    (tmp_path / "link").symlink_to("mine")
    with pytest.raises(FileExistsError, match=r"holds notes\.txt and is not a bundle"):
        rows_of_numbers.export(tmp_path / ("link" if link else "mine"))
    assert {path.name: path.read_text() for path in (tmp_path / "mine").iterdir()} == {
        name: name for name in (*ours, "notes.txt")
    }
