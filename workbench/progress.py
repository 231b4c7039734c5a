"""Progress of long work: a bar where a line can be redrawn, a line now and then in log files, CI and batch jobs."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

AFTER = 2  # seconds without a bar
EVERY = 30.0  # seconds between two lines of a log
Listener = Callable[[str, str, float], None]
LINE = "{desc}: {percentage:3.0f}% [{elapsed}<{remaining}{postfix}]"
_listener: Listener | None = None


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report every bar of this process, shown or hidden, as `listener(what, unit, share)` after each step.

    An exception of the listener comes out of the work that made the step: this is how a worker cancels.

    >>> with listening(lambda what, unit, share: print(what, share)):
    ...     total = sum(slow("adding", "number", [1, 2]))
    adding 0.5
    adding 1.0
    """
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def redraws() -> bool:
    """Whether standard error redraws its last line: a terminal and a notebook do."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")


def bar(
    what: str,
    unit: str,
    items: Iterable[Any] | None = None,
    *,
    total: int | None = None,
    initial: int = 0,
    hidden: bool | None = False,
    delay: float = 0.0,
    every: float = EVERY,
) -> tqdm:
    """A bar of tqdm on a terminal or in a notebook; elsewhere a line every so often, and one at the end.

    Args:
        what: The work, as it stands before the bar.
        unit: One of the things that are counted.
        items: What to iterate over; without them, call `update`.
        total: How many there are.
        initial: How many were done before.
        hidden: Shows nothing; None shows the bar on a terminal only.
        delay: Seconds before anything is shown.
        every: Seconds between two lines; with `math.inf` only `set_postfix` and `refresh` print one.
    """
    from tqdm import tqdm  # only here: most of what is imported is never slow

    if (listener := _listener) is not None:
        tqdm = _reporting(tqdm, lambda steps, total: listener(what, unit, (initial + steps) / total if total else 0.0))
    counted = {"total": total, "initial": initial, "desc": what, "unit": unit, "delay": delay, "disable": hidden}
    if redraws():
        return tqdm(items, dynamic_ncols=True, leave=not (delay and sys.stderr.isatty()), **counted)
    lines = {"file": _Lines(), "bar_format": LINE, "miniters": 1, "mininterval": every, "leave": every < math.inf}
    return tqdm(items, **lines, **counted | {"delay": delay or 1e-9})  # without a delay, it begins with a line of 0 %


def slow(
    what: str, unit: str, items: Iterable[Any] | None = None, *, total: int | None = None, hidden: bool | None = False
) -> tqdm:
    """A bar that appears when two seconds have not been enough; on a terminal nothing stays of it.

    >>> sum(slow("adding", "number", [1, 2, 3]))
    6
    """
    return bar(what, unit, items, total=total, hidden=hidden, delay=AFTER)


def _reporting(kind: type[tqdm], report: Callable[[float, float | None], None]) -> type[tqdm]:
    """A bar that also reports each step, even if it is hidden."""

    class Reporting(kind):  # type: ignore[misc]
        steps: float = 0

        def __iter__(self) -> Iterator[Any]:
            for item in self.iterable:
                yield item
                self.update()
            self.close()

        def update(self, n: float | None = 1) -> bool | None:
            self.steps += n or 0
            report(self.steps, self.total)
            updated: bool | None = super().update(n)
            return updated

    return Reporting


class _Lines:
    """Standard error for tqdm: what would be redrawn in place becomes a line of its own."""

    def write(self, text: str) -> None:
        if line := text.strip():
            print(line, file=sys.stderr)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return False
