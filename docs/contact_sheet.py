"""Draws docs/garden.webp: one genus of the garden organ by organ, and photographs of the garden and the meadow.

python docs/contact_sheet.py [garden.webp]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from workbench.datasets import Garden, Meadow
from workbench.datasets.plants.flora import HIDDEN, ORGANS
from workbench.datasets.plants.photographs import photographs

GAP = 3  # pixels between photographs


def mosaic(images: np.ndarray, columns: int) -> np.ndarray:
    """The photographs in rows of `columns`, a little apart, on white."""
    rows = len(images) // columns
    framed = np.pad(images[: rows * columns], ((0, 0), (0, GAP), (0, GAP), (0, 0)), constant_values=255)
    height, width = framed.shape[1:3]
    return framed.reshape(rows, columns, height, width, 3).swapaxes(1, 2).reshape(rows * height, columns * width, 3)


def show(axes: Axes, picture: np.ndarray, title: str) -> None:
    axes.imshow(picture, interpolation="lanczos")
    axes.set_title(title, loc="left", fontsize=13, pad=10)
    axes.axis("off")


def draw_one_genus(axes: Axes, garden: Garden, genus: int) -> None:
    """A row for each species: its flower, and the leaf, fruit and bark that it most often has."""
    flora = garden.flora
    members = np.flatnonzero(flora.genus == genus)
    usual = np.stack([flora.laws[organ][members].argmax(axis=1) for organ in ORGANS], axis=1)
    looks = [
        [form if shown == column else HIDDEN for column in range(len(ORGANS))]
        for forms in usual
        for shown, form in enumerate(forms)
    ]
    rng = np.random.default_rng(0)
    picture = mosaic(photographs([garden.scene(np.array(look), rng) for look in looks], (7,)), len(ORGANS))
    show(
        axes,
        picture,
        f"One genus: the flower does not tell the {len(members)} species apart",
    )
    side = picture.shape[0] / len(members)
    for row, member in enumerate(members):
        axes.text(
            -6,
            (row + 0.5) * side,
            flora.names[member].replace(" ", "\n"),
            ha="right",
            va="center",
            style="italic",
            fontsize=11,
        )
    for column, organ in enumerate(ORGANS):
        axes.text((column + 0.5) * side, picture.shape[0] + 4, organ, ha="center", va="top", fontsize=11)


def main(path: str = str(Path(__file__).parent / "garden.webp")) -> None:
    garden = Garden()
    sizes = np.bincount(garden.flora.genus)
    figure = plt.figure(figsize=(15, 9.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.2])
    draw_one_genus(left.subplots(), garden, int(np.flatnonzero(sizes >= 7)[0]))
    top, bottom = right.subplots(2, 1, height_ratios=[1.5, 1])
    show(top, mosaic(garden.dataset().test.inputs[:96], 12), "The garden: one plant a photograph")
    show(
        bottom,
        mosaic(Meadow(n_train=2000).dataset().test.inputs[:60], 12),
        "The meadow: none to three plants a photograph",
    )
    figure.savefig(path, dpi=80, facecolor="white", pil_kwargs={"quality": 88, "method": 6})


if __name__ == "__main__":
    main(*sys.argv[1:])
