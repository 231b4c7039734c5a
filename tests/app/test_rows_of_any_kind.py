"""Rows that are texts or drawings show themselves on the cards of Samples, and texts are searched."""

from __future__ import annotations

import json
import wave

import numpy as np
import pytest

import workbench as wb
from workbench.figures.base import counted
from workbench.store.imported_tables import keep_tables

pytestmark = pytest.mark.writes
TEXTS = [f"{'Peru' if row % 4 == 0 else 'Chile'} {row}" for row in range(20_000)]


def cards(app):
    """The cards that the page sends to the browser, and their sheet of pictures."""
    sent = [json.loads(each.proto.json) for each in app.get("bidi_component") if each.proto.json]
    return next(parts for parts in sent if parts.get("kind") == "cards")


def test_twenty_thousand_texts_are_shown_and_searched(drawn, store):
    scores = np.random.default_rng(0).normal(size=(20_000, 4)).astype(np.float32)
    letters = wb.LogitTable(
        scores, scores.argmax(axis=1), class_names=[*"abcx"], texts=TEXTS
    )  # symbols have such names, too
    kept = keep_tables(letters, title="texts", store=store)
    app = drawn("samples", run=kept.key[:12], text="PERU")
    found = cards(app)
    assert all(card["text"].startswith("Peru ") for card in found["cards"])
    assert found["sheet"] is None
    assert all(suggested["glyph"] is None for card in found["cards"] for suggested in card["classes"])
    n_peru = sum("Peru" in text for text in kept.tables["test"].texts.tolist())
    assert any(f"**{counted(n_peru)}**" in text.value for text in app.markdown)


def test_drawings_are_drawn_on_their_cards(drawn, store):
    strokes = [[[(0, 0), (9, row + 1)]] for row in range(40)]
    kept = keep_tables(wb.drawings.table(strokes, ["/"] * 40), title="drawings", store=store)
    found = cards(drawn("samples", run=kept.key[:12]))
    assert found["sheet"].startswith("data:image/png")
    assert all(card["text"] == "" for card in found["cards"])
    for suggested in (suggested for card in found["cards"] for suggested in card["classes"]):
        assert suggested["glyph"]["path"] == wb.drawings.SYMBOLS[wb.drawings.LATEX.index(suggested["name"])].path


@pytest.mark.browser
def test_a_sound_is_drawn_on_its_card_and_played_in_its_row(opened, store, tmp_path):
    tone = (8000 * np.sin(np.arange(2000) / 4)).astype("<i2")
    for row in range(12):
        with wave.open(str(tmp_path / f"{row:02}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(tone[: 1000 + 50 * row].tobytes())
    table = wb.LogitTable(np.eye(12, 3), np.arange(12) % 3, sounds=tmp_path)
    kept = keep_tables(table, title="sounds", store=store)
    page = opened(kept.key, view="samples", wait_for=".wb-suggestions-table", row=2)
    played = page.evaluate(
        """async () => {
            const player = document.querySelector("audio.wb-sound");
            player.muted = true;
            await player.play();
            return player.duration;
        }"""
    )
    row = int(kept.tables["test"].ids[2])
    assert played == pytest.approx((1000 + 50 * row) / 8000, abs=0.01)
