"""Claims about differentiable top-k by relaxed sorting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from workbench.claims.claim import HEAD, Bench, Claim, Found
from workbench.claims.data import CIFAR, cifar_heads
from workbench.claims.experiment import Measure, Trained, arm, found, gain, score, trained
from workbench.losses import CrossEntropy, DifferentiableTopK, Loss
from workbench.metrics import accuracy
from workbench.sets import TopK
from workbench.training import TrainedRun

SEEDS = 5
RATE, RATES = 3e-3, (1e-3, 3e-3, 1e-2)
STEEPNESS = {"neural_sort": (0.5, 2.0), "soft_sort": (0.5, 2.0), "sinkhorn_sort": (16.0,), "splitter": (0.5, 2.0)}
FIRST, FIVE = Measure(accuracy, TopK(1)), Measure(accuracy, TopK(5))
TOP_5, ENDS, EVEN = (0.0, 0.0, 0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 0.0, 0.5), (0.2,) * 5
MOSTLY_5 = (0.1, 0.0, 0.0, 0.0, 0.9)
SIZES = (10, 16, 20, 40)


def _mixtures(bench: Bench) -> Found:
    weights = {"top-5 alone": TOP_5, "ends": ENDS, "even": EVEN}
    losses = {name: _losses(p_k, "splitter") for name, p_k in weights.items()}
    sides = _sides(bench, losses | {"cross-entropy": [CrossEntropy()]}, RATES)
    reference = sides["cross-entropy"]
    pure, ends, even = (sides[name] for name in weights)
    expected = (
        gain(pure, reference, FIRST).expected("top-1 points of top-5 alone over cross-entropy", below=0),
        gain(ends, reference, FIRST).expected("top-1 points of (.5, 0, 0, 0, .5) over cross-entropy", above=0),
        gain(ends, reference, FIVE).expected("top-5 points of (.5, 0, 0, 0, .5) over cross-entropy", above=0),
        gain(even, reference, FIRST).expected("top-1 points of (.2, .2, .2, .2, .2) over cross-entropy", above=0),
        gain(even, reference, FIVE).expected("top-5 points of (.2, .2, .2, .2, .2) over cross-entropy", above=0),
    )
    lines = tuple(
        score(side, measure).at(told, name)
        for name, side in sides.items()
        for told, measure in (("top-1", FIRST), ("top-5", FIVE))
    )
    return found(expected, lines, sides)


def _collapse(bench: Bench) -> Found:
    expected, lines, used = [], [], dict[str, Trained]()
    for operator in STEEPNESS:
        sides = _sides(bench, {"ends": _losses(ENDS, operator), "mostly 5": _losses(MOSTLY_5, operator)})
        lost = gain(sides["mostly 5"], sides["ends"], FIRST)
        told = f"top-1 points of (.1, 0, 0, 0, .9) over (.5, 0, 0, 0, .5), {operator}"
        collapses = operator in ("neural_sort", "soft_sort")
        expected.append(lost.expected(told, below=-5) if collapses else lost.expected(told, above=-5))
        lines += [score(side, FIRST).at(name, operator) for name, side in sides.items()]
        used |= {f"{operator}, {name}": side for name, side in sides.items()}
    return found(expected, lines, used)


def _classes_ranked(bench: Bench) -> Found:
    sides = _sides(bench, {f"{m}": [DifferentiableTopK(ENDS, "splitter", m=m)] for m in SIZES})
    expected = tuple(
        gain(side, sides["16"], measure).expected(f"{told} points of m = {name} over m = 16", above=-1, below=1)
        for told, measure in (("top-1", FIRST), ("top-5", FIVE))
        for name, side in sides.items()
        if name != "16"
    )
    lines = tuple(
        score(side, measure).at(told, float(name))
        for name, side in sides.items()
        for told, measure in (("top-1", FIRST), ("top-5", FIVE))
    )
    return found(expected, lines, sides)


def _losses(p_k: tuple[float, ...], operator: str) -> list[Loss]:
    return [DifferentiableTopK(p_k, operator, steepness=steepness) for steepness in STEEPNESS[operator]]


def _sides(bench: Bench, losses: Mapping[str, list[Loss]], rates: Sequence[float] = (RATE,)) -> dict[str, Trained]:
    arms = [arm(name, loss=tried, learning_rate=list(rates)) for name, tried in losses.items()]
    return trained(bench, cifar_heads(bench, epochs=25), arms, tuned_by=_first_and_five, seeds=SEEDS)


def _first_and_five(run: TrainedRun) -> float:
    """Mean of top-1 and top-5 accuracy on validation rows: the papers' tables show both, of one run."""
    return float(np.mean([measure.on_val(run) for measure in (FIRST, FIVE)]))


HEADS = "CIFAR-100, linear heads on features of a published ResNet-32, 50 rows a class to train, 25 epochs, 5 seeds"
AT_RATE = f"{HEADS}; learning rate {RATE}"
TUNED = "steepness chosen on val by the mean of top-1 and top-5 accuracy"
PAPER = "Petersen et al. 2022"

CLAIMS = (
    Claim(
        14,
        "Top-5 alone ruins top-1 accuracy; mixtures of top-1 and top-5 help both.",
        f"{PAPER}, Tables 1 and 2",
        f"{HEADS}; splitter networks, m = 16; learning rate and {TUNED}",
        "top-5 alone is below cross-entropy in top-1; both mixtures are above it in top-1 and in top-5",
        _mixtures,
        HEAD,
        y="accuracy, %",
        needs=CIFAR,
        changed="every loss had the learning rate 0.003, and the best steepness was an end of its grid: the mixtures gained 1.0 "
        "and 1.2 points of top-1, 0.3 and 0.6 of top-5",
    ),
    Claim(
        15,
        "NeuralSort and SoftSort collapse when top-5 is over-weighted; Sinkhorn and sorting networks do not.",
        f"{PAPER}, Tables 3 and 4",
        f"{AT_RATE}; m = 16; {TUNED}",
        "from P_K = (.5, 0, 0, 0, .5) to (.1, 0, 0, 0, .9) the first two lose more than 5 points of top-1, the others less",
        _collapse,
        HEAD,
        y="top-1 accuracy, %",
        needs=CIFAR,
    ),
    Claim(
        16,
        "Ranking between 10 and 40 classes makes little difference.",
        f"{PAPER}, section 5.5, Fig. 2",
        f"{AT_RATE}; splitter networks, P_K = (.5, 0, 0, 0, .5)",
        "m = 10, 20 and 40 are within one point of m = 16, in top-1 and in top-5",
        _classes_ranked,
        HEAD,
        x="m",
        y="accuracy, %",
        needs=CIFAR,
    ),
)
