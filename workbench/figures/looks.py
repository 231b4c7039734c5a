"""How a run looks in every picture it is in: a colour and a mark that come from its key, so that they stay with it.

Seven colours that stay apart for the colour-blind, by daylight and by night (a test simulates the three kinds of sight), and
six marks, so that no picture relies on colour alone. The six runs of the package have six colours.

>>> looks(["4b…", "4b…2"])["4b…2"] != looks(["4b…", "4b…2"])["4b…"]
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workbench.figures.style import Theme

BY_DAY = ("#009997", "#934618", "#00516a", "#c72951", "#5b77fc", "#bb840b", "#22302a")
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
        wanted, taken = look_of(key), set(found.values())
        colours = [(wanted.colour + step) % len(BY_DAY) for step in range(len(BY_DAY))]
        used = {look.colour for look in taken}
        free = [Look(colour, wanted.mark) for colour in colours if colour not in used]
        marks = [(wanted.mark + step) % len(MARKS) for step in range(len(MARKS))]
        free += [look for mark in marks for colour in colours if (look := Look(colour, mark)) not in taken]
        found[key] = (free or [wanted])[0]
    return found


def looks_of_each(names: Iterable[str], looks: Mapping[str, Look] | None) -> list[Look]:
    """How each run looks, by its name: as is said, else one colour after the other.

    >>> looks_of_each(["one", "two"], {"two": Look(5, 1)})
    [Look(colour=0, mark=0), Look(colour=5, mark=1)]
    """
    return [(looks or {}).get(name, Look(place % len(BY_DAY))) for place, name in enumerate(names)]


def look_of(key: str) -> Look:
    """What a key alone says."""
    digits = key if all(letter in "0123456789abcdef" for letter in key[:8]) and len(key) >= 8 else _digits(key)
    return Look(int(digits[2:8], 16) % len(BY_DAY), int(digits[:2], 16) % len(MARKS))


def _digits(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
