"""Claims of papers, their expectations, and the verdict that follows from intervals alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from workbench.store import Store

HOLDS, IN_PART, FAILS, UNDECIDED = "holds", "holds in part", "does not hold here", "undecided"
NOT_REACHED = "regime not reached"
REFERENCE = "cross-entropy"  # names of arms that tell whether a network fits its training rows begin so


@dataclass(frozen=True)
class Regime:
    """How far the model of a claim can go: what is trained, and how well it must fit its training rows.

    `training_accuracy` is the least top-1 accuracy on training rows, in the last epoch, of every arm of cross-entropy:
    below it nothing is judged.
    """

    name: str
    title: str
    training_accuracy: float | None = None

    def reached(self, training_accuracy: Mapping[str, float]) -> bool | None:
        """Whether the arms of cross-entropy fit their training rows; None if the regime asks for nothing.

        >>> MEMORISING.reached({"cross-entropy": 0.997, "noised top-5": 0.8})
        True
        """
        if self.training_accuracy is None:
            return None
        reference = [value for name, value in training_accuracy.items() if name.startswith(REFERENCE)]
        return bool(reference) and min(reference) >= self.training_accuracy


HEAD = Regime("head", "linear model, or linear head on frozen features")
NETWORK = Regime("network", "whole network that does not fit its training rows")
MEMORISING = Regime("memorising", "whole network that memorises its training rows", training_accuracy=0.99)
GRADED = Regime("graded", "whole networks, from some that hardly fit their training rows to some that memorise them")
COUNTED = Regime("counted", "nothing is trained")
REGIMES = (COUNTED, HEAD, NETWORK, MEMORISING, GRADED)


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
    def bounds_text(self) -> str:
        """Where the claim says that the number lies, in words."""
        if self.below is None:
            return f"above {self.above:g}"
        return f"below {self.below:g}" if self.above is None else f"between {self.above:g} and {self.below:g}"

    def _ends(self) -> tuple[float, float]:
        above = -math.inf if self.above is None else self.above
        return above, math.inf if self.below is None else self.below


def verdict(expectations: Sequence[Expectation]) -> str:
    """Return the verdict on all expectations of a claim, by one rule for every claim.

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
    panel: str = ""  # the part of the figure, where it has several


@dataclass(frozen=True)
class Found:
    """Result of a claim: expectations with numbers, points of its figure, and the runs behind them."""

    expectations: tuple[Expectation, ...]
    lines: tuple[Line, ...]
    settled: Mapping[str, str] = field(default_factory=dict)  # what was chosen on validation rows: arm → setting
    runs: tuple[str, ...] = ()  # their keys
    remark: str = ""  # what the numbers show beside the verdict, written by code from the numbers
    minutes: float = math.nan
    training_accuracy: Mapping[str, float] = field(default_factory=dict)  # arm → top-1 on training rows, last epoch
    reached: bool | None = None  # whether the regime is, where it asks for a training accuracy

    @property
    def verdict(self) -> str:
        return NOT_REACHED if self.reached is False else verdict(self.expectations)

    @classmethod
    def joined(cls, parts: Mapping[str, Found]) -> Self:
        """The results on several data sets as one; arms and panels are named with theirs.

        Where some reach the regime and others do not, the verdict is of those that do.
        """
        each = list(parts.values())
        reached = [part.reached for part in each if part.reached is not None]
        below = [data for data, part in parts.items() if part.reached is False and any(reached)]
        remarks = [f"On {data}: {part.remark}" for data, part in parts.items() if part.remark]
        remarks += [f"On {data} the regime is not reached, and nothing is judged." for data in below]
        return cls(
            tuple(
                replace(e, what=f"{e.what}, {data}")
                for data, part in parts.items()
                if data not in below
                for e in part.expectations
            ),
            tuple(replace(line, panel=line.panel or data) for data, part in parts.items() for line in part.lines),
            {f"{arm}, {data}": words for data, part in parts.items() for arm, words in part.settled.items()},
            tuple(dict.fromkeys(run for part in each for run in part.runs)),
            " ".join(remarks),
            sum(part.minutes for part in each),
            {f"{arm}, {data}": fit for data, part in parts.items() for arm, fit in part.training_accuracy.items()},
            any(reached) if reached else None,
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"verdict": self.verdict}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the output of `to_json`; the verdict is computed again."""
        facts = {name: value for name, value in json.loads(text).items() if name != "verdict"}
        expectations = tuple(Expectation(**each) for each in facts.pop("expectations"))
        return cls(expectations, tuple(Line(**each) for each in facts.pop("lines")), **_tuples(facts))


def _tuples(facts: dict[str, Any]) -> dict[str, Any]:
    return facts | {"runs": tuple(facts["runs"])}


@dataclass(frozen=True)
class Bench:
    """Where claims are run: the store that keeps their runs, and the folder of real data, if there is one.

    `only` names data sets, where a claim has several and not all are wanted. `seconds` is what each run took to train that a
    claim has asked for so far, by its key, now or before.
    """

    store: Store
    folder: Path | None = None
    progress: bool = True
    only: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the folder holds a file."""
        return self.folder is not None and (self.folder / name).is_file()

    def file(self, name: str) -> Path:
        """A file of the folder, or an error that says what it is and where it comes from."""
        if self.folder is None or not self.has(name):
            where = "no folder was given" if self.folder is None else f"{self.folder} does not hold it"
            raise FileNotFoundError(f"this claim reads {name}, and {where}; give --data FOLDER with the file")
        return self.folder / name


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper (or of ours), where it stands, how it is tried, and what would bear it out.

    `ran`, `expects` and the settings in `check` are written before test rows are looked at, and `changed` says what was not.
    `decides` says in one sentence, after the results of all its regimes, what the verdict depends on. `needs` names files that
    do not come with the package. A claim that is tried in several regimes is there once for each. One with `data_to_try` is
    checked on each of these data sets, and `check` takes the name of one as well.
    """

    number: int
    says: str
    source: str
    ran: str
    expects: str
    check: Callable[..., Found]
    regime: Regime
    x: str = ""  # of the figure: what its places are
    y: str = "accuracy"
    logarithmic: bool = False
    seeds: int = 5
    needs: tuple[str, ...] = ()
    changed: str = ""  # after test rows had been looked at
    decides: str = ""  # of a claim with a second regime
    data_to_try: Callable[[Bench], tuple[str, ...]] | None = None

    @property
    def name(self) -> str:
        """The stem of its files: claim 5 is 05.json and 05.png, and 05-memorising-letters.json on these data in that regime."""
        return f"{self.number:02d}" + (f"-{self.regime.name}" if self.regime is MEMORISING else "")

    def data(self, bench: Bench) -> tuple[str, ...]:
        """Names of the data sets on which it is tried one by one; an empty name where it has its own."""
        return ("",) if self.data_to_try is None else self.data_to_try(bench)

    @property
    def title(self) -> str:
        """Its number, with the regime where that is a second one."""
        return f"Claim {self.number}" + (f", {self.regime.name}" if self.regime is MEMORISING else "")
