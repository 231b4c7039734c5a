"""Several rows of one object: the law of aggregated p-values, the sets, and their promise."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

import workbench as wb
from workbench.sets.aggregated import AGGREGATES

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
CENTRES = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
NAMES = ("oak", "elm", "fir")


def plants(n_objects: int, m: int, seed: int) -> wb.LogitTable:
    """Objects of m rows; the probabilities are the posterior of one row."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(rng.integers(0, 3, n_objects), m)
    x = CENTRES[labels] + rng.normal(size=(len(labels), 2))
    scores = -((x[:, None] - CENTRES) ** 2).sum(-1) / 2
    plant = np.repeat(np.arange(n_objects), m)
    return wb.LogitTable(scores, labels, class_names=NAMES, attributes={"plant": plant})


VAL = plants(300, 1, 1)


@pytest.mark.parametrize("name", AGGREGATES)
@pytest.mark.parametrize(("n", "m"), [(0, 2), (3, 1), (4, 3), (5, 4)])
def test_the_law_of_an_aggregate_is_that_of_equally_likely_multisets(name, n, m):
    multisets = np.array(list(combinations_with_replacement(range(n + 1), m)))
    statistics = AGGREGATES[name].statistic(multisets[:, :, None])[:, 0]
    law = AGGREGATES[name].distribution(n, m)
    assert law == pytest.approx([np.mean(statistics <= t) for t in range(len(law))])
    assert law[-1] == pytest.approx(1)


def test_the_law_of_a_sum_of_many_ranks_keeps_its_digits():
    law = AGGREGATES["mean"].distribution(3000, 5)
    middle = (3000 * 5) // 2
    assert law[middle - 1] == pytest.approx(1 - law[middle], abs=1e-9)  # the sum is symmetric
    assert (np.diff(law) >= -1e-12).all()


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_objects_of_one_row_have_the_class_conditional_sets(aggregate):
    new = plants(100, 1, 2)
    one = wb.Aggregated(0.9, by="plant", aggregate=aggregate).fit(VAL).sets(new)
    assert np.array_equal(one.matrix(), wb.ClassConditionalLAC(0.9).fit(VAL).sets(new).matrix())


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_objects_of_three_rows_contain_their_label_as_promised_and_have_smaller_sets(aggregate):
    hits, sizes = [], []
    for seed in range(20):
        fitted = wb.Aggregated(0.9, by="plant", aggregate=aggregate).fit(plants(120, 1, 100 + seed))
        sets = fitted.sets(plants(25, 3, 500 + seed)).rows(slice(None, None, 3))
        hits += sets.hits.tolist()
        sizes += sets.sizes.tolist()
    assert sum(hits) >= stats.binom(len(hits), 0.9).ppf(1e-3)
    alone = wb.ClassConditionalLAC(0.9).fit(VAL).sets(plants(200, 1, 7)).sizes.mean()
    assert np.mean(sizes) < alone


def test_all_rows_of_an_object_share_its_set_wherever_they_stand():
    new = plants(30, 3, 3)
    order = np.random.default_rng(0).permutation(new.n)
    fitted = wb.Aggregated(0.9, by="plant").fit(VAL)
    matrix = fitted.sets(new).matrix()
    assert np.array_equal(matrix[0::3], matrix[2::3])
    assert np.array_equal(fitted.sets(new.rows(order)).matrix(), matrix[order])
    assert np.array_equal(matrix, fitted.p_values(new) > 0.1 + 1e-9)


def test_columns_may_stand_in_another_order():
    new, order = plants(20, 2, 4), [2, 0, 1]
    other = wb.LogitTable(new.scores[:, order], class_names=[NAMES[j] for j in order], attributes=new.attributes)
    fitted = wb.Aggregated(0.9, by="plant").fit(VAL)
    assert np.array_equal(fitted.sets(other).matrix(), fitted.sets(new).matrix()[:, order])


def test_an_id_that_joins_rows_of_two_labels_is_an_error():
    mixed = wb.LogitTable(np.zeros((3, 3)), [0, 1, 1], class_names=NAMES, attributes={"plant": ["p1", "p1", "p2"]})
    rule = wb.Aggregated(0.9, by="plant")
    for act in (lambda: rule.fit(mixed), lambda: rule.fit(VAL).sets(mixed)):
        with pytest.raises(ValueError, match=r"'p1' joins rows of two labels \(oak; elm\)"):
            act()
    with pytest.raises(ValueError, match="names no objects; this table has ids, plant"):
        wb.Aggregated(by="tree").fit(VAL)
    assert wb.Aggregated(by="tree").missing(VAL) == ["attributes['tree']"]
    assert not wb.Aggregated(by="ids").missing(VAL)


def test_a_class_with_few_rows_is_in_the_sets_of_small_objects_only_and_a_warning_says_so():
    few = VAL.rows(np.concatenate([np.flatnonzero(VAL.labels != 2), np.flatnonzero(VAL.labels == 2)[:4]]))
    fitted = wb.Aggregated(0.9, by="plant").fit(few)
    with pytest.warns(UserWarning, match=r"1 of 3 classes \(fir\) .* every object of 1 row$"):
        assert fitted.sets(plants(10, 1, 5)).matrix()[:, 2].all()
    assert not fitted.sets(plants(10, 3, 5)).matrix()[:, 2].all()  # 4 rows make 35 multisets of 3 ranks
