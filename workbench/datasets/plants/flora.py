"""The plants of the garden as probabilities: species, genera, prior, laws of their organs, P(y|x), Bayes accuracies.

No picture is drawn here. A *look* is what a photograph shows: for each organ its form, or `HIDDEN`. Looks are few, so
whatever the best possible classifier achieves on the population is a finite sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from workbench.posterior_mass import mass_at_mean_size

ORGANS = ("flower", "leaf", "fruit", "bark")
LEAVES = ("oval", "heart", "lance", "oak", "maple", "feather", "fan", "clover")
FRUITS = ("berries", "cherries", "pod", "cone", "pear", "acorn")
BARKS = ("furrowed", "ringed", "plated", "knotted")
HIDDEN = -1  # the form of an organ that the photograph does not show

LARGEST_GENUS = 8
RAREST = 8  # expected training photographs of the rarest species

# Invented, and feminine like the epithets.
GENERA = (
    *("Auribella", "Brumalia", "Caelora", "Dulcimera", "Estivora", "Fennimora", "Glimmera", "Hollowella"),
    *("Iridelle", "Jubilaria", "Kestrella", "Lucivera", "Mirabunda", "Noctelia", "Pellucia", "Quillora"),
    *("Rosmerelle", "Serenella", "Tintinella", "Umbrelia", "Vespertilla", "Whimsia", "Xanthelle", "Zephyrella"),
)
EPITHETS = (
    *("ambigua", "matutina", "pluvialis", "vagans", "ridens", "nivalis", "errans", "silvatica", "aurorae", "serotina"),
    *("dubia", "gracilis", "montana", "somnians", "fulgens", "clandestina", "ventosa", "minuta", "rivalis", "superba"),
    *("pudica", "lunaris", "decipiens", "mellita", "scintillans", "umbratica", "tremula", "gemella", "patula"),
    "serena",
)


@dataclass(frozen=True)
class Flora:
    """S species in G genera, how common each is, and how its organs look.

    The species of a genus share one flower, which no other genus has. Leaf, fruit and bark of species y take their own
    form with probability 1 − ρ and the second form of the genus with probability ρ. The triple of own forms is unique
    inside a genus and comes again in other genera. Nothing here is random: the same numbers give the same plants.
    """

    species: int
    genera: int
    tail: float
    rho: float
    two_organs: float
    organs: tuple[float, ...]
    n_train: int

    def __post_init__(self) -> None:
        if not self.genera <= self.species <= LARGEST_GENUS * self.genera:
            raise ValueError(
                f"{self.species} species do not fit in {self.genera} genera of 1 to {LARGEST_GENUS} species; "
                f"give {self.genera} to {LARGEST_GENUS * self.genera} species"
            )
        if self.n_train < RAREST * self.species:
            raise ValueError(
                f"n_train = {self.n_train} is too small for {self.species} species; every species expects at least "
                f"{RAREST} training photographs: give n_train ≥ {RAREST * self.species}"
            )
        if len(self.organs) != len(ORGANS):
            raise ValueError(f"organs has {len(self.organs)} weights; give one for each of {', '.join(ORGANS)}")
        if self.two_organs > 0 and np.count_nonzero(self.organs) < 2:
            raise ValueError("two organs cannot be shown when only one has a weight; give two_organs=0")

    @cached_property
    def genus(self) -> np.ndarray:
        """(S,) the genus of each species; small and large genera come in no order."""
        sizes = _genus_sizes(self.species, self.genera)
        order = np.random.default_rng(self.genera).permutation(self.genera)
        return np.repeat(np.arange(self.genera), sizes[order])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(S,) genus and epithet, such as `Auribella ambigua`."""
        first = np.searchsorted(self.genus, self.genus)  # the first species of the same genus
        places = np.arange(self.species) - first
        return tuple(
            f"{GENERA[g]} {EPITHETS[(7 * g + place) % len(EPITHETS)]}"
            for g, place in zip(self.genus, places, strict=True)
        )

    @property
    def genus_names(self) -> tuple[str, ...]:
        """(G,) the names of the genera."""
        return GENERA[: self.genera]

    @cached_property
    def prior(self) -> np.ndarray:
        """(S,) P(y): a floor that gives the rarest species its photographs, and above it an exponential tail.

        P(y) = c + (1 − S·c) · w_r(y),  w_r ∝ exp(−tail · r / S),  c = 8 / n_train,

        with r(y) = 0, 1, … the rank of the species from the most common to the rarest.
        """
        weights = np.exp(-self.tail * np.arange(self.species) / self.species)
        floor = RAREST / self.n_train
        by_rank = floor + (1 - self.species * floor) * weights / weights.sum()
        rank = np.random.default_rng([self.species, self.genera]).permutation(self.species)
        prior: np.ndarray = by_rank[rank]
        return prior

    @cached_property
    def laws(self) -> dict[str, np.ndarray]:
        """Organ → (S, number of forms): P(form | y). The flower is certain: it is that of the genus."""
        rng = np.random.default_rng([self.genera, self.species])
        own = np.empty((self.species, 3), dtype=int)
        second = np.empty((self.species, 3), dtype=int)
        numbers = np.array(self.n_forms[1:])
        for g in range(self.genera):
            members = np.flatnonzero(self.genus == g)
            second[members] = shared = rng.integers(numbers)
            triples = [triple for triple in product(*map(range, numbers)) if not np.any(triple == shared)]
            own[members] = np.array(triples)[rng.choice(len(triples), size=len(members), replace=False)]
        laws = {"flower": np.eye(self.genera)[self.genus]}
        for column, organ in enumerate(ORGANS[1:]):
            forms = np.eye(numbers[column])
            laws[organ] = (1 - self.rho) * forms[own[:, column]] + self.rho * forms[second[:, column]]
        return laws

    @cached_property
    def organ_shares(self) -> dict[tuple[int, ...], float]:
        """Q: organs shown together → probability. One organ o with w_o; two with probability ∝ w_o · w_o'."""
        weights = np.asarray(self.organs) / sum(self.organs)
        pairs = {pair: weights[pair[0]] * weights[pair[1]] for pair in combinations(range(len(ORGANS)), 2)}
        total = sum(pairs.values()) or 1.0
        alone: dict[tuple[int, ...], float] = {
            (organ,): (1 - self.two_organs) * weight for organ, weight in enumerate(weights)
        }
        together: dict[tuple[int, ...], float] = {
            pair: self.two_organs * weight / total for pair, weight in pairs.items()
        }
        return {organs: float(chance) for organs, chance in (alone | together).items() if chance > 0}

    def likelihood(self, looks: np.ndarray) -> np.ndarray:
        """(n, S): Π_o P(form_o | y) over the organs shown, for looks (n, 4) of forms or HIDDEN."""
        looks = np.asarray(looks)
        likelihood = np.ones((len(looks), self.species))
        for column, organ in enumerate(ORGANS):
            seen = looks[:, column] != HIDDEN
            likelihood[seen] *= self.laws[organ][:, looks[seen, column]].T
        return likelihood

    def posterior(self, looks: np.ndarray) -> np.ndarray:
        """(n, S): P(y | look) ∝ P(y) · Π_o P(form_o | y); which organs are shown says nothing about the species."""
        joint = self.prior * self.likelihood(looks)
        posterior: np.ndarray = joint / joint.sum(axis=1, keepdims=True)
        return posterior

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """n independent plants: species (n,) and looks (n, 4)."""
        labels = rng.choice(self.species, size=n, p=self.prior)
        organs, chances = list(self.organ_shares), list(self.organ_shares.values())
        masks = np.array([[column in together for column in range(len(ORGANS))] for together in organs])
        visible = masks[rng.choice(len(organs), size=n, p=chances)]
        return labels, np.where(visible, self.drawn_forms(labels, rng), HIDDEN)

    def drawn_forms(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n, 4): a form of every organ of these plants, drawn independently given the species."""
        forms = np.empty((len(labels), len(ORGANS)), dtype=int)
        for column, organ in enumerate(ORGANS):
            cumulative = np.cumsum(self.laws[organ], axis=1)[labels]
            forms[:, column] = (rng.random((len(labels), 1)) * cumulative[:, -1:] >= cumulative).sum(axis=1)
        return forms

    @property
    def forms(self) -> dict[str, tuple[str, ...]]:
        """Organ → the names of its forms; a flower has the name of its genus."""
        return {"flower": self.genus_names, "leaf": LEAVES, "fruit": FRUITS, "bark": BARKS}

    @property
    def n_forms(self) -> tuple[int, ...]:
        """Number of forms of each organ."""
        return tuple(len(names) for names in self.forms.values())

    @cached_property
    def looks(self) -> np.ndarray:
        """(M, 4): every look a photograph can have, a few hundred of them."""
        rows = [
            [forms[organs.index(column)] if column in organs else HIDDEN for column in range(len(ORGANS))]
            for organs in self.organ_shares
            for forms in product(*(range(self.n_forms[column]) for column in organs))
        ]
        looks = np.array(rows)
        possible: np.ndarray = looks[self.likelihood(looks).max(axis=1) > 0]
        return possible

    @cached_property
    def joint(self) -> np.ndarray:
        """(M, S): P(look, y) for every look; it sums to 1."""
        chances = np.array([self.organ_shares[tuple(np.flatnonzero(look != HIDDEN))] for look in self.looks])
        joint: np.ndarray = chances[:, None] * self.prior * self.likelihood(self.looks)
        return joint

    @property
    def bayes_risk(self) -> float:
        """Bayes error: 1 − Σ_x max_y P(x, y)."""
        return 1 - self.bayes_top_k_accuracy(1)

    def bayes_top_k_accuracy(self, K: int) -> float:
        """Return the top-K accuracy of the Bayes rule: Σ_x of the K largest P(x, y)."""
        if not 1 <= K <= self.species or K != int(K):
            raise ValueError(f"K = {K} with {self.species} species; give a whole number from 1 to {self.species}")
        return float(np.sort(self.joint, axis=1)[:, self.species - int(K) :].sum())

    def bayes_average_k_accuracy(self, K: float) -> float:
        """The most that sets of K species on average can achieve.

        Pairs (x, y) enter by falling P(y | x), each at the price P(x), until the prices sum to K. The last pairs may
        tie, and rarely fit exactly: they enter as a fraction, so this is the supremum over randomised sets, never the
        accuracy of one threshold.

        Garcin, thesis, section 2.2.4 (average-K classification).
        """
        if not 0 < K <= self.species:
            raise ValueError(f"K = {K} with {self.species} species; give a number above 0 and up to {self.species}")
        looks = self.joint.sum(axis=1)
        return mass_at_mean_size(self.joint / looks[:, None], looks, K)


def _genus_sizes(species: int, genera: int) -> np.ndarray:
    """(G,) sizes from 1 to 8 that rise about linearly and sum to the number of species."""
    sizes = np.ones(genera, dtype=int)
    weights = np.arange(1, genera + 1)
    for _ in range(species - genera):
        claims = np.where(sizes < LARGEST_GENUS, weights / (sizes + 0.5), -np.inf)
        sizes[np.argmax(claims)] += 1
    return sizes
