"""Claims that are counted and not trained for: networks of comparators, conformal promises, images a class, people."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import workbench.metrics.bayes as bayes
from workbench.claims import TABLES
from workbench.claims.arms import Estimate, Measure, arm, found, over_rows, trained
from workbench.claims.claim import Bench, Claim, Found
from workbench.claims.data import CIFAR10_MODELS, CIFAR10_VOTES, demo_tables, letters
from workbench.losses import CrossEntropy
from workbench.metrics import accuracy
from workbench.metrics.of_sets import class_accuracy
from workbench.sets import APS, LAC, RAPS, Rule, Threshold, TopK
from workbench.sets.selection import threshold_at_mean_size
from workbench.tables import LogitTable

SPLITS, CONFIDENCE = 200, 0.9
K = 3
FEW_RESAMPLES = 200  # of posteriors, which are sorted every time
ENOUGH_VOTES = 2  # of about 51 people: one alone may have slipped


def _depths(_: Bench) -> Found:
    found = TABLES["003 Table 7"].reproduce(small=True).frame
    same = float((found["printed"] == found["ours"]).mean())
    return Found((Estimate(same, same, same).expected("share of the printed depths that are ours", above=0.999),), ())


def _heterogeneous(_: Bench) -> Found:
    """Average-K gains over top-K: on all rows, against the mean of the gains on rows that show the same organs."""
    table = demo_tables()["test"]
    posterior, shown = bayes.posterior_of(table), np.asarray(table.attributes["organs"])  # type: ignore[index]
    kinds = {str(kind): posterior[shown == kind] for kind in np.unique(shown)}
    within = {kind: over_rows(partial(_gap, of_kind), len(of_kind), FEW_RESAMPLES) for kind, of_kind in kinds.items()}

    def surplus(rows: np.ndarray) -> float:
        parts = [posterior[rows[shown[rows] == kind]] for kind in kinds]
        return _gap(posterior, rows) - sum(len(part) * _gap(part) for part in parts if len(part)) / len(rows)

    added = over_rows(surplus, table.n, FEW_RESAMPLES)
    lines = [points.at("one kind", kind) for kind, points in within.items()]
    lines.append(over_rows(partial(_gap, posterior), table.n, FEW_RESAMPLES).at("all together", "all"))
    what = "points that mixing the organs adds to the gain of average-3 over top-3"
    return Found((added.expected(what, above=0),), tuple(lines))


def _gap(posterior: np.ndarray, rows: Any = slice(None)) -> float:
    """Points of the best average-K sets over the best top-K sets of some rows."""
    chosen = posterior[rows]
    return 100 * (bayes.average_k_accuracy(chosen, K) - bayes.top_k_accuracy(chosen, K))


def _coverage(bench: Bench) -> Found:
    side = trained(
        bench,
        letters("mlp"),
        [arm("cross-entropy", loss=CrossEntropy())],
        tuned_by=Measure(accuracy, TopK(1)).on_val,
        seeds=1,
    )["cross-entropy"]
    table = side.runs[0].tables["test"]
    # A random share is drawn by seed and place: splits with one seed would all have the same draws.
    rules: dict[str, Callable[[int], Rule]] = {
        "LAC": lambda _: LAC(CONFIDENCE),
        "APS": lambda seed: APS(CONFIDENCE, seed=seed),
        "RAPS": lambda seed: RAPS(CONFIDENCE, seed=seed),
    }
    expected, lines = [], []
    for name, rule in rules.items():
        covered = np.array([_covered(table, rule(seed), seed) for seed in range(SPLITS)])
        reach = 1.96 * covered.std(ddof=1) / np.sqrt(SPLITS)
        mean = Estimate(covered.mean(), covered.mean() - reach, covered.mean() + reach)
        expected.append(mean.expected(f"mean coverage of {name} over {SPLITS} splits", above=0.895, below=0.905))
        low, high = np.quantile(covered, [0.025, 0.975])
        lines.append(Estimate(100 * covered.mean(), 100 * low, 100 * high).at("coverage of one split", name))
    remark = "The bars hold 95 % of the splits: a single split may lie above or below its promise."
    return found(expected, lines, {"cross-entropy": side}, remark)


def _covered(table: LogitTable, rule: Rule, seed: int) -> float:
    fitted_on, judged_on = table.split(0.5, seed=seed)
    return float(rule.fit(fitted_on)(judged_on).hits.mean())


def _images_per_class(_: Bench) -> Found:
    tables = demo_tables()
    of_classes = class_accuracy(TopK(1).fit(tables["val"])(tables["test"]))
    counts, present = np.asarray(tables["test"].class_counts), np.isfinite(of_classes)
    order = np.argsort(counts[present])
    accuracies, counts = of_classes[present][order], counts[present][order]
    correlation = over_rows(lambda rows: float(stats.spearmanr(counts[rows], accuracies[rows]).statistic), len(counts))
    parts = np.array_split(np.arange(len(counts)), 5)
    lines = [
        over_rows(partial(_mean_of, 100 * accuracies[part]), len(part)).at(
            "top-1 accuracy of a fifth of the classes", float(np.exp(np.log(counts[part]).mean()))
        )
        for part in parts
    ]
    return Found((correlation.expected("rank correlation of accuracy and training images", above=0),), tuple(lines))


def _mean_of(values: np.ndarray, rows: np.ndarray) -> float:
    return float(values[rows].mean())


def _against_people(bench: Bench) -> Found:
    with np.load(bench.file(CIFAR10_VOTES), allow_pickle=False) as held:
        votes, labels = held["counts"], held["y"].astype(np.int64)
    with np.load(bench.file(CIFAR10_MODELS), allow_pickle=False) as held:
        scores, names = held["logp"].astype(np.float32), held["models"].tolist()
    people = votes >= ENOUGH_VOTES
    size, right = float(people.sum(1).mean()), people[np.arange(len(labels)), labels].astype(float)
    gains, lines = {}, [_mean(right).at("people", "people")]
    for name, of in zip(names, scores, strict=True):
        table = LogitTable(of, labels)
        sets = Threshold(threshold_at_mean_size(table, size)).fit(table)(table)
        gains[name] = _mean(sets.hits - right)
        lines.append(_mean(sets.hits.astype(float)).at("networks", name))
    best = max(gains, key=lambda name: gains[name].value)
    worst = min(gains, key=lambda name: gains[name].value)
    return Found(
        (
            gains[best].expected(f"points of the best network, {best}, over people", above=0),
            gains[worst].expected(f"points of the worst network, {worst}, over people", above=0),
        ),
        tuple(lines),
        remark=f"People and networks return {size:.3f} classes on average; a class is in the set of people if at least "
        f"{ENOUGH_VOTES} of about 51 chose it.",
    )


def _mean(values: np.ndarray) -> Estimate:
    mean, reach = 100 * float(values.mean()), 196 * float(values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(mean, mean - reach, mean + reach)


CLAIMS = (
    Claim(
        17,
        "The depths of splitter selection networks are those of the paper's table.",
        "Petersen et al. 2022, Table 7",
        "the networks of the library, for every number of classes and every m of the table",
        "all of them are equal",
        _depths,
        seeds=0,
    ),
    Claim(
        22,
        "Average-K gains more over top-K where ambiguity is heterogeneous.",
        "Garcin, thesis, section 2.3 (Lorieul et al. 2021)",
        "garden, 3 000 test photographs with their exact posterior; K = 3; the best possible sets",
        "the gain on all photographs is larger than the mean gain on photographs that show the same organs",
        _heterogeneous,
        y="points of average-3 over top-3",
        changed="200 resamples in place of 1 000, which took three minutes",
        seeds=0,
    ),
    Claim(
        23,
        "Conformal sets keep their promise on average over splits.",
        "Garcin, thesis, section 2.4",
        f"letters, a small multilayer network, its test rows halved at random {SPLITS} times; confidence 90 %",
        "the mean coverage of LAC, APS and RAPS is within half a point of 90 %",
        _coverage,
        y="coverage, %",
        changed="APS and RAPS draw with another seed in every split; with the same one all splits shared their draws, and the "
        "mean was 87.5 %",
        seeds=1,
    ),
    Claim(
        24,
        "Accuracy of a class grows with its number of training images.",
        "Garcin, thesis, Table 3.1",
        "garden, the demo's network trained with cross-entropy, 3 000 test photographs; classes are resampled",
        "the rank correlation over classes is positive",
        _images_per_class,
        x="training images a class",
        y="top-1 accuracy, %",
        logarithmic=True,
        seeds=1,
    ),
    Claim(
        25,
        "At equal mean size the sets of networks hold the label more often than those of people.",
        "Garcin, thesis, section 3.3.3, Fig. 3.7 (there: plants and one expert)",
        "CIFAR-10, 18 published networks and about 51 human votes an image, 10 000 test images",
        "the best and the worst network are above people",
        _against_people,
        y="share of images whose set holds the label, %",
        seeds=0,
        needs=(CIFAR10_MODELS, CIFAR10_VOTES),
    ),
)
