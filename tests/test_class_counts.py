"""Class counts: the Lorenz curve, shot groups and count bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.class_counts import count_bins, gini, lorenz_curve, shot_groups
from workbench.row_sampling import evenly_spaced_rows

some_counts = st.lists(st.integers(0, 5000), min_size=1, max_size=60).filter(sum)


@given(some_counts)
def test_a_lorenz_curve_is_convex_rises_from_0_to_1_and_stays_below_the_diagonal(class_counts):
    share_of_classes, share_of_images = lorenz_curve(class_counts)
    assert (share_of_images[0], share_of_images[-1]) == (0, 1)
    assert np.all(np.diff(share_of_images, 2) >= -1e-12)
    assert np.all(share_of_images <= share_of_classes + 1e-12)
    assert -1e-12 <= gini(class_counts) < 1


def test_the_gini_coefficient_of_equal_counts_is_0_and_of_one_class_with_everything_is_near_1():
    assert gini([7] * 10) == pytest.approx(0)
    assert gini([0] * 99 + [5]) == pytest.approx(0.99)


def test_eighty_per_cent_of_the_species_of_plantnet_300k_hold_eleven_per_cent_of_the_images(shared_data):
    share_of_classes, share_of_images = lorenz_curve(shared_data("plantnet300k_meta")["approx_sorted_counts"])
    assert np.interp(0.8, share_of_classes, share_of_images) == pytest.approx(0.11, abs=0.005)


def test_shot_groups_have_the_borders_of_the_paper():
    assert shot_groups([0, 19, 20, 100, 101]).tolist() == ["few", "few", "medium", "medium", "many"]
    assert shot_groups([4, 5, 6, 7], few=5, many=6).tolist() == ["few", "medium", "medium", "many"]


@given(some_counts)
def test_every_class_is_in_exactly_one_count_bin_whose_name_holds_its_count(class_counts):
    bins, names = count_bins(class_counts, edges=(10, 50, 500, 2000))
    assert names == ["< 10", "10–49", "50–499", "500–1999", "≥ 2000"]
    lows, highs = [0, 10, 50, 500, 2000], [9, 49, 499, 1999, np.inf]
    assert all(lows[b] <= count <= highs[b] for b, count in zip(bins, class_counts, strict=True))


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (lorenz_curve, ([],), "one number of training rows per class"),
        (lorenz_curve, ([[1, 2]],), "shape"),
        (lorenz_curve, ([0, 0],), "0 training rows"),
        (shot_groups, ([1, -1],), "≥ 0"),
        (shot_groups, ([1, np.nan],), "finite"),
        (shot_groups, ([1, 2.5],), "whole numbers"),
        (shot_groups, ([1, 2], 50, 10), "few ≤ many"),
        (count_bins, ([1, 2], (10, 10)), "rise strictly"),
        (count_bins, ([1, 2], ()), "rise strictly"),
    ],
)
def test_counts_that_make_no_sense_are_refused_in_words(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize(("n", "most"), [(1, 5), (5, 5), (6, 5), (100, 7), (4000, 2000)])
def test_spread_rows_reach_from_the_first_row_to_the_last_at_even_distances(n, most):
    rows = evenly_spaced_rows(n, most)
    assert len(rows) == min(n, most)
    assert (rows[0], rows[-1]) == (0, n - 1)
    assert len(rows) == 1 or np.ptp(np.diff(rows)) <= 1
