"""Style of a run in all pictures: a colour and a symbol derived from its key.

Seven colours that stay apart for the colour-blind, by daylight and by night (a test simulates the three kinds of sight), and
six marks, so that no picture relies on colour alone. Runs of the package on the same rows differ in colour.

>>> looks(["4b…", "4b…2"])["4b…2"] != looks(["4b…", "4b…2"])["4b…"]
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workbench.figures.style import Theme

BY_DAY = ("#009997", "#934618", "#00516a", "#780fa5", "#5b77fc", "#bb840b", "#22302a")
BY_NIGHT = ("#1fc295", "#ff8a4c", "#4c88e5", "#e08fc4", "#9bd8ff", "#eedf56", "#e9ece4")
# The marks of Plotly and of matplotlib.
MARKS = (("circle", "o"), ("diamond", "D"), ("square", "s"), ("cross", "P"), ("star", "*"), ("hexagon", "h"))


@dataclass(frozen=True)
class Look:
    """A colour and a mark, by their places in the palettes."""

    colour: int
    mark: int = 0

    def in_colour(self, theme: Theme) -> str:
        """The colour by daylight or by night."""
        return (BY_NIGHT if theme.name == "dark" else BY_DAY)[self.colour]

    @property
    def plotly(self) -> str:
        """The mark as Plotly names it."""
        return MARKS[self.mark][0]

    @property
    def matplotlib(self) -> str:
        """The mark as matplotlib names it."""
        return MARKS[self.mark][1]


def looks(keys: Iterable[str]) -> dict[str, Look]:
    """Key → how the run looks beside the others: each as its key says, unless one that comes before it looks like that.

    Then it takes the next colour that is free, and once all seven are taken the next mark. Give the oldest run first: what
    comes later changes nothing about it.
    """
    found: dict[str, Look] = {}
    for key in dict.fromkeys(keys):
        first, taken = look_of(key), set(found.values())
        colours = [(first.colour + step) % len(BY_DAY) for step in range(len(BY_DAY))]
        used = {look.colour for look in taken}
        free = [Look(colour, first.mark) for colour in colours if colour not in used]
        marks = [(first.mark + step) % len(MARKS) for step in range(len(MARKS))]
        free += [look for mark in marks for colour in colours if (look := Look(colour, mark)) not in taken]
        found[key] = (free or [first])[0]
    return found


def looks_of_each(names: Iterable[str], looks: Mapping[str, Look] | None) -> list[Look]:
    """Style of each run by name: the given one, else one colour after the other.

    >>> looks_of_each(["one", "two"], {"two": Look(5, 1)})
    [Look(colour=0, mark=0), Look(colour=5, mark=1)]
    """
    return [(looks or {}).get(name, Look(place % len(BY_DAY))) for place, name in enumerate(names)]


def look_of(key: str) -> Look:
    """Return the style that follows from a key alone."""
    digits = key if all(letter in "0123456789abcdef" for letter in key[:12]) and len(key) >= 12 else _digits(key)
    # Of all digits those at which runs of the package on the same rows differ in colour.
    return Look(int(digits[4:9], 16) % len(BY_DAY), int(digits[:2], 16) % len(MARKS))


def _digits(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
