"""Photographs of plants: organs on a soft background, and the reader that recovers what they show from pixels alone.

A photograph is background, sprites, light and grain, each of bounded support:

    pixel = light · (background, or sprite where there is one) + grain,

so three facts hold of every photograph, and the reader rests on them. Backgrounds are dim and organs are bright, by
more than light and grain can change; organs keep to their own cells, whole and apart from one another; and a sprite is
one of finitely many (form, turn, size). So an organ is found by its brightness and named by the sprite it resembles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageFilter

from workbench.datasets.plants.flora import HIDDEN, ORGANS
from workbench.datasets.plants.flowers import flower
from workbench.datasets.plants.foliage import BARK_DRAWINGS, FRUIT_DRAWINGS, LEAF_DRAWINGS
from workbench.progress import slow

SIZE = 48  # pixels of the side of a photograph
TURNS = 12
TURN_RANGE = {"flower": 360.0, "leaf": 360.0, "fruit": 70.0, "bark": 24.0}  # degrees: fruit hangs, trunks stand
LARGE, SMALL = (32, 36, 40), (19, 20, 21)  # pixels of the side of a whole drawing: alone, or one of several
SHADOW = 2  # pixels around an organ that hold only its shadow

LIGHT, TINT = 0.10, 0.03  # light is 1 ± LIGHT; red and blue lean against each other by ± TINT
GRAIN = 6  # grain is a whole number in [−GRAIN, GRAIN], uniform
BACKGROUND = 108  # no channel of a background is brighter
# Of the largest channel of a pixel: up to DARK it may be background, above it is an organ.
DARK = BACKGROUND * (1 + LIGHT) * (1 + TINT) + GRAIN
BRIGHT = DARK + 16

MIDDLE = SIZE // 2
Cell = tuple[slice, slice]  # rows and columns of a photograph that belong to one organ
WHOLE: Cell = (slice(0, SIZE), slice(0, SIZE))
HALVES: tuple[Cell, ...] = ((slice(0, SIZE), slice(0, MIDDLE)), (slice(0, SIZE), slice(MIDDLE, SIZE)))
QUARTERS: tuple[Cell, ...] = tuple(
    (slice(top, top + MIDDLE), slice(left, left + MIDDLE)) for top in (0, MIDDLE) for left in (0, MIDDLE)
)
CHUNK = 100  # photographs drawn or read at a time


@dataclass(frozen=True)
class Organ:
    """An organ to be photographed: which (a column of ORGANS), in which form, in which cell."""

    column: int
    form: int
    cell: Cell


@dataclass(frozen=True)
class Sprite:
    """A drawing in one turn and one size, laid on a background by pixel ← pixel · keep / 256 + colour."""

    colour: np.ndarray  # (h, w, 3) uint16, already multiplied by its cover
    keep: np.ndarray  # (h, w, 1) uint16: 256 where the background stays, less in the shadow, 0 under the organ


@cache
def drawing(column: int, form: int) -> Image.Image:
    """The organ in this form, drawn large on a transparent sheet."""
    painters = {"leaf": LEAF_DRAWINGS, "fruit": FRUIT_DRAWINGS, "bark": BARK_DRAWINGS}
    organ = ORGANS[column]
    return Image.fromarray(flower(form) if organ == "flower" else painters[organ][form]().rgba())


@cache
def sprites(column: int, form: int, sides: tuple[int, ...]) -> tuple[Sprite, ...]:
    """The organ in this form: every turn in every one of these sizes."""
    span = TURN_RANGE[ORGANS[column]]
    # Multiples of the golden section of a full turn never repeat, whatever symmetry a flower has.
    turns = 137.5 * np.arange(TURNS) if span == 360 else np.linspace(-span / 2, span / 2, TURNS)
    sheet = drawing(column, form).convert("RGBa")  # colours multiplied by their cover, so that turning mixes them well
    turned = [sheet.rotate(turn, Image.Resampling.BILINEAR) for turn in turns]
    return tuple(_sprite(image.resize((side, side), Image.Resampling.BOX)) for image in turned for side in sides)


def _sprite(image: Image.Image) -> Sprite:
    rows, columns = np.nonzero(np.asarray(image.getchannel("a")))
    box = columns.min() - SHADOW, rows.min() - SHADOW, columns.max() + 1 + SHADOW, rows.max() + 1 + SHADOW
    image = image.crop(box)
    cover = np.asarray(image.getchannel("a"))
    shadow = Image.fromarray(np.roll(cover, 1, axis=0)).filter(ImageFilter.BoxBlur(1.5))
    clear = (1 - cover / 255) * (1 - 0.5 * np.asarray(shadow) / 255)
    colour = np.asarray(image)[..., :3]
    return Sprite(colour.astype(np.uint16), np.round(256 * clear).astype(np.uint16)[..., None])


# The dark and the light of each background: woods, moss, dusk, water, heather, earth, mist, evening.
TONES = (
    ((14, 40, 26), (66, 108, 58)),
    ((38, 48, 14), (104, 108, 50)),
    ((20, 32, 66), (84, 94, 108)),
    ((10, 48, 54), (58, 108, 100)),
    ((48, 26, 50), (108, 78, 92)),
    ((50, 34, 20), (108, 86, 56)),
    ((48, 60, 56), (100, 108, 94)),
    ((26, 24, 54), (98, 70, 108)),
)
VIEWS = 5  # backgrounds of each pair of tones
EXTRA = 16  # a background is larger than a photograph, which shows a part of it


@cache
def backgrounds() -> np.ndarray:
    """(b, SIZE + EXTRA, SIZE + EXTRA, 3) uint8: gardens out of focus, no channel above BACKGROUND."""
    rng = np.random.default_rng(300)
    side = SIZE + EXTRA
    y, x = np.mgrid[0 : 1 : side * 1j, 0 : 1 : side * 1j]

    found = []
    for dark, light in TONES * VIEWS:
        share = 0.8 - 0.6 * y + rng.uniform(-0.3, 0.3) * (x - 0.5)
        for _ in range(14):  # leaves and blades, far away
            cx, cy, angle, length = *rng.uniform(0, 1, 2), rng.uniform(0, np.pi), rng.uniform(0.15, 0.4)
            u = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)
            v = (y - cy) * np.cos(angle) - (x - cx) * np.sin(angle)
            share = share + rng.uniform(-0.45, 0.35) * np.exp(-(np.hypot(u / length, v / (0.3 * length)) ** 3))
        for _ in range(9):  # drops of light, with the rim that a lens gives them
            cx, cy, radius = *rng.uniform(0, 1, 2), rng.uniform(0.04, 0.13)
            distance = np.hypot(x - cx, y - cy)
            drop = np.clip((radius - distance) / 0.03, 0, 1) * (0.65 + 0.35 * (distance / radius) ** 3)
            share = share + rng.uniform(0.1, 0.5) * (1.1 - y) * drop
        share = np.clip(share, 0, 1)[..., None]
        found.append(np.asarray(dark) * (1 - share) + np.asarray(light) * share)
    return np.minimum(np.rint(found), BACKGROUND).astype(np.uint8)


def photographs(scenes: Sequence[Sequence[Organ]], seed: Sequence[int]) -> np.ndarray:
    """(n, SIZE, SIZE, 3) uint8: one photograph of each scene, an organ alone in WHOLE or several in smaller cells."""
    images = np.empty((len(scenes), SIZE, SIZE, 3), dtype=np.uint8)
    for chunk, start in enumerate(slow("photographs", f"× {CHUNK}", range(0, len(scenes), CHUNK), hidden=None)):
        rows = slice(start, start + CHUNK)
        images[rows] = _chunk(scenes[rows], np.random.default_rng([*seed, chunk]))
    return images


def _chunk(scenes: Sequence[Sequence[Organ]], rng: np.random.Generator) -> np.ndarray:
    n, grounds = len(scenes), backgrounds()
    which = rng.integers(len(grounds), size=n)
    offsets = rng.integers(EXTRA + 1, size=(n, 2))
    mirrored = rng.integers(2, size=n)
    chances = rng.random((n, 4, 3))  # of each organ: its turn and size, its height, its place across
    canvas = np.empty((n, SIZE, SIZE, 3), dtype=np.uint8)
    for i, scene in enumerate(scenes):
        top, left = offsets[i]
        ground = grounds[which[i], top : top + SIZE, left : left + SIZE]
        canvas[i] = ground[:, ::-1] if mirrored[i] else ground
        for organ, chance in zip(scene, chances[i], strict=False):
            _lay(canvas[i][organ.cell], organ, chance)
    light = 1 + LIGHT * rng.uniform(-1, 1, (n, 1)) * np.ones(3)
    light *= 1 + TINT * rng.uniform(-1, 1, (n, 1)) * np.array([1, 0, -1])
    lit = canvas * light[:, None, None].astype(np.float32)
    lit += rng.integers(-GRAIN, GRAIN + 1, size=lit.shape, dtype=np.int8)
    return np.clip(np.rint(lit), 0, 255).astype(np.uint8)


def _lay(view: np.ndarray, organ: Organ, chance: np.ndarray) -> None:
    """Lay one of the organ's sprites somewhere inside the view of its cell."""
    bank = sprites(organ.column, organ.form, LARGE if organ.cell is WHOLE else SMALL)
    sprite = bank[int(chance[0] * len(bank))]
    height, width = sprite.keep.shape[:2]
    top = int(chance[1] * (view.shape[0] - height + 1))
    left = int(chance[2] * (view.shape[1] - width + 1))
    patch = view[top : top + height, left : left + width]
    patch[...] = (patch * sprite.keep >> 8) + sprite.colour


def side_by_side(images: np.ndarray) -> np.ndarray:
    """(n,) bool: whether a photograph shows two organs, one in each half; between them the middle is bare.

    An organ in a half stays SHADOW pixels away from its border, and an organ alone has no gap as wide as two of that.
    """
    columns = (images.max(axis=3) > DARK).any(axis=1)
    bare = ~columns[:, MIDDLE - SHADOW : MIDDLE + SHADOW].any(axis=1)
    two: np.ndarray = bare & columns[:, :MIDDLE].any(axis=1) & columns[:, MIDDLE:].any(axis=1)
    return two


def organ_in(cell: Cell, images: np.ndarray, n_forms: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The organ in this cell of each photograph, as its column in ORGANS and its form; HIDDEN where the cell is bare.

    The organ is what is brighter than any background; its name is that of the sprite whose signature is nearest.
    """
    columns, forms, bank = _sprite_signatures(tuple(n_forms), LARGE if cell is WHOLE else SMALL)
    found = np.full((2, len(images)), HIDDEN)
    for start in range(0, len(images), CHUNK):
        bright = _bright(images[(slice(start, start + CHUNK), *cell)])
        there = np.flatnonzero(bright.any(axis=(1, 2, 3)))
        nearest = np.argmax(_signature(bright[there]) @ bank.T, axis=1)
        found[:, start + there] = columns[nearest], forms[nearest]
    return found[0], found[1]


def _bright(pixels: np.ndarray) -> np.ndarray:
    """The pixels, with everything that may be background faded to black."""
    pixels = pixels.astype(np.float32)
    bright: np.ndarray = pixels * np.clip((pixels.max(axis=-1, keepdims=True) - DARK) / (BRIGHT - DARK), 0, 1)
    return bright


HIGHEST = 10  # frequencies that a signature keeps, in waves per SIZE pixels
WAVES = np.exp(-2j * np.pi * np.outer(np.arange(-HIGHEST, HIGHEST + 1), np.arange(SIZE)) / SIZE).astype(np.complex64)


def _signature(bright: np.ndarray) -> np.ndarray:
    """(n, d): the sizes of the low Fourier coefficients, as a vector of length 1.

    The size of a coefficient does not change when the organ is moved, nor the direction of the vector with the light.
    """
    height, width = bright.shape[1:3]
    planes = np.moveaxis(bright, 3, 1).astype(np.complex64)  # (n, 3, height, width)
    # A real picture has the same sizes at opposite frequencies: half of them suffice.
    coefficients = WAVES[:, :height] @ (planes @ WAVES[HIGHEST:, :width].T)
    sizes = np.abs(coefficients).reshape(len(bright), -1)
    signature: np.ndarray = sizes / np.linalg.norm(sizes, axis=1, keepdims=True)
    return signature


@cache
def _sprite_signatures(n_forms: tuple[int, ...], sides: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every sprite of these sizes: its organ (m,), its form (m,) and its signature (m, d)."""
    names = [(column, form) for column, number in enumerate(n_forms) for form in range(number)]
    bank = [sprite for name in names for sprite in sprites(*name, sides)]
    canvas = np.zeros((len(bank), SIZE, SIZE, 3), dtype=np.uint8)
    for picture, sprite in zip(canvas, bank, strict=True):
        height, width = sprite.keep.shape[:2]
        picture[:height, :width] = sprite.colour
    columns, forms = np.repeat(np.array(names), len(bank) // len(names), axis=0).T
    return columns, forms, _signature(_bright(canvas))
