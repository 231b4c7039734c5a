"""Claims that are counted and not trained for: networks of comparators, conformal promises, images a class, people."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import stats

from workbench.claims import TABLES
from workbench.claims.claim import COUNTED, NETWORK, Bench, Claim, Found, Line
from workbench.claims.data import CIFAR10_MODELS, CIFAR10_VOTES, CIFAR_LOGITS, demo_tables, letters
from workbench.claims.experiment import Estimate, Measure, arm, found, over_rows, trained
from workbench.losses import CrossEntropy
from workbench.metrics import accuracy
from workbench.metrics.set_metrics import class_accuracy
from workbench.sets import APS, LAC, RAPS, AverageK, Rule, Threshold, TopK
from workbench.sets.thresholds import threshold_at_mean_size
from workbench.tables import LogitTable

SPLITS, CONFIDENCE = 200, 0.9
K = 3
ENOUGH_VOTES = 2  # of about 51 people: one alone may have slipped


def _depths(_: Bench) -> Found:
    found = TABLES["003 Table 7"].reproduce(small=True).frame
    same = float((found["printed"] == found["ours"]).mean())
    return Found((Estimate(same, same, same).expected("share of the printed depths that are ours", above=0.999),), ())


def _heterogeneous(bench: Bench) -> Found:
    """Points of average-K over top-K in each superclass, against the spread of the entropy of its rows."""
    with np.load(bench.file(CIFAR_LOGITS), allow_pickle=False) as held:
        logits, labels = held["logits"].astype(np.float32), held["y"].astype(np.int64)
        names, superclass = held["models"].tolist(), held["superclass"][labels]
    expected, lines = [], []
    for name, scores in zip(names, logits, strict=True):
        table = LogitTable(scores, labels)
        points = [_spread_and_gap(table.rows(np.flatnonzero(superclass == group))) for group in np.unique(superclass)]
        spread, gap = np.array(points).T
        correlation = over_rows(partial(_rank_correlation, spread, gap), len(gap))
        what = f"rank correlation over superclasses of spread and points of average-{K} over top-{K}, {name}"
        expected.append(correlation.expected(what, above=0))
        lines += [Line(name, round(x, 3), y) for x, y in sorted(points)]
    return Found(tuple(expected), tuple(lines))


def _spread_and_gap(table: LogitTable) -> tuple[float, float]:
    """Standard deviation of the entropy of the rows, and points of average-K over top-K sets of them."""
    probabilities = np.asarray(table.probabilities(), dtype=float)
    entropy = -(probabilities * np.log(np.maximum(probabilities, 1e-30))).sum(1)
    hits = [rule.fit(table)(table).hits.mean() for rule in (AverageK(K), TopK(K))]
    return float(entropy.std()), 100 * float(hits[0] - hits[1])


def _rank_correlation(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> float:
    return float(stats.spearmanr(first[rows], second[rows]).statistic)


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
            gains[best].expected(f"points of the best network, {best}, over people", below=0),
            gains[worst].expected(f"points of the worst network, {worst}, over people", below=0),
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
        COUNTED,
        seeds=0,
    ),
    Claim(
        22,
        "Average-K gains more over top-K where ambiguity is heterogeneous.",
        "Garcin, thesis, section 2.2.5 (Lorieul, Joly and Shasha 2021)",
        "CIFAR-100, logits of two published networks on 10 000 test images; K = 3, thresholds of the same rows; the 20 "
        "superclasses are resampled",
        "over superclasses the points of average-3 over top-3 grow with the standard deviation of the entropy of their rows: the "
        "rank correlation is positive for both networks",
        _heterogeneous,
        COUNTED,
        x="standard deviation of the entropy of the rows",
        y="points of average-3 over top-3",
        changed="before, the best possible sets of the garden were compared, which cannot fail: with the true posterior the gain "
        "of a mixture is at least the mean of the gains of its parts",
        seeds=0,
        needs=(CIFAR_LOGITS,),
    ),
    Claim(
        23,
        "Conformal sets keep their promise on average over splits.",
        "Garcin, thesis, section 2.2.2 (Vovk, Gammerman and Shafer 2005)",
        f"letters, a small multilayer network, its test rows halved at random {SPLITS} times; confidence 90 %",
        "the mean coverage of LAC, APS and RAPS is within half a point of 90 %",
        _coverage,
        NETWORK,
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
        NETWORK,
        x="training images a class",
        y="top-1 accuracy, %",
        logarithmic=True,
        seeds=1,
    ),
    Claim(
        25,
        "At equal mean size the sets of people hold the label more often than those of networks.",
        "Garcin, thesis, section 3.3.3, Fig. 3.7 (there: plants; a botanist errs in 20.5 % of 83 images, networks in 33 %)",
        "CIFAR-10, 18 published networks and about 51 human votes an image, 10 000 test images",
        "the best and the worst network are below people",
        _against_people,
        COUNTED,
        y="share of images whose set holds the label, %",
        seeds=0,
        changed="the claim had been put the wrong way round, networks above people, against what the thesis found",
        needs=(CIFAR10_MODELS, CIFAR10_VOTES),
    ),
)
