"""What can be trained, for whoever has no torch: every loss with its knobs, the settings of a run, the recipes of papers,
the titles of backbones.

The declarations themselves need torch. They are written down in `catalogue.json` by `python docs/catalogue.py`, and a test
holds the file to them. With it, a fresh server that opens the Train view works 0.4 s and then holds 224 MB; with the
declarations it worked 1.8 s and held 405 MB (`benchmarks/app.py`), and where torch is not installed it had nothing to show.

>>> LOSSES["NoisedTopK"].title
'Noised top-K'
>>> LOSSES["NoisedTopK"].spec(epsilon=0.5)["knobs"]
{'K': 5, 'epsilon': 0.5, 'n_samples': 5}
>>> SETTINGS["epochs"].default, RECIPES["quick-rows"].settings["model"]
(10, 'mlp')
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench import schedules
from workbench.knobs import Knob

FILE = Path(__file__).with_suffix(".json")


@dataclass(frozen=True, kw_only=True)
class DeclaredLoss:
    """What a loss says about itself; facts that depend on knobs are those of the default knobs.

    `name` is also what `run.json` calls it; the rest is explained in `workbench.losses.Loss`.
    """

    name: str
    title: str
    formula: str
    paper: str
    equation: str
    convex: bool
    smooth: bool
    calibrated: bool
    proper: bool
    heads: int
    head: str
    labels: str
    also_many_labels: bool
    link: str
    couples_batch: bool
    random: bool
    trains: bool
    knobs: Mapping[str, Knob]

    def spec(self, **given: Any) -> dict[str, Any]:
        """What `Loss.spec()` writes for these knobs, the others at their default."""
        values = {name: given.get(name, knob.default) for name, knob in self.knobs.items()}
        checked = {name: schedules.checked(knob, name, values[name]) for name, knob in self.knobs.items()}
        return {"loss": self.name, "knobs": {name: schedules.stored(value) for name, value in checked.items()}}


@dataclass(frozen=True, kw_only=True)
class DeclaredRecipe:
    """Settings of runs as a paper gives them, each as `run.json` has it, where it does, and what differs here.

    The rest is explained in `workbench.training.recipes.Recipe`.
    """

    trains: str
    settings: Mapping[str, Any]
    compared: Sequence[Mapping[str, Any]]
    grid: Sequence[Mapping[str, Any]]
    K: Sequence[int]
    paper: str
    place: str
    note: str
    untold: Sequence[str]

    def told(self) -> str:
        """Where it comes from, what differs here and what is not told, in one sentence."""
        untold = f"not told: {', '.join(self.untold)}" if self.untold else ""
        return "; ".join(filter(None, (self.paper, self.place, self.note, untold)))


def _knobs(written: Mapping[str, Mapping[str, Any]]) -> dict[str, Knob]:
    """Knobs as they are declared: JSON knows no tuples."""

    def declared(facts: Mapping[str, Any]) -> dict[str, Any]:
        return {fact: tuple(value) if isinstance(value, list) else value for fact, value in facts.items()}

    return {name: Knob(**declared(facts)) for name, facts in written.items()}


_written = json.loads(FILE.read_text(encoding="utf-8"))
LOSSES: dict[str, DeclaredLoss] = {
    facts["name"]: DeclaredLoss(**{**facts, "knobs": _knobs(facts["knobs"])}) for facts in _written["losses"]
}
SETTINGS: dict[str, Knob] = _knobs(_written["settings"])
RECIPES: dict[str, DeclaredRecipe] = {name: DeclaredRecipe(**facts) for name, facts in _written["recipes"].items()}
BACKBONES: dict[str, str] = _written["backbones"]  # name → title
