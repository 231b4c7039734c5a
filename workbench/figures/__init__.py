"""Pictures, each computed first (a tidy frame) and drawn second (Plotly, or matplotlib for paper)."""

from __future__ import annotations

from workbench.figures.base import Figure
from workbench.figures.landscapes import level_sets

__all__ = ["Figure", "level_sets"]
