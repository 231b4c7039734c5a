"""Are the probabilities worth what they say: calibration errors, scoring rules, confidence inside and outside.

Bins are (a, b], so that a confidence of exactly 1 has a bin and a bound is never counted twice. A quasibinary q above 1
counts as 1 here; `share_above_one` says how many there are. AU-ROC and the false-positive rate only rank rows, so they
take q as it is: counting it as 1 would tie the surest rows. What needs a label is measured on the rows that have one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.counts import whole
from workbench.metrics.base import Parts, PointParts, mean, metric, ratio
from workbench.sets.ranks import label_ranks
from workbench.tables import LogitTable
from workbench.tables.checks import array_of
from workbench.tables.links import has_likelihood, log_losses
from workbench.tables.ordering import falling_order, likeliest, most_probable
from workbench.tables.passes import over_parts, row_values

BINS = 15


@metric(title="Top-K accuracy", direction="higher", subject="table")
def top_k_accuracy(table: LogitTable, K: int = 1) -> Parts:
    """The share of rows whose label is among the K most probable classes (Garcin, thesis, Eq. 2.14).

    Of equally probable classes that of the higher score comes first, of equal scores the first. With many labels all of
    them must be among the K.

    - `table`: the rows, with their scores and labels.
    - `K`: number of most probable classes among which the label must be.
    """
    K = whole("K", K)
    table.checked_labels()
    return mean(row_values(table, ranks_of_labels) <= K)


@metric(title="Expected calibration error", direction="lower", subject="table", inflated="up")
def expected_calibration_error(table: LogitTable, bins: int = BINS, equal_mass: bool = False) -> Parts:
    r"""The mean distance between confidence and accuracy over bins of the most probable class.

    $$\mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \mathrm{acc}_b - \mathrm{conf}_b \right|$$

    Bins of equal width, or of equal mass: as many rows in each.

    - `table`: the rows, with their scores and labels.
    - `bins`: number of bins of the confidence.
    - `equal_mass`: whether bins hold equally many rows; otherwise they are equally wide.
    """
    return _calibration(table, 1, bins, equal_mass, _expected_error)


@metric(title="Maximum calibration error", direction="lower", subject="table", inflated="up")
def maximum_calibration_error(table: LogitTable, bins: int = BINS, equal_mass: bool = False) -> Parts:
    """The largest distance between confidence and accuracy over bins of the most probable class.

    - `table`: the rows, with their scores and labels.
    - `bins`: number of bins of the confidence.
    - `equal_mass`: whether bins hold equally many rows; otherwise they are equally wide.
    """
    return _calibration(table, 1, bins, equal_mass, _largest_error)


@metric(title="Top-k calibration error", direction="lower", subject="table", inflated="up")
def top_k_calibration_error(table: LogitTable, K: int = 4, bins: int = 10) -> Parts:
    """The expected calibration error of the K most probable classes of every row (all, if there are fewer), pooled.

    Each of them is right when it is a label of the row: the reliability of many-label predictions, top 4 in 10 bins
    (Liao et al., Table III and Fig. 3).

    - `table`: the rows, with their scores and labels.
    - `K`: number of most probable classes of each row that are judged.
    - `bins`: number of bins of the confidence.
    """
    return _calibration(table, min(K, table.n_classes), bins, False, _expected_error)


@metric(title="Top-label calibration error", direction="lower", subject="table", inflated="up")
def top_label_calibration_error(table: LogitTable, bins: int = BINS) -> Parts:
    """The expected calibration error given the predicted class: binned within each class, weighted by its rows.

    Gupta & Ramdas 2022. Rarely predicted classes have few rows in a bin, which biases it upwards.

    - `table`: the rows, with their scores and labels.
    - `bins`: number of bins of the confidence.
    """
    confidence, predicted, right = top_classes(table, 1)
    confidence = np.minimum(confidence, 1)
    cells = predicted[:, 0] * bins + equal_width_bins(confidence[:, 0], bins)
    occupied, cells = np.unique(cells, return_inverse=True)
    columns = _reliability_columns(confidence[:, 0], right[:, 0])
    return Parts(table.n, columns, _expected_error, cells, len(occupied))


@metric(title="Class-wise calibration error", direction="lower", subject="table")
def classwise_calibration_error(table: LogitTable, bins: int = BINS) -> Parts:
    """The mean over classes of the calibration error of "is it this class?", every probability of every row counted.

    An interval is not available: it would need all n·L probabilities for each resample.

    - `table`: the rows, with their scores and labels.
    - `bins`: number of bins of the confidence.
    """
    sums = classwise_sums(table, bins)  # (L, bins, columns)
    return PointParts.of(table.n, np.abs(sums[..., 1] - sums[..., 2]).sum(-1).mean() / table.n)


@metric(title="Brier score", direction="lower", bounds=(0, np.inf), subject="table")
def brier_score(table: LogitTable) -> Parts:
    r"""$\frac1n \sum_i \sum_j (p_j(x_i) - \mathbb 1[j \text{ is a label of } i])^2$: squared distance to the truth.

    - `table`: the rows, with their scores and labels.
    """
    return mean(row_values(table, squared_errors))


@metric(title="Brier score taken apart", direction="none", bounds=(-np.inf, np.inf), subject="table")
def brier_decomposition(table: LogitTable, bins: int = BINS) -> Parts:
    """Brier score = reliability − resolution + uncertainty + within, summed over classes (Murphy 1973).

    Reliability: squared distance of confidence and frequency in the bins. Resolution: how far frequencies of bins lie
    from the frequency of the class. Uncertainty: the variance of the label. Within: what binning hides; the four add up
    exactly. No interval, for the reason given at the class-wise error.

    - `table`: the rows, with their scores and labels.
    - `bins`: number of bins of the confidence.
    """
    count, confidence, right, squares, joint = np.moveaxis(classwise_sums(table, bins), -1, 0)  # (L, bins) each
    frequency, mean_confidence = ratio(right, count), ratio(confidence, count)
    base = right.sum(1, keepdims=True) / table.n
    parts = {
        "reliability": np.nansum(count * (mean_confidence - frequency) ** 2),
        "resolution": np.nansum(count * (frequency - base) ** 2),
        "uncertainty": (base * (1 - base)).sum() * table.n,
        "within": np.nansum(squares - 2 * joint - count * (mean_confidence**2 - 2 * mean_confidence * frequency)),
    }
    return PointParts.of(table.n, {name: value / table.n for name, value in parts.items()})


@metric(
    title="Negative log-likelihood",
    direction="lower",
    bounds=(0, np.inf),
    subject="table",
    suits=lambda table: has_likelihood(table.link, table.many_labels),
)
def negative_log_likelihood(table: LogitTable) -> Parts:
    """Minus the mean log-probability of the label, in float64 from the scores (probabilities would underflow).

    With many labels: the binary cross-entropy of all classes, summed over classes; it needs the sigmoid link (or
    probabilities), one label a row the softmax link.

    - `table`: the rows, with their scores and labels.
    """
    table.checked_labels()
    return mean(row_values(table, losses_of_rows))


@metric(title="Mean maximum confidence", direction="none", subject="table", labels="none")
def max_confidence(table: LogitTable) -> Parts:
    """The mean probability of the most probable class (MMC). Low is good for rows that belong to no class (Liao et al.).

    - `table`: the rows, with their scores and labels.
    """
    return mean(np.minimum(confidences(table), 1))


@metric(
    title="Share of q above 1",
    direction="lower",
    subject="table",
    labels="none",
    suits=lambda table: table.link == "quasibinary",
)
def share_above_one(table: LogitTable, K: int = 4) -> Parts:
    """The share of the K most probable classes of every row whose quasibinary q exceeds 1, as no probability should.

    - `table`: the rows, with their scores and labels.
    - `K`: number of most probable classes of each row that are looked at.
    """
    values, _, _ = top_classes(table, min(K, table.n_classes))
    return mean((values > 1).mean(1))


@metric(title="AU-ROC", direction="higher", subject="tables", labels="none")
def auroc(inside: Any, outside: Any) -> Parts:
    """The probability that a row inside the known classes is more confident than one outside; ties count half.

    Takes two tables (their largest probabilities are compared) or two arrays of confidences. Liao et al., Table II.

    - `inside`, `outside`: two tables, or two arrays of confidences: rows that have a label, and rows that have none.
    """

    def formula(sums: np.ndarray) -> np.ndarray:
        n_inside, n_outside = sums[..., 0], sums[..., 1]  # at each confidence, rising
        below = np.cumsum(n_outside, axis=-1) - n_outside
        wins = (n_inside * (below + n_outside / 2)).sum(-1)
        return ratio(wins, n_inside.sum(-1) * n_outside.sum(-1))

    return _two_sided(inside, outside, formula)


@metric(title="False-positive rate at 95 %", direction="lower", subject="tables", labels="none")
def fpr_at_95(inside: Any, outside: Any) -> Parts:
    """The share of outside rows that pass the highest threshold which 95 % of inside rows pass.

    - `inside`, `outside`: two tables, or two arrays of confidences: rows that have a label, and rows that have none.
    """

    def formula(sums: np.ndarray) -> np.ndarray:
        passing = np.cumsum(sums[..., ::-1, :], axis=-2)  # how many reach each confidence, falling
        enough = passing[..., 0] >= 0.95 * passing[..., -1:, 0] - 1e-9
        at = np.argmax(enough, axis=-1)[..., None]
        return ratio(np.take_along_axis(passing[..., 1], at, -1)[..., 0], passing[..., -1, 1])

    return _two_sided(inside, outside, formula)


def confidences(table: LogitTable) -> np.ndarray:
    """(n,) float64: the probability of the most probable class, a quasibinary q as it is.

    A bound such as 0.2 is no float32: in float64 every comparison with it is exact.

    - `table`: the rows, with their scores and labels.
    """
    return row_values(table, largest_of_rows).astype(np.float64)


def largest_of_rows(part: LogitTable, first_row: int) -> np.ndarray:
    """The largest probability of some rows."""
    return np.concatenate([part.probabilities(rows).max(1) for rows in part.spans()])


def ranks_of_labels(part: LogitTable, first_row: int) -> np.ndarray:
    """The ranks of the labels of some rows."""
    labels = part.checked_labels()
    ranks = [label_ranks(part.probabilities(rows), part.scores[rows], labels[rows]) for rows in part.spans()]
    return np.concatenate(ranks)


def losses_of_rows(part: LogitTable, first_row: int) -> np.ndarray:
    """Minus the log-likelihood of the labels of some rows."""
    labels = part.checked_labels()
    losses = [log_losses(part.scores[rows].astype(np.float64), labels[rows], part.link) for rows in part.spans()]
    return np.concatenate(losses)


def top_classes(table: LogitTable, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, K) float64 probabilities of the K most probable classes, the classes, and whether each is a label of the row.

    Without labels the last is all False. Of equally probable classes that of the higher score comes first.
    """
    K = whole("K", K)
    if K > table.n_classes:
        raise ValueError(f"K = {K} with {table.n_classes} classes; give 1 ≤ K ≤ {table.n_classes}")
    values, classes, right = map(np.concatenate, zip(*over_parts(table, tops_of_rows, K), strict=True))
    return values.astype(np.float64), classes, right


def tops_of_rows(part: LogitTable, first_row: int, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, K) the largest probabilities of some rows, their classes, and whether each is a label."""
    values, classes, right = [], [], []
    for rows in part.spans():
        probabilities = part.probabilities(rows)
        top = _first_classes(probabilities, part.scores[rows], K, part.link)
        values.append(np.take_along_axis(probabilities, top, 1))
        classes.append(top)
        if part.labels is None:
            right.append(np.zeros(top.shape, bool))
        elif part.many_labels:
            right.append(np.take_along_axis(part.labels[rows], top, 1))
        else:
            right.append(top == part.labels[rows][:, None])
    return np.concatenate(values), np.concatenate(classes), np.concatenate(right)


def _first_classes(probabilities: np.ndarray, scores: np.ndarray, K: int, link: str) -> np.ndarray:
    if K == 1:
        return likeliest(probabilities, scores, link)[:, None]
    by_class = np.nonzero(most_probable(probabilities, scores, K))[1].reshape(-1, K)
    chosen = (np.take_along_axis(values, by_class, 1) for values in (probabilities, scores))
    return np.take_along_axis(by_class, falling_order(*chosen), 1)


def equal_width_bins(confidence: np.ndarray, bins: int) -> np.ndarray:
    """The bin (a, b] of each confidence among equal ones of [0, 1]; 0 goes to the first, above 1 to the last.

    >>> equal_width_bins(np.array([0.0, 0.5, 0.51, 1.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    bins = whole("bins", bins)
    edges = np.linspace(0, 1, bins + 1)
    return np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)


def equal_mass_bins(confidence: np.ndarray, bins: int) -> np.ndarray:
    """The bin of each confidence when each bin gets as many rows as the others, up to one; ties by position."""
    places = np.empty(len(confidence), np.int64)
    places[np.argsort(confidence, kind="stable")] = np.arange(len(confidence))
    return places * whole("bins", bins) // max(len(confidence), 1)


def classwise_sums(table: LogitTable, bins: int) -> np.ndarray:
    """(L, bins, 5): number, Σp, Σ[is label], Σp², Σ p·[is label] of the probabilities of each class in each bin."""
    table.checked_labels()
    bins = whole("bins", bins)
    sums = np.zeros((5, table.n_classes * bins))
    for of_part in over_parts(table, sums_of_classes, bins):  # in the order of the rows: sums of floats depend on it
        sums += of_part
    return np.moveaxis(sums, 0, -1).reshape(table.n_classes, bins, 5)


def sums_of_classes(part: LogitTable, first_row: int, bins: int) -> np.ndarray:
    """(5, L·bins) the sums of `classwise_sums` over some rows."""
    n_cells = part.n_classes * bins
    sums = np.zeros((5, n_cells))
    rows_of, classes_of = part.positives()
    for rows in part.spans():
        probabilities = np.minimum(part.probabilities(rows).astype(np.float64), 1)
        cells = equal_width_bins(probabilities, bins) + np.arange(part.n_classes) * bins
        flat, values = cells.ravel(), probabilities.ravel()
        inside = slice(*np.searchsorted(rows_of, (rows.start, rows.stop)))
        labelled = rows_of[inside] - rows.start, classes_of[inside]
        sums[0] += np.bincount(flat, minlength=n_cells)
        sums[1] += np.bincount(flat, values, n_cells)
        sums[2] += np.bincount(cells[labelled], minlength=n_cells)
        sums[3] += np.bincount(flat, values**2, n_cells)
        sums[4] += np.bincount(cells[labelled], probabilities[labelled], n_cells)
    return sums


def _calibration(table: LogitTable, K: int, bins: int, equal_mass: bool, formula: Any) -> Parts:
    table.checked_labels()
    K, bins = whole("K", K), whole("bins", bins)
    confidence, _, right = (values.ravel() for values in top_classes(table, K))
    confidence = np.minimum(confidence, 1)
    cells = (equal_mass_bins if equal_mass else equal_width_bins)(confidence, bins)
    rows = None if K == 1 else np.repeat(np.arange(table.n), K)
    return Parts(table.n, _reliability_columns(confidence, right), formula, cells, bins, rows)


def _reliability_columns(confidence: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(confidence)), confidence, right])


def _expected_error(sums: np.ndarray) -> np.ndarray:
    errors: np.ndarray = np.abs(sums[..., 1] - sums[..., 2]).sum(-1) / sums[..., 0].sum(-1)
    return errors


def _largest_error(sums: np.ndarray) -> np.ndarray:
    errors: np.ndarray = np.nanmax(ratio(np.abs(sums[..., 1] - sums[..., 2]), sums[..., 0]), axis=-1)
    return errors


def squared_errors(part: LogitTable, first_row: int) -> np.ndarray:
    """The squared distance of the probabilities of some rows to the truth."""
    squares, labels = [], part.checked_labels()
    for rows in part.spans():
        errors = np.minimum(part.probabilities(rows).astype(np.float64), 1)
        if part.many_labels:
            errors -= labels[rows]
        else:
            errors[np.arange(len(errors)), labels[rows]] -= 1
        squares.append((errors**2).sum(1))
    return np.concatenate(squares)


def _two_sided(inside: Any, outside: Any, formula: Any) -> Parts:
    sides = [confidences(side) if isinstance(side, LogitTable) else array_of(side) for side in (inside, outside)]
    for side in sides:
        if side.ndim != 1 or len(side) == 0 or not np.isfinite(side).all():
            raise ValueError("give two tables, or two arrays with one finite confidence per row")
    levels, cells = np.unique(np.concatenate(sides), return_inverse=True)
    columns = np.zeros((len(cells), 2))
    columns[: len(sides[0]), 0] = 1
    columns[len(sides[0]) :, 1] = 1
    return Parts(len(cells), columns, formula, cells, len(levels))
