"""The 378 symbols that the network knows: LaTeX name, character, outline."""

from __future__ import annotations

import json
from dataclasses import dataclass

from workbench.drawings import pad


@dataclass(frozen=True)
class Symbol:
    """A symbol: its LaTeX name, the character nearest to it, and its outline as an SVG path in a box (x, y, width, height)."""

    latex: str
    character: str
    path: str
    box: tuple[int, int, int, int]


def _read() -> tuple[Symbol, ...]:
    listed = json.loads(pad.SYMBOLS.read_text(encoding="utf-8"))
    return tuple(Symbol(**{**symbol, "box": tuple(symbol["box"])}) for symbol in listed)


SYMBOLS = _read()
LATEX = tuple(symbol.latex for symbol in SYMBOLS)
SYMBOL_OF = {symbol.latex: symbol for symbol in SYMBOLS}
