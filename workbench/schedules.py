"""Knobs that change while a network learns: `epsilon=anneal(3, 0.2)` in place of a number.

Any numeric knob of a loss may hold a `Schedule`. Training asks `loss.at(done)` at every step, with the share of the
training that is done; everything else (figures, facts such as `calibrated`, the validation loss, the cached scores) takes the
loss at the end. A schedule is stored as it is written.

>>> from workbench.losses import NoisedTopK
>>> loss = NoisedTopK(K=5, epsilon=anneal(3, 0.2))
>>> [round(loss.at(done).epsilon, 2) for done in (0, 0.25, 0.5, 0.75, 1)]
[3.0, 1.22, 0.49, 0.2, 0.2]
>>> loss.spec()["knobs"]["epsilon"]
'anneal(3.0, 0.2)'
"""

from __future__ import annotations

import ast
import dataclasses
import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.knobs import Knob, format_value

__all__ = ["COURSES", "LEARNING_RATES", "Schedule", "anneal", "from_text"]

# Course → how much of the way from start to end is behind, at each share of it. Geometric: of the way in the logarithm.
COURSES: dict[str, Callable[[float], float]] = {
    "constant": lambda share: 0.0,  # then it jumps
    "linear": lambda share: share,
    "geometric": lambda share: share,
    "cosine": lambda share: (1 - math.cos(math.pi * share)) / 2,
}
# Schedule of a run: the share of the training that is done, in [0, 1), and its milestones → factor of the learning rate.
LEARNING_RATES: dict[str, Callable[[float, Sequence[float]], float]] = {
    "cosine": lambda done, milestones: (1 + math.cos(math.pi * done)) / 2,
    "constant": lambda done, milestones: 1.0,
    "steps": lambda done, milestones: 0.1 ** sum(done >= share for share in milestones),
}
LIKE = "anneal(3, 0.2), anneal(3, 0.2, over=0.5) or anneal(3, 0.2, course='linear')"


@dataclass(frozen=True, repr=False)
class Schedule:
    """A number that goes from `start` to `end` over the share `over` of the training and stays there.

    >>> halfway = Schedule(4.0, 1.0, over=0.5)
    >>> halfway, halfway.at(0.25), halfway.at(0.8)
    (anneal(4.0, 1.0, over=0.5), 2.0, 1.0)
    >>> Schedule(1, 0)
    Traceback (most recent call last):
        ...
    ValueError: a geometric course goes from one number above 0 to another, not from 1 to 0; give course='linear' or 'cosine'
    """

    start: float
    end: float
    over: float = 0.75
    course: str = "geometric"

    def __post_init__(self) -> None:
        for name in ("start", "end", "over"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, numbers.Real) or not math.isfinite(given):
                raise ValueError(f"{name} = {given!r}: a schedule goes from a number to a number; write {LIKE}")
        if not 0 < self.over <= 1:
            raise ValueError(
                f"over = {self.over!r}; give the share of the training that it takes, above 0 and at most 1"
            )
        if self.course not in tuple(COURSES):
            raise ValueError(f"course = {self.course!r}; give one of {', '.join(COURSES)}")
        if self.course == "geometric" and min(self.start, self.end) <= 0:
            raise ValueError(
                f"a geometric course goes from one number above 0 to another, not from {self.start} to {self.end}; "
                "give course='linear' or 'cosine'"
            )

    def at(self, done: float) -> float:
        """Its value when the share `done` of the training is behind."""
        if not 0 <= done <= 1:
            raise ValueError(f"done = {done!r}; give the share of the training that is done, from 0 to 1")
        if done >= self.over:
            return self.end
        behind = COURSES[self.course](done / self.over)
        if self.course == "geometric":
            return self.start * math.exp(behind * math.log(self.end / self.start))
        return self.start + (self.end - self.start) * behind

    def __repr__(self) -> str:
        return self._to_text(repr)

    def __str__(self) -> str:
        return self._to_text(format_value)

    def _to_text(self, number: Callable[[Any], str]) -> str:
        """As Python reads it again; what stands at its default is left out."""
        arguments = [number(self.start), number(self.end)]
        arguments += [f"over={number(self.over)}"] * (self.over != Schedule.over)
        arguments += [f"course={self.course!r}"] * (self.course != Schedule.course)
        return f"anneal({', '.join(arguments)})"


def anneal(start: float, end: float, over: float = 0.75, course: str = "geometric") -> Any:
    """A knob that goes from `start` to `end` over the share `over` of the training and stays there.

    Args:
        course: "geometric" (by equal factors in equal times), "linear", "cosine" (slow at both ends), or "constant", which
            stays at `start` and then jumps.

    It stands where a number is declared, so its declared type is Any; it is a `Schedule`.

    >>> anneal(3, 0.2)
    anneal(3, 0.2)
    """
    return Schedule(start, end, over, course)


def from_text(text: str) -> Schedule:
    """The schedule that a person wrote, or that a file holds; nothing is evaluated.

    >>> from_text("anneal(3, 0.2, course=linear)")
    anneal(3, 0.2, course='linear')
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] != "anneal":
            raise ValueError
        places = [_literal(argument) for argument in call.args]
        names = {str(keyword.arg): _literal(keyword.value) for keyword in call.keywords}
        written = dict(zip(("start", "end", "over", "course"), places, strict=False)) | names
        if len(written) != len(places) + len(names):
            raise ValueError
        known = {field.name for field in dataclasses.fields(Schedule)}
        if not {"start", "end"} <= written.keys() <= known:
            raise ValueError
    except (SyntaxError, ValueError):
        raise ValueError(f"{text!r} is not a schedule; write {LIKE}") from None
    return Schedule(**written)


def _literal(node: ast.expr) -> Any:
    """A number or a word; a word needs no quotes, which shells like to eat."""
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def checked(knob: Knob, name: str, value: Any, owner: str = "") -> Any:
    """The value of a knob that may hold a schedule, in its own type: both ends are what the knob accepts.

    A knob of whole numbers goes between whole ends; on the way it is rounded.
    """
    if not isinstance(value, Schedule):
        return knob.checked(name, value, owner)
    if not knob.numeric:
        where = f"{owner}: " if owner else ""
        raise ValueError(
            f"{where}{name} = {value} is not allowed, for only numbers follow a schedule; give {knob.accepts()}"
        )
    start, end = (
        knob.checked(name, number, f"{owner}, {value}" if owner else str(value)) for number in (value.start, value.end)
    )
    return dataclasses.replace(value, start=start, end=end)


def parsed(knob: Knob, name: str, text: str) -> Any:
    """The value of a knob that may hold a schedule, as a person typed it: `0.2`, `anneal(3, 0.2)`."""
    return checked(knob, name, from_text(text)) if "(" in text and knob.numeric else knob.parsed(name, text)


def value_at(knob: Knob, value: Any, done: float) -> Any:
    """Return the value of a knob after the share `done` of the training; whole numbers are rounded."""
    if not isinstance(value, Schedule):
        return value
    return round(value.at(done)) if knob.kind == "integer" else value.at(done)


def to_spec(value: Any) -> Any:
    """The value of a knob as a file holds it: a schedule as it is written."""
    return repr(value) if isinstance(value, Schedule) else value


def from_spec(knob: Knob | None, value: Any) -> Any:
    """Read a value written by `stored`; text in place of a number is a schedule."""
    return from_text(value) if isinstance(value, str) and knob is not None and knob.numeric else value


def end_of(value: Any) -> Any:
    """Final value of a schedule, also of one read from a file; any other value unchanged."""
    try:
        value = from_text(value) if isinstance(value, str) else value
    except ValueError:
        return value
    return value.end if isinstance(value, Schedule) else value
