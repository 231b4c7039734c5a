"""Colours and fonts: the one source for Plotly, for matplotlib and for the Streamlit theme.

A colour has a meaning and keeps it in every picture: a hit is fern green, a miss is terracotta. The pairs that meet in
a picture stay apart for the colour-blind (tests simulate the three kinds), and no picture relies on colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import plotly.graph_objects as go

from workbench.class_counts import SHOTS

# The first one installed is used. Streamlit brings Source Sans with it, matplotlib brings DejaVu Sans.
FONTS = ("Source Sans", "Source Sans Pro", "Segoe UI", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans")
CSS_FONTS = ", ".join([*(f'"{font}"' for font in FONTS), "sans-serif"])

# Low to high, pale to dark, lightness falling evenly: levels of a loss, shares of a heat map.
SEQUENTIAL = (
    *("#f6f1d5", "#e0e8c6", "#bfd9ab", "#97c598", "#6bad8e"),
    *("#459386", "#2e777c", "#265a6d", "#263e5b", "#241f42"),
)
# The same by night: pale is low there too, and the high end does not fade into the paper.
SEQUENTIAL_BY_NIGHT = (
    *("#eee9cd", "#d3dbb9", "#b4cfa0", "#92c293", "#6db493"),
    *("#4da496", "#3e9298", "#407f97", "#4c6a91", "#5c5287"),
)
# Below zero to above it, orange to blue, pale in the middle: differences. The two sides have the same lightness.
DIVERGING = (
    *("#6d3606", "#a3570f", "#cf8138", "#eab37e", "#f7e2ca"),
    *("#dae6f2", "#a5c3e0", "#6b9bc9", "#37709f", "#1c4468"),
)
DIVERGING_BY_NIGHT = (
    *("#9a5a1c", "#b97430", "#d49353", "#e8b98a", "#f3dfca"),
    *("#d8e4f0", "#abc7e2", "#7fa8d0", "#568abb", "#3f6f9f"),
)


@dataclass(frozen=True)
class Theme:
    """Colours by meaning, for the light or the dark theme."""

    name: str
    paper: str  # behind everything
    panel: str  # behind controls and legends
    ink: str  # text, axes
    muted: str  # second-rank text
    grid: str
    accent: str  # the one colour of a picture that compares nothing
    hit: str  # the label is in the set
    miss: str
    few: str  # shot groups
    medium: str
    many: str
    model_a: str  # two models side by side
    model_b: str
    bayes: str  # what is known about the truth: Bayes sets, perfect calibration
    threshold: str  # where the slider stands, and the label's corner of a level set

    @property
    def categories(self) -> tuple[str, ...]:
        """Colours for lines that meet in a picture and have no colour of their own, such as losses of one's choice."""
        return (self.model_a, self.model_b, self.hit, self.few, self.many, self.medium, self.miss, self.bayes)

    @property
    def sequential(self) -> tuple[str, ...]:
        """Colours from low to high."""
        return SEQUENTIAL if self.name == "light" else SEQUENTIAL_BY_NIGHT

    @property
    def diverging(self) -> tuple[str, ...]:
        """Colours from far below zero to far above it."""
        return DIVERGING if self.name == "light" else DIVERGING_BY_NIGHT

    def colours(self, names: Sequence[str]) -> list[str]:
        """The colours of groups that are drawn apart: shots have their own, all others the accent."""
        return [getattr(self, name) if name in SHOTS else self.accent for name in names]


LIGHT = Theme(
    name="light",
    paper="#fbfaf5",
    panel="#f1eee2",
    ink="#22302a",
    muted="#5d6b63",
    grid="#e4e1d5",
    accent="#2e777c",
    hit="#1f7a68",
    miss="#d4673c",
    few="#7a2f63",
    medium="#bd8517",
    many="#4b93bb",
    model_a="#2c5f8a",
    model_b="#cf7a2c",
    bayes="#3a1f4d",
    threshold="#b3263f",
)
DARK = Theme(
    name="dark",
    paper="#161c19",
    panel="#202824",
    ink="#e9ece4",
    muted="#a3afa6",
    grid="#2d3732",
    accent="#6bad8e",
    hit="#3fa389",
    miss="#f7b592",
    few="#c06ba6",
    medium="#e6bd5c",
    many="#93cdf0",
    model_a="#6ea3d8",
    model_b="#efab62",
    bayes="#d9c3ee",
    threshold="#ff6f8c",
)


def theme(dark: bool = False) -> Theme:
    """The theme by daylight or by night."""
    return DARK if dark else LIGHT


# What the buttons of a Plotly chart may do: nothing that leaves this machine.
PLOTLY_CONFIG = {"displaylogo": False, "showSendToCloud": False, "responsive": True}


def translucent(colour: str, opacity: float) -> str:
    """A colour written as #rrggbb, through which one can see.

    >>> translucent("#0a10ff", 0.5)
    'rgba(10, 16, 255, 0.5)'
    """
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def sequential_scale(theme: Theme) -> list[list[Any]]:
    """The sequential colours as Plotly writes a colour scale: pairs of a place in [0, 1] and a colour."""
    last = len(theme.sequential) - 1
    return [[place / last, colour] for place, colour in enumerate(theme.sequential)]


@cache
def plotly_template(theme: Theme) -> go.layout.Template:
    """The theme as a Plotly template, made once: figures copy it, and a slider has a hundred of them."""
    axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.muted,
        "tickcolor": theme.muted,
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "title": {"standoff": 10, "font": {"size": 14}},
    }
    font = {"family": CSS_FONTS, "size": 14, "color": theme.ink}
    return go.layout.Template(
        layout={
            "font": font,
            "title": {
                "font": {"size": 19, "color": theme.ink},
                **{"x": 0, "xref": "container", "xanchor": "left"},
                **{"y": 1, "yref": "container", "yanchor": "top"},
                "pad": {"l": 24, "t": 32},
            },
            "paper_bgcolor": theme.paper,
            "plot_bgcolor": theme.paper,
            "colorway": list(theme.categories),
            "colorscale": {"sequential": sequential_scale(theme)},
            "xaxis": axis,
            "yaxis": axis,
            "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"},
            "hoverlabel": {"bgcolor": theme.panel, "bordercolor": theme.muted, "font": font},
            "margin": {"l": 70, "r": 24, "t": 92, "b": 60},
            "bargap": 0.08,
        }
    )


def matplotlib_rc(theme: Theme) -> dict[str, Any]:
    """The theme as matplotlib settings, for `matplotlib.rc_context`."""
    from cycler import cycler
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return {
        "font.family": [font for font in FONTS if font in installed],
        "font.size": 10.5,
        "axes.titlesize": 13,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 12,
        "figure.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
        "axes.edgecolor": theme.muted,
        "axes.labelcolor": theme.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.prop_cycle": cycler(color=list(theme.categories)),
        "grid.color": theme.grid,
        "grid.linewidth": 0.8,
        "text.color": theme.ink,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
        "legend.frameon": False,
        "hatch.linewidth": 0.6,
        "figure.dpi": 110,
        "text.parse_math": False,  # the name of a class may hold dollars
        "svg.fonttype": "none",  # text stays text: smaller, searchable, editable
    }


def use() -> None:
    """From here on matplotlib and seaborn draw in these colours, by daylight and with formulas: for a notebook."""
    import matplotlib

    settings: Any = matplotlib_rc(LIGHT) | {"text.parse_math": True, "figure.figsize": (6.5, 3.6)}
    matplotlib.rcParams.update(settings)


def streamlit_theme() -> dict[str, Any]:
    """The `[theme]` table of `app/.streamlit/config.toml`; a test compares the two."""

    def colours(theme: Theme) -> dict[str, Any]:
        return {
            "primaryColor": theme.accent,
            "backgroundColor": theme.paper,
            "secondaryBackgroundColor": theme.panel,
            "textColor": theme.ink,
            "borderColor": theme.grid,
            "linkColor": theme.accent,
            "chartCategoricalColors": list(theme.categories),
            "chartSequentialColors": list(theme.sequential),
        }

    return {
        "font": CSS_FONTS,
        "light": colours(LIGHT),
        "dark": colours(DARK),
    }
