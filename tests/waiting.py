"""Waiting in a real browser: for a state of the page, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 240  # seconds: what never comes should fail, what comes late on a busy machine should not


def next_frame(page: Any) -> None:
    """Wait until the browser has drawn what it knows."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def eventually(page: Any, check: Callable[[], Any]) -> Any:
    """Check what the page shows, after each of its frames, until the check passes; what it returns.

    What never passes fails as the check fails.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        next_frame(page)
