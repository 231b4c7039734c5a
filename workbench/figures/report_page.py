"""Several figures as one HTML file: alive, with their words, numbers and code, and plotly.js once."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from workbench.figures import style
from workbench.figures.base import Figure

MOST_LINES = 500  # of the numbers of a figure


class Part(NamedTuple):
    """A figure, and the code that makes it."""

    figure: Figure
    code: str


def report_page(title: str, parts: Sequence[Part], dark: bool = False) -> str:
    """One page that opens from a file, in any browser, without a network.

    Args:
        title: Heading of the page.
        parts: The figures in their order, each with its code.
        dark: Whether the figures are drawn for the night.

    Returns:
        HTML with an interactive picture, its alternative text, its frame as a table and its code for each part.

    Example:
        >>> report_page("Nothing", []).startswith("<!doctype html>")
        True
    """
    theme = style.theme(dark)
    body = "\n".join(_section(part, dark, first=number == 0) for number, part in enumerate(parts))
    empty = "" if parts else "<p>This page shows no pictures that can be saved.</p>"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title>
<style>
body {{ margin: 0 auto; max-width: 70rem; padding: 1.5rem; font-family: {style.CSS_FONTS}; }}
body {{ background: {theme.paper}; color: {theme.ink}; }}
pre, table {{ font-size: 0.875rem; overflow-x: auto; }}
pre {{ white-space: pre-wrap; background: {theme.panel}; padding: 0.75rem; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 0.125rem 0.75rem; text-align: right; border-bottom: 1px solid {theme.grid}; }}
</style></head>
<body><h1>{html.escape(title)}</h1>
{body}{empty}
</body></html>
"""


def _section(part: Part, dark: bool, first: bool) -> str:
    figure = part.figure
    options = {"full_html": False, "include_plotlyjs": first, "config": style.PLOTLY_CONFIG, "auto_play": False}
    picture = figure.plot(dark).to_html(**options)
    frame = figure.frame
    more = "" if len(frame) <= MOST_LINES else f"<p>The first {MOST_LINES} of {len(frame)} lines.</p>"
    numbers = frame.head(MOST_LINES).to_html(index=False, float_format=lambda value: f"{value:.4g}")
    return f"""<section>
<div role="img" aria-label="{html.escape(figure.text)}">{picture}</div>
<p>{html.escape(figure.text)}</p>
<details><summary>Numbers</summary>{more}{numbers}</details>
<details><summary>Code</summary><pre>{html.escape(part.code)}</pre></details>
</section>"""
