"""Write down what is declared: the table of losses in the README, and `workbench/catalogue.json` for who has no torch."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import workbench as wb
from workbench.knobs import Knob
from workbench.losses import LOSSES, Loss, catalogue
from workbench.networks import BACKBONES

ROOT = Path(__file__).resolve().parents[1]
README, FILE = ROOT / "README.md", ROOT / "workbench" / "catalogue.json"


def written() -> str:
    """What `workbench/catalogue.json` should hold."""
    recipes = {name: recipe.described() for name, recipe in wb.recipes.RECIPES.items()}
    declared = {
        "losses": [_loss(loss) for loss in LOSSES],
        "settings": _knobs(wb.Run.knobs()),
        "recipes": recipes,
        "backbones": {name: backbone.title for name, backbone in BACKBONES.items()},
    }
    return json.dumps(declared, indent=1, ensure_ascii=False) + "\n"


def _loss(loss: type[Loss]) -> dict[str, Any]:
    return {
        **catalogue.entry(loss),
        "also_many_labels": loss.also_many_labels,
        "knobs": _knobs(loss.knobs()),
    }


def _knobs(knobs: dict[str, Knob]) -> dict[str, dict[str, Any]]:
    """All that a knob says, but for what every knob says."""
    usual = {field.name: field.default for field in dataclasses.fields(Knob)}
    return {
        name: {fact: value for fact, value in dataclasses.asdict(knob).items() if value != usual[fact]}
        for name, knob in knobs.items()
    }


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    current = re.sub(
        r"(<!-- losses:.*?-->\n).*?(<!-- /losses -->)",
        lambda marks: marks.group(1) + catalogue.markdown() + marks.group(2),
        text,
        flags=re.DOTALL,
    )
    README.write_text(current, encoding="utf-8")
