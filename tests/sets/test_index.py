"""SetIndex answers for every K and every threshold with the same bits as sorting all n·L probabilities."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.exact_arithmetic import classes_of_rows
from workbench.sets import index as index_module
from workbench.sets.index import FILE, LARGEST_SIZE
from workbench.sets.label_ranks import label_ranks
from workbench.sets.thresholds import rounded_up

rng = np.random.default_rng(0)


def one_label(n: int = 400, n_classes: int = 30, dtype: str = "float32", ties: bool = False) -> wb.LogitTable:
    scores = rng.normal(size=(n, n_classes)) * 3
    labels = rng.integers(0, n_classes - 2, n)  # the last two classes are absent
    scores[np.arange(n), labels] += 3
    return wb.LogitTable(
        (np.round(scores) if ties else scores).astype(dtype),
        labels,
        class_counts=rng.integers(1, 200, n_classes),
        groups=[f"genus {j // 4}" for j in range(n_classes)],
        attributes={"organ": rng.choice(["leaf", "fruit", "bark"], n)},
    )


def many_labels() -> wb.LogitTable:
    scores = rng.normal(size=(200, 8)) * 2
    labels = rng.random((200, 8)) < 0.3
    labels[::5] = False
    return wb.LogitTable(scores, labels, link="sigmoid", class_counts=np.arange(1, 9) * 20)


TABLES = {
    "float16": one_label(dtype="float16"),
    "float32": one_label(),
    "float64": one_label(dtype="float64"),
    "ties": one_label(ties=True),
    "many labels": many_labels(),
    "few classes": one_label(50, 4),
    "one row": wb.LogitTable(np.array([[0.0, 1.0, 2.0]]), [1]),
    "one class": wb.LogitTable(np.zeros((4, 1)), [0, 0, 0, 0]),
    "all ties": wb.LogitTable(np.zeros((20, 6)), np.arange(20) % 6),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_answer_is_that_of_the_sorted_matrix(name):
    table = TABLES[name]
    index = wb.SetIndex(table)
    probabilities = table.probabilities()
    falling = np.sort(probabilities.ravel())[::-1]
    for K, threshold in zip(index.K_values, index.thresholds, strict=True):
        m = classes_of_rows(K, table.n)
        if m == falling.size:
            assert threshold == 0
        else:
            middle = (float(falling[m - 1]) + float(falling[m])) / 2
            assert threshold == rounded_up(middle, table.dtype)
            assert falling[m - 1] >= threshold
            assert threshold > falling[m] or falling[m] == falling[m - 1]
        assert index.mean_size(threshold) == np.count_nonzero(falling >= threshold) / table.n
    for threshold in (index.thresholds[-1], 0.3, 0.011, 1e-4, 0.0):  # the last ones lie below what the index holds
        expected = probabilities >= rounded_up(threshold, table.dtype)
        sets = wb.Threshold(threshold).fit(table).sets(table)
        assert np.array_equal(index.sizes(threshold=threshold), expected.sum(1))
        assert np.array_equal(index.hits(threshold=threshold), sets.hits)
        assert np.array_equal(
            index.class_accuracy(threshold=threshold), wb.metrics.class_accuracy(sets), equal_nan=True
        )
        assert np.array_equal(index.size_histogram(threshold=threshold), np.bincount(expected.sum(1)))


@pytest.mark.parametrize("name", TABLES)
def test_the_rule_and_the_index_agree_on_the_threshold_of_any_K(name):
    table = TABLES[name]
    index = wb.SetIndex(table, K_max=2, step=0.5)
    for K in (1.0, 1.37, 1.9, 2.8, 3.99):  # beyond K_max too
        if K < table.n_classes:
            assert index.threshold(K) == wb.AverageK(K).fit(table).threshold


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 15), n_classes=st.integers(2, 7), threshold=st.floats(0, 1))
def test_small_tables_with_ties_agree_with_the_matrix_at_any_threshold(seed, n, n_classes, threshold):
    generator = np.random.default_rng(seed)
    table = wb.LogitTable(
        generator.integers(-4, 1, (n, n_classes)).astype("float32"), generator.integers(0, n_classes, n)
    )
    index = wb.SetIndex(table, K_max=2)
    sets = wb.Threshold(threshold).fit(table).sets(table)
    assert np.array_equal(index.sizes(threshold=threshold), sets.sizes)
    assert np.array_equal(index.hits(threshold=threshold), sets.hits)
    assert index.mean_size(threshold) == sets.sizes.mean()
    assert (np.diff([index.mean_size(value) for value in np.linspace(0, 1, 9)]) <= 0).all()  # G falls


def test_the_grid_of_K_is_made_of_the_decimals_it_prints():
    index = wb.SetIndex(one_label())
    assert len(index.K_values) == 191
    assert index.K_values.tolist() == [round(1 + i / 10, 1) for i in range(191)]
    assert wb.SetIndex(one_label(n_classes=5)).K_values[-1] == 5  # no further than the classes go
    for wrong in ({"K_max": 0.5}, {"step": 0}):
        with pytest.raises(ValueError, match="must be"):
            wb.SetIndex(one_label(), **wrong)


def test_label_ranks_give_top_k_accuracy_for_every_K():
    for table in TABLES.values():
        index = wb.SetIndex(table, K_max=1)  # holds little, so most ranks are looked up in the table
        assert np.array_equal(index.label_ranks, label_ranks(table.probabilities(), table.scores, table.labels))
        for K in range(1, table.n_classes):
            sets = wb.TopK(K).fit(table).sets(table)
            assert np.array_equal((1 <= index.label_ranks) & (index.label_ranks <= K), sets.hits)


def test_efficiency_is_top_k_and_average_k_accuracy_for_every_K_at_once():
    for table in (TABLES["float32"], TABLES["ties"], TABLES["many labels"]):
        index = wb.SetIndex(table)
        frame = index.efficiency()
        for line in frame.itertuples():
            assert line.average_k == pytest.approx(index.hits(K=line.K)[table.labelled].mean())
            if line.K == int(line.K):
                assert line.top_k == pytest.approx(wb.metrics.top_k_accuracy(table, K=int(line.K)))
            else:
                assert np.isnan(line.top_k)


def test_histograms_by_shots_groups_attributes_or_any_array_add_up_to_the_whole():
    table = TABLES["float32"]
    index = wb.SetIndex(table)
    whole = index.size_histogram(K=3)
    for by in ("shots", "groups", "organ", "label", table.labels % 3):
        parts = index.size_histogram(by, K=3)
        assert np.array_equal(sum(parts.values()), whole)
    leaves = index.size_histogram("organ", K=3)["leaf"]
    sizes = index.sizes(K=3)[table.attributes["organ"] == "leaf"]
    assert np.array_equal(leaves, np.bincount(sizes, minlength=len(whole)))
    with pytest.raises(ValueError, match="'organ', 'shots', 'groups', 'label'"):
        index.size_histogram("colour", K=3)
    with pytest.raises(ValueError, match="one entry for each of the 400 rows"):
        index.size_histogram(np.zeros(3), K=3)
    with pytest.raises(ValueError, match="one label per row"):
        wb.SetIndex(TABLES["many labels"]).size_histogram("shots", K=3)


@pytest.mark.parametrize("name", ["float32", "many labels", "all ties"])
def test_the_curve_has_the_values_of_the_metrics(name):
    table = TABLES[name]
    index = wb.SetIndex(table, K_max=4, step=0.5)
    for frame in (index.curve(), index.curve([0.5, 0.05])):
        for line in frame.to_dict("records"):
            sets = wb.Threshold(line["threshold"]).fit(table).sets(table)
            assert line["mean_size"] == wb.metrics.mean_size(sets)
            assert line["accuracy"] == wb.metrics.accuracy(sets)
            assert line["macro_accuracy"] == pytest.approx(wb.metrics.macro_accuracy(sets))
            if table.class_counts is not None:
                expected = wb.metrics.shot_accuracy(sets)
                assert {shot: line[shot] for shot in expected} == pytest.approx(expected, nan_ok=True)
    assert index.curve()["K"].tolist() == index.K_values.tolist()
    assert "K" not in index.curve([0.5])


def test_thresholds_of_val_draw_pictures_of_test():
    val, test = one_label(), one_label()
    thresholds = wb.SetIndex(val).thresholds
    index = wb.SetIndex(test)
    compact = index.compact(thresholds, by="organ")
    assert compact["K"] is None
    assert set(compact["histogram_by"]) == {"leaf", "fruit", "bark"}
    for position in (0, 40, 190):
        sets = wb.Threshold(thresholds[position]).fit(test).sets(test)
        assert compact["mean_size"][position] == sets.sizes.mean()
        assert compact["accuracy"][position] == sets.hits.mean()
        assert compact["macro_accuracy"][position] == pytest.approx(wb.metrics.macro_accuracy(sets))
        histogram = np.bincount(np.minimum(sets.sizes, LARGEST_SIZE), minlength=LARGEST_SIZE + 1)
        assert np.array_equal(compact["size_histogram"][position], histogram)
        assert np.array_equal(sum(part[position] for part in compact["histogram_by"].values()), histogram)
        for organ, mean_sizes in compact["mean_size_by"].items():
            assert mean_sizes[position] == pytest.approx(sets.sizes[test.attributes["organ"] == organ].mean())
        shares = compact["class_hits"][position] / np.maximum(compact["class_rows"], 1)
        present = compact["class_rows"] > 0
        assert np.allclose(shares[present], wb.metrics.class_accuracy(sets)[present])
        shots = {name: values[position] for name, values in compact["shot_accuracy"].items()}
        assert shots == pytest.approx(wb.metrics.shot_accuracy(sets), nan_ok=True)


def test_compact_is_small_and_does_without_what_a_table_does_not_have():
    compact = wb.SetIndex(one_label()).compact()
    arrays = [value for value in compact.values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in arrays) < 200_000
    assert set(compact["histogram_by"]) == {"few", "medium", "many"}
    assert compact["K"].tolist() == wb.SetIndex(one_label()).K_values.tolist()
    bare = wb.SetIndex(wb.LogitTable(rng.normal(size=(20, 5)))).compact()
    assert bare["histogram_by"] == bare["mean_size_by"] == {}
    assert (bare["size_histogram"].sum(1) == 20).all()
    assert "accuracy" not in bare
    many = wb.SetIndex(TABLES["many labels"]).compact()
    assert many["histogram_by"] == {}
    assert many["class_rows"].sum() == TABLES["many labels"].labels.sum()


def test_an_index_without_labels_knows_sizes_and_not_hits():
    index = wb.SetIndex(wb.LogitTable(rng.normal(size=(20, 5))))
    assert index.sizes(K=2).sum() == 40
    for question in (lambda: index.hits(K=2), lambda: index.class_accuracy(K=2), index.efficiency):
        with pytest.raises(ValueError, match="no labels"):
            question()


def test_a_question_names_either_K_or_a_threshold():
    index = wb.SetIndex(one_label())
    for arguments in ({}, {"K": 2, "threshold": 0.1}):
        with pytest.raises(ValueError, match="either K= or threshold="):
            index.sizes(**arguments)
    with pytest.raises(ValueError, match="returns no class"):
        index.threshold(1e-4)


def test_the_index_is_saved_beside_the_table_and_rebuilt_when_the_table_changes(tmp_path, monkeypatch):
    one_label().save(tmp_path / "table")
    built = wb.SetIndex.open(tmp_path / "table")
    assert (tmp_path / "table" / FILE).is_file()

    def not_again(*_, **__):
        raise AssertionError("the index was built again")

    with monkeypatch.context() as patched:
        patched.setattr("workbench.sets.index.largest_probabilities", not_again)
        read = wb.SetIndex.open(tmp_path / "table")
        assert np.array_equal(read.thresholds, built.thresholds)
        assert np.array_equal(read.sizes(K=3.3), built.sizes(K=3.3))
        assert np.array_equal(read.hits(K=3.3), built.hits(K=3.3))
        assert np.array_equal(read.label_ranks, built.label_ranks)
    other = one_label(300)
    other.save(tmp_path / "table")
    assert wb.SetIndex.open(tmp_path / "table").table.n == 300
    (tmp_path / "table" / FILE).write_bytes(b"not an archive")
    assert np.array_equal(wb.SetIndex.open(tmp_path / "table").thresholds, wb.SetIndex(other).thresholds)
    assert len(wb.SetIndex.open(tmp_path / "table", K_max=3).K_values) == 21
    left_over = [path.name for path in (tmp_path / "table").iterdir() if path.name.startswith(".")]
    assert left_over == []


def test_a_threshold_below_what_the_index_holds_is_counted_once(monkeypatch):
    table = one_label()
    index = wb.SetIndex(table, K_max=1)
    passes = []
    counting = index_module.over_parts
    monkeypatch.setattr(index_module, "over_parts", lambda *given: passes.append(1) or counting(*given))
    for _ in range(3):
        index.sizes(threshold=1e-5)
        index.mean_size(1e-5)
    assert len(passes) == 1


def test_building_and_asking_never_hold_the_probabilities_whole():
    scores = rng.standard_normal((8000, 1000), dtype="float32").astype("float16")
    table = wb.LogitTable(scores, rng.integers(0, 1000, 8000))
    whole = 4 * table.scores.size  # bytes of the probabilities in float32
    tracemalloc.start()
    index = wb.SetIndex(table, K_max=5)
    index.compact()
    index.sizes(threshold=1e-6)
    for rule in (wb.AverageK(3), wb.TopK(3), wb.LAC(), wb.APS()):
        rule.fit(table).sets(table).sizes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < whole / 2


def test_what_is_no_K_and_no_threshold_is_refused_in_words():
    table = wb.LogitTable(rng.normal(size=(20, 4)), rng.integers(0, 4, 20))
    index = wb.SetIndex(table)
    for K in (np.nan, np.inf, "3"):
        with pytest.raises(ValueError, match="give the number of classes in a set on average, up to 4"):
            index.threshold(K)
    for ask in (
        lambda: index.sizes(threshold=np.nan),
        lambda: index.mean_size("a"),
        lambda: index.curve([0.1, np.nan]),
    ):
        with pytest.raises(ValueError, match="give the smallest probability that enters a set, a number"):
            ask()
    with pytest.raises(ValueError, match="there are no thresholds"):
        index.compact([])
    assert index.curve(0.5)["threshold"].tolist() == [0.5]
    assert wb.SetIndex(table, K_max=np.inf).K_values[-1] == 4


# Less than one label a row


def half_labelled(n=400, n_classes=6, many=True):
    """Rows of which four in ten have no label, as scores of sigmoids that know so, more or less."""
    generator = np.random.default_rng(0)
    labels = np.zeros((n, n_classes), bool)
    labelled = np.flatnonzero(generator.random(n) < 0.6)
    labels[labelled, generator.integers(n_classes, size=len(labelled))] = True
    scores = 2 * labels - 2 + generator.normal(size=(n, n_classes))
    return wb.LogitTable(scores, labels if many else np.where(labels.any(1), labels.argmax(1), -1), link="sigmoid")


@pytest.mark.parametrize("many", [True, False])
def test_data_with_less_than_one_label_a_row_have_sets_of_less_than_one_class(many):
    table = half_labelled(many=many)
    index = wb.SetIndex(table, K_max=3)
    assert index.K_values.tolist() == [round(0.1 * step, 1) for step in range(1, 31)]
    fitted = wb.AverageK(0.6).fit(table)
    sets = fitted(table)
    assert sets.sizes.sum() == 240  # 0.6 · 400
    assert (sets.sizes == 0).any()
    assert index.threshold(0.6) == fitted.threshold
    assert index.sizes(K=0.6).tolist() == sets.sizes.tolist()
    at = index.curve().set_index("K").loc[0.6]
    assert at["mean_size"] == 0.6
    assert index.efficiency().query("K < 1")["top_k"].isna().all()


def test_K_times_n_is_rounded_half_up_below_one_too_and_no_class_at_all_is_refused():
    table = half_labelled(n=5)
    assert wb.AverageK(0.1).fit(table)(table).sizes.sum() == 1  # 0.5 is one class
    assert wb.SetIndex(table).K_values[0] == 0.1
    assert wb.SetIndex(half_labelled(n=4)).K_values[0] == 0.2  # 0.1 · 4 would be none
    for K in (0, 0.09):
        with pytest.raises(ValueError, match=f"K = {K} with 5 rows returns no class at all; give K ≥ 0.2"):
            wb.AverageK(K).fit(table)
    with pytest.raises(ValueError, match="K = -1 is below 0"):
        wb.AverageK(-1)


def test_rows_with_a_label_each_start_at_sets_of_one_class():
    assert wb.SetIndex(one_label()).K_values[0] == 1
