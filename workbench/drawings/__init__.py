"""Drawings of symbols, and a published network that reads them: 378 LaTeX symbols, from strokes to scores.

A drawing is a list of strokes, each (m, 2) points with y downwards, in any unit. `table(drawings)` scores them. `pad.js`
is the same network in a browser, with a pad to draw on (`workbench draw`, or Start in the app).

The network is that of M. Thoma (hwrt 0.2.1, MIT licence, in `LICENSE` beside its weights).
"""

from workbench.drawings.drawing_table import table
from workbench.drawings.network import inputs, scores
from workbench.drawings.strokes import checked_drawing, drawing_from_text, drawing_to_text
from workbench.drawings.symbols import LATEX, SYMBOLS, Symbol

__all__ = [
    "LATEX",
    "SYMBOLS",
    "Symbol",
    "checked_drawing",
    "drawing_from_text",
    "drawing_to_text",
    "inputs",
    "scores",
    "table",
]
