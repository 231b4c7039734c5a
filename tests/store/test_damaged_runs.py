"""Whatever happened to a run on disk, it is named and set aside, and the others are read as if it were not there."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.cli.main import main
from workbench.files.checksums import CHECKSUMS, sha256_of
from workbench.metrics.sweeps import stored_sweeps
from workbench.runs import Run
from workbench.store import Store
from workbench.store import store as store_module
from workbench.store.lru_store import LRUStore
from workbench.store.record import FACTS as OF_RESULT
from workbench.store.record import RunRecord
from workbench.store.runs import StoredRun
from workbench.tables import LogitTable

WHOLE, DAMAGED = "aa" * 32, "dd" * 32
RUN = {
    "dataset": {"name": "digits", "knobs": {}, "transforms": []},
    "dataset_key": "0",
    "model": "linear",
    "loss": {"loss": "CrossEntropy", "knobs": {"K": 3}},
    "epochs": 2,
    "seed": 0,
}
FACTS = {
    "title": "a run",
    "n_classes": 3,
    "input_shape": [2],
    "kept_epoch": 0,
    "finished": "2026-01-01",
    "repeatable": True,
}
CONTENT = {"format": 1, "run": RUN, "facts": FACTS}


def write(store: Store, key: str) -> None:
    rng = np.random.default_rng(0)
    with store.writing(key) as directory:
        (directory / "run.json").write_text(json.dumps(CONTENT))
        (directory / "history.csv").write_text("epoch,val_loss\n0,0.5\n")
        (directory / "weights.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
        for split in ("val", "test"):
            table = LogitTable(
                rng.normal(size=(8, 3)).astype(np.float32), np.arange(8) % 3, class_names=["a", "b", "c"]
            )
            table.save(directory / split)


def sign(run: Path) -> None:
    """Makes the checksums match again, as an attacker would."""
    files = [path for path in run.rglob("*") if path.is_file() and path.name != CHECKSUMS]
    (run / CHECKSUMS).write_text(json.dumps({path.relative_to(run).as_posix(): sha256_of(path) for path in files}))


def content(**fields: Any) -> dict[str, Any]:
    """A run.json with other fields, each where it belongs: of the file, of the run or of the facts."""
    parts: dict[str, Any] = {"run": {**RUN}, "facts": {**FACTS}}
    found = CONTENT | parts
    for name, value in fields.items():
        place = found if name in CONTENT else parts["facts"] if name in OF_RESULT else parts["run"]
        place[name] = value
    return found


def says(run: Path, /, **fields: Any) -> None:
    (run / "run.json").write_text(json.dumps(content(**fields)))
    sign(run)


def refused(name: str, value: Any) -> bool:
    try:
        RunRecord.from_json(content(**{name: value}))
    except ValueError:
        return True
    return False


def table_says(run: Path, **facts: Any) -> None:
    file = run / "test" / "table.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))
    sign(run)


def holds(run: Path, name: str, content: bytes | str) -> None:
    (run / name).write_bytes(content.encode() if isinstance(content, str) else content)
    sign(run)


def array_is(run: Path, name: str, values: Any) -> None:
    np.save(run / "test" / f"{name}.npy", np.asarray(values), allow_pickle=True)
    sign(run)


def replaced(run: Path, name: str, how: Callable[[Path], object]) -> None:
    """Something else in the place of a file."""
    (run / name).unlink()
    how(run / name)


def loop(path: Path) -> None:
    path.symlink_to(path)


def headless(shape: tuple[int, ...]) -> bytes:
    """The beginning of an array of this shape, and nothing of it."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


def is_a_loop(run: Path) -> None:
    shutil.rmtree(run)
    loop(run)


def cut(run: Path, name: str) -> None:
    (run / name).write_bytes((run / name).read_bytes()[:-1])


def flipped(run: Path, name: str) -> None:
    content = bytearray((run / name).read_bytes())
    content[-1] ^= 1
    (run / name).write_bytes(content)


# What happened, and whether listing the runs tells of it; the rest is found when the table or the weights are read.
FIELD_DAMAGE = {
    f"{name} is {json.dumps(value)[:20]}": (lambda run, name=name, value=value: says(run, **{name: value}))
    for name in ("run", "facts", *(field.name for field in dataclasses.fields(Run)), *OF_RESULT)
    for value in ({"odd": 1}, [[]], -1, "odd", None)
    if refused(name, value)
}
SEEN = FIELD_DAMAGE | {
    "run.json is []": lambda run: holds(run, "run.json", "[]"),
    "run.json is a word": lambda run: holds(run, "run.json", '"title"'),
    "run.json is empty": lambda run: holds(run, "run.json", ""),
    "run.json is cut": lambda run: holds(run, "run.json", '{"title": "a ru'),
    "run.json is too deep": lambda run: holds(run, "run.json", '{"title": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    "run.json is not UTF-8": lambda run: holds(run, "run.json", b'{"title": "\xff"}'),
    "run.json holds NaN": lambda run: holds(
        run, "run.json", '{"format": 1, "facts": {"title": "a"}, "run": {"epochs": NaN}}'
    ),
    "run.json holds infinity": lambda run: holds(
        run, "run.json", '{"format": 1, "facts": {"title": "a"}, "run": {"learning_rate": -Infinity}}'
    ),
    "run.json holds a huge number": lambda run: holds(
        run, "run.json", '{"format": 1, "facts": {"title": "a"}, "run": {"seed": ' + "9" * 5000 + "}}"
    ),
    "run.json is of format 99": lambda run: says(run, format=99),
    "run.json is of a format that is a list": lambda run: says(run, format=[]),
    "run.json has no title": lambda run: holds(run, "run.json", '{"format": 1, "facts": {}}'),
    "run.json lacks what a trained run has": lambda run: holds(
        run, "run.json", '{"format": 1, "facts": {"title": "a"}}'
    ),
    "run.json does not match its checksum": lambda run: (run / "run.json").write_text(
        '{"format": 1, "facts": {"title": "another"}}'
    ),
    "run.json is missing": lambda run: (run / "run.json").unlink(),
    "run.json is a folder": lambda run: replaced(run, "run.json", Path.mkdir),
    "run.json is a loop of links": lambda run: replaced(run, "run.json", loop),
    "run.json is a pipe": lambda run: replaced(run, "run.json", os.mkfifo),
    "the checksums are missing": lambda run: (run / CHECKSUMS).unlink(),
    "the checksums are []": lambda run: (run / CHECKSUMS).write_text("[]"),
    "the checksums are of numbers": lambda run: (run / CHECKSUMS).write_text('{"run.json": 1}'),
    "the checksums name none": lambda run: (run / CHECKSUMS).write_text("{}"),
    "the checksums are too deep": lambda run: (run / CHECKSUMS).write_text("[" * 100_000),
    "the checksums are not UTF-8": lambda run: (run / CHECKSUMS).write_bytes(b"\xff\xfe"),
    "the checksums are a folder": lambda run: replaced(run, CHECKSUMS, Path.mkdir),
    "the checksums are a loop of links": lambda run: replaced(run, CHECKSUMS, loop),
    "the checksums lead outside": lambda run: (run / CHECKSUMS).write_text('{"../../secret": "0"}'),
    "the checksums are of an absolute path": lambda run: (run / CHECKSUMS).write_text('{"/etc/passwd": "0"}'),
    "the run is a loop of links": is_a_loop,
    "table.json is missing": lambda run: (run / "test" / "table.json").unlink(),
    "table.json is cut": lambda run: cut(run, "test/table.json"),
    "table.json is []": lambda run: holds(run, "test/table.json", "[]"),
    "table.json is too deep": lambda run: holds(run, "test/table.json", "[" * 100_000),
    "table.json tells no rows": lambda run: table_says(run, rows="many"),
    "table.json tells rows below zero": lambda run: table_says(run, rows=-8),
    "scores are cut": lambda run: cut(run, "test/scores.npy"),
    "scores are cut and signed": lambda run: (cut(run, "test/scores.npy"), sign(run)),
    "scores are missing": lambda run: (run / "test" / "scores.npy").unlink(),
    "scores are empty": lambda run: holds(run, "test/scores.npy", b""),
    "scores are no array": lambda run: holds(run, "test/scores.npy", b"PK\3\4"),
    "scores are a folder": lambda run: replaced(run, "test/scores.npy", Path.mkdir),
    "scores are a loop of links": lambda run: replaced(run, "test/scores.npy", loop),
    "scores have more rows than there are": lambda run: holds(run, "test/scores.npy", headless((10**12, 3))),
    "scores have a shape below zero": lambda run: holds(run, "test/scores.npy", headless((-8, 3))),
    "labels are pickled": lambda run: array_is(run, "labels", np.array([{}] * 8, dtype=object)),
    "the history is missing": lambda run: (run / "history.csv").unlink(),
    "the weights are missing": lambda run: (run / "weights.safetensors").unlink(),
    "the weights are empty": lambda run: holds(run, "weights.safetensors", b""),
}
FOUND = {
    "a byte of the scores is flipped": lambda run: flipped(run, "test/scores.npy"),
    "a byte of the labels is flipped": lambda run: flipped(run, "test/labels.npy"),
    "a byte of the history is flipped": lambda run: flipped(run, "history.csv"),
    "the history is not UTF-8": lambda run: holds(run, "history.csv", b"\xff\xfe,\n"),
    "the history is empty": lambda run: holds(run, "history.csv", b""),
    "the history has ragged lines": lambda run: holds(run, "history.csv", "a\n1,2\n3,4,5\n"),
    "table.json is of format 99": lambda run: table_says(run, format=99),
    "table.json lists no arrays": lambda run: table_says(run, arrays=[]),
    "table.json lists a number": lambda run: table_says(run, arrays=3),
    "table.json lists numbers": lambda run: table_says(run, arrays=[1, 2]),
    "table.json lists a path": lambda run: table_says(run, arrays=["scores", "../val/labels"]),
    "table.json tells other rows": lambda run: table_says(run, rows=9),
    "table.json tells an odd link": lambda run: table_says(run, link="odd"),
    "table.json tells an odd constant": lambda run: table_says(run, link_constant="odd"),
    "table.json tells a name too few": lambda run: table_says(run, class_names=["a", "b"]),
    "table.json tells names that are numbers": lambda run: table_says(run, class_names=[1, 2, 3]),
    "table.json tells names that are one word": lambda run: table_says(run, class_names="abc"),
    "table.json tells attributes that are not there": lambda run: table_says(run, attributes=["organ"]),
    "table.json tells an odd key": lambda run: table_says(run, key=7),
    "table.json tells an odd note": lambda run: table_says(run, note={}),
    "scores are whole numbers": lambda run: array_is(run, "scores", np.zeros((8, 3), int)),
    "scores have another shape": lambda run: array_is(run, "scores", np.zeros((3, 8), np.float32)),
    "scores are words": lambda run: array_is(run, "scores", [["a"] * 3] * 8),
    "labels are of too few rows": lambda run: array_is(run, "labels", np.zeros(7, int)),
    "labels are beyond the classes": lambda run: array_is(run, "labels", np.full(8, 200, np.uint8)),
    "labels are not whole": lambda run: array_is(run, "labels", np.full(8, 0.5)),
}


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """A store with two whole runs."""
    store = Store(tmp_path_factory.mktemp("whole"))
    for key in (WHOLE, DAMAGED):
        write(store, key)
    return store.root


@pytest.fixture
def damaged(two_runs, store, monkeypatch, tmp_path, request):
    """A store with a whole run and one to which something happened."""
    monkeypatch.setattr(store_module, "DEMO", tmp_path / "demo")
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    shutil.copytree(two_runs, store.root)
    (SEEN | FOUND)[request.param](store.root / DAMAGED)
    return store


def read_everything(run: StoredRun) -> None:
    """Everything that a run can be asked for."""
    run.record.settings, run.record.K, run.title, run.finished, run.dataset_spec, run.sizes(), run.history
    for name in ("val", "test"):
        run.tables[name]
    run.verified("weights.safetensors")
    run._repr_html_()


@pytest.mark.filterwarnings("ignore:a run is left out")
@pytest.mark.parametrize("damaged", SEEN, indirect=True)
def test_a_damaged_run_is_named_set_aside_and_never_in_the_way(damaged, capsys):
    assert [run.key for run in damaged.runs()] == [WHOLE]
    assert list(damaged.unreadable()) == [DAMAGED]
    assert damaged.unreadable()[DAMAGED].startswith(f"run {DAMAGED[:12]}: ")
    assert str(damaged.root) not in damaged.unreadable()[DAMAGED]
    read_everything(damaged.open(WHOLE))
    assert [run.key for run in LRUStore(damaged).runs() if run.path.parent == damaged.root] == [WHOLE]
    assert stored_sweeps(damaged.runs()) == []
    with pytest.raises(ValueError, match=f"run {DAMAGED[:12]}"):
        read_everything(damaged.open(DAMAGED[:6]))
    assert main(["runs"]) == 0
    said = capsys.readouterr()
    assert f"{DAMAGED[:12]}  cannot be read: " in said.out
    assert said.err == ""


@pytest.mark.parametrize("damaged", FOUND, indirect=True)
def test_what_only_reading_can_find_is_told_in_words_that_name_the_run(damaged):
    assert {run.key for run in damaged.runs()} == {WHOLE, DAMAGED}
    with pytest.raises(ValueError, match=f"run {DAMAGED[:12]}: ") as caught:
        read_everything(damaged.open(DAMAGED))
    assert str(damaged.root) not in str(caught.value)


@pytest.mark.parametrize("damaged", ["run.json is []"], indirect=True)
def test_a_damaged_run_can_be_trained_over_and_removed(damaged):
    with damaged.writing(DAMAGED, replace=True) as directory:
        (directory / "run.json").write_text('{"format": 1, "facts": {"title": "anew"}}')
    assert damaged.open(DAMAGED).title == "anew"
    damaged.remove(DAMAGED)
    assert not damaged.has(DAMAGED)


@pytest.mark.parametrize("damaged", ["scores are cut"], indirect=True)
def test_a_run_that_is_mended_is_listed_again(damaged):
    with pytest.warns(UserWarning, match="a run is left out: run dddddddddddd: test/scores.npy"):
        assert len(damaged.runs()) == 1
    with damaged.writing(DAMAGED, replace=True) as directory:
        (directory / "run.json").write_text('{"format": 1, "facts": {"title": "anew"}}')
    assert len(damaged.runs()) == 2


def test_at_least_32_kinds_of_damage_are_tried():
    assert len(SEEN) + len(FOUND) >= 32
