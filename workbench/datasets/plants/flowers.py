"""Flowers: one for each genus, different in shape or in colour from all others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from workbench.datasets.plants.painting import Colour, Sheet, X, Y, ellipse, line, mixed, rotated

STEM = (112.0, 178.0, 84.0)


def petals(
    sheet: Sheet,
    number: int,
    length: float,
    width: float,
    colours: tuple[Colour, Colour],
    outline: Callable[[np.ndarray], np.ndarray],
    start: float = 0.0,
    inner: float = 0.0,
) -> None:
    """A ring of petals around the middle, from the first colour at the heart to the second at the tip.

    `outline(t)` is the half-width of a petal, as a share of `width`, at the share t of its length.
    """
    for angle in start + 2 * np.pi * np.arange(number) / number:
        along, across = rotated(0, 0, angle)
        t = (along - inner) / (length - inner)
        inside = (t > 0) & (t < 1)
        half = np.where(inside, outline(np.clip(t, 0, 1)), 0) * width
        depth = np.where(inside, half - np.abs(across), -1)
        colour = mixed(colours[0], colours[1], t)
        sheet.paint(depth, colour * 0.80)  # the rim that parts a petal from its neighbour
        sheet.paint(depth - 0.035, colour)
        sheet.paint(np.minimum(depth - 0.05, 0.02 - np.abs(across)), np.minimum(colour * 1.1, 255), 0.6)


def rounded(t: np.ndarray) -> np.ndarray:
    half_width: np.ndarray = np.sqrt(np.clip(t, 0, 1)) * np.sqrt(np.clip(1 - t**3, 0, 1))
    return half_width


def slender(t: np.ndarray) -> np.ndarray:
    half_width: np.ndarray = np.clip(t, 0, 1) ** 0.4 * np.clip(1 - t**4, 0, 1) ** 0.5
    return half_width


def pointed(t: np.ndarray) -> np.ndarray:
    half_width: np.ndarray = np.sin(np.pi * np.clip(t, 0, 1) ** 0.8)
    return half_width


def notched(t: np.ndarray) -> np.ndarray:
    half_width: np.ndarray = t**0.8 * np.clip(1 - t**6, 0, 1) ** 0.5
    return half_width


def heart(sheet: Sheet, radius: float, colour: Colour, dots: int = 0, dot: Colour = (255.0, 240.0, 170.0)) -> None:
    """The middle of a flower: a small dome, with an optional ring of stamens."""
    shade = np.hypot(X + radius * 0.3, Y + radius * 0.3) / (1.4 * radius)
    sheet.paint(ellipse(0, 0, radius, radius), mixed(colour, tuple(0.72 * part for part in colour), shade))
    for angle in 2 * np.pi * np.arange(dots) / max(dots, 1):
        sheet.paint(ellipse(0.72 * radius * np.cos(angle), 0.72 * radius * np.sin(angle), 0.045, 0.045), dot)


def daisy(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    sheet = Sheet()
    petals(sheet, 13, 0.97, 0.17, (petal, tip), slender, inner=0.15)
    heart(sheet, 0.30, middle, dots=9, dot=tuple(min(1.25 * part, 255) for part in middle))
    return sheet


def primrose(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    sheet = Sheet()
    petals(sheet, 5, 0.97, 0.42, (petal, tip), rounded)
    petals(sheet, 5, 0.45, 0.16, (middle, petal), pointed)
    heart(sheet, 0.13, middle, dots=5)
    return sheet


def lily(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    sheet = Sheet()
    petals(sheet, 3, 0.97, 0.28, (petal, tip), pointed, start=np.pi / 6)
    petals(sheet, 3, 0.97, 0.30, (petal, tip), pointed, start=np.pi / 2)
    for angle in np.pi / 6 + 2 * np.pi * np.arange(6) / 6:
        c, s = np.cos(angle), np.sin(angle)
        sheet.paint(line(0, 0, 0.42 * c, 0.42 * s, 0.035), (250.0, 240.0, 200.0))
        sheet.paint(ellipse(0.45 * c, 0.45 * s, 0.06, 0.06), middle)
    return sheet


def poppy(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    sheet = Sheet()
    petals(sheet, 2, 0.97, 0.80, (petal, tip), rounded, start=0)
    petals(sheet, 2, 0.97, 0.72, (petal, tip), rounded, start=np.pi / 2)
    for angle in 2 * np.pi * np.arange(16) / 16:
        sheet.paint(ellipse(0.30 * np.cos(angle), 0.30 * np.sin(angle), 0.04, 0.04), (70.0, 45.0, 70.0))
    heart(sheet, 0.18, middle)
    return sheet


def dahlia(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    sheet = Sheet()
    for number, length, start in ((12, 0.97, 0.0), (10, 0.74, 0.2), (8, 0.5, 0.5)):
        petals(sheet, number, length, 0.24 * length, (petal, tip), pointed, start=start)
    heart(sheet, 0.14, middle)
    return sheet


def viola(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    sheet = Sheet()
    for angle, length, width, colours in (
        (-2.2, 0.95, 0.46, (petal, tip)),
        (-0.94, 0.95, 0.46, (petal, tip)),
        (2.9, 0.85, 0.40, (tip, petal)),
        (0.24, 0.85, 0.40, (tip, petal)),
        (1.57, 0.92, 0.52, (middle, petal)),
    ):
        petals(sheet, 1, length, width, colours, notched, start=angle)
    for angle in (1.2, 1.57, 1.94):
        sheet.paint(line(0, 0.08, 0.42 * np.cos(angle), 0.42 * np.sin(angle), 0.035), (80.0, 40.0, 90.0))
    heart(sheet, 0.09, (255.0, 220.0, 90.0))
    return sheet


def star(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    sheet = Sheet()
    petals(sheet, 5, 0.98, 0.26, (petal, tip), pointed, start=-np.pi / 2)
    petals(sheet, 5, 0.55, 0.12, (tip, petal), pointed, start=np.pi / 2)
    heart(sheet, 0.17, middle, dots=5)
    return sheet


def bell(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    """A bellflower from the side: a nodding cup with a scalloped rim."""
    sheet = Sheet()
    sheet.paint(line(0, -0.95, 0, -0.6, 0.10), STEM)
    height = (Y + 0.70) / 1.35
    inside = (height > 0) & (height < 1)
    t = np.clip(height, 0, 1)
    half = 0.30 + 0.16 * np.sin(np.pi * np.clip(t * 1.1, 0, 1)) + 0.46 * t**4
    scallop = 0.12 * np.abs(np.sin(2.5 * np.pi * X / 0.9))
    depth = np.where(
        inside, np.minimum(half * np.clip(t * 8, 0, 1) ** 0.5 - np.abs(X), (1 - t - 0) * 1.35 - scallop), -1
    )
    colour = mixed(petal, tip, t)
    sheet.paint(depth, colour * 0.8)
    sheet.paint(depth - 0.035, colour)
    for k in (-0.5, 0.0, 0.5):
        sheet.tint(np.minimum(depth, 0.02 - np.abs(X - k * half)), tuple(0.82 * part for part in petal), 0.8)
    for k in (-0.16, 0.0, 0.16):
        sheet.paint(ellipse(k, 0.66 + 0.06 * (k == 0), 0.06, 0.12), middle)
    for angle in (-0.5, 0.5):
        sheet.paint(ellipse(0.16 * np.sign(angle), -0.60, 0.20, 0.07, angle), STEM)
    return sheet


def tulip(petal: Colour, tip: Colour, middle: Colour) -> Sheet:
    """A tulip from the side: three petals closed to a cup."""
    sheet = Sheet()
    sheet.paint(line(0, 0.45, 0, 0.97, 0.11), STEM)
    sheet.paint(ellipse(0.22, 0.78, 0.26, 0.07, -0.6), STEM)
    for cx, angle, colours in ((-0.30, -0.16, (petal, tip)), (0.30, 0.16, (petal, tip)), (0.0, 0.0, (middle, petal))):
        u, v = rotated(cx, -0.15, angle)
        t = np.clip((0.70 - v) / 1.45, 0, 1)
        inside = (v < 0.70) & (v > -0.75)
        depth = np.where(inside, 0.42 * np.sin(np.pi * t**0.62) ** 0.75 - np.abs(u), -1)
        colour = mixed(colours[0], colours[1], t)
        sheet.paint(depth, colour * 0.8)
        sheet.paint(depth - 0.035, colour)
    return sheet


WHITE, CREAM, LEMON, GOLD = (250.0, 248.0, 240.0), (255.0, 240.0, 205.0), (255.0, 228.0, 90.0), (250.0, 190.0, 50.0)
APRICOT, ORANGE, CORAL, RED = (255.0, 190.0, 130.0), (250.0, 140.0, 50.0), (250.0, 120.0, 105.0), (232.0, 62.0, 50.0)
ROSE, PINK, MAGENTA = (250.0, 185.0, 205.0), (245.0, 120.0, 165.0), (212.0, 50.0, 135.0)
LILAC, VIOLET, PLUM = (205.0, 170.0, 245.0), (145.0, 105.0, 235.0), (180.0, 70.0, 190.0)
SKY, BLUE, MINT = (140.0, 200.0, 250.0), (85.0, 120.0, 240.0), (190.0, 240.0, 200.0)
COCOA, GREEN = (176.0, 112.0, 66.0), (150.0, 190.0, 80.0)

# One line per genus: the drawing, the petals from heart to tip, the middle.
FLOWERS: tuple[tuple[Callable[[Colour, Colour, Colour], Sheet], Colour, Colour, Colour], ...] = (
    (daisy, WHITE, WHITE, GOLD),
    (poppy, RED, ORANGE, GREEN),
    (bell, VIOLET, LILAC, LEMON),
    (primrose, LEMON, LEMON, ORANGE),
    (lily, WHITE, PINK, ORANGE),
    (dahlia, PLUM, MAGENTA, GOLD),
    (tulip, ORANGE, LEMON, RED),
    (viola, VIOLET, PLUM, LEMON),
    (star, BLUE, SKY, WHITE),
    (daisy, GOLD, ORANGE, COCOA),
    (primrose, ROSE, PINK, LEMON),
    (bell, ROSE, WHITE, GOLD),
    (dahlia, CORAL, APRICOT, LEMON),
    (lily, GOLD, ORANGE, COCOA),
    (poppy, ROSE, CREAM, GREEN),
    (star, WHITE, ROSE, GOLD),
    (tulip, MAGENTA, PINK, PLUM),
    (viola, CREAM, LEMON, ORANGE),
    (primrose, BLUE, SKY, LEMON),
    (daisy, PLUM, LILAC, LEMON),
    (dahlia, LEMON, CREAM, ORANGE),
    (lily, PLUM, LILAC, GOLD),
    (poppy, VIOLET, LILAC, LEMON),
    (star, RED, CORAL, LEMON),
)


def flower(genus: int) -> np.ndarray:
    """The flower of a genus as an RGBA drawing."""
    draw, petal, tip, middle = FLOWERS[genus]
    return draw(petal, tip, middle).rgba()
