"""The slider τ moves numbers, pictures, cards and the address to what the library gives there."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import KEYS, asks, figure, pressed, reads

import workbench as wb

pytestmark = pytest.mark.browser
ASKED = {"rule": "Head or tail", "K": 3, "tau": 1}


def headline(sets, confidence=None):
    """The numbers that the bar shows of these sets."""
    promised = {} if confidence is None else {"confidence": f"{confidence:.3f}"}
    return promised | {
        "Mean size": f"{wb.metrics.mean_size(sets):.2f}",
        "Correct": f"{wb.metrics.accuracy(sets):.1%}",
        "Mean over classes": f"{wb.metrics.macro_accuracy(sets):.1%}",
    }


def test_from_head_to_tail_every_picture_shows_the_sets_of_the_library(opened, store):
    tables = store.open(KEYS["garden"]).tables

    def sets_of(rule):
        return rule.fit(tables["val"])(tables["test"])

    page = opened(**ASKED)
    reads(page, headline(sets_of(wb.AverageK(3.0, tau=1.0))))
    pressed(page, "tau", "ArrowLeft", times=5)
    asks(page, rule="Head or tail", K=3, tau=0.5)
    sets = sets_of(wb.AverageK(3.0, tau=0.5))
    reads(page, headline(sets))
    dots = {dot["name"]: (dot["xanchor"], dot["yanchor"]) for dot in figure(page, "trade")["shapes"]}
    size, macro, rows = sets.sizes.mean(), wb.metrics.macro_accuracy(sets), sets.hits.mean()
    assert list(dots.values()) == [pytest.approx((size, macro)), pytest.approx((size, rows))]
    shown = np.concatenate([trace["y"] for trace in figure(page, "classes")["data"]])
    of_classes = np.concatenate([trace.y for trace in wb.figures.per_class(sets).plot().data])
    np.testing.assert_allclose(shown, of_classes, atol=1e-6)
    sizes = page.locator(".wb-card").evaluate_all("cards => cards.map(card => Number(card.dataset.size))")
    assert sizes == sets.sizes[: len(sizes)].tolist()
    listed = page.locator(".wb-card").first.locator("li:not([hidden], .wb-outside, .wb-more) .wb-class")
    names = np.array(tables["test"].named_classes())
    assert {*listed.all_inner_texts()} <= {*names[sets.members(0)[0]]}

    pressed(page, "confidence", "End")
    confidence = float(page.locator("input[name=confidence]").get_attribute("aria-valuetext"))
    asks(page, confidence=confidence, tau=0.5)
    reads(page, headline(sets_of(wb.PAS(confidence, tau=0.5)), confidence))

    page.reload()
    reads(page, headline(sets_of(wb.PAS(confidence, tau=0.5)), confidence))

    page = opened(view="classes", **ASKED)
    pressed(page, "tau", "Home")
    reads(page, headline(sets_of(wb.AverageK(3.0))))
