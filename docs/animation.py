"""Films the app for the README, docs/app.webp: a slider that moves on Start, on Sets and on Landscapes.

python docs/animation.py
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from PIL import Image

from views import HERE, PATIENCE, chromium, served, wait

WINDOW = {"width": 1280, "height": 800}
WIDTH = 960  # pixels of a frame
FRAMES = 14  # of a scene
MILLISECONDS, REST = 180, 1400  # that a frame is shown, and the last one of a scene


class Scene(NamedTuple):
    """A page and the slider that moves on it."""

    path: str
    slider: str
    steps: int  # of the slider, from one frame to the next


SCENES = (
    Scene("/", "Average size K", steps=6),
    Scene("/sets", "Average size K", steps=6),
    Scene("/landscapes?part=Level+sets&loss=Noised+top-K", "ε", steps=6),
)


def screenshot(page: Any) -> Image.Image:
    """The window as it stands, reduced to the width of a frame."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return picture.resize((WIDTH, round(WIDTH * picture.height / picture.width)), Image.Resampling.LANCZOS)


def frames(page: Any, server: str, scene: Scene) -> Iterator[Image.Image]:
    """The window at every position of the slider, from its lower end on."""
    page.goto(server + scene.path)
    wait(page)
    slider = page.locator(f"input[aria-label='{scene.slider}']").first
    slider.press("Home")
    for _ in range(FRAMES):
        wait(page)
        yield screenshot(page)
        for _ in range(scene.steps):
            slider.press("ArrowRight")


def main() -> None:
    with served() as server, chromium() as browser:
        page = browser.new_page(viewport=WINDOW)
        page.set_default_timeout(PATIENCE)
        first, *rest = [frame for scene in SCENES for frame in frames(page, server, scene)]
    durations = [*[MILLISECONDS] * (FRAMES - 1), REST] * len(SCENES)
    first.save(HERE / "app.webp", save_all=True, append_images=rest, duration=durations, loop=0, quality=60, method=6)


if __name__ == "__main__":
    main()
