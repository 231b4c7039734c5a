"""A bar for work that turns out to take long."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

AFTER = 2  # seconds without a bar


def slow(
    what: str, unit: str, items: Iterable[Any] | None = None, *, total: int | None = None, hidden: bool | None = False
) -> tqdm:
    """A bar that appears when two seconds have not been enough. `hidden=None` shows it on a terminal only.

    On a terminal nothing stays of it; in a notebook, where the line would stay as a blank one, it stays as it is.

    >>> sum(slow("adding", "number", [1, 2, 3]))
    6
    """
    from tqdm import tqdm  # only here: most of what is imported is never slow

    shown = {"delay": AFTER, "leave": not sys.stderr.isatty(), "dynamic_ncols": True, "disable": hidden}
    return tqdm(items, total=total, desc=what, unit=unit, **shown)
