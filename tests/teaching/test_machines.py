"""Panels to play with after a lesson: each shows what its lesson says, computed by the library."""

from __future__ import annotations

import json

import numpy as np
import pytest

import workbench as wb
from workbench.datasets.names import Names, collection
from workbench.figures.style import LIGHT
from workbench.sets.coverage_band import coverage_band
from workbench.teaching import machines
from workbench.teaching.demo_tables import tables, truth
from workbench.teaching.shipped_tail import NAMES, SIZES, TAUS, measured, shipped_tail
from workbench.teaching.shipped_twins import SIZES as TWIN_SIZES
from workbench.teaching.shipped_twins import frames_by_size
from workbench.teaching.tokens import tokens


def numbers(panel, label: str) -> list[float]:
    """A number of a panel at every position."""
    texts = next(number.texts for number in panel.numbers if number.label == label)
    return [float(text.removesuffix(" %")) for text in texts]


def test_calibration_draws_heap_up_around_the_promise_and_more_rows_narrow_the_heap():
    few, many = (machines.coverages(0, rows) for rows in (20, 500))
    for rows, found in ((20, few), (500, many)):
        low, high = coverage_band(rows, machines.CONFIDENCE, level=0.999)
        assert low < found.mean() < high
    assert many.std() < few.std() / 2


def test_a_shift_to_bark_breaks_the_promise_and_new_labels_mend_it():
    assert machines.coverages(1, 100).mean() < 0.8
    low, high = coverage_band(machines.NEW_LABELS, machines.CONFIDENCE, level=0.999)
    assert low < machines.coverages(2, 100).mean() < high


def test_a_draw_of_the_machine_is_that_of_the_rule():
    pool = truth().test
    fitted = wb.LAC(machines.CONFIDENCE).fit(pool)
    held = machines._held(pool, np.arange(pool.n), fitted.threshold)
    np.testing.assert_allclose(held, (pool.probabilities() * fitted(pool).matrix()).sum(axis=1), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*sets are empty")
def test_the_tail_gains_and_the_head_pays_as_tau_rises_at_the_same_mean_size():
    garden, names = machines.head_or_tail(LIGHT), machines.tail_of_names(LIGHT)
    for panel in (garden, names):
        at_three = slice(panel.start, panel.start + len(TAUS))
        rare, frequent, everyone = (
            numbers(panel, rows)[at_three] for rows in ("Rare classes", "Frequent classes", "All rows")
        )
        assert max(rare) > rare[0] + 15
        assert frequent[-1] < frequent[0]
        assert everyone[-1] < everyone[0]
        assert max(numbers(panel, "Mean size")[at_three]) < 3.3
    val, test = tables("garden", "CrossEntropy")
    sets = wb.AverageK(3).fit(val)(test)
    shown = [numbers(garden, label)[garden.start] for label in ("Rare classes", "All rows")]
    expected = [wb.metrics.shot_accuracy(sets)["few"], wb.metrics.accuracy(sets)]
    assert shown == [round(100 * each, 1) for each in expected]


def test_the_shipped_tail_is_of_the_names_that_ship():
    languages, counts, places = shipped_tail()
    names = Names(**NAMES)
    trained, _, tested = names._strings()
    for strings, found in ((trained, counts), (tested, places["class_rows"])):
        rows = collection().language_of[strings[collection().string_of]]
        assert found.tolist() == np.bincount(rows, minlength=len(languages)).tolist()
    assert places["class_hits"].shape == (len(SIZES) * len(TAUS), len(languages))
    np.testing.assert_allclose(places["accuracy"], places["class_hits"].sum(axis=1) / places["n"])


@pytest.mark.long
def test_the_shipped_tail_is_what_training_gives():
    _, _, places = shipped_tail()
    again = measured()
    np.testing.assert_allclose(again["accuracy"], places["accuracy"], atol=0.005)
    np.testing.assert_allclose(again["mean_size"], places["mean_size"], atol=0.05)


def test_the_label_crosses_the_gap_only_where_the_noise_reaches_across():
    ranks = {
        epsilon: int((scores > scores[machines.LADDER_LABEL]).sum()) + 1
        for epsilon, scores in ((each, machines.descents(each)[-1]) for each in (0.1, 1.0, 3.0))
    }
    assert ranks[0.1] == machines.LADDER_LABEL + 1
    assert ranks[1.0] <= machines.LADDER_K


def test_every_organ_that_is_shown_leaves_less_doubt_and_all_of_them_none():
    panel = machines.uncover(LIGHT)
    needed = numbers(panel, "Species for 90 %")
    assert (needed[0], needed[-1]) == (6, 1)
    assert all(needed[-1] <= each <= needed[0] for each in needed)
    assert json.dumps(panel.spec())


def test_weights_buy_the_promise_back_with_larger_sets():
    panel = machines.shifted_world(LIGHT)
    plain, weighted = (numbers(panel, f"{name}: coverage") for name in ("LAC", "Weighted"))
    assert plain[-1] < 80
    assert min(weighted) >= 90
    assert numbers(panel, "Weighted: mean size")[-1] > numbers(panel, "LAC: mean size")[-1]


def test_the_line_places_as_many_tokens_as_you_have_and_no_other_way_reaches_more():
    game = tokens()
    offered = [each.probability for photo in game.photographs for each in photo.classes]
    above = [each for each in offered if each >= game.threshold]
    assert len(above) == game.tokens
    assert min(above) >= max(each for each in offered if each < game.threshold)
    sizes = [sum(each.probability >= game.threshold for each in photo.classes) for photo in game.photographs]
    assert min(sizes) == 1
    assert max(sizes) >= 3
    assert all(len(photo.classes) >= 1 and photo.classes[0].probability <= 1 for photo in game.photographs)


def test_twins_part_with_few_photographs_and_meet_again_with_many():
    frame = (
        frames_by_size()
        .query("photographs == 'new photographs' and step == 500")
        .set_index(["size", "loss", "line"])["value"]
    )
    apart = {
        size: frame[size, "Cross-entropy", "favoured"] - frame[size, "Cross-entropy", "other"] for size in TWIN_SIZES
    }
    assert apart[10] > 0.7
    assert apart[400] < 0.2
    assert frame[10, "Average-K two-head", "sets"] > frame[10, "Cross-entropy", "sets"] + 0.05
    panel = machines.twins_apart(LIGHT)
    shown = numbers(panel, "Cross-entropy: correct sets")
    assert shown[panel.start] == round(100 * frame[20, "Cross-entropy", "sets"])
