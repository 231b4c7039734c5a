"""A hyper-parameter, declared once.

A `Knob` says what a number may be and what it means. Range errors, command-line options, sliders, tables and contract
tests are all derived from it; nothing about a hyper-parameter is written down anywhere else.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Smoothing(Knobbed):
...     epsilon: float = knob(0.2, low=1e-3, high=100, scale="log", symbol="ε", meaning="scale of the noise")
>>> Smoothing.knobs()["epsilon"].values(6).tolist()
[0.001, 0.01, 0.2, 1.0, 10.0, 100.0]
>>> Smoothing(epsilon=-1)
Traceback (most recent call last):
    ...
ValueError: Smoothing: epsilon = -1 is outside [0.001, 100]; epsilon is the scale of the noise (default 0.2).
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, TypeVar

import numpy as np

from workbench.knob_kinds import KINDS, Real

# What other people and other packages call a knob, and what it is called here.
ALSO_CALLED = {
    "k": "K",
    "topk": "K",
    "top_k": "K",
    "eps": "epsilon",
    "sigma": "epsilon",
    "tau": "temperature",
    "T": "temperature",
    "B": "n_samples",
    "M": "n_samples",
    "lam": "threshold",
    "q_hat": "threshold",
    "alpha": "confidence",
    "coverage": "confidence",
    "level": "confidence",
    "lr": "learning_rate",
    "wd": "weight_decay",
    "bs": "batch_size",
    "n_epochs": "epochs",
    "cls_num_list": "class_counts",
}


@dataclass(frozen=True, kw_only=True)
class Knob:
    """One hyper-parameter: its default, its range, its symbol, its unit and its meaning.

    `low` and `high` are the ends of the slider. `minimum` and `maximum` are what is accepted; they are the ends of the
    slider unless said otherwise (a slider for K stops at 20, but K = 50 is legal). `weights` is a tuple of
    non-negative numbers that sum to 1, such as a distribution over ranks. What depends on the kind is in `knob_kinds.py`.
    A knob whose default is a `schedule` (`wb.schedules`) has the end of it as its `default`: where a slider stands.
    """

    default: Any
    kind: str
    low: float | None = None
    high: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    scale: str = "linear"
    choices: tuple[str, ...] = ()
    symbol: str = ""
    unit: str = ""
    meaning: str = ""
    schedule: Any = None  # the default while a network learns, where it is not a number

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"a knob is one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.scale not in ("linear", "log"):
            raise ValueError(f"the scale of a knob is 'linear' or 'log', not {self.scale!r}")
        KINDS[self.kind].declared(self)

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers on a scale, so that a slider or a schedule can move it."""
        return isinstance(KINDS[self.kind], Real)

    @property
    def accepted(self) -> tuple[float, float]:
        """The smallest and the largest value that is accepted."""
        low = self.low if self.minimum is None else self.minimum
        high = self.high if self.maximum is None else self.maximum
        return (-math.inf if low is None else low, math.inf if high is None else high)

    def accepts(self) -> str:
        """Return a description of the allowed values, for error messages and `--help`."""
        return KINDS[self.kind].accepts(self)

    def describe(self) -> str:
        """Return meaning, allowed values and default as text."""
        return f"{self.meaning}; {self.accepts()} (default {format_value(self.initial)})"

    @property
    def initial(self) -> Any:
        """The default of the field: a schedule where there is one."""
        return self.default if self.schedule is None else self.schedule

    def checked(self, name: str, value: Any, owner: str = "") -> Any:
        """The value in its own type (a NumPy integer becomes an `int`).

        Raises:
            TypeError: If the value has another type; the message says what is allowed.
            ValueError: If it is out of range.
        """
        where = f"{owner}: " if owner else ""
        about = f"{name} is the {self.meaning} (default {format_value(self.default)})" if self.meaning else name
        try:
            given = KINDS[self.kind].checked(self, value)
        except (TypeError, ValueError) as error:
            message = f"{where}{name} = {value!r} is not allowed; give {self.accepts()}; {about}."
            raise type(error)(message) from None
        if self.numeric and not self.accepted[0] <= given <= self.accepted[1]:
            low, high = self.accepted
            bounds = f"below {low:g}" if math.isinf(high) else f"outside [{low:g}, {high:g}]"
            number = given if isinstance(given, int) else value
            raise ValueError(f"{where}{name} = {number!r} is {bounds}; {about}.")
        return given

    def parsed(self, name: str, text: str) -> Any:
        """The value a person typed: `0.2`, `5`, `bitonic`, `yes`, `0.5,0.5`."""
        text = text.strip()
        try:
            value = KINDS[self.kind].parsed(text)
        except (KeyError, ValueError):
            raise ValueError(f"{name} = {text!r} is not allowed; give {self.accepts()}.") from None
        return self.checked(name, value)

    def values(self, n: int = 101) -> np.ndarray:
        """At most n values from `low` to `high` with three significant digits: the grid sliders and caches snap to.

        The default takes the place of the value nearest to it between the ends, so that a slider can stand there. Whole
        numbers appear once each; a choice or a switch gives all it has; weights have no grid.
        """
        return KINDS[self.kind].values(self, n)

    def snapped(self, value: float, n: int = 101) -> Any:
        """The nearest value of `values(n)` (nearest in the logarithm on a logarithmic scale)."""
        grid = self.values(n)
        return grid[self.nearest(grid, value)].item()

    def nearest(self, grid: np.ndarray, value: float) -> int:
        """The place of the value in a grid that lies nearest, in the logarithm on a logarithmic scale."""
        if self.scale == "log":
            return int(np.argmin(np.abs(np.log(grid / max(value, grid[0])))))
        return int(np.argmin(np.abs(grid - value)))

    def ends(self) -> tuple[Any, ...]:
        """The extreme settings a test must try: both ends of a range, every choice, both positions of a switch."""
        return KINDS[self.kind].ends(self)


Default = TypeVar("Default")


def knob(default: Default, *, meaning: str, symbol: str = "", kind: str | None = None, **facts: Any) -> Default:
    """A dataclass field that is a knob. The kind is read off the default, or its end, unless it is given."""
    end = getattr(default, "end", default)  # of a schedule
    schedule = None if end is default else default
    declared = Knob(default=end, schedule=schedule, kind=kind or _kind(end), meaning=meaning, symbol=symbol, **facts)
    field: Default = dataclasses.field(default=default, metadata={"knob": declared})
    return field


@dataclass(frozen=True)
class Knobbed:
    """A frozen dataclass whose knobs are checked when it is made, and which `help` lists with their meanings.

    >>> from workbench.sets import AverageK
    >>> AverageK(k=3)
    Traceback (most recent call last):
        ...
    TypeError: AverageK has no knob 'k': did you mean K? It takes
      K: number of classes in a set on average; a number ≥ 0 (default 5)
      tau: power of the class share: 0 counts rows alike, 1 counts classes alike; a number in [0, 1] (default 0)
      min_size: number of classes a set has at least; a whole number ≥ 0 (default 0)
    """

    def __new__(cls, *_: Any, **given: Any) -> Self:
        taken = inspect.signature(cls.__init__).parameters if given.keys() - cls.__dataclass_fields__.keys() else given
        if unknown := {name: value for name, value in given.items() if name not in taken}:
            knobs, names = cls.knobs(), [field.name for field in dataclasses.fields(cls) if field.init]
            lines = [f"\n  {name}: {knobs[name].describe()}" if name in knobs else f"\n  {name}" for name in names]
            raise TypeError(f"{_unknown(cls, unknown)} It takes{''.join(lines) or ' none.'}")
        return super().__new__(cls)

    def __init_subclass__(cls, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        # The dataclass is not made yet: its own fields are still attributes.
        declared: dict[str, dataclasses.Field[Any]] = {}
        for base in reversed(cls.__mro__):
            fields = getattr(base, "__dataclass_fields__", {}) if base is not cls else vars(cls)
            declared |= {name: field for name, field in fields.items() if isinstance(field, dataclasses.Field)}
        knobs = {name: field.metadata["knob"] for name, field in declared.items() if "knob" in field.metadata}
        if cls.__doc__ and knobs:
            lines = [f"- `{name}`: {one.describe()}" for name, one in knobs.items()]
            cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__), "", "Knobs:", "", *lines])

    @classmethod
    def knobs(cls) -> dict[str, Knob]:
        """Name → knob, in the order they are declared."""
        return {field.name: field.metadata["knob"] for field in dataclasses.fields(cls) if "knob" in field.metadata}

    def settings(self) -> dict[str, Any]:
        """Name → value of every knob."""
        return {name: getattr(self, name) for name in self.knobs()}

    def short(self) -> str:
        """The repr for people: without the knobs that stand at their default, except the first, which names the thing.

        >>> from workbench.sets import AverageK
        >>> AverageK(K=2), AverageK(K=2).short()
        (AverageK(K=2.0, min_size=0), 'AverageK(K=2)')
        """
        knobs = self.knobs()
        first = next(iter(knobs), None)
        changed = {
            name: value for name, value in self.settings().items() if name == first or value != knobs[name].initial
        }
        return f"{type(self).__name__}({', '.join(f'{name}={format_value(value)}' for name, value in changed.items())})"

    def __post_init__(self) -> None:
        for name, declared in self.knobs().items():
            object.__setattr__(self, name, self._checked(name, declared))

    def _checked(self, name: str, declared: Knob) -> Any:
        """Return the given value of a knob in its own type."""
        return declared.checked(name, getattr(self, name), owner=type(self).__name__)


Thing = TypeVar("Thing", bound=Knobbed)


# Cached because threads of the app read the same texts hundreds of times, and in Python 3.11 two threads that parse at once,
# such as Streamlit's compiler and one of these, may both fail (CPython gh-106905).
@lru_cache(maxsize=4096)
def _parsed_call(text: str) -> tuple[str, tuple[Any, ...], tuple[tuple[str, Any], ...]]:
    """The name, the values and the keywords of a call, or of a bare name."""
    written = ast.parse(text, mode="eval").body
    call = written if isinstance(written, ast.Call) else ast.Call(written, [], [])
    values = tuple(ast.literal_eval(value) for value in call.args)
    return (
        ast.unparse(call.func),
        values,
        tuple((str(each.arg), ast.literal_eval(each.value)) for each in call.keywords),
    )


def from_text(text: str, kinds: Sequence[type[Thing]], noun: str) -> Thing:
    """The thing of one of these kinds that a person wrote the way Python prints it; knobs left out keep their defaults."""
    known = {kind.__name__: kind for kind in kinds}
    try:
        name, values, keywords = _parsed_call(text.strip())
    except (SyntaxError, ValueError):
        raise ValueError(f"{text!r} is not a {noun}; write it like {kinds[0]().short()}") from None
    knobs = dict(keywords)
    if name not in known:
        raise ValueError(f"there is no {noun} named {name!r}; known: {', '.join(known)}")
    fields = [field.name for field in dataclasses.fields(known[name]) if field.init]
    if len(values) > len(fields) or (twice := [field for field in fields[: len(values)] if field in knobs]):
        wrong = f"more values than the {len(fields)} knobs" if len(values) > len(fields) else f"{twice[0]} twice"
        raise ValueError(f"{text!r} gives {wrong}; {name} has {', '.join(fields)}")
    knobs = dict(zip(fields, values, strict=False)) | knobs
    if unknown := {knob: value for knob, value in knobs.items() if knob not in fields}:
        raise ValueError(f"{_unknown(known[name], unknown)} It has {', '.join(fields)}")
    return known[name](**knobs)


def _unknown(cls: type[Knobbed], given: Mapping[str, Any]) -> str:
    """Return the error message for unknown knobs, with close matches."""
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    guesses = []
    for name, value in given.items():
        meant = _meant(name, fields)
        guess = f": did you mean {meant}?" if meant else "."
        if name == "alpha" and meant == "confidence":
            number = float(value) if isinstance(value, numbers.Real) else math.nan
            guess = f": did you mean confidence = 1 − alpha{f' = {1 - number:.6g}' if 0 < number < 1 else ''}?"
        guesses.append(f"{cls.__name__} has no knob {name!r}{guess}")
    return " ".join(guesses)


def _meant(name: str, fields: Sequence[str]) -> str | None:
    """The closest field name."""
    if ALSO_CALLED.get(name) in fields:
        return ALSO_CALLED[name]
    lower = {field.lower(): field for field in fields}
    close = difflib.get_close_matches(name.lower(), lower, 1)
    return lower[close[0]] if close else None


def _kind(default: Any) -> str:
    """The kind whose values have the type of the default."""
    return next((name for name, kind in KINDS.items() if type(default) is kind.of), "real")


def format_value(value: Any) -> str:
    """A knob's value as a reader writes it: 0.2, 5, (0.5, 0.5)."""
    if isinstance(value, tuple):
        return f"({', '.join(format_value(part) for part in value)})"
    return f"{value:g}" if isinstance(value, float) else str(value)
