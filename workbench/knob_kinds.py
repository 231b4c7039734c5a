"""Kinds of knobs: allowed values, parsing, checks, error text, and the values that a control offers.

A kind more is a class here, its place in `KINDS`, and its control in `app/controls/knobs.py`.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from workbench.knobs import Knob


class Kind(ABC):
    """Kind of a knob: how values are parsed, checked, printed and spaced. `KINDS` names them."""

    of: ClassVar[type]  # a default of this type makes a knob of this kind

    def declared(self, knob: Knob) -> None:  # noqa: B027 (most kinds need nothing more)
        """Refuses a knob that lacks something."""

    @abstractmethod
    def accepts(self, knob: Knob) -> str:
        """Return a description of the allowed values."""

    @abstractmethod
    def checked(self, knob: Knob, value: Any) -> Any:
        """The value in its own type; a `ValueError` or `TypeError` if it is of another kind."""

    @abstractmethod
    def parsed(self, text: str) -> Any:
        """The value that a person typed; a `ValueError` or `KeyError` if it is none."""

    @abstractmethod
    def values(self, knob: Knob, n: int) -> np.ndarray:
        """Return at most n values of the scale."""

    def ends(self, knob: Knob) -> tuple[Any, ...]:
        """The extreme settings."""
        return tuple(self.values(knob, 2).tolist())


class Real(Kind):
    """A number in a range."""

    of: ClassVar[type] = float
    noun: ClassVar[str] = "a number"

    def declared(self, knob: Knob) -> None:
        if knob.low is None or knob.high is None or not knob.low < knob.high:
            raise ValueError(f"a {knob.kind} knob needs low < high, not {knob.low} and {knob.high}")
        if knob.scale == "log" and knob.low <= 0:
            raise ValueError(f"a logarithmic knob needs low > 0, not {knob.low}")

    def accepts(self, knob: Knob) -> str:
        low, high = knob.accepted
        return f"{self.noun} ≥ {low:g}" if math.isinf(high) else f"{self.noun} in [{low:g}, {high:g}]"

    def checked(self, knob: Knob, value: Any) -> Any:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
            raise TypeError
        if not math.isfinite(value):
            raise ValueError
        return float(value)

    def parsed(self, text: str) -> Any:
        return float(text)

    def values(self, knob: Knob, n: int) -> np.ndarray:
        low, high = knob.low, knob.high
        assert low is not None
        assert high is not None
        grid = self.rounded((np.geomspace if knob.scale == "log" else np.linspace)(low, high, n))
        if len(grid) > 2 and low < knob.default < high:
            grid[1 + knob.nearest(grid[1:-1], knob.default)] = knob.default
        return grid

    def rounded(self, grid: np.ndarray) -> np.ndarray:
        """The grid with as many digits as a slider shows."""
        return np.unique([three_digits(value) for value in grid])


class Integer(Real):
    """A whole number in a range."""

    of = int
    noun = "a whole number"

    def checked(self, knob: Knob, value: Any) -> int:
        number = super().checked(knob, value)
        if not number.is_integer():
            raise ValueError
        return int(number)

    def rounded(self, grid: np.ndarray) -> np.ndarray:
        return np.unique(np.round(grid).astype(int))


class Choice(Kind):
    """One of a few words."""

    of = str

    def declared(self, knob: Knob) -> None:
        if len(knob.choices) < 2:
            raise ValueError("a choice needs at least two choices")

    def accepts(self, knob: Knob) -> str:
        return "one of " + ", ".join(knob.choices)

    def checked(self, knob: Knob, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError
        if value not in knob.choices:
            raise ValueError
        return str(value)

    def parsed(self, text: str) -> str:
        return text

    def values(self, knob: Knob, n: int) -> np.ndarray:
        return np.array(knob.choices)


class Suggestion(Choice):
    """One of a few words, or something else that its owner understands: another word, a function, an object."""

    of = type(None)

    def accepts(self, knob: Knob) -> str:
        return f"{', '.join(knob.choices)}, or another"

    def checked(self, knob: Knob, value: Any) -> Any:
        if not (isinstance(value, str) or callable(value)):
            raise TypeError
        if value == "":
            raise ValueError
        return value


class Switch(Kind):
    """On or off."""

    of = bool
    words: ClassVar = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

    def accepts(self, knob: Knob) -> str:
        return "true or false"

    def checked(self, knob: Knob, value: Any) -> bool:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError
        return bool(value)

    def parsed(self, text: str) -> bool:
        return self.words[text.lower()]

    def values(self, knob: Knob, n: int) -> np.ndarray:
        return np.array([False, True])


class Weights(Kind):
    """Numbers that share the whole among them, such as a distribution over ranks."""

    of = tuple

    def accepts(self, knob: Knob) -> str:
        return "numbers ≥ 0 that sum to 1"

    def checked(self, knob: Knob, value: Any) -> tuple[float, ...]:
        if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
            raise TypeError
        weights = tuple(float(weight) for weight in value)
        if not all(weight >= 0 for weight in weights) or not math.isclose(sum(weights), 1, abs_tol=1e-6):
            raise ValueError
        return weights

    def parsed(self, text: str) -> tuple[float, ...]:
        return tuple(float(part) for part in text.strip("()[]").split(",") if part.strip())

    def values(self, knob: Knob, n: int) -> np.ndarray:
        raise ValueError("weights have no grid of values")

    def ends(self, knob: Knob) -> tuple[Any, ...]:
        return (knob.default,)


# By the name that `knob.kind` holds.
KINDS: dict[str, Kind] = {
    "real": Real(),
    "integer": Integer(),
    "choice": Choice(),
    "suggestion": Suggestion(),
    "switch": Switch(),
    "weights": Weights(),
}


def three_digits(value: float) -> float:
    """The value with three significant digits, the precision of a slider."""
    return float(f"{value:.3g}")
