"""A stored run, an address and a request are only data: the code they name runs when a person has said so."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from workbench import app_server, losses, trusted_imports
from workbench.cli.main import main
from workbench.losses import class_named, from_spec
from workbench.store import DEMO, Store, StoredRun
from workbench.training import Run, TrainedRun

MODULE = "code_of_somebody_else"
SOURCE = """
from pathlib import Path
Path("it_ran").touch()
import torch
from workbench.losses import CrossEntropy
def model(input_shape): return torch.nn.Flatten()
class Mine(CrossEntropy): pass
"""


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module in the working folder that leaves a file when it is imported; returns the file."""
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(trusted_imports.ALLOW, raising=False)
    yield tmp_path / "it_ran"
    sys.modules.pop(MODULE, None)


DIGITS = {"name": "digits", "knobs": {"seed": 0}}
LOSS = {"loss": f"{MODULE}:Mine", "knobs": {}}
PARTS = {"model": {"model": f"{MODULE}:model"}, "loss": {"loss": LOSS, "model": "linear"}}


def described(**parts):
    run = Run("digits", model="linear", epochs=1, device="cpu").to_json()
    return json.loads(json.dumps(run)) | parts


def stored(store: Store, **parts) -> StoredRun:
    """A run in the store whose `run.json` names foreign code, as anybody can write one."""
    facts = {
        "title": "a run of another program",
        "n_classes": 10,
        "input_shape": [8, 8, 1],
        "kept_epoch": 0,
        "repeatable": True,
    }
    with store.writing("ab" * 32) as directory:
        (directory / "run.json").write_text(json.dumps({"format": 1, "run": described(**parts), "facts": facts}))
        shutil.copy(next(DEMO.glob("*/weights.safetensors")), directory)
    return store.open("ab" * 32)


@pytest.mark.parametrize("part", PARTS)
def test_opening_a_stored_run_imports_nothing_that_its_file_names(store, trap, part):
    stored(store, **PARTS[part])
    with pytest.raises(ValueError, match=rf"'{MODULE}:\w+' is code from outside the workbench.*allow=\['{MODULE}'\]"):
        TrainedRun.open("abab", store)
    assert not trap.exists()
    TrainedRun.open("abab", store, allow=[MODULE])
    assert trap.exists()


@pytest.mark.parametrize("part", PARTS)
def test_a_request_imports_nothing_unless_the_worker_was_started_with_it(trap, monkeypatch, part):
    asked = {"dataset": DIGITS, "device": "cpu", **PARTS[part]}
    with pytest.raises(ValueError, match=f"is code from outside the workbench.*--allow {MODULE}"):
        Run.from_json(asked)
    assert not trap.exists()
    monkeypatch.setenv(trusted_imports.ALLOW, f"another,{MODULE}")
    Run.from_json(asked)
    assert trap.exists()


def test_a_head_on_a_run_of_another_program_is_trained_only_if_its_module_is_allowed(store, trap, monkeypatch, capsys):
    stored(store, **PARTS["model"])
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    command = ["train", "--dataset", "digits", "--features", "abab"]
    assert main(command) == 2
    assert f"--allow {MODULE}" in capsys.readouterr().err
    assert not trap.exists()
    assert main([*command, "--allow", MODULE]) == 2
    assert f"the weights of a run of another program are not those of a {MODULE}:model" in capsys.readouterr().err
    assert trap.exists()


def test_what_is_named_on_ones_own_command_line_or_in_a_call_is_said(trap):
    assert class_named(LOSS["loss"]).__name__ == "Mine"
    assert Run("digits", model=f"{MODULE}:model", epochs=1).model == f"{MODULE}:model"


def test_the_app_passes_on_what_was_allowed_and_nothing_else(trap, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(app_server, "free_port", lambda **_: 1)
    started = []

    def serve(*_):
        started.append(os.environ[trusted_imports.ALLOW])
        raise OSError("enough")

    monkeypatch.setattr(os, "execv", serve)
    for arguments in ([], ["--allow", MODULE, "another"]):
        assert main(["app", *arguments]) == 2
    assert started == ["", f"{MODULE},another"]


def test_an_app_that_is_opened_from_python_may_import_what_the_call_allows(trap, monkeypatch):
    served = []

    def serve(command, port, environment, **_):
        served.append(environment[trusted_imports.ALLOW])
        raise OSError("enough")

    monkeypatch.setattr(app_server, "start_server", serve)
    for allow in ([], [MODULE]):
        with pytest.raises(OSError, match="enough"):
            app_server.open_app(allow=allow)
    with pytest.raises(TypeError, match=f"give a list of modules, \\['{MODULE}'\\]"):
        app_server.open_app(allow=MODULE)
    assert served == ["", MODULE]


def test_a_package_that_is_allowed_allows_its_modules_and_no_other_name():
    with pytest.raises(ValueError, match="code from outside the workbench"):
        trusted_imports.import_object("os:sep", "text", allowed=["o", "os.path", "osx"])
    assert trusted_imports.import_object("os.path:sep", "text", allowed=["os"]) == os.sep


def test_a_loss_of_ours_is_found_wherever_its_class_lived_when_the_run_was_stored():
    for place in ("", "workbench.losses.noised:", "workbench.losses.moved_since:"):
        assert from_spec({"loss": f"{place}NoisedTopK", "knobs": {"K": 3}}) == losses.NoisedTopK(K=3)
    with pytest.raises(ValueError, match=r"there is no loss named 'workbench\.app_server:run_app'"):
        class_named("workbench.app_server:run_app")


def test_a_loss_that_is_given_as_a_class_needs_no_import():
    class Mine(losses.CrossEntropy):
        pass

    assert class_named(f"{__name__}:Mine", (*losses.LOSSES, Mine), allowed=()) is Mine


def test_reading_what_a_run_of_somebody_holds_imports_nothing(store, trap, capsys, monkeypatch):
    run = stored(store, **PARTS["loss"] | PARTS["model"])
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    assert main(["runs"]) == 0
    assert run.title == "a run of another program"
    assert MODULE not in sys.modules
    assert not Path("it_ran").exists()
