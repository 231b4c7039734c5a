"""Pictures, each computed first (a tidy frame) and drawn second (Plotly, or matplotlib for paper)."""

from __future__ import annotations

from workbench.figures.base import Figure
from workbench.figures.classes import lorenz
from workbench.figures.landscapes import level_sets
from workbench.figures.sizes import set_sizes
from workbench.figures.sprites import sprite_sheet

__all__ = ["Figure", "level_sets", "lorenz", "set_sizes", "sprite_sheet"]
