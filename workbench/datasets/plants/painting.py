"""A sheet to paint on, and the soft-edged shapes that organs are made of.

Organs live on the square [−1, 1]²: x points right, y down. The sheet is a little larger, so that a turned square keeps
its corners. A shape is its *depth*: about the distance to its edge,
positive inside, so that shapes are joined by `np.maximum` and cut by `np.minimum`.
"""

from __future__ import annotations

import numpy as np

SIDE = 128  # pixels of a drawing; photographs show it three to six times smaller
REACH = 1.12  # the sheet spans [−REACH, REACH]²
Colour = tuple[float, ...]  # red, green, blue; 0 to 255
Y, X = np.mgrid[-REACH : REACH : SIDE * 1j, -REACH : REACH : SIDE * 1j]
SOFT = 3.0 / SIDE  # width of a soft edge


class Sheet:
    """A transparent square to paint on."""

    def __init__(self) -> None:
        self.colour = np.zeros((SIDE, SIDE, 3))
        self.alpha = np.zeros((SIDE, SIDE))

    def paint(self, depth: np.ndarray, colour: Colour | np.ndarray, strength: float = 1.0) -> None:
        """Lay a colour where `depth` (a signed distance, positive inside) is positive."""
        cover = strength * np.clip(depth / SOFT + 0.5, 0, 1)
        together = cover + self.alpha * (1 - cover)
        share = np.divide(cover, together, out=np.zeros_like(cover), where=together > 0)[..., None]
        self.colour = self.colour * (1 - share) + np.asarray(colour, dtype=float) * share
        self.alpha = together

    def tint(self, depth: np.ndarray, colour: Colour, strength: float = 1.0) -> None:
        """Lay a colour on what is already painted, and nowhere else: veins, spots, shade."""
        cover = (strength * np.clip(depth / SOFT + 0.5, 0, 1))[..., None]
        self.colour = self.colour * (1 - cover) + np.asarray(colour, dtype=float) * cover

    def rgba(self) -> np.ndarray:
        """(SIDE, SIDE, 4) uint8."""
        return np.round(np.dstack([np.clip(self.colour, 0, 255), self.alpha * 255])).astype(np.uint8)


def ellipse(cx: float, cy: float, rx: float, ry: float, angle: float = 0.0) -> np.ndarray:
    """Depth inside an ellipse, to first order; `angle` turns it clockwise."""
    u, v = rotated(cx, cy, angle)
    radius = np.hypot(u / rx, v / ry)
    return (1 - radius) * min(rx, ry)


def rotated(cx: float, cy: float, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates around a point, in a frame turned clockwise by `angle`."""
    cosine, sine = np.cos(angle), np.sin(angle)
    return (X - cx) * cosine + (Y - cy) * sine, (Y - cy) * cosine - (X - cx) * sine


def line(x0: float, y0: float, x1: float, y1: float, width: float) -> np.ndarray:
    """Depth inside a straight stroke with round ends."""
    dx, dy = x1 - x0, y1 - y0
    along = np.clip(((X - x0) * dx + (Y - y0) * dy) / (dx * dx + dy * dy), 0, 1)
    inside: np.ndarray = width / 2 - np.hypot(X - x0 - along * dx, Y - y0 - along * dy)
    return inside


def mixed(first: Colour, second: Colour, share: np.ndarray | float) -> np.ndarray:
    """A colour between two: the second where `share` is 1."""
    share = np.clip(np.asarray(share, dtype=float), 0, 1)[..., None]
    return np.asarray(first) * (1 - share) + np.asarray(second) * share
