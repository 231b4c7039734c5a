"""One small, valid example of everything the workbench reads, and the reader that reads it."""

from __future__ import annotations

import gzip
import json
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from safetensors.numpy import save_file

import workbench as wb
from workbench.store import Store, StoredRun
from workbench.store.imported_tables import keep_tables
from workbench.store.set_answers import SetAnswers
from workbench.store.tags import all_tags, tag

Reader = Callable[[Path], Any]
SCORES = np.random.default_rng(0).normal(size=(12, 3))
LABELS = np.arange(12) % 3


def table() -> wb.LogitTable:
    return wb.LogitTable(SCORES, LABELS, class_names=["oak", "elm", "fir"], attributes={"place": ["wood"] * 12})


def _frame() -> pd.DataFrame:
    return pd.DataFrame(SCORES, columns=["oak", "elm", "fir"]).assign(label=LABELS)


def _images(folder: Path) -> None:
    for name in ("oak", "elm"):
        (folder / name).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (6, 6), (number, 9, 9)).save(folder / name / f"{number}.png")


def _idx(folder: Path) -> None:
    for name, n in (("train", 30), ("t10k", 12)):
        images = bytes([0, 0, 8, 3]) + struct.pack(">III", n, 2, 2) + bytes(4 * n)
        labels = bytes([0, 0, 8, 1]) + struct.pack(">I", n) + bytes(row % 10 for row in range(n))
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(labels)


def _cifar(folder: Path) -> None:
    record = np.zeros((30, 3073), np.uint8)
    record[:, 0] = np.arange(30) % 3
    for name in ("data_batch_1.bin", "test_batch.bin"):
        record.tofile(folder / name)
    (folder / "batches.meta.txt").write_text("oak\nelm\nfir\n")


def _coco(folder: Path) -> None:
    _images(folder)
    files = [f"{name}/{number}.png" for name in ("oak", "elm") for number in range(4)]
    lists = {
        "images": [{"id": row, "file_name": file} for row, file in enumerate(files)],
        "annotations": [{"image_id": row, "category_id": row % 2} for row in range(8)],
        "categories": [{"id": number, "name": f"c{number}"} for number in range(2)],
    }
    (folder / "instances_train.json").write_text(json.dumps(lists))


def _listed(folder: Path) -> None:
    _images(folder)
    lines = [f"{name}/{number}.png {label}" for label, name in enumerate(("oak", "elm")) for number in range(4)]
    (folder / "mine_train.txt").write_text("\n".join(lines))


def _labelled(folder: Path) -> None:
    _images(folder)
    lines = [f"{name}/{number}.png,{name}" for name in ("oak", "elm") for number in range(4)]
    (folder / "labels.csv").write_text("\n".join(["file,label", *lines]))


def _data(path: Path) -> Any:
    found = wb.load_dataset(path)
    return found.key, found.train.inputs[:2]


def _store(folder: Path) -> None:
    run = keep_tables(table(), title="mine", store=Store(folder))
    tag(Store(folder), run.key, "good")


def _opened(folder: Path) -> Any:
    store = Store(folder)
    broken = store.unreadable()
    read = [run for run in store.runs() if run.path.parent == store.root]
    all_tags(store)
    for run in (StoredRun(run.path) for run in read):
        _ = run.tables["val"].probabilities(), run.history
    return broken


def _service(row: int) -> dict[str, Any]:
    """What a service answers about a row: some classes with their scores."""
    pairs = [
        {"label": name, "score": 0.6 - 0.25 * place} for place, name in enumerate(("oak", "elm", "fir")[: 1 + row % 3])
    ]
    return {"id": f"r{row}", "truth": "oak", "place": "wood", "answer": pairs}


def _arrays(folder: Path) -> None:
    for split in ("val", "test"):
        np.save(folder / f"mine_{split}_softmax.npy", np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True))
        np.save(folder / f"mine_{split}_labels.npy", LABELS)


def _zip(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path, "w") as archive:
        _arrays(Path(folder))
        for file in sorted(Path(folder).iterdir()):
            archive.write(file, file.name)


def _nus_wide(folder: Path) -> None:
    _images(folder / "images")
    files = [f"{name}/{number}.png" for name in ("oak", "elm") for number in range(4)]
    for kind in ("ImageList", "Groundtruth/AllLabels"):
        (folder / kind).mkdir(parents=True)
    (folder / "ImageList" / "Imagelist.txt").write_text("\n".join(files))
    for concept in ("sky", "sea"):
        (folder / f"Groundtruth/AllLabels/Labels_{concept}.txt").write_text("\n".join("01010101"))


def _json(name: str, content: Any) -> tuple[Callable[[Path], None], Reader, str]:
    return _file(name, lambda path: path.write_text(json.dumps(content))), lambda f: wb.import_any(f / name), name


def _text(name: str, lines: list[str]) -> tuple[Callable[[Path], None], Reader, str]:
    return _file(name, lambda path: path.write_text("\n".join(lines))), lambda f: wb.import_any(f / name), name


def _answered(folder: Path) -> None:
    for row in range(4):
        SetAnswers(folder / "a.jsonl").add("ann", row, ["oak", "elm"])


def _file(name: str, write: Callable[[Path], Any]) -> Callable[[Path], None]:
    return lambda folder: (write(folder / name), None)[1]


# Name → (what writes a folder, what reads it, which of its files are damaged).
SEEDS: dict[str, tuple[Callable[[Path], None], Reader, str]] = {
    "npz": (
        _file("a.npz", lambda path: np.savez(path, scores=SCORES, labels=LABELS)),
        lambda f: wb.import_table(f / "a.npz"),
        "a.npz",
    ),
    "npz compressed": (
        _file("a.npz", lambda path: np.savez_compressed(path, scores=SCORES, labels=LABELS)),
        lambda f: wb.import_table(f / "a.npz"),
        "a.npz",
    ),
    "npy": (
        _file("a.npy", lambda path: np.save(path, SCORES)),
        lambda f: wb.import_table(f / "a.npy").probabilities(),
        "a.npy",
    ),
    "csv": (
        _file("a.csv", lambda path: _frame().to_csv(path, index=False)),
        lambda f: wb.import_table(f / "a.csv"),
        "a.csv",
    ),
    "parquet": (
        _file("a.parquet", lambda path: _frame().to_parquet(path)),
        lambda f: wb.import_table(f / "a.parquet"),
        "a.parquet",
    ),
    "safetensors": (
        _file("a.safetensors", lambda path: save_file({"scores": SCORES, "labels": LABELS}, path)),
        lambda f: wb.import_table(f / "a.safetensors"),
        "a.safetensors",
    ),
    "csv.gz": (
        _file("a.csv.gz", lambda path: _frame().to_csv(path, index=False)),
        lambda f: wb.import_table(f / "a.csv.gz"),
        "a.csv.gz",
    ),
    "jsonl": (
        _file("a.jsonl", lambda path: _frame().to_json(path, orient="records", lines=True)),
        lambda f: wb.import_table(f / "a.jsonl"),
        "a.jsonl",
    ),
    "feather": (
        _file("a.feather", lambda path: _frame().to_feather(path)),
        lambda f: wb.import_table(f / "a.feather"),
        "a.feather",
    ),
    "saved table": (
        _file("t", lambda path: table().save(path)),
        lambda f: wb.LogitTable.load(f / "t").probabilities(),
        "t/*",
    ),
    "shards": (
        _file("t", lambda path: table().save_shards(path, rows=5)),
        lambda f: wb.LogitTable.load(f / "t").probabilities(),
        "t/*",
    ),
    "index": (
        _file("t", lambda path: wb.SetIndex.open(table().save(path))),
        lambda f: wb.SetIndex.open(f / "t").threshold(2),
        "t/set_index.npz",
    ),
    "store": (_store, _opened, "**/*"),
    "folder of images": (_images, lambda f: _data(f), "*/*.png"),
    "idx": (_idx, _data, "*"),
    "cifar": (_cifar, _data, "*"),
    "coco": (_coco, lambda f: _data(f / "instances_train.json"), "instances_train.json"),
    "list of images": (_listed, lambda f: _data(f / "mine_train.txt"), "mine_train.txt"),
    "nus-wide": (_nus_wide, _data, "*/**/*.txt"),
    "answers of a service": _json("a.json", [_service(row) for row in range(6)]),
    "lines of a service": _text("a.jsonl", [json.dumps(_service(row)) for row in range(6)]),
    "best classes": (
        _file(
            "a.npz",
            lambda path: np.savez(path, indices=SCORES.argsort(1)[:, 1:], values=abs(SCORES[:, 1:]) / 9, labels=LABELS),
        ),
        lambda f: wb.import_any(f / "a.npz"),
        "a.npz",
    ),
    "sets": _text("a.csv", ["id,label,classes", *(f"r{row},oak,oak;elm" for row in range(6))]),
    "sets by number": _json("a.json", [{"label": row % 3, "classes": [row % 3, 3]} for row in range(6)]),
    "sets of arrays": (
        _file("a.npz", lambda path: np.savez(path, sets=SCORES > 0, labels=LABELS)),
        lambda f: wb.import_any(f / "a.npz"),
        "a.npz",
    ),
    "votes": _json("answers.json", {str(task): {"7": task % 3, "ann": 1} for task in range(6)}),
    "lines of votes": _text("a.csv", ["task,worker,label", *(f"{row},{row % 2},oak" for row in range(6))]),
    "folder of arrays": (_arrays, wb.import_any, "*"),
    "zip of arrays": (_file("a.zip", _zip), lambda f: wb.import_any(f / "a.zip"), "a.zip"),
    "answers of people": (_answered, lambda f: SetAnswers(f / "a.jsonl").frame(), "a.jsonl"),
    "csv of labels": (_labelled, lambda f: _data(f / "labels.csv"), "labels.csv"),
}
