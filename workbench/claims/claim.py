"""What a paper says, what must be seen if it is so, and the verdict that follows from intervals alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from workbench.store import Store

HOLDS, IN_PART, FAILS, UNDECIDED = "holds", "holds in part", "does not hold here", "undecided"


@dataclass(frozen=True)
class Expectation:
    """One number that the claim speaks of, its 95 % interval, and where the claim says that it lies.

    It is met where the whole interval lies between `above` and `below` (either may be missing), missed where none of it
    does, and open where the interval holds an end.

    >>> Expectation("points of top-5 over cross-entropy", 2.1, 1.8, 2.4, above=0).met
    True
    >>> Expectation("points of top-5 over cross-entropy", 0.1, -0.2, 0.4, above=0).met is None
    True
    """

    what: str
    value: float
    low: float
    high: float
    above: float | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        if self.above is None and self.below is None:
            raise ValueError(f"{self.what}: say where the claim wants it, above=… or below=…")

    @property
    def met(self) -> bool | None:
        """True, False, or None where the interval does not decide."""
        above, below = self._ends()
        if math.isnan(self.low) or math.isnan(self.high):
            return None
        if self.low > above and self.high < below:
            return True
        return False if self.high <= above or self.low >= below else None

    @property
    def wanted(self) -> str:
        """Where the claim says that the number lies, in words."""
        if self.below is None:
            return f"above {self.above:g}"
        return f"below {self.below:g}" if self.above is None else f"between {self.above:g} and {self.below:g}"

    def _ends(self) -> tuple[float, float]:
        above = -math.inf if self.above is None else self.above
        return above, math.inf if self.below is None else self.below


def verdict(expectations: Sequence[Expectation]) -> str:
    """What follows from all expectations of a claim, by one rule for every claim.

    It holds if all are met, in part if only some are; where none is met, it does not hold here if one is missed, and is
    undecided if all are open.

    >>> met, open_ = Expectation("a", 2, 1, 3, above=0), Expectation("b", 0, -1, 1, above=0)
    >>> verdict([met]), verdict([met, open_]), verdict([open_])
    ('holds', 'holds in part', 'undecided')
    """
    found = [expectation.met for expectation in expectations]
    if not found:
        raise ValueError("a claim without an expectation has no verdict; give at least one")
    if all(found):
        return HOLDS
    if any(found):
        return IN_PART
    return FAILS if False in found else UNDECIDED


@dataclass(frozen=True)
class Line:
    """One point of a claim's figure: a value with its interval at a place x of a series."""

    series: str
    x: float | str
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Found:
    """What running a claim gave: its expectations with numbers, the points of its figure, and the runs behind them."""

    expectations: tuple[Expectation, ...]
    lines: tuple[Line, ...]
    settled: Mapping[str, str] = field(default_factory=dict)  # what was chosen on validation rows: arm → setting
    runs: tuple[str, ...] = ()  # their keys
    remark: str = ""  # what the numbers show beside the verdict, written by code from the numbers
    minutes: float = math.nan

    @property
    def verdict(self) -> str:
        return verdict(self.expectations)

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"verdict": self.verdict}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote; the verdict is not read but follows again."""
        facts = {name: value for name, value in json.loads(text).items() if name != "verdict"}
        expectations = tuple(Expectation(**each) for each in facts.pop("expectations"))
        return cls(expectations, tuple(Line(**each) for each in facts.pop("lines")), **_tuples(facts))


def _tuples(facts: dict[str, Any]) -> dict[str, Any]:
    return facts | {"runs": tuple(facts["runs"])}


@dataclass(frozen=True)
class Bench:
    """Where claims are run: the store that keeps their runs, and the folder of real data, if there is one.

    `seconds` is what each run took to train that a claim has asked for so far, by its key, now or before.
    """

    store: Store
    folder: Path | None = None
    progress: bool = True
    seconds: dict[str, float] = field(default_factory=dict)

    def file(self, name: str) -> Path:
        """A file of the folder, or an error that says what it is and where it comes from."""
        if self.folder is None or not (self.folder / name).is_file():
            where = "no folder was given" if self.folder is None else f"{self.folder} does not hold it"
            raise FileNotFoundError(f"this claim reads {name}, and {where}; give --data FOLDER with the file")
        return self.folder / name


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper (or of ours), where it stands, how it is tried, and what would bear it out.

    `ran`, `expects` and the settings in `check` are written before test rows are looked at, and `changed` says what was not;
    `needs` names files that do not come with the package.
    """

    number: int
    says: str
    source: str
    ran: str
    expects: str
    check: Callable[[Bench], Found]
    x: str = ""  # of the figure: what its places are
    y: str = "accuracy"
    logarithmic: bool = False
    seeds: int = 5
    needs: tuple[str, ...] = ()
    changed: str = ""  # after test rows had been looked at

    @property
    def name(self) -> str:
        """The stem of its files: `claim 05` is 05.json and 05.png."""
        return f"{self.number:02d}"
