"""Films made in the background: until one is ready, and where a table is too large for one, Python draws each position."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

Film = TypeVar("Film")


def if_ready(film: Future[Film]) -> Film | None:
    """A film that is made in the background, once it is there; None where it cannot be made."""
    return film.result() if film.done() and film.exception() is None else None
