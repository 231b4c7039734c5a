"""Names in 308 languages: real text, a posterior that is exact, and a split in which no string is met twice."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.datasets.names import collection, hashed_ngrams


@pytest.fixture(scope="module")
def names() -> wb.Dataset:
    return wb.load_dataset("names", dimensions=16, n_val=2000, n_test=3000, groups="family")


def test_the_collection_is_that_of_cldr_and_two_fifths_of_its_rows_are_shared():
    found = collection()
    n_languages = np.bincount(found.string_of)
    assert (len(found.languages), len(found.strings), len(found.string_of)) == (308, 91_423, 136_304)
    assert n_languages[np.flatnonzero(found.strings == "Peru")] == 82
    assert (n_languages[found.string_of] > 1).mean() == pytest.approx(0.41, abs=0.005)
    counts = np.bincount(found.language_of)
    assert (counts.min(), np.median(counts)) == (1, pytest.approx(334, abs=5))


def test_no_string_is_in_two_splits_and_every_language_has_a_training_row(names):
    strings = [set(split.texts.tolist()) for split in (names.train, names.val, names.test)]
    assert not strings[0] & strings[1]
    assert not (strings[0] | strings[1]) & strings[2]
    assert sum(split.n for split in (names.train, names.val, names.test)) == 136_304
    assert names.class_counts.min() >= 1
    assert names.n_classes == 308


def test_the_posterior_is_uniform_over_the_languages_that_write_a_name_so(names):
    """P(language | string) counted over all rows of the list, which is what a row is drawn from."""
    found, test = collection(), names.test
    for row in (0, test.n // 2, test.n - 1):
        writers = found.language_of[found.strings[found.string_of] == test.texts[row]]
        expected = np.bincount(writers, minlength=308) / len(writers)
        assert test.posterior[row] == pytest.approx(expected)
    assert (test.posterior[np.arange(test.n), test.labels] > 0).all()


def test_the_best_possible_top_1_is_the_share_of_distinct_strings(names):
    """Of a string that m languages share, one of m rows is right."""
    test = names.test
    best = wb.bayes.top_k_accuracy(test.posterior, 1)
    assert best == pytest.approx(len(set(test.texts.tolist())) / test.n)
    found = collection()
    assert len(found.strings) / len(found.string_of) == pytest.approx(0.671, abs=0.001)


def test_families_and_scripts_are_groups_of_the_languages(names):
    family = dict(zip(names.class_names, names.groups, strict=True))
    assert (family["French"], family["Finnish"], family["Zulu"]) == ("Indo-European", "Uralic", "Atlantic-Congo")
    script = dict(zip(collection().languages, collection().scripts, strict=True))
    assert (script["Russian"], script["Hindi"], script["Chinese"]) == ("Cyrillic", "Devanagari", "Han")


def test_equal_strings_have_equal_inputs_of_norm_one_and_others_differ():
    one, two, other = hashed_ngrams(["Peru", "Peru", "Chile"], 64)
    assert (one == two).all()
    assert np.linalg.norm(one) == pytest.approx(1)
    assert one @ other < 0.5
