"""Warnings of the library, which the thread that causes them can capture.

`warnings.catch_warnings` changes the filters of the whole process: in a server, a session that silences its own warnings
silences those of all others, too. Here every thread has its own list.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

_captured: ContextVar[list[str] | None] = ContextVar("captured warnings", default=None)


def warn(message: str, stacklevel: int = 1) -> None:
    """Warn as `warnings.warn` does; inside `captured_warnings` the message is kept there instead."""
    captured = _captured.get()
    if captured is None:
        warnings.warn(message, stacklevel=stacklevel + 1)
    else:
        captured.append(message)


@contextlib.contextmanager
def captured_warnings() -> Iterator[list[str]]:
    """The messages that this thread would warn of while the block lasts; no other thread notices.

    >>> with captured_warnings() as messages:
    ...     warn("the promise is void")
    >>> messages
    ['the promise is void']
    """
    messages: list[str] = []
    before = _captured.set(messages)
    try:
        yield messages
    finally:
        _captured.reset(before)
