"""How tests wait: for states, never for times, and every test has one try."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import waiting


class Page:
    """A page that remembers how many frames it was asked to draw."""

    def __init__(self):
        self.frames = []

    def evaluate(self, _script, frames):
        self.frames.append(frames)


def test_a_check_is_repeated_ever_more_rarely_until_it_passes_and_its_answer_is_returned():
    page = Page()

    def late():
        assert page.frames == [2, 4, 8, 16, 16]
        return "drawn"

    assert waiting.eventually(page, late) == "drawn"


def test_a_check_that_never_passes_fails_in_its_own_words(monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0)

    def never():
        assert "drawn" == "blank", "the picture stays blank"

    with pytest.raises(AssertionError, match="the picture stays blank"):
        waiting.eventually(Page(), never)


def test_no_browser_test_waits_for_a_time_and_no_test_is_tried_twice():
    found = [
        f"{path.name}:{node.lineno}: {node.attr}"
        for path in Path(__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("wait_for_timeout", "flaky")
    ]
    assert found == []
    settings = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert "rerun" not in settings
