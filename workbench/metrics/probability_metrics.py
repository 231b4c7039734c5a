"""Metrics of probabilities: calibration errors, scoring rules, confidence of rows with and without a label.

Bins are (a, b], so that a confidence of exactly 1 has a bin and a bound is never counted twice. A quasibinary q above 1
counts as 1 here; `share_above_one` says how many there are. AU-ROC and the false-positive rate only rank rows, so they
take q as it is: counting it as 1 would tie the surest rows. All of them but top-K accuracy count rows that show none of the
classes: there no class is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.calibration import TemperatureScaling
from workbench.calibration.isotonic import Steps
from workbench.metrics.base import Parts, PointParts, mean, metric, ratio
from workbench.metrics.row_facts import Fact, known, passes_of, remembered
from workbench.sets.base import Block
from workbench.sets.label_ranks import label_ranks
from workbench.tables import LogitTable
from workbench.tables.checks import array_of
from workbench.tables.links import has_likelihood, log_losses
from workbench.tables.ordering import contenders, falling_order, likeliest, marked_places
from workbench.validation import whole_number

BINS, TOP = 15, 4
FEW_ROWS = 64


def ranks_of_labels(block: Block) -> tuple[np.ndarray]:
    """(rows,) the ranks of the labels."""
    return (label_ranks(block.probabilities, block.scores, _labels(block)),)


def losses_of_rows(block: Block) -> tuple[np.ndarray]:
    """(rows,) minus the log-likelihood of the labels, in float64."""
    scores, labels = block.scores, _labels(block)
    parts = [  # few rows at a time: in float64 a whole block and its exponentials outgrow the cache
        log_losses(
            scores[start : start + FEW_ROWS].astype(np.float64), labels[start : start + FEW_ROWS], block.table.link
        )
        for start in range(0, len(scores), FEW_ROWS)
    ]
    return (np.concatenate(parts),)


def squared_errors(block: Block) -> tuple[np.ndarray]:
    """(rows,) the squared distance of the probabilities to the truth: Σ p² + Σ over the labels of 1 − 2 p."""
    p, (rows, classes) = block.capped, _positives(block)
    return (np.vecdot(p, p) + np.bincount(rows, 1 - 2 * p[rows, classes].astype(np.float64), len(p)),)


def tops_of_rows(block: Block, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, K) the largest probabilities in float64, their classes, and whether each is a label; fewer of fewer classes."""
    p, scores, labels = block.probabilities, block.scores, block.labels
    top = _first_classes(p, scores, min(K, p.shape[1]), block.table.link)
    if labels is None:
        right = np.zeros(top.shape, bool)
    else:
        right = np.take_along_axis(labels, top, 1) if labels.ndim == 2 else top == labels[:, None]
    return np.take_along_axis(p, top, 1).astype(np.float64), top, right


def sums_of_classes(block: Block, bins: int) -> tuple[np.ndarray]:
    """(5, L, bins) number, Σp, Σ[is label], Σp², Σ p·[is label] of the probabilities of each class in each bin.

    Most probabilities of many classes lie in the first bin, which gets what the others leave of the sums of a class: a bin
    is looked up for few. Sums over a block are taken in the type of the probabilities, those of blocks in float64.
    """
    p = block.capped
    n, n_classes = p.shape
    sums = np.zeros((5, n_classes, bins))

    def add(lines: tuple[int, ...], classes: np.ndarray, values: np.ndarray) -> None:
        values = values.astype(np.float64)
        cells = classes * bins + equal_width_bins(values, bins)
        for line, power in zip(lines, (0, 1, 2), strict=False):
            sums[line] += np.bincount(cells, values**power, n_classes * bins).reshape(n_classes, bins)

    above = np.flatnonzero(p > np.nextafter(p.dtype.type(1 / bins), 0))  # and some at the bound, for it is rounded
    add((0, 1, 3), above % n_classes, p.ravel()[above])
    for line, total in ((0, n), (1, np.ones(n, p.dtype) @ p), (3, np.einsum("ij,ij->j", p, p))):
        sums[line, :, 0] = total - sums[line, :, 1:].sum(1)
    rows, classes = _positives(block)
    add((2, 4), classes, p[rows, classes])
    return (sums,)


def _labels(block: Block) -> np.ndarray:
    labels: np.ndarray = block.table.checked_labels()[block.rows]
    return labels


def _positives(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """(rows, classes) of every label of a block, rows counted from its first."""
    labels = _labels(block)
    if labels.ndim == 2:
        return marked_places(labels)
    rows = np.flatnonzero(labels >= 0)
    return rows, labels[rows]


def tops(K: int) -> Fact:
    """The K most probable classes of every row."""
    return Fact(tops_of_rows, (K,))


def sums_by_class(bins: int) -> Fact:
    """The sums of all probabilities by class and bin."""
    return Fact(sums_of_classes, (bins,), added=True)


RANKS, LOSSES, SQUARES = Fact(ranks_of_labels), Fact(losses_of_rows), Fact(squared_errors)


@metric(title="Top-K accuracy", direction="higher", subject="table", reads=(RANKS,))
def top_k_accuracy(table: LogitTable, K: int = 1) -> Parts:
    """The share of rows whose label is among the K most probable classes (Garcin, thesis, Eq. 2.14).

    Of equally probable classes that of the higher score comes first, of equal scores the first. With many labels all of
    them must be among the K.

    Args:
        table: The rows, with their scores and labels.
        K: Number of most probable classes among which the label must be.
    """
    K = whole_number("K", K)
    table.checked_labels()
    return mean(known(table, RANKS)[0] <= K)


@metric(
    title="Expected calibration error",
    direction="lower",
    subject="table",
    rows="known",
    inflated="up",
    reads=(tops(TOP),),
)
def expected_calibration_error(table: LogitTable, bins: int = BINS, equal_mass: bool = False) -> Parts:
    r"""The mean distance between confidence and accuracy over bins of the most probable class.

    $$\mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \mathrm{acc}_b - \mathrm{conf}_b \right|$$

    Bins of equal width, or of equal mass: as many rows in each.

    Args:
        table: The rows, with their scores and labels.
        bins: Number of bins of the confidence.
        equal_mass: Whether bins hold equally many rows; otherwise they are equally wide.
    """
    return _calibration(table, 1, bins, equal_mass, _expected_error)


@metric(
    title="Maximum calibration error",
    direction="lower",
    subject="table",
    rows="known",
    inflated="up",
    reads=(tops(TOP),),
)
def maximum_calibration_error(table: LogitTable, bins: int = BINS, equal_mass: bool = False) -> Parts:
    """The largest distance between confidence and accuracy over bins of the most probable class.

    Args:
        table: The rows, with their scores and labels.
        bins: Number of bins of the confidence.
        equal_mass: Whether bins hold equally many rows; otherwise they are equally wide.
    """
    return _calibration(table, 1, bins, equal_mass, _largest_error)


@metric(
    title="Top-k calibration error", direction="lower", subject="table", rows="known", inflated="up", reads=(tops(TOP),)
)
def top_k_calibration_error(table: LogitTable, K: int = TOP, bins: int = 10) -> Parts:
    """The expected calibration error of the K most probable classes of every row (all, if there are fewer), pooled.

    Each of them is right when it is a label of the row: the reliability of many-label predictions, top 4 in 10 bins
    (Liao et al., Table III and Fig. 3).

    Args:
        table: The rows, with their scores and labels.
        K: Number of most probable classes of each row that are judged.
        bins: Number of bins of the confidence.
    """
    return _calibration(table, min(K, table.n_classes), bins, False, _expected_error)


@metric(
    title="Top-label calibration error",
    direction="lower",
    subject="table",
    rows="known",
    inflated="up",
    reads=(tops(TOP),),
)
def top_label_calibration_error(table: LogitTable, bins: int = BINS) -> Parts:
    """The expected calibration error given the predicted class: binned within each class, weighted by its rows.

    Gupta & Ramdas 2022. Rarely predicted classes have few rows in a bin, which biases it upwards.

    Args:
        table: The rows, with their scores and labels.
        bins: Number of bins of the confidence.
    """
    confidence, predicted, right = top_classes(table, 1)
    confidence = np.minimum(confidence, 1)
    cells = predicted[:, 0] * bins + equal_width_bins(confidence[:, 0], bins)
    occupied, cells = np.unique(cells, return_inverse=True)
    columns = _reliability_columns(confidence[:, 0], right[:, 0])
    return Parts(table.n, columns, _expected_error, cells, len(occupied))


@metric(
    title="Class-wise calibration error", direction="lower", subject="table", rows="known", reads=(sums_by_class(BINS),)
)
def classwise_calibration_error(table: LogitTable, bins: int = BINS) -> Parts:
    """The mean over classes of the calibration error of "is it this class?", every probability of every row counted.

    An interval is not available: it would need all n·L probabilities for each resample.

    Args:
        table: The rows, with their scores and labels.
        bins: Number of bins of the confidence.
    """
    sums = classwise_sums(table, bins)  # (L, bins, columns)
    return PointParts.of(table.n, np.abs(sums[..., 1] - sums[..., 2]).sum(-1).mean() / table.n)


@metric(title="Brier score", direction="lower", bounds=(0, np.inf), subject="table", rows="known", reads=(SQUARES,))
def brier_score(table: LogitTable) -> Parts:
    r"""$\frac1n \sum_i \sum_j (p_j(x_i) - \mathbb 1[j \text{ is a label of } i])^2$: squared distance to the truth.

    Args:
        table: The rows, with their scores and labels.
    """
    table.checked_labels()
    return mean(known(table, SQUARES)[0])


@metric(
    title="Brier score taken apart",
    direction="none",
    bounds=(-np.inf, np.inf),
    subject="table",
    rows="known",
    reads=(sums_by_class(BINS),),
)
def brier_decomposition(table: LogitTable, bins: int = BINS) -> Parts:
    """Brier score = reliability − resolution + uncertainty + within, summed over classes (Murphy 1973).

    Reliability: squared distance of confidence and frequency in the bins. Resolution: how far frequencies of bins lie
    from the frequency of the class. Uncertainty: the variance of the label. Within: what binning hides; the four add up
    exactly. No interval, for the reason given at the class-wise error.

    Args:
        table: The rows, with their scores and labels.
        bins: Number of bins of the confidence.
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


@metric(title="Brier score of the confidence taken apart", direction="none", subject="table", rows="known")
def confidence_decomposition(table: LogitTable) -> Parts:
    """Brier score of the confidence = miscalibration − discrimination + uncertainty, without bins.

    Of the most probable class of each row and whether it is right. Miscalibration: how much the score falls when the
    confidence is replaced by its isotonic regression. Discrimination: how much better that is than the mean accuracy for
    every row. Uncertainty: the variance of being right. (CORP, Dimitriadis, Gneiting & Jordan 2021.) No interval: every
    resample would be a regression.

    Args:
        table: The rows, with their scores and labels.
    """
    confidence, _, right = (values[:, 0] for values in top_classes(table, 1))
    confidence, right = np.minimum(confidence, 1), right.astype(np.float64)
    steps = Steps.of(confidence, right)
    regressed = steps.isotonic()[np.searchsorted(steps.values, confidence)]
    score, at_best, of_mean = (((values - right) ** 2).mean() for values in (confidence, regressed, right.mean()))
    parts = {"miscalibration": score - at_best, "discrimination": of_mean - at_best, "uncertainty": of_mean}
    return PointParts.of(table.n, {name: max(float(value), 0.0) for name, value in parts.items()})


@metric(
    title="Log-likelihood taken apart",
    direction="none",
    bounds=(0, np.inf),
    subject="table",
    rows="known",
    suits=lambda table: has_likelihood(table.link, table.many_labels) and table.link in TemperatureScaling.links,
)
def likelihood_decomposition(table: LogitTable) -> Parts:
    """Negative log-likelihood = calibration + refinement.

    Refinement: what is left at the best temperature of these rows, so what no temperature can repair. Calibration: the
    rest. (Berta, Bach & Jordan 2025, with temperatures as the recalibrations.) It reads the table a few times, so it is in
    not in a report by default. No interval.

    Args:
        table: The rows, with their scores and labels.
    """
    fitted = TemperatureScaling().fit(table)
    calibration = max(fitted.before - fitted.after, 0.0)
    return PointParts.of(table.n, {"calibration": calibration, "refinement": fitted.before - calibration})


@metric(
    title="Negative log-likelihood",
    direction="lower",
    bounds=(0, np.inf),
    subject="table",
    rows="known",
    suits=lambda table: has_likelihood(table.link, table.many_labels),
    reads=(LOSSES,),
)
def negative_log_likelihood(table: LogitTable) -> Parts:
    """Minus the mean log-probability of the label, from the scores (its probability would underflow).

    With many labels: the binary cross-entropy of all classes, summed over classes; it needs the sigmoid link (or
    probabilities), one label a row the softmax link.

    Args:
        table: The rows, with their scores and labels.
    """
    table.checked_labels()
    return mean(known(table, LOSSES)[0])


@metric(title="Mean maximum confidence", direction="none", subject="table", labels="none", reads=(tops(TOP),))
def max_confidence(table: LogitTable) -> Parts:
    """The mean probability of the most probable class (MMC). Low is good for rows that belong to no class (Liao et al.).

    Args:
        table: The rows, with their scores and labels.
    """
    return mean(np.minimum(confidences(table), 1))


@metric(
    title="Share of q above 1",
    direction="lower",
    subject="table",
    labels="none",
    suits=lambda table: table.link == "quasibinary",
    reads=(tops(TOP),),
)
def share_above_one(table: LogitTable, K: int = TOP) -> Parts:
    """The share of the K most probable classes of every row whose quasibinary q exceeds 1, as no probability should.

    Args:
        table: The rows, with their scores and labels.
        K: Number of most probable classes of each row that are looked at.
    """
    values, _, _ = top_classes(table, min(K, table.n_classes))
    return mean((values > 1).mean(1))


@metric(title="AU-ROC", direction="higher", subject="tables", labels="none")
def auroc(inside: Any, outside: Any) -> Parts:
    """The probability that a row inside the known classes is more confident than one outside; ties count half.

    Takes two tables (their largest probabilities are compared) or two arrays of confidences. Liao et al., Table II.

    Args:
        inside: Table, or array of confidences, of rows that show a known class.
        outside: The same of rows that show none.
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

    Args:
        inside: Table, or array of confidences, of rows that show a known class.
        outside: The same of rows that show none.
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

    Args:
        table: The rows, with their scores and labels.
    """
    values: np.ndarray = top_classes(table, 1)[0][:, 0]
    return values


def top_classes(table: LogitTable, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, K) float64 probabilities of the K most probable classes, the classes, and whether each is a label of the row.

    Without labels the last is all False. Of equally probable classes that of the higher score comes first.
    """
    K = whole_number("K", K)
    if K > table.n_classes:
        raise ValueError(f"K = {K} with {table.n_classes} classes; give 1 ≤ K ≤ {table.n_classes}")
    held = [fact for fact in passes_of(table) if isinstance(fact, Fact) and fact.of_block is tops_of_rows]
    enough = min((fact for fact in held if fact.given[0] >= K), default=tops(K))
    values, classes, right = known(table, enough)
    return values[:, :K], classes[:, :K], right[:, :K]


def _first_classes(probabilities: np.ndarray, scores: np.ndarray, K: int, link: str) -> np.ndarray:
    if K == 1:
        return likeliest(probabilities, scores, link)[:, None]
    held, classes = contenders(probabilities, K)
    order = falling_order(held, np.take_along_axis(scores, classes, 1))[:, :K]
    return np.take_along_axis(classes, order, 1)


def equal_width_bins(confidence: np.ndarray, bins: int) -> np.ndarray:
    """The bin (a, b] of each confidence among equal ones of [0, 1]; 0 goes to the first, above 1 to the last.

    >>> equal_width_bins(np.array([0.0, 0.5, 0.51, 1.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    bins = whole_number("bins", bins)
    edges = np.linspace(0, 1, bins + 1)
    return np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)


def equal_mass_bins(confidence: np.ndarray, bins: int) -> np.ndarray:
    """The bin of each confidence when each bin gets as many rows as the others, up to one; ties by position."""
    places = np.empty(len(confidence), np.int64)
    places[np.argsort(confidence, kind="stable")] = np.arange(len(confidence))
    return places * whole_number("bins", bins) // max(len(confidence), 1)


def classwise_sums(table: LogitTable, bins: int) -> np.ndarray:
    """(L, bins, 5): number, Σp, Σ[is label], Σp², Σ p·[is label] of the probabilities of each class in each bin."""
    table.checked_labels()
    return np.moveaxis(known(table, sums_by_class(whole_number("bins", bins)))[0], 0, -1)


def _calibration(table: LogitTable, K: int, bins: int, equal_mass: bool, formula: Any) -> Parts:
    table.checked_labels()
    K, bins = whole_number("K", K), whole_number("bins", bins)
    columns, cells, rows = remembered(
        table, ("calibration", K, bins, equal_mass), lambda: _binned(table, K, bins, equal_mass)
    )
    return Parts(table.n, columns, formula, cells, bins, rows)


def _binned(table: LogitTable, K: int, bins: int, equal_mass: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The columns of a reliability diagram, the bin of each entry, and the rows they belong to (None: one each)."""
    confidence, _, right = (values.ravel() for values in top_classes(table, K))
    confidence = np.minimum(confidence, 1)
    cells = (equal_mass_bins if equal_mass else equal_width_bins)(confidence, bins)
    rows = None if K == 1 else np.repeat(np.arange(table.n), K)
    return _reliability_columns(confidence, right), cells, rows


def _reliability_columns(confidence: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(confidence)), confidence - right])


def _expected_error(sums: np.ndarray) -> np.ndarray:
    errors: np.ndarray = np.abs(sums[..., 1]).sum(-1) / sums[..., 0].sum(-1)
    return errors


def _largest_error(sums: np.ndarray) -> np.ndarray:
    errors: np.ndarray = np.nanmax(ratio(np.abs(sums[..., 1]), sums[..., 0]), axis=-1)
    return errors


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
