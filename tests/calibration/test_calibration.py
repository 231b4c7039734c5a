"""Recalibrators: they find the optimum and do what they say to the table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, minimize, minimize_scalar

import workbench as wb
from workbench.calibration import (
    RECALIBRATORS,
    at_temperature,
    isotonic,
    matrix,
    of_one_class,
    small_sets,
    temperature,
    vector,
)
from workbench.calibration.base import mean_loss
from workbench.calibration.vector import _loss_and_gradient
from workbench.metrics.probability_metrics import top_classes
from workbench.tables.links import sigmoid, softmax

rng = np.random.default_rng(0)


def calibrated(n: int = 3000, n_classes: int = 5, scale: float = 1.0) -> wb.LogitTable:
    """Labels drawn from softmax(scores), scores then multiplied: the right temperature is `scale`."""
    scores = rng.normal(size=(n, n_classes)) * 2
    labels = (softmax(scores).cumsum(1) < rng.random((n, 1))).sum(1)
    return wb.LogitTable(scores * scale, labels, class_names=list("abcdefgh")[:n_classes])


def many_labels(scale: float = 1.0) -> wb.LogitTable:
    scores = rng.normal(size=(3000, 4)) * 2
    return wb.LogitTable(scores * scale, rng.random((3000, 4)) < sigmoid(scores), link="sigmoid")


@pytest.mark.parametrize("make", [calibrated, many_labels])
@pytest.mark.parametrize("scale", [0.2, 1.0, 7.0])
def test_temperature_scaling_finds_the_temperature_that_was_put_in(make, scale):
    table = make(scale=scale)
    fitted = wb.TemperatureScaling().fit(table)
    assert fitted.temperature == pytest.approx(scale, rel=0.1)
    best = minimize_scalar(lambda T: _loss_at(table, T), bounds=(scale / 3, scale * 3), method="bounded").fun
    assert fitted.after <= best + 1e-9
    assert fitted.after <= fitted.before


def _loss_at(table: wb.LogitTable, temperature: float) -> float:
    return wb.metrics.negative_log_likelihood(wb.LogitTable(table.scores / temperature, table.labels, link=table.link))


def test_the_fitted_losses_are_the_likelihoods_of_the_tables():
    table = calibrated(scale=4)
    for scaling in (wb.TemperatureScaling(), wb.VectorScaling()):
        fitted = scaling.fit(table)
        assert fitted.before == pytest.approx(wb.metrics.negative_log_likelihood(table))
        assert fitted.after == pytest.approx(wb.metrics.negative_log_likelihood(fitted(table)))


def test_temperature_scaling_repairs_confidence_and_leaves_the_ranking():
    val, test = calibrated(scale=4).split()
    repaired = wb.TemperatureScaling().fit(val)(test)
    assert wb.metrics.expected_calibration_error(repaired) < wb.metrics.expected_calibration_error(test) / 2
    assert np.array_equal(repaired.scores.argsort(1), test.scores.argsort(1))
    assert repaired.class_names == test.class_names
    assert repaired.key != test.key


# Softmax with many labels: Liao et al., Table III


def several_labels(scale: float = 1.0, n: int = 3000) -> wb.LogitTable:
    """Rows of one to three labels, drawn from softmax(scores) one after the other, and some rows without."""
    scores = rng.normal(size=(n, 6)) * 2
    draws = (softmax(scores).cumsum(1)[:, None] < rng.random((n, 3, 1))).sum(2)
    labels = np.zeros((n, 6), bool)
    for rank in range(3):
        rows = np.flatnonzero(np.arange(n) % 4 > rank)
        labels[rows, draws[rows, rank]] = True
    return wb.LogitTable(scores * scale, labels)


def shared_cross_entropy(table: wb.LogitTable, temperature: float) -> float:
    """Each label of a row weighs one over their number."""
    rows = [(p, y) for p, y in zip(softmax(table.scores / temperature), table.labels, strict=True) if y.any()]
    return float(np.mean([-np.log(p[y]).mean() for p, y in rows]))


@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_the_temperature_of_softmax_with_many_labels_makes_the_shared_cross_entropy_least(scale):
    table = several_labels(scale)
    fitted = wb.TemperatureScaling().fit(table)
    assert fitted.before == pytest.approx(shared_cross_entropy(table, 1))
    assert fitted.after == pytest.approx(shared_cross_entropy(table, fitted.temperature))
    for factor in (0.98, 1.02):
        assert fitted.after < shared_cross_entropy(table, factor * fitted.temperature)
    alone = table.labels.sum(1) == 1  # one label a row is a special case
    one = wb.LogitTable(table.scores[alone], table.labels[alone].argmax(1))
    assert wb.TemperatureScaling().fit(table.rows(alone)).temperature == pytest.approx(
        wb.TemperatureScaling().fit(one).temperature
    )


def test_softened_by_a_temperature_softmax_with_many_labels_has_a_calibration_error_of_the_top_four():  # Table III
    table = several_labels(4.0)
    softened = wb.TemperatureScaling().fit(table)(table)
    error = wb.metrics.top_k_calibration_error
    values, _, right = top_classes(table, 4)
    bins = np.minimum(np.ceil(values * 10).astype(int) - 1, 9).clip(0)
    gaps = [abs(right[bins == b].sum() - values[bins == b].sum()) for b in range(10)]
    assert error(table, K=4, bins=10) == pytest.approx(sum(gaps) / values.size)
    assert error(softened, K=4, bins=10) < error(table, K=4, bins=10)
    report = wb.report(softened, rules=[wb.TopK(4)], metrics=[error.at(K=4, bins=10), wb.metrics.macro_f1])
    assert report["value"].notna().all()
    figure = wb.figures.temperatures(table, table)
    assert "Cross-entropy shared by the labels" in figure.text


def test_scaled_scores_keep_the_precision_of_probabilities():
    table = calibrated()
    halved = wb.LogitTable(table.scores.astype("float16"), table.labels)
    assert wb.TemperatureScaling().fit(halved)(halved).scores.dtype == np.float32


def test_labels_that_are_always_right_give_a_small_temperature_and_no_error():
    scores = rng.normal(size=(50, 3))
    fitted = wb.TemperatureScaling().fit(wb.LogitTable(scores, scores.argmax(1)))
    assert 0 < fitted.temperature < 0.05
    assert fitted.after < 1e-3
    wrong = wb.TemperatureScaling().fit(wb.LogitTable(scores, scores.argmin(1)))
    assert wrong.temperature > 1e3


def test_vector_scaling_finds_factors_and_shifts_that_were_put_in():
    table = calibrated(20_000, 3)
    factors, shifts = np.array([2.0, 0.5, 1.0]), np.array([1.0, -1.0, 0.0])
    distorted = wb.LogitTable((table.scores - shifts) / factors, table.labels)
    fitted = wb.VectorScaling().fit(distorted)
    assert fitted.scale == pytest.approx(factors, rel=0.15)
    assert fitted.shift - fitted.shift[2] == pytest.approx(shifts, abs=0.15)  # a common shift changes nothing
    assert fitted.after <= wb.TemperatureScaling().fit(distorted).after


def test_vector_scaling_reaches_the_optimum_in_a_few_passes(monkeypatch):
    table = calibrated(4000, 8)
    wide = wb.LogitTable(1.3 * table.scores + np.arange(8) / 8, table.labels)
    single = wb.LogitTable(wide.scores.astype(np.float32), table.labels)
    start = np.concatenate([np.ones(8), np.zeros(8)])
    best = minimize(_loss_and_gradient, start, (wide,), jac=True, options={"gtol": 1e-9}).fun
    passes = []
    monkeypatch.setattr(vector, "_loss_and_gradient", lambda *given: passes.append(0) or _loss_and_gradient(*given))
    for given in (wide, single):
        passes.clear()
        fitted = wb.VectorScaling().fit(given)
        assert fitted.after == pytest.approx(best, rel=1e-6)
        assert len(passes) < 15
        assert fitted.before == pytest.approx(mean_loss(wide), rel=1e-6)


@pytest.mark.parametrize(
    "table",
    [calibrated(40, 3), many_labels().rows(slice(40)), several_labels(n=40).labelled_rows()],
    ids=["one label", "many labels", "softmax of many labels"],
)
def test_the_gradient_of_vector_scaling_is_that_of_finite_differences(table):
    at = np.concatenate([rng.uniform(0.5, 2, table.n_classes), rng.normal(size=table.n_classes)])
    _, gradient = _loss_and_gradient(at, table)
    for place in range(len(at)):
        step = np.eye(len(at))[place] * 1e-5
        slope = (_loss_and_gradient(at + step, table)[0] - _loss_and_gradient(at - step, table)[0]) / 2e-5
        assert gradient[place] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("scaling", [wb.TemperatureScaling(), wb.VectorScaling()])
def test_scaling_says_what_it_needs(scaling):
    table = calibrated(20)
    with pytest.raises(ValueError, match="no labels"):
        scaling.fit(wb.LogitTable(table.scores))
    with pytest.raises(TypeError, match="expected a LogitTable"):
        scaling.fit(table.scores)
    with pytest.raises(ValueError, match="link is identity"):
        scaling.fit(wb.LogitTable.from_probabilities(softmax(table.scores), table.labels))
    with pytest.raises(ValueError, match="needs softmax"):
        scaling.fit(table.with_link("sigmoid"))
    with pytest.raises(ValueError, match="5 classes and the table has 3"):
        wb.VectorScaling().fit(table)(calibrated(20, 3))
    with pytest.raises(ValueError, match="one scale per class"):
        wb.VectorScaling().fit(table).temperature


@pytest.mark.parametrize("make", [calibrated, many_labels])
def test_the_gradient_of_matrix_scaling_is_that_of_finite_differences(make):
    table = make().rows(slice(40))
    at = rng.normal(size=table.n_classes**2 + table.n_classes)
    _, gradient = matrix._loss_and_gradient(at, table)
    for place in range(0, len(at), 3):
        step = np.eye(len(at))[place] * 1e-5
        slope = (matrix._loss_and_gradient(at + step, table)[0] - matrix._loss_and_gradient(at - step, table)[0]) / 2e-5
        assert gradient[place] == pytest.approx(slope, abs=1e-7)


def test_matrix_scaling_separates_two_classes_that_were_mixed():
    table = calibrated()
    mix = np.eye(5)
    mix[0, 1] = mix[1, 0] = 0.8
    mixed = wb.LogitTable(table.scores @ mix.T, table.labels, class_names=table.class_names)
    by_matrix, by_vector = (kind.fit(mixed)(mixed) for kind in (wb.MatrixScaling(penalty=1e-4), wb.VectorScaling()))
    best = wb.metrics.negative_log_likelihood(table)
    assert wb.metrics.negative_log_likelihood(by_matrix) <= best + 1e-3
    assert wb.metrics.negative_log_likelihood(by_vector) > best + 0.02


def test_a_heavy_penalty_leaves_the_matrix_diagonal():
    fitted = wb.MatrixScaling(penalty=100.0).fit(calibrated(scale=3.0))
    assert np.abs(fitted.scale - np.diag(np.diag(fitted.scale))).max() < 0.01


def test_a_table_at_the_fitted_temperature_is_the_fitted_table():
    table = wb.LogitTable(3 * np.random.default_rng(0).normal(size=(200, 4)), np.arange(200) % 4)
    fitted = wb.TemperatureScaling().fit(table)
    np.testing.assert_allclose(at_temperature(table, fitted.temperature).scores, fitted(table).scores)
    with pytest.raises(ValueError, match="positive"):
        at_temperature(table, 0.0)


def test_the_table_of_one_class_keeps_its_probabilities_and_asks_whether_it_is_the_label():
    table = wb.LogitTable(np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 4)
    one = of_one_class(table, 2)
    np.testing.assert_allclose(one.probabilities()[:, 0], table.probabilities()[:, 2], atol=1e-9)
    assert one.labels[:, 0].tolist() == (table.labels == 2).tolist()
    with pytest.raises(ValueError, match="no class 4"):
        of_one_class(table, 4)


def test_where_every_temperature_is_as_good_the_scores_stay():
    for n_classes in (1, 3):
        table = wb.LogitTable(np.zeros((5, n_classes)), np.arange(5) % n_classes)
        assert wb.TemperatureScaling().fit(table).temperature == 1


@pytest.mark.parametrize("kind", RECALIBRATORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("make", [calibrated, many_labels, several_labels])
def test_every_recalibrator_lowers_its_objective_and_leaves_the_rest_of_the_table_alone(kind, make):
    table = make(scale=3.0)
    if table.link not in kind.links:
        with pytest.raises(ValueError, match="scores of the softmax link"):
            kind().fit(table)
        return
    fitted = kind().fit(table)
    mended = fitted(table)
    assert kind.title
    assert fitted.recalibrator == kind()
    assert fitted.after < fitted.before
    if kind.objective == "negative log-likelihood" and make is not several_labels:
        assert fitted.after == pytest.approx(wb.metrics.negative_log_likelihood(mended), rel=1e-6)
    assert (mended.link, mended.class_names) == (table.link, table.class_names)
    assert np.array_equal(mended.labels, table.labels)
    assert np.isfinite(mended.scores).all()
    with pytest.raises(ValueError, match="the link is identity"):
        kind().fit(wb.LogitTable.from_probabilities(softmax(table.scores), table.labels))


@pytest.mark.parametrize("kind", RECALIBRATORS, ids=lambda kind: kind.__name__)
def test_every_recalibrator_follows_the_names_of_the_classes(kind):
    fitted, order = kind().fit(calibrated(300, scale=2.0)), [3, 0, 4, 1, 2]
    table = calibrated(50)  # other rows: Venn–Abers jumps at the fitting ones, and a sum in another order may round
    turned = wb.LogitTable(table.scores[:, order], class_names=[table.class_names[j] for j in order])
    np.testing.assert_allclose(fitted(turned).probabilities(), fitted(table).probabilities()[:, order], atol=1e-12)
    if kind not in (wb.TemperatureScaling, wb.SmallSetScaling):
        with pytest.raises(ValueError, match="5 classes and the table has 3"):
            fitted(calibrated(20, 3))


@pytest.mark.parametrize("kind", RECALIBRATORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "table",
    [
        wb.LogitTable(np.array([[0.0, 2.0, 1.0]]), [1]),
        wb.LogitTable(np.zeros((4, 1)), [0, 0, 0, 0]),
        wb.LogitTable(np.zeros((4, 5)), [0, 1, 2, 3]),
        wb.LogitTable(rng.normal(size=(6, 4)) * 1e3, [3, 3, 0, 0, 1, 1]),
        wb.LogitTable(rng.normal(size=(9, 4)).astype("float16"), [0, 0, 0, 0, 0, 0, 1, -1, -1]),
    ],
    ids=["one row", "one class", "all ties", "certain", "unknown labels, half precision"],
)
def test_odd_tables_pass_through_every_recalibrator(kind, table):
    mended = kind().fit(table)(table)
    assert np.isfinite(mended.scores).all()
    assert mended.probabilities().sum(1) == pytest.approx(1)


# Dirichlet scaling, isotonic regression, Venn–Abers


def test_dirichlet_scaling_is_matrix_scaling_of_log_probabilities():
    table = calibrated(500, scale=2.0)
    logs = wb.LogitTable(np.log(softmax(table.scores)), table.labels, class_names=table.class_names)
    dirichlet, by_matrix = wb.DirichletScaling().fit(table), wb.MatrixScaling().fit(logs)
    np.testing.assert_allclose(dirichlet.scale, by_matrix.scale, atol=1e-8)
    np.testing.assert_allclose(dirichlet(table).scores, by_matrix(logs).scores, atol=1e-8)
    moved = wb.LogitTable(table.scores + rng.normal(size=(table.n, 1)), class_names=table.class_names)
    np.testing.assert_allclose(dirichlet(moved).probabilities(), dirichlet(table).probabilities(), atol=1e-12)


@pytest.mark.parametrize("kind", [wb.IsotonicScaling, wb.VennAbers])
def test_rising_functions_repair_what_no_temperature_can(kind):
    """Probabilities bent class by class: p → p² of the first class, √p of the second, then normalised."""
    both = calibrated(8000, 3)
    p = softmax(both.scores) ** np.array([2.0, 0.5, 1.0])
    val, test = wb.LogitTable(np.log(p / p.sum(1, keepdims=True)), both.labels).split()
    loss = wb.metrics.negative_log_likelihood
    best = loss(wb.LogitTable(both.scores, both.labels).split()[1])
    assert loss(kind().fit(val)(test)) < best + 0.02
    assert loss(wb.TemperatureScaling().fit(val)(test)) > best + 0.04


def _isotonic_with(p: np.ndarray, y: np.ndarray, new: float, label: int) -> float:
    """The isotonic value at a new row that has a label, by the definition."""
    values, places = np.unique(np.append(p, new), return_inverse=True)
    counts = np.bincount(places)
    fitted = isotonic_regression(np.bincount(places, np.append(y, label)) / counts, weights=counts).x
    return float(fitted[np.searchsorted(values, new)])


@pytest.mark.parametrize("digits", [1, 3, 12])
@pytest.mark.parametrize("n", [1, 2, 9, 80])
def test_venn_abers_pairs_are_isotonic_regressions_with_the_new_row(n, digits):
    generator = np.random.default_rng(n)
    p = generator.random(n).round(digits)
    for y in (generator.random(n) < p, generator.random(n) < 0.1, np.ones(n), np.zeros(n)):
        of_class = wb.VennAbers().class_map(isotonic.Steps.of(p, y.astype(float)))
        new = np.concatenate([p, generator.random(30).round(digits), [0, 1]])
        for label, found in enumerate(of_class.pair(new)):
            np.testing.assert_allclose(found, [_isotonic_with(p, y, value, label) for value in new], atol=1e-12)


def test_columns_read_in_several_passes_give_the_same_functions(monkeypatch):
    table = calibrated(200, scale=2.0)
    whole = wb.IsotonicScaling().fit(table)(table).scores
    monkeypatch.setattr(isotonic, "COLUMNS", 2 * table.n)
    assert np.array_equal(wb.IsotonicScaling().fit(table)(table).scores, whole)


def test_the_temperature_for_small_sets_has_the_smallest_sets_and_is_not_that_of_the_likelihood():
    table = calibrated(1500, 8)
    fitted = wb.SmallSetScaling(0.9).fit(table)
    sizes = {
        T: wb.APS(0.9, randomized=False).fit(at_temperature(table, T)).sets(at_temperature(table, T)).sizes.mean()
        for T in small_sets.TEMPERATURES
    }
    assert fitted.after == min(sizes.values()) == sizes[fitted.temperature]
    assert fitted.before == sizes[1.0]
    assert fitted.temperature < 0.5  # where the probabilities are right at T = 1
    assert wb.TemperatureScaling().fit(table).temperature == pytest.approx(1, abs=0.1)


# Few reads


def _exact_temperature(table: wb.LogitTable) -> float:
    """In float64 from beginning to end, by an optimizer that knows nothing of derivatives."""
    scores = table.scores.astype(np.float64)
    exact = wb.LogitTable(scores, table.labels, link=table.link)
    found = minimize_scalar(
        lambda log_T: _loss_at(exact, np.exp(log_T)), bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(found.x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.3, 5.0])
def test_a_large_table_is_read_a_few_times_and_its_temperature_is_the_exact_one(dtype, scale, monkeypatch):
    whole = calibrated(n=2000, n_classes=8, scale=scale)
    table = wb.LogitTable(whole.scores.astype(dtype), whole.labels)
    monkeypatch.setattr(temperature, "SAMPLE", 200 * table.n_classes)  # as if these rows were many
    read = []
    spans = wb.LogitTable.spans

    def counted(self, *given):
        for rows in spans(self, *given):
            read.append(rows.stop - rows.start)
            yield rows

    with monkeypatch.context() as patch:
        patch.setattr(wb.LogitTable, "spans", counted)
        fitted = wb.TemperatureScaling().fit(table)
    assert sum(read) <= 5 * table.n  # with all that was read of the sample
    assert fitted.temperature == pytest.approx(_exact_temperature(table), rel=1e-6)
    assert fitted.before == pytest.approx(wb.metrics.negative_log_likelihood(table), rel=1e-6)
    assert fitted.after == pytest.approx(wb.metrics.negative_log_likelihood(fitted(table)), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("make", [calibrated, many_labels])
def test_the_bits_of_a_part_do_not_depend_on_its_blocks(make, monkeypatch):
    table = make(scale=2.0)
    whole = temperature.summed_derivatives(table, 0, (0.7, 1.0))
    monkeypatch.setattr(wb.LogitTable, "span", 7)
    assert temperature.summed_derivatives(table, 0, (0.7, 1.0)) == whole


def test_where_no_temperature_is_best_the_fit_says_so():
    scores = np.random.default_rng(0).normal(size=(200, 4)) * 2
    with pytest.warns(UserWarning, match="every label is the most probable class"):
        wb.TemperatureScaling().fit(wb.LogitTable(scores, scores.argmax(1)))
    with pytest.warns(UserWarning, match="no likelier than by chance"):
        wb.TemperatureScaling().fit(wb.LogitTable(scores, scores.argmin(1)))
