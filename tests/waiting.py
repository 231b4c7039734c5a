"""Waiting in a real browser: for a state of the page, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

RARELY = 16  # frames between two checks, at most
PATIENCE = 240  # seconds: what never comes should fail, what comes late on a busy machine should not


def next_frame(page: Any, frames: int = 2) -> None:
    """Wait until the browser has drawn what it knows, or has drawn so many frames."""
    page.evaluate(
        """frames => new Promise((done) => {
            const next = () => (frames-- > 0 ? requestAnimationFrame(next) : done());
            next();
        })""",
        frames,
    )


def eventually(page: Any, check: Callable[[], Any]) -> Any:
    """Check what the page shows, after some of its frames, until the check passes; what it returns.

    The longer it takes, the rarer the checks: what is waited for needs the processor more. What never passes fails as the
    check fails.
    """
    deadline, frames = time.monotonic() + PATIENCE, 2
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        next_frame(page, frames)
        frames = min(2 * frames, RARELY)
