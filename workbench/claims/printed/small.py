"""Reduced scales: data that are always here, in place of those of the papers, and networks that learn them in seconds."""

from __future__ import annotations

from typing import Any

from workbench.claims.table_spec import Small, Spec

LETTERS: Spec = ("letters", {"groups": "shape"})
DIGITS: Spec = ("digits", {})
MEADOW: Spec = ("meadow", {"n_train": 2000, "n_val": 500, "n_test": 1000})
LONG_TAIL: Spec = ("LongTail", {"imbalance": 100.0})

MLP: dict[str, Any] = {"model": "mlp", "epochs": 12, "batch_size": 64, "learning_rate": 0.1}
LINEAR: dict[str, Any] = {"model": "linear", "epochs": 12, "batch_size": 128, "learning_rate": 0.1}


def on_letters(*names: str, **run: Any) -> Small:
    """Letters, grouped by their shapes, and a linear model: with one hidden layer five of them nearly always suffice."""
    return Small(data=dict.fromkeys(names, LETTERS), run=LINEAR | run)


def on_a_long_tail(*names: str, **run: Any) -> Small:
    """Letters, most of which have few training rows, and one hidden layer."""
    return Small(data=dict.fromkeys(names, LETTERS), run=MLP | run, transforms=(LONG_TAIL,))


def head_on_letters(*names: str, **run: Any) -> Small:
    """The measurements of letters in place of what a published network sees, and a linear head: relaxed sorts are slow."""
    return Small(data=dict.fromkeys(names, LETTERS), run=LINEAR | {"learning_rate": 0.01, "epochs": 3} | run)
