"""What docs/promises.md promises is tested by what it names, and every dependency may be used and passed on."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
from dependencies import ALLOWED, components  # noqa: E402

sys.path.remove(str(ROOT / "docs"))


def test_every_promise_names_a_test_that_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (ROOT / "docs" / "promises.md").read_text(encoding="utf-8"))
    assert len(named) > 25
    missing = [each for each in named if f"def {each[1]}(" not in (ROOT / each[0]).read_text(encoding="utf-8")]
    assert missing == []


def test_the_licence_of_every_dependency_lets_it_be_used_and_passed_on():
    found = components()
    assert len(found) > 100
    others = {str(each["name"]): each["licenses"] for each in found if not ALLOWED.search(str(each["licenses"]))}
    assert others == {}
