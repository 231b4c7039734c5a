"""Leaves, fruits and barks: the organs that tell the species of a genus apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from workbench.datasets.plants.painting import Colour, Sheet, X, Y, ellipse, line, mixed, rotated

TWIG = (206.0, 160.0, 106.0)


def blade(sheet: Sheet, depth: np.ndarray, colour: Colour, tip: Colour) -> None:
    """The body of a leaf: a darker rim, and a colour that changes from the stalk (below) to the tip."""
    shades = mixed(tip, colour, (Y + 1) / 2)
    sheet.paint(depth, shades * 0.78)
    sheet.paint(depth - 0.035, shades)


def veins(sheet: Sheet, depth: np.ndarray, colour: Colour, number: int, rise: float, bottom: float, top: float) -> None:
    """A midrib, and side veins that rise from it."""
    sheet.tint(np.minimum(depth, 0.022 - np.abs(X)), colour)
    for y in np.linspace(bottom, top, number):
        sheet.tint(np.minimum(depth, 0.014 - np.abs(Y - y + rise * np.abs(X))), colour, 0.8)


def stalk(sheet: Sheet, top: float = 0.6, colour: Colour = TWIG) -> None:
    sheet.paint(line(0, top, 0, 0.96, 0.08), colour)


def along_midrib(half_width: Callable[[np.ndarray], np.ndarray], bottom: float, top: float) -> np.ndarray:
    """Depth inside a leaf whose half-width is given at the share t of the way from the stalk to the tip."""
    t = (bottom - Y) / (bottom - top)
    inside = (t > 0) & (t < 1)
    return np.where(inside, half_width(np.clip(t, 0, 1)) - np.abs(X), -1)


def oval() -> Sheet:
    sheet = Sheet()
    stalk(sheet)
    depth = along_midrib(lambda t: 0.56 * np.sin(np.pi * t**0.85) ** 0.75, 0.72, -0.97)
    blade(sheet, depth, (82.0, 172.0, 74.0), (128.0, 204.0, 96.0))
    veins(sheet, depth, (196.0, 232.0, 150.0), 6, 0.6, 0.5, -0.5)
    return sheet


def heart_leaf() -> Sheet:
    sheet = Sheet()
    stalk(sheet, 0.3)
    lobes = np.maximum(ellipse(-0.38, 0.22, 0.50, 0.46, 0.5), ellipse(0.38, 0.22, 0.50, 0.46, -0.5))
    depth = np.maximum(lobes, along_midrib(lambda t: 0.85 * (1 - t) ** 0.9, 0.30, -0.95))
    blade(sheet, depth, (120.0, 196.0, 64.0), (164.0, 218.0, 92.0))
    veins(sheet, depth, (222.0, 240.0, 170.0), 4, 0.8, 0.45, -0.2)
    return sheet


def lance() -> Sheet:
    sheet = Sheet()
    stalk(sheet, 0.7)
    depth = along_midrib(lambda t: 0.24 * np.sin(np.pi * t**0.8) ** 0.8, 0.85, -0.98)
    blade(sheet, depth, (70.0, 170.0, 130.0), (126.0, 206.0, 170.0))
    sheet.tint(np.minimum(depth, 0.03 - np.abs(X)), (206.0, 240.0, 220.0))
    return sheet


def oak() -> Sheet:
    sheet = Sheet()
    stalk(sheet, 0.6)

    def half_width(t: np.ndarray) -> np.ndarray:
        lobed: np.ndarray = (
            (0.16 + 0.44 * np.sin(np.pi * t**0.9) ** 0.8)
            * (0.72 + 0.30 * np.cos(2 * np.pi * (3.5 * t + 0.3)))
            * np.clip(8 * (1 - t), 0, 1) ** 0.5
        )
        return lobed

    depth = along_midrib(half_width, 0.75, -0.96)
    blade(sheet, depth, (150.0, 176.0, 62.0), (192.0, 204.0, 84.0))
    veins(sheet, depth, (232.0, 236.0, 160.0), 5, 0.55, 0.55, -0.55)
    return sheet


def maple() -> Sheet:
    sheet = Sheet()
    stalk(sheet, 0.2)
    depth = np.full_like(X, -1.0)
    for angle, length, width in (
        (0, 1.05, 0.27),
        (0.95, 0.95, 0.24),
        (-0.95, 0.95, 0.24),
        (1.95, 0.62, 0.2),
        (-1.95, 0.62, 0.2),
    ):
        u, v = rotated(0, 0.12, angle)
        t = np.clip(-v / length, 0, 1)
        teeth = 1 + 0.22 * np.sign(np.sin(5 * np.pi * t)) * np.clip(3 * t, 0, 1)
        half = width * (0.55 + 0.75 * np.sin(np.pi * np.clip(t * 1.05, 0, 1))) * (1 - t**3) * teeth
        depth = np.maximum(depth, np.where((v < 0.12) & (v > -length), half - np.abs(u), -1))
    blade(sheet, depth, (224.0, 92.0, 48.0), (244.0, 150.0, 66.0))
    for angle, length in ((0, 0.95), (0.95, 0.8), (-0.95, 0.8), (1.95, 0.5), (-1.95, 0.5)):
        sheet.tint(line(0, 0.12, length * np.sin(angle), 0.12 - length * np.cos(angle), 0.04), (255.0, 214.0, 150.0))
    return sheet


def feather() -> Sheet:
    """A leaf of many leaflets, like an ash or a fern."""
    sheet = Sheet()
    sheet.paint(line(0, -0.7, 0, 0.96, 0.06), (150.0, 190.0, 96.0))
    for y in np.linspace(0.55, -0.55, 5):
        reach = 0.80 - 0.35 * (0.55 - y) / 1.1
        for side in (-1, 1):
            leaflet = ellipse(side * reach / 2, y - 0.13, reach / 2, 0.13, -side * 0.32)
            blade(sheet, leaflet, (92.0, 206.0, 112.0), (150.0, 228.0, 136.0))
    blade(sheet, ellipse(0, -0.76, 0.12, 0.21), (92.0, 206.0, 112.0), (150.0, 228.0, 136.0))
    return sheet


def fan() -> Sheet:
    """A ginkgo leaf."""
    sheet = Sheet()
    stalk(sheet, 0.45, (206.0, 176.0, 80.0))
    u, v = X, Y - 0.50
    radius, angle = np.hypot(u, v), np.arctan2(u, -v)
    edge = 1.18 + 0.04 * np.cos(14 * angle) - 0.30 * np.exp(-((angle / 0.10) ** 2))
    depth = np.minimum((1.02 - np.abs(angle)) * np.maximum(radius, 0.2), edge - radius)
    shades = mixed((206.0, 190.0, 60.0), (250.0, 222.0, 96.0), radius / 1.2)
    sheet.paint(depth, shades * 0.80)
    sheet.paint(depth - 0.035, shades)
    for ray in np.linspace(-0.85, 0.85, 9):
        sheet.tint(np.minimum(depth, 0.012 - np.abs(angle - ray) * radius), (214.0, 186.0, 70.0), 0.8)
    return sheet


def clover() -> Sheet:
    sheet = Sheet()
    stalk(sheet, 0.1, (130.0, 190.0, 100.0))
    for angle in (0.0, 2.1, -2.1):
        u, v = rotated(0, 0.08, angle)
        lobes = np.maximum(
            1 - np.hypot((u - 0.21) / 0.29, (v + 0.56) / 0.33), 1 - np.hypot((u + 0.21) / 0.29, (v + 0.56) / 0.33)
        )
        wedge = np.where((v < 0) & (v > -0.6), -0.78 * v - np.abs(u), -1)
        depth = np.maximum(lobes * 0.29, wedge)
        sheet.paint(depth, (70.0, 150.0, 76.0))
        sheet.paint(depth - 0.035, (92.0, 190.0, 92.0))
        mark = 0.035 - np.abs(np.hypot(u, v + 0.15) - 0.40)
        sheet.tint(np.minimum(depth - 0.04, mark), (190.0, 232.0, 176.0))
    return sheet


def ball(sheet: Sheet, cx: float, cy: float, rx: float, ry: float, colour: Colour, angle: float = 0.0) -> None:
    """A round fruit: a rim, a body lit from the upper left, a highlight."""
    body = ellipse(cx, cy, rx, ry, angle)
    lit = np.hypot((X - cx + 0.35 * rx) / rx, (Y - cy + 0.35 * ry) / ry) / 1.5
    light = tuple(min(255.0, part * 1.12 + 18) for part in colour)
    sheet.paint(body, tuple(0.74 * part for part in colour))
    sheet.paint(body - 0.03, mixed(light, tuple(0.84 * part for part in colour), lit))
    sheet.paint(ellipse(cx - 0.36 * rx, cy - 0.40 * ry, 0.20 * rx, 0.15 * ry, -0.6), (255.0, 255.0, 250.0), 0.85)


def berries() -> Sheet:
    sheet = Sheet()
    sheet.paint(line(0, -0.96, 0, 0.1, 0.07), TWIG)
    for x, y in (
        (-0.46, -0.36),
        (0.46, -0.36),
        (0.0, -0.42),
        (-0.27, 0.06),
        (0.27, 0.06),
        (0.0, 0.46),
        (-0.50, 0.36),
        (0.50, 0.36),
        (0.02, 0.80),
    ):
        ball(sheet, x, y * 0.88, 0.27, 0.27, (110.0, 100.0, 216.0))
    return sheet


def cherries() -> Sheet:
    sheet = Sheet()
    for x, y in ((-0.37, 0.44), (0.37, 0.32)):  # they touch: a gap would look like two organs
        sheet.paint(line(0.05, -0.9, x, y - 0.3, 0.07), (140.0, 184.0, 86.0))
        ball(sheet, x, y, 0.41, 0.41, (228.0, 44.0, 52.0))
    leaf = ellipse(0.36, -0.78, 0.34, 0.15, -0.2)
    sheet.paint(leaf, (96.0, 170.0, 70.0))
    sheet.paint(leaf - 0.035, (130.0, 200.0, 90.0))
    return sheet


def pod() -> Sheet:
    sheet = Sheet()
    bend = X + 0.42 * Y**2 - 0.15
    depth = np.where(np.abs(Y) < 0.93, 0.30 * np.clip(1 - (Y / 0.93) ** 4, 0, 1) ** 0.5 - np.abs(bend), -1)
    sheet.paint(line(-0.2, -0.98, -0.16, -0.8, 0.09), TWIG)
    sheet.paint(depth, (132.0, 170.0, 66.0))
    sheet.paint(depth - 0.04, (172.0, 212.0, 92.0))
    for y in (-0.58, -0.2, 0.2, 0.58):
        ball(sheet, 0.15 - 0.42 * y**2, y, 0.17, 0.17, (214.0, 232.0, 120.0))
    return sheet


def cone() -> Sheet:
    sheet = Sheet()
    body = ellipse(0, 0.03, 0.56, 0.92)
    sheet.paint(line(0, -0.98, 0, -0.8, 0.12), TWIG)
    sheet.paint(body, (150.0, 96.0, 54.0))
    for row, y in enumerate(np.linspace(-0.78, 0.78, 8)):
        for x in np.arange(-0.6, 0.61, 0.3) + 0.15 * (row % 2):
            scale = np.minimum(ellipse(x, y, 0.17, 0.15), body)
            sheet.paint(scale, (120.0, 76.0, 44.0))
            sheet.paint(scale - 0.03, mixed((222.0, 168.0, 110.0), (180.0, 116.0, 68.0), (Y - y + 0.12) / 0.25))
    return sheet


def pear() -> Sheet:
    sheet = Sheet()
    sheet.paint(line(0.0, -0.6, 0.10, -0.97, 0.09), TWIG)
    body = np.maximum(ellipse(0, 0.38, 0.60, 0.56), ellipse(0, -0.25, 0.34, 0.50))
    t = np.clip((Y + 0.3) / 0.7, 0, 1)
    neck = np.where((t > 0) & (t < 1), 0.34 + 0.25 * t**1.3 - np.abs(X), -1)
    body = np.maximum(body, neck)
    lit = np.hypot(X + 0.22, Y - 0.1) / 1.0
    sheet.paint(body, (176.0, 150.0, 50.0))
    sheet.paint(body - 0.035, mixed((250.0, 232.0, 120.0), (214.0, 176.0, 66.0), lit))
    sheet.tint(np.minimum(body - 0.05, ellipse(0.32, 0.40, 0.24, 0.34)), (240.0, 140.0, 80.0), 0.55)
    sheet.paint(ellipse(-0.24, 0.16, 0.10, 0.16, 0.3), (255.0, 252.0, 230.0), 0.8)
    leaf = ellipse(0.34, -0.80, 0.28, 0.13, -0.3)
    sheet.paint(leaf, (96.0, 170.0, 70.0))
    sheet.paint(leaf - 0.035, (130.0, 200.0, 90.0))
    return sheet


def acorn() -> Sheet:
    sheet = Sheet()
    sheet.paint(line(0, -0.97, 0, -0.6, 0.10), TWIG)
    nut = np.where(Y > -0.2, np.maximum(ellipse(0, 0.10, 0.52, 0.72), 0.05 - np.hypot(X, Y - 0.86)), -1)
    lit = np.hypot(X + 0.2, Y - 0.0) / 0.9
    sheet.paint(nut, (146.0, 118.0, 44.0))
    sheet.paint(nut - 0.035, mixed((236.0, 214.0, 96.0), (186.0, 160.0, 58.0), lit))
    sheet.paint(ellipse(-0.18, 0.12, 0.07, 0.24, 0.15), (255.0, 230.0, 190.0), 0.75)
    cap = np.where(Y < -0.02, ellipse(0, -0.18, 0.64, 0.52), -1)
    sheet.paint(cap, (128.0, 88.0, 54.0))
    sheet.paint(cap - 0.035, (190.0, 140.0, 92.0))
    hatch = 0.018 - np.minimum(np.abs((X + Y) % 0.2 - 0.1), np.abs((X - Y) % 0.2 - 0.1))
    sheet.tint(np.minimum(cap - 0.05, hatch), (138.0, 94.0, 58.0), 0.8)
    return sheet


def trunk(light: Colour, dark: Colour) -> tuple[Sheet, np.ndarray]:
    """A piece of stem, lit like a cylinder, and its depth; patterns are tinted on it."""
    sheet = Sheet()
    edge = 0.60 + 0.03 * np.sin(5 * Y) + 0.02 * np.sin(11 * Y + 1)
    depth = np.minimum(edge - np.abs(X), 0.85 + 0.04 * np.sin(7 * X) - np.abs(Y))
    sheet.paint(depth, dark)
    sheet.paint(depth - 0.03, mixed(light, dark, np.abs(X + 0.18) ** 1.6 / 0.75))
    return sheet, depth


def furrowed() -> Sheet:
    sheet, depth = trunk((226.0, 196.0, 140.0), (182.0, 146.0, 92.0))
    for k, x in enumerate(np.linspace(-0.52, 0.52, 6)):
        wave = x + 0.05 * np.sin(4.5 * Y + 1.9 * k)
        sheet.tint(np.minimum(depth, 0.032 + 0.014 * np.sin(9 * Y + k) - np.abs(X - wave)), (104.0, 68.0, 42.0))
    return sheet


def ringed() -> Sheet:
    sheet, depth = trunk((250.0, 246.0, 234.0), (204.0, 198.0, 186.0))
    marks = (
        (-0.34, -0.68),
        (0.28, -0.50),
        (-0.12, -0.26),
        (0.38, -0.06),
        (-0.36, 0.10),
        (0.10, 0.32),
        (0.40, 0.56),
        (-0.28, 0.62),
    )
    for k, (x, y) in enumerate(marks):
        sheet.tint(np.minimum(depth, ellipse(x, y, 0.20 + 0.04 * (k % 3), 0.055)), (84.0, 74.0, 70.0))
    return sheet


def plated() -> Sheet:
    """Plates with cracks between them: each point belongs to its nearest centre, cracks are where two are as near."""
    sheet, depth = trunk((238.0, 138.0, 100.0), (192.0, 92.0, 64.0))
    rows, columns = np.mgrid[-3:4, -2:3]
    cx = (0.42 * columns + 0.21 * (rows % 2)).ravel()
    cy = (0.32 * rows + 0.05 * np.sin(3.0 * columns)).ravel()
    distances = np.sort(np.hypot(X[..., None] - cx, (Y[..., None] - cy) * 1.1), axis=-1)
    sheet.tint(np.minimum(depth, 0.055 - (distances[..., 1] - distances[..., 0])), (112.0, 58.0, 40.0))
    return sheet


def knotted() -> Sheet:
    """Smooth bark with eyes, each inside rings."""
    sheet, depth = trunk((182.0, 196.0, 124.0), (146.0, 164.0, 92.0))
    for cx, cy, r in ((-0.12, -0.45, 0.34), (0.16, 0.42, 0.38)):
        radius = np.hypot(X - cx, (Y - cy) / 0.75)
        rings = 0.024 - np.abs((radius / r * 3) % 1 - 0.5) * r / 3
        sheet.tint(np.minimum(depth, np.minimum(rings, r * 1.15 - radius)), (100.0, 112.0, 58.0))
        sheet.tint(np.minimum(depth, 0.10 - radius), (66.0, 70.0, 36.0))
    return sheet


# In the order of the names in flora.py.
LEAF_DRAWINGS = (oval, heart_leaf, lance, oak, maple, feather, fan, clover)
FRUIT_DRAWINGS = (berries, cherries, pod, cone, pear, acorn)
BARK_DRAWINGS = (furrowed, ringed, plated, knotted)
