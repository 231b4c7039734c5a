"""Panels: pictures and numbers that follow one position, computed once for every position of their sliders."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from workbench.figures import style
from workbench.figures.browser import PANEL, PANEL_STYLE, PLOTLY, colours, joined
from workbench.figures.film import Film


@dataclass(frozen=True)
class PanelSlider:
    """A slider of a panel.

    Args:
        label: The name of the slider.
        nearest: The value it shows at every position of the panel, by number.
        texts: That value in words, at every position.
        positions: Linked sliders: the position that each value leads to.
        block: Linked sliders beside one of a grid: the positions between two values of that one.
        stride: Sliders of a grid: positions from one value to the next.
        kind: "range", "toggle" for a button that is on or off, or "play" for a slider that also moves by itself.
    """

    label: str
    nearest: tuple[int, ...]
    texts: tuple[str, ...]
    positions: tuple[int, ...] = ()
    block: int = 0
    stride: int = 0
    kind: str = "range"


@dataclass(frozen=True)
class PanelNumber:
    """A number beside the sliders, in words, at every position."""

    label: str
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Panel:
    """Pictures and numbers that follow one position, and the sliders that choose it."""

    about: tuple[str, ...]
    pictures: tuple[Film, ...]
    sliders: tuple[PanelSlider, ...] = ()
    numbers: tuple[PanelNumber, ...] = ()
    start: int = 0

    def spec(self) -> dict[str, Any]:
        """The panel as JSON has it."""
        return {
            "about": self.about,
            "sliders": [asdict(slider) for slider in self.sliders],
            "numbers": [asdict(number) for number in self.numbers],
            "pictures": [picture.spec() for picture in self.pictures],
            "start": self.start,
        }

    def page(self, title: str, *, dark: bool = False) -> str:
        """An HTML page of its own: the sliders move the pictures, and it needs no network."""
        theme, data = style.theme(dark), json.dumps(self.spec(), ensure_ascii=False).replace("</", "<\\/")
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title>
<style>
body {{ margin: 0 auto; padding: 1rem; max-width: 90rem; background: {theme.paper}; color: {theme.ink}; }}
{colours(theme, ".wb-panel")}
{joined([PANEL_STYLE])}
</style>
<script>{joined([PLOTLY])}</script>
</head>
<body>
<main class="wb-panel wb-in-notebook" id="panel"><h1>{html.escape(title)}</h1></main>
<script>
{joined(PANEL)}
panel(document.getElementById("panel"), {data}, {{ night: {json.dumps(dark)} }});
</script>
</body>
</html>
"""


def grid_sliders(axes: Mapping[str, Sequence[str]], **kinds: str) -> tuple[PanelSlider, ...]:
    """A slider for each axis of a grid of positions, the last one moving fastest.

    Args:
        axes: Label of a slider and the words of its values.
        kinds: Words of a label, joined by underscores, and the kind of its slider.

    >>> [slider.stride for slider in grid_sliders({"a": "123", "b": "12"})]
    [2, 1]
    """
    sizes = [len(texts) for texts in axes.values()]
    places = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
    return tuple(
        PanelSlider(
            label,
            tuple(at.tolist()),
            tuple(texts[each] for each in at),
            stride=math.prod(sizes[number + 1 :]),
            kind=kinds.get(label.replace(" ", "_"), "range"),
        )
        for number, ((label, texts), at) in enumerate(zip(axes.items(), places, strict=True))
    )
