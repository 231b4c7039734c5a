"""One palette: it reads on paper and by night, for the colour-blind too, and every renderer takes it from one place."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.figures import style

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1, 1.08883])
TOGETHER = [("hit", "miss"), ("few", "medium", "many"), ("model_a", "model_b", "bayes")]  # meet in one picture
THEMES = [style.LIGHT, style.DARK]


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(colour: str, sight: str = "normal") -> np.ndarray:
    ratios = TO_XYZ @ np.clip(SIGHT[sight] @ linear(colour), 0, 1) / WHITE
    x, y, z = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """As the web accessibility guidelines define it, from 1 to 21."""
    darker, lighter = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_text_and_marks_stand_out_from_the_paper(theme):
    marks = [field.name for field in fields(theme) if field.name not in ("name", "paper", "panel", "grid")]
    for name in marks:
        least = 4.5 if name in ("ink", "muted") else 3
        assert contrast(getattr(theme, name), theme.paper) >= least, name


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("sight", SIGHT)
def test_colours_that_meet_in_a_picture_differ_for_every_kind_of_sight(theme, sight):
    for group in TOGETHER:
        for one, other in itertools.combinations(group, 2):
            distance = np.linalg.norm(lab(getattr(theme, one), sight) - lab(getattr(theme, other), sight))
            assert distance > 15, (one, other, distance)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("sight", SIGHT)
def test_the_sequential_colours_darken_evenly(theme, sight):
    lightness = np.array([lab(colour, sight)[0] for colour in theme.sequential])
    steps = -np.diff(lightness)
    assert steps.min() > 3
    assert steps.max() < 13


def test_by_night_both_ends_of_the_sequential_colours_stand_out_from_the_paper():
    assert min(contrast(colour, style.DARK.paper) for colour in style.DARK.sequential) > 2


@pytest.mark.parametrize("dark", [False, True])
def test_plotly_and_matplotlib_take_their_colours_and_fonts_from_the_theme(dark):
    theme = style.theme(dark)
    figure = wb.figures.lorenz([1, 2, 3])
    template = figure.plot(dark).layout.template.layout
    assert (template.paper_bgcolor, template.font.color) == (theme.paper, theme.ink)
    assert template.font.family.startswith('"Source Sans"')
    from matplotlib.colors import to_hex

    static = figure.static(dark)
    assert to_hex(static.get_facecolor()) == theme.paper
    assert set(static.axes[0].xaxis.label.get_family()) <= set(style.FONTS)
    assert to_hex(static.axes[0].xaxis.label.get_color()) == theme.ink


def test_a_figure_whose_template_is_changed_leaves_those_of_others_alone():
    changed = wb.figures.lorenz([1, 2, 3]).plot()
    changed.layout.template.layout.paper_bgcolor = "black"
    changed.layout.template.layout.colorway = ["black"]
    template = wb.figures.lorenz([1, 2, 3]).plot().layout.template.layout
    assert (template.paper_bgcolor, template.colorway) == (style.LIGHT.paper, style.LIGHT.categories)


def test_a_static_figure_leaves_the_settings_of_matplotlib_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    wb.figures.lorenz([1, 2, 3]).static(dark=True)
    assert dict(matplotlib.rcParams) == before


def test_the_theme_of_the_app_is_that_of_the_figures():
    path = Path(__file__).resolve().parents[2] / "app" / ".streamlit" / "config.toml"
    written = tomllib.loads(path.read_text(encoding="utf-8"))["theme"]
    assert written == style.streamlit_theme()


def test_a_notebook_draws_in_the_same_colours_and_may_write_formulas():
    import matplotlib

    with matplotlib.rc_context():
        style.use()
        assert matplotlib.rcParams["figure.facecolor"] == style.LIGHT.paper
        assert matplotlib.rcParams["text.parse_math"]
