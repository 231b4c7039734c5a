"""Names of countries and languages in 308 languages: real text whose posterior is known."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from workbench.datasets.base import Dataset, Split, recipe_key
from workbench.knobs import Knobbed, knob
from workbench.tables.texts import checked_texts

VERSION = 1  # of the rows and of their inputs: other ones have another key
LONGEST = 3  # characters of an n-gram
BLOCK = 4096  # strings whose n-grams are counted together


class Collection(NamedTuple):
    """All strings, and which languages write each of them."""

    languages: tuple[str, ...]
    scripts: tuple[str, ...]
    families: tuple[str, ...]
    strings: np.ndarray  # (S,)
    string_of: np.ndarray  # (n,): the string of each row, rising
    language_of: np.ndarray  # (n,): the language of each row


@cache
def collection() -> Collection:
    """Return the collection that ships with the package: Unicode CLDR via Babel (`data/names_license.txt`)."""
    content = lzma.decompress((files("workbench.datasets") / "data" / "names.txt.xz").read_bytes()).decode("utf-8")
    head, body = content.split("\n\n", 1)
    codes, languages, scripts, families = zip(*(line.split("\t") for line in head.split("\n")), strict=True)
    number = {code: j for j, code in enumerate(codes)}
    lines = [line.split("\t") for line in body.split("\n")]
    owners = [[number[code] for code in line[1].split(" ")] for line in lines]
    string_of = np.repeat(np.arange(len(lines)), [len(each) for each in owners])
    strings = checked_texts("texts", [line[0] for line in lines])
    return Collection(languages, scripts, families, strings, string_of, np.concatenate(owners))


@dataclass(frozen=True)
class Names(Knobbed):
    """Names of countries and languages, each in one of 308 languages: 136 304 rows, 41 % of them written alike in several.

    A row is a name drawn at random from the list of (name, language). So P(language | name) is uniform over the languages
    that write it so ("Peru": 82 of them): the posterior is exact, though the text is real. It is known for val and test. Rows
    are split by name: no string is in two splits. Inputs are the numbers of 1-, 2- and 3-grams of the name, hashed with signs
    into `dimensions` columns and divided by their norm.

    Unicode CLDR by way of Babel; Unicode licence, © Unicode, Inc.
    """

    dimensions: int = knob(
        256, low=64, high=1024, scale="log", minimum=8, maximum=2**14, meaning="columns of hashed n-grams"
    )
    groups: str = knob("script", choices=("none", "script", "family"), meaning="groups of the languages")
    n_val: int = knob(9000, low=500, high=20_000, minimum=1, maximum=30_000, meaning="strings of val")
    n_test: int = knob(9000, low=500, high=20_000, minimum=1, maximum=30_000, meaning="strings of test")
    seed: int = knob(0, low=0, high=20, maximum=2**31 - 1, meaning="seed of the split into train, val and test")

    def dataset(self) -> Dataset:
        """The rows, split by string."""
        names = collection()
        inputs = hashed_ngrams(names.strings.tolist(), self.dimensions)
        train, val, test = (self._split(part, strings, inputs) for part, strings in enumerate(self._strings()))
        groups = {"none": None, "script": names.scripts, "family": names.families}[self.groups]
        spec = {"name": "names", "knobs": self.settings()}
        key = recipe_key({**spec, "version": VERSION})
        return Dataset("names", train, val, test, names.languages, groups, spec, key)

    def _strings(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(S,) bool of train, val and test. A language whose strings all fell to the others gives them to training."""
        names = collection()
        drawn = np.random.default_rng(self.seed).permutation(len(names.strings))
        part = np.zeros(len(drawn), int)
        part[drawn[: self.n_val]], part[drawn[self.n_val : self.n_val + self.n_test]] = 1, 2
        trained = np.bincount(names.language_of[part[names.string_of] == 0], minlength=len(names.languages))
        part[names.string_of[trained[names.language_of] == 0]] = 0
        return part == 0, part == 1, part == 2

    def _split(self, part: int, strings: np.ndarray, inputs: np.ndarray) -> Split:
        names = collection()
        rows = np.flatnonzero(strings[names.string_of])
        string, language = names.string_of[rows], names.language_of[rows]
        n_languages = np.bincount(names.string_of)[string]
        posterior = None if part == 0 else self._posterior(string, n_languages)
        attributes = {"languages that write it so": n_languages, "script": np.array(names.scripts)[language]}
        return Split(inputs[string], language.astype(np.int64), posterior, attributes, names.strings[string])

    def _posterior(self, string: np.ndarray, n_languages: np.ndarray) -> np.ndarray:
        """(n, 308) float32: uniform over the languages that write the string of the row so."""
        names = collection()
        writes = np.zeros((len(names.strings), len(names.languages)), bool)
        writes[names.string_of, names.language_of] = True
        return np.asarray(writes[string] / n_languages[:, None].astype(np.float32), dtype=np.float32)


def hashed_ngrams(strings: list[str], dimensions: int) -> np.ndarray:
    """(S, dimensions) float32 of norm 1: signed counts of the n-grams of each string, its ends marked.

    >>> hashed_ngrams(["Peru", "Peru", "Chile"], 16).shape
    (3, 16)
    """
    blocks = [_counts(strings[start : start + BLOCK], dimensions) for start in range(0, len(strings), BLOCK)]
    counts = np.concatenate(blocks)
    return np.asarray(counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-12))


def _counts(strings: list[str], dimensions: int) -> np.ndarray:
    marked = [f" {string.casefold()} " for string in strings]
    letters = np.frombuffer("".join(marked).encode("utf-32-le"), "<u4").astype(np.uint64)
    owner = np.repeat(np.arange(len(marked)), [len(string) for string in marked])
    counts = np.zeros(len(marked) * dimensions, np.float32)
    hashed = np.zeros(len(letters), np.uint64)
    for length in range(1, LONGEST + 1):
        n = len(letters) - length + 1
        hashed = (hashed[:n] * np.uint64(0x9E3779B97F4A7C15) + letters[length - 1 :] + np.uint64(length)) % np.uint64(
            2**61 - 1
        )
        inside = owner[:n] == owner[length - 1 :]
        mixed = hashed[inside] * np.uint64(0xD1B54A32D192ED03) >> np.uint64(20)
        place = owner[:n][inside] * dimensions + (mixed % np.uint64(dimensions)).astype(int)
        sign = np.where(mixed >> np.uint64(43), 1.0, -1.0)
        counts += np.bincount(place, sign, minlength=len(counts)).astype(np.float32)
    return counts.reshape(len(marked), dimensions)
