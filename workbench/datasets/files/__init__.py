"""Datasets on disk: image folders and lists, CSV labels, Pl@ntNet-300K, COCO, NUS-WIDE, CIFAR, MNIST.

`KINDS` lists them. One more is a class derived from `OnDisk` (`base.py`) that tells whether it lies at a path and makes the
dataset, and a place in the tuple: `load_dataset`, the command line and the app take it up.
"""

from __future__ import annotations

from pathlib import Path

from workbench.datasets.files.base import OnDisk, listed
from workbench.datasets.files.cifar import Cifar10, Cifar100, refuse_pickle
from workbench.datasets.files.coco import Coco
from workbench.datasets.files.idx import IdxFiles
from workbench.datasets.files.image_folders import ImageFolder, PlantNet300K
from workbench.datasets.files.image_lists import ImageLists
from workbench.datasets.files.label_files import LabelFile
from workbench.datasets.files.nus_wide import NusWide

# The first that says yes has it, so the most particular come first.
KINDS: tuple[type[OnDisk], ...] = (
    Cifar10,
    Cifar100,
    IdxFiles,
    PlantNet300K,
    Coco,
    NusWide,
    LabelFile,
    ImageLists,
    ImageFolder,
)


def kind_at(path: Path) -> type[OnDisk]:
    """The kind of dataset that lies at an existing path."""
    refuse_pickle(path)
    for kind in KINDS:
        if kind.lies_at(path):
            return kind
    found = f"holds {listed(path)}" if path.is_dir() else "is a file"
    understood = "\n".join(f"- {kind.looks_like}" for kind in KINDS)
    raise ValueError(f"{path} {found}, which is not a dataset; what is understood at a path:\n{understood}")
