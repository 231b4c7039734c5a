"""Scripts that play pictures in a browser, and plotly.js: one for the app, lessons, the static site and notebooks.

`film.js` plays a figure along its slider, `panel.js` several pictures along linked sliders; both draw their elements with
`elements.js`. A page joins them with a script of its own into one.

plotly.js is the cartesian bundle, 1.5 MB in place of the 4.8 MB in the plotly package: it has all that our figures use. It
comes from npm, plotly.js-cartesian-dist-min, in the version that plotly.py has.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from workbench.figures.style import Theme

HERE = Path(__file__).parent
PLOTLY, ELEMENTS, FILM = HERE / "plotly-cartesian.min.js", HERE / "elements.js", HERE / "film.js"
PANEL, PANEL_STYLE = (ELEMENTS, FILM, HERE / "panel.js"), HERE / "panel.css"
WIDGET = HERE / "widget.js"

__all__ = ["ELEMENTS", "FILM", "PANEL", "PANEL_STYLE", "PLOTLY", "WIDGET", "colours", "joined"]


def joined(files: Iterable[Path]) -> str:
    """The text of several files, one after the other."""
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def colours(theme: Theme, selector: str) -> str:
    """A rule that declares the colours of a theme as CSS variables for what a selector names."""
    names = ("paper", "panel", "ink", "muted", "grid", "accent", "hit", "miss")
    declared = {name: getattr(theme, name) for name in names} | {"miss-text": theme.threshold}
    return f"{selector} {{ {' '.join(f'--{name}: {colour};' for name, colour in declared.items())} }}"
