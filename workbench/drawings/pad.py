"""The files of the pad: its script, its style, the weights and the symbols."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

HERE = Path(str(files("workbench.drawings")))
WEIGHTS, SYMBOLS = HERE / "weights.f16", HERE / "symbols.json"


def script() -> str:
    """The network and the pad as one ES module; its default export draws the pad."""
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in ("network.js", "pad.js"))


def style() -> str:
    """The style sheet of the pad."""
    return (HERE / "pad.css").read_text(encoding="utf-8")
