"""You against the line: tokens placed on photographs by hand, and by one threshold."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from workbench.teaching.photograph import photograph

TOKENS = 12
NEEDED = (1, 1, 2, 4, 6, 6)  # species for 90 %: clear photographs beside blurred ones
WANTED = 0.9
LEAST = 0.01  # a less probable species is not offered


@dataclass(frozen=True)
class OfferedClass:
    """A class on which a token can be placed."""

    name: str
    probability: float


@dataclass(frozen=True)
class OfferedPhotograph:
    """A photograph, what it shows, and its classes, the most probable first."""

    image: str
    shows: str
    classes: tuple[OfferedClass, ...]


@dataclass(frozen=True)
class TokenGame:
    """Photographs and the tokens to place on their classes: one token puts one class into the set of one photograph."""

    about: tuple[str, ...]
    photographs: tuple[OfferedPhotograph, ...]
    tokens: int
    name: str = "tokens"
    title: str = "You against the line"

    @property
    def threshold(self) -> float:
        """The threshold that places as many tokens: halfway between the last class inside and the first one outside."""
        falling = sorted((each.probability for photo in self.photographs for each in photo.classes), reverse=True)
        return (falling[self.tokens - 1] + falling[self.tokens]) / 2

    def spec(self) -> dict[str, object]:
        """The game as JSON has it."""
        return {**asdict(self), "threshold": self.threshold}


def tokens() -> TokenGame:
    """Twelve tokens for six photographs of the garden, whose posterior is exact."""
    from workbench.datasets.plants.garden import Garden

    garden = Garden()
    _, looks = garden.sample(200, np.random.default_rng(0))
    posterior, shows = garden.posterior(looks), garden.attributes(looks)["organs"]
    needed = (np.cumsum(-np.sort(-posterior, axis=1), axis=1) < WANTED).sum(axis=1) + 1
    chosen: list[int] = []
    for size in NEEDED:
        new = [row for row in np.flatnonzero(needed == size) if not (looks[row] == looks[chosen]).all(axis=1).any()]
        chosen.append(int(new[0]))
    return TokenGame(
        about=(
            f"**You against the line.** You have {TOKENS} tokens for {len(chosen)} photographs. A token puts a species into "
            "the answer to its photograph. Bars: how probable each species is. Click twelve of them; then let one threshold "
            "place the same number.",
        ),
        photographs=tuple(
            OfferedPhotograph(
                photograph(garden, looks[row]),
                str(shows[row]).replace("+", " and "),
                tuple(
                    OfferedClass(garden.flora.names[species], float(posterior[row, species]))
                    for species in np.argsort(-posterior[row])
                    if posterior[row, species] >= LEAST
                ),
            )
            for row in sorted(chosen)
        ),
        tokens=TOKENS,
    )
