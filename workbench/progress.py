"""A bar for work that turns out to take long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

AFTER = 2  # seconds without a bar


def slow(
    what: str, unit: str, items: Iterable[Any] | None = None, *, total: int | None = None, hidden: bool = False
) -> tqdm:
    """A bar that appears when two seconds have not been enough, and leaves nothing behind when the work is done.

    >>> sum(slow("adding", "number", [1, 2, 3]))
    6
    """
    from tqdm import tqdm  # only here: most of what is imported is never slow

    return tqdm(items, total=total, desc=what, unit=unit, delay=AFTER, leave=False, dynamic_ncols=True, disable=hidden)
