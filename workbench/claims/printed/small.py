"""Reduced scales: data that are always here, in place of those of the papers, and networks that learn them in seconds."""

from __future__ import annotations

from typing import Any

from workbench.claims.table import Small, Spec

LETTERS: Spec = ("letters", {"groups": "shape"})
DIGITS: Spec = ("digits", {})
MEADOW: Spec = ("meadow", {"n_train": 2000, "n_val": 500, "n_test": 1000})
LONG_TAIL: Spec = ("LongTail", {"imbalance": 100.0})

MLP: dict[str, Any] = {"model": "mlp", "epochs": 12, "batch_size": 64, "learning_rate": 0.1}
LINEAR: dict[str, Any] = {"model": "linear", "epochs": 12, "batch_size": 128}


def on_letters(*names: str, transforms: tuple[Spec, ...] = (), seeds: int = 2, **run: Any) -> Small:
    """Letters, grouped by their shapes, in place of these datasets, and a small network in place of a deep one."""
    return Small(data=dict.fromkeys(names, LETTERS), run=MLP | run, transforms=transforms, seeds=seeds)


def head_on_letters(*names: str, **run: Any) -> Small:
    """The measurements of letters in place of what a published network sees, and a linear head on them."""
    return Small(data=dict.fromkeys(names, LETTERS), run=LINEAR | {"learning_rate": 0.01} | run)
