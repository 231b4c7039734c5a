"""Landscapes: see what a loss does before training with it."""

from views.landscapes.loss_views import PARTS, page

__all__ = ["PARTS", "page"]
