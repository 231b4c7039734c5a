"""What two views show of the same run, rule and K is the same number, and the library's."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from browsing import KEYS, SHOTS, click, figure, numbers

import workbench as wb

pytestmark = pytest.mark.browser
K = 2


def subtitle(page, name):
    """What stands below the title of a picture."""
    return page.locator(f".st-key-figure-{name} .wb-subtitle").inner_text()


def found(pattern, text):
    """The one group of a pattern that the text has."""
    match = re.search(pattern, text)
    assert match is not None, f"{pattern} is not in {text}"
    return match[1]


def taken_away(page):
    """The table of a view, as a file of it holds it."""
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Table (CSV)"))
    return pd.read_csv(download.value.path())


def test_every_number_that_two_views_share_is_the_same_in_both_and_that_of_the_library(opened, store):
    tables, others = (store.open(KEYS[name]).tables for name in ("garden", "sharper"))
    sets, after = (wb.AverageK(float(K)).fit(run["val"]).sets(run["test"]) for run in (tables, others))
    error = wb.metrics.expected_calibration_error(tables["test"])
    shots = wb.metrics.shot_accuracy(sets)
    library = {
        "K": f"{K:.2f}",
        "Mean size": f"{wb.metrics.mean_size(sets):.2f}",
        "Correct": f"{wb.metrics.accuracy(sets):.1%}",
        "Mean over classes": f"{wb.metrics.macro_accuracy(sets):.1%}",
        **{SHOTS[shot]: f"{accuracy:.1%}" for shot, accuracy in shots.items()},
    }

    page = opened(view="sets", wait_for=".wb-wall", K=K)
    assert numbers(page).items() >= library.items()
    assert found(r"mean over classes ([\d.]+%)", subtitle(page, "classes")) == library["Mean over classes"]
    assert found(r"expected calibration error ([\d.]+%)", subtitle(page, "reliability")) == f"{error:.1%}"
    (dot,) = figure(page, "curve")["shapes"]
    assert (f"{dot['xanchor']:.2f}", f"{dot['yanchor']:.1%}") == (library["Mean size"], library["Correct"])

    page = opened(view="samples", wait_for=".wb-wall", K=K)
    assert numbers(page).items() >= library.items()
    said = page.get_by_text(" rows · mean size").first.inner_text()
    assert found(r"mean size ([\d.]+)", said) == library["Mean size"]
    assert found(r"([\d.]+%) correct", said) == library["Correct"]
    assert found(r"([\d.]+%) mean over classes", said) == library["Mean over classes"]

    page = opened(view="classes", K=K, other=KEYS["sharper"][:12])
    assert numbers(page).items() >= library.items()
    assert found(r"mean over classes ([\d.]+%)", subtitle(page, "classes")) == library["Mean over classes"]
    for shot, accuracy in shots.items():
        assert found(rf"{shot} ([\d.]+%)", subtitle(page, "rarity")) == f"{accuracy:.1%}"
    changes = wb.figures.most_improved(sets, after)
    gained, lost = (int((sign * changes.frame["difference"] > 0).sum()) for sign in (1, -1))
    assert f"{gained} classes better, {lost} worse" in subtitle(page, "improved")
    of_classes = changes.frame["difference"].mean()  # as Compare has it below

    page = opened(view="compare", K=K, **{"with": KEYS["sharper"][:12]})
    assert numbers(page).items() >= library.items()
    first, second = figure(page, "scatter")["data"]  # macro-accuracy against accuracy
    assert (f"{first['x'][0]:.1%}", f"{first['y'][0]:.1%}") == (library["Correct"], library["Mean over classes"])
    assert second["y"][0] - first["y"][0] == pytest.approx(of_classes)
    compared = taken_away(page).fillna({"group": ""}).set_index(["metric", "group", "table"])
    assert f"{compared.loc[('expected_calibration_error', '', 'garden'), 'value']:.1%}" == f"{error:.1%}"
    assert compared.loc[("macro_accuracy", "", "sharper"), "difference"] == pytest.approx(of_classes)
    top = wb.metrics.top_k_accuracy(tables["test"], K=K)
    assert compared.loc[(f"top_k_accuracy@K={K}", "", "garden"), "value"] == pytest.approx(top)
    np.testing.assert_allclose(
        [compared.loc[("shot_accuracy", shot, "garden"), "value"] for shot in shots], [*shots.values()]
    )

    page = opened(view="calibration")
    assert found(r"expected calibration error ([\d.]+%)", subtitle(page, "before")) == f"{error:.1%}"
    errors = taken_away(page).set_index("metric")["before"]
    assert errors["Expected calibration error (%)"] == pytest.approx(100 * error)
