"""Draws the published figures from library calls: docs/hero.webp, docs/losses.webp and docs/smoothing.webp.

python docs/figures.py [folder]
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import workbench as wb
from workbench.figures import Figure
from workbench.figures.style import LIGHT
from workbench.store import DEMO, Store, StoredRun

WIDTH = 1680  # pixels of the hero picture
K = 3


def picture(figure: Figure, dpi: int = 150) -> Image.Image:
    """The static figure as an image."""
    file = io.BytesIO()
    figure.static().savefig(file, dpi=dpi)
    return Image.open(file).convert("RGB")


def beside(pictures: list[Image.Image]) -> Image.Image:
    """The pictures in a row, all of one height, together as wide as the sheet."""
    ratio = WIDTH / sum(picture.width / picture.height for picture in pictures)
    scaled = [picture.resize((round(ratio * picture.width / picture.height), round(ratio))) for picture in pictures]
    row = Image.new("RGB", (WIDTH, round(ratio)), LIGHT.paper)
    for place, part in enumerate(scaled):
        row.paste(part, (sum(before.width for before in scaled[:place]), 0))
    return row


def below(rows: list[Image.Image]) -> Image.Image:
    """The rows one below the other."""
    sheet = Image.new("RGB", (WIDTH, sum(row.height for row in rows)), LIGHT.paper)
    for place, row in enumerate(rows):
        sheet.paste(row, (0, sum(before.height for before in rows[:place])))
    return sheet


def demo_run() -> StoredRun:
    """The run of the garden with cross-entropy that ships with the package."""
    for run in Store(DEMO).runs():
        if (run.dataset_spec or {}).get("name") == "garden" and "CrossEntropy" in run.title:
            return run
    raise SystemExit("the package holds no demo run of the garden yet: `make demo` trains it")


def hero() -> Image.Image:
    """Photographs with their sets, from clear to ambiguous; what K does to sizes and accuracy; what a loss asks for."""
    run = demo_run()
    val, test = run.tables["val"], run.tables["test"]
    spec = run.dataset_spec or {}
    images = wb.load_dataset(spec["name"], **spec["knobs"]).test.inputs
    sets = wb.AverageK(K).fit(val)(test)
    by_size = np.argsort(sets.sizes, kind="stable")
    rows = by_size[np.linspace(0, test.n - 1, 12).astype(int)]
    first_row = [wb.figures.samples(sets, images, rows=rows.tolist()), wb.figures.set_sizes(sets, by="shots")]
    curves = wb.figures.accuracy_against_size(wb.SetIndex(test, K_max=10))
    second_row = [curves, wb.figures.gallery(wb.losses.LOSSES[:10], steps=101)]
    return below([beside([picture(figure) for figure in row]) for row in (first_row, second_row)])


def losses() -> Image.Image:
    """All losses of the catalogue on the triangle: Figure 1 of Garcin et al. 2022, made whole."""
    return picture(wb.figures.gallery(steps=101))


def smoothing() -> Image.Image:
    """What the number of draws M and the scale ε do to the noised top-2 loss: Figures 4 and 5 of Garcin et al. 2022."""
    draws = [wb.losses.NoisedTopK(K=2, epsilon=0.5, n_samples=n) for n in (1, 5, 30, 100, 1000)]
    scales = [wb.losses.ExactNoisedTopK(K=2, epsilon=epsilon) for epsilon in (0.05, 0.1, 0.2, 0.5, 1.0)]
    rows = [wb.figures.gallery(draws, steps=101, sampled=True), wb.figures.gallery(scales, steps=101)]
    return below([beside([picture(row)]) for row in rows])


def main(folder: Path) -> None:
    """Draw every published figure into the folder."""
    for draw in (hero, losses, smoothing):
        path = folder / f"{draw.__name__}.webp"
        draw().save(path, quality=88, method=6)
        print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
