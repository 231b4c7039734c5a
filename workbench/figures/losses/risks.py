"""Conditional risk of three scores under a known label distribution: a picture of calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from workbench import display_names
from workbench.figures.base import counted, round_up
from workbench.figures.losses.evaluation import checked_loss, knobs_in_words, loss_values, losses_in_code
from workbench.figures.losses.landscapes import simplex_grid
from workbench.figures.losses.ternary import LevelSets, Mark
from workbench.figures.snippet import Code
from workbench.validation import whole_number

if TYPE_CHECKING:
    from workbench.losses import Loss

REACH = (
    6.0  # side of the triangle of scores, centred at 0: cross-entropy's minimiser fits in for π_k down to about 0.05
)
ZOOMS = 24  # each halves the neighbourhood in which a minimiser is sought
CLOSER = 4  # halvings that tell a price near a tie from none
NEGLIGIBLE = 1e-6  # a price below this is none
_A, _B = (axis.ravel() for axis in np.meshgrid(np.arange(-3, 4), np.arange(-3, 4)))
AROUND = np.stack([_A, _B, -_A - _B], axis=1)  # whole steps within the plane, the point itself among them


def top_K_preserving(scores: np.ndarray, probabilities: np.ndarray, K: int) -> np.ndarray:
    r"""Whether the K largest scores are the K likeliest classes: (n,) bool for scores (n, L) and probabilities (L,).

    $$\pi_k > \mathrm{top}_{K+1}(\pi) \Rightarrow s_k > \mathrm{top}_{K+1}(s), \qquad
      \pi_k < \mathrm{top}_K(\pi) \Rightarrow s_k < \mathrm{top}_K(s)$$

    A tie between the K-th score and the next leaves open who is in the set, so it does not preserve it, unless the
    probabilities are tied there too.

    >>> top_K_preserving(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 2.0]]), np.array([0.5, 0.3, 0.2]), K=2).tolist()
    [True, False]

    Paper: Garcin et al. 2022, Definition A.1.
    """
    ordered, of_p = -np.sort(-scores, axis=-1), -np.sort(-probabilities)
    enters = scores > ordered[:, K : K + 1]
    stays_out = scores < ordered[:, K - 1 : K]
    first_enter = (enters | ~(probabilities > of_p[K])).all(axis=1)
    last_stay_out = (stays_out | ~(probabilities < of_p[K - 1])).all(axis=1)
    preserved: np.ndarray = first_enter & last_stay_out
    return preserved


def conditional_risk(
    loss: Loss, probabilities: Sequence[float] = (0.5, 0.3, 0.2), K: int | None = None, steps: int = 101
) -> ConditionalRisk:
    r"""The risk of scores when the label is random, its minimiser, and whether that keeps the K likeliest classes.

    Args:
        loss: The loss, of three classes.
        K: Size of the Bayes set; that of the loss without it.
        steps: Number of points along a side of the triangle.

    $$R(s, \pi) = \sum_y \pi_y \, \ell(s, y), \qquad
      \text{price} = \inf_{s \,:\, \neg P_K(s, \pi)} R(s, \pi) - \inf_s R(s, \pi)$$

    π = `probabilities` is the distribution of the label. $P_K$ says that the K largest scores are the K likeliest classes, the
    Bayes set (`top_K_preserving`). The price is what it costs at least to break the Bayes set; a loss is top-K calibrated
    when it is positive for every π, and then minimising its risk ends at Bayes sets. `K` is that of the loss unless given.

    Scores are those of the plane s₀ + s₁ + s₂ = 0 inside the triangle that is drawn; most losses do not change when the
    same number is added to every score. Noised losses are smoothed exactly: with ε ≥ 1.18 and K = 2 equal scores cost
    nothing, whatever π is, and the price is 0. A line runs around the scores that are as good as the best (`free` in the
    frame), where a loss has more than one best: whatever it chooses there, it has no reason to leave.

    >>> import workbench as wb
    >>> kept = conditional_risk(wb.losses.NoisedTopK(K=2, epsilon=0.2))
    >>> broken = conditional_risk(wb.losses.NoisedTopK(K=2, epsilon=1.5))
    >>> kept.bayes_set, kept.keeps_bayes_set, broken.keeps_bayes_set
    ((0, 1), True, False)

    Paper: Garcin et al. 2022, Definitions A.1 and A.2, Theorem 3.1 (after Yang and Koyejo 2020).
    """
    loss = checked_loss(loss)
    pi, K, steps = _checked_probabilities(probabilities), _checked_K(loss, K), whole_number("steps", steps, least=2)
    risk = Risk(loss, pi)
    scores = plane_grid(steps)
    of_labels = np.stack([loss_values(risk.loss, scores, label) for label in range(3)])  # (3, n)
    values = sum(pi[label] * of_labels[label] for label in np.flatnonzero(pi))  # infinite where the label never is
    finite = of_labels[np.isfinite(of_labels)]
    best = _minimiser(risk, scores, values, lambda some: np.ones(len(some), bool))
    breaking = _minimiser(risk, scores, values, lambda some: ~top_K_preserving(some, pi, K))
    assert best is not None
    lowest = float(risk(best[None])[0])
    price = np.inf if breaking is None else float(risk(breaking[None])[0]) - lowest
    bayes = tuple(sorted(np.argsort(-pi, kind="stable")[:K].tolist()))
    keeps = price > NEGLIGIBLE
    named = f"{{{', '.join(map(str, bayes))}}}"
    verdict = f"leaving {named} costs {price:.2g}" if keeps else f"leaving {named} is free"
    marks = [Mark(_shares(best), "star", "hit" if keeps else "miss", "the minimiser of the risk")]
    if breaking is not None:
        marks.insert(0, Mark(_shares(breaking), "diamond", "miss", "the best scores that leave the Bayes set"))
    law = ", ".join(f"{share:g}" for share in pi)
    settings = f"{knobs_in_words(loss.exact())}, " if loss.settings() else ""
    where = tuple(best.round(3).tolist())
    imports, (name,) = losses_in_code([loss])
    excess = values - lowest
    return ConditionalRisk(
        frame=pd.DataFrame(scores, columns=["s0", "s1", "s2"]).assign(
            value=excess, risk=values, keeps=top_K_preserving(scores, pi, K), free=excess <= NEGLIGIBLE
        ),
        title=f"Conditional risk: {loss.title}",
        subtitle=f"n = {counted(len(scores))}, {settings}π = ({law}): {verdict}",
        text=(
            f"Conditional risk of {display_names.of_thing(loss)} for probabilities ({law}) at n = {len(scores)} score vectors "
            f"that sum to 0. It is lowest, {lowest:.3g}, at s = {where}. The Bayes set of K = {K} is {named}: "
            f"{f'leaving it costs at least {price:.2g}, so the minimiser keeps it' if keeps else 'leaving it costs nothing'}."
        ),
        code=Code(
            f"wb.figures.conditional_risk(loss, {tuple(pi.tolist())}, K={K}, steps={steps})",
            [f"loss = {name}"],
            imports,
        ),
        steps=steps,
        value_range=(0.0, round_up(float(finite.max() - finite.min()))),  # of every π: colours stay while it moves
        units="risk above the lowest",
        regions=K,
        corners=("s₀ large", "s₁ large", "s₂ large"),
        marks=tuple(marks),
        minimiser=where,
        bayes_set=bayes,
        price=price,
        keeps_bayes_set=keeps,
    )


def calibration_map(
    loss: Loss, K: int | None = None, probabilities: Sequence[float] | None = None, steps: int = 41, grid: int = 55
) -> LevelSets:
    r"""For every distribution π of the label, what it costs at least to break its Bayes set: 0 is where a loss is not calibrated.

    Args:
        loss: The loss, of three classes.
        K: Size of the Bayes set; that of the loss without it.
        steps: Number of distributions along a side of the triangle.

    $$\pi \mapsto \inf_{s \,:\, \neg P_K(s, \pi)} R(s, \pi) - \inf_s R(s, \pi), \qquad \pi \in \Delta_3$$

    `probabilities` marks one π. Both infima are over a grid of scores with `grid` points a side (`conditional_risk` refines
    its own); 18 m + 1 points hit the corners of piecewise linear losses, whose scores are thirds. Where the K-th and the
    next probability are tied, both sets are Bayes sets and the price is 0. A line runs around the distributions whose price is 0
    though no tie is near (`free` in the frame): there the loss is not calibrated.

    >>> import workbench as wb
    >>> figure = calibration_map(wb.losses.CrossEntropy(), K=1, steps=4)
    >>> figure.frame.round(2).iloc[0].to_dict()
    {'pi0': 1.0, 'pi1': 0.0, 'pi2': 0.0, 'value': 0.71, 'free': False}

    Paper: Garcin et al. 2022, Definition A.2.
    """
    loss = checked_loss(loss)
    K, steps, grid = _checked_K(loss, K), whole_number("steps", steps, least=3), whole_number("grid", grid, least=2)
    marked = None if probabilities is None else tuple(_checked_probabilities(probabilities).tolist())
    distributions = simplex_grid(steps, 1.0)
    scores = plane_grid(grid)
    of_labels = _of_labels(loss, scores)  # (n, 3)
    prices, lowest = np.zeros(len(distributions)), np.zeros(len(distributions), int)
    # What preserves the Bayes set depends on the order of the probabilities alone: distributions of the same order share it.
    signs = np.sign(distributions[:, :, None] - distributions[:, None, :]).reshape(len(distributions), -1)
    _, order = np.unique(signs, axis=0, return_inverse=True)
    for same in (np.flatnonzero(order == each) for each in range(order.max() + 1)):
        kept = top_K_preserving(scores, distributions[same[0]], K)
        risks = of_labels @ distributions[same].T  # (n, distributions)
        lowest[same] = risks.argmin(axis=0)
        prices[same] = risks.min(axis=0, where=~kept[:, None], initial=np.inf) - risks.min(axis=0)
    ordered = np.sort(distributions, axis=1)
    lead = ordered[:, -K] - ordered[:, -K - 1]
    tied = lead == 0
    # Near a tie the best scores of the grid may be tied where the best of all are not. If the distributions beyond are not free
    # either, one looks more closely.
    clear = lead > 2.5 / (steps - 1)
    doubtful = ~clear & (prices <= NEGLIGIBLE) & ~_as_beside(prices <= NEGLIGIBLE, distributions, clear)
    near = np.flatnonzero(doubtful & ~tied)
    prices[near] += _gained(loss, distributions[near], scores[lowest[near]], REACH / (grid - 1))
    prices[tied] = 0.0
    costs_nothing = _as_beside(prices <= NEGLIGIBLE, distributions, ~tied)
    free = float(costs_nothing[~tied].mean())
    settings = f"{knobs_in_words(loss.exact())}, " if loss.settings() else ""
    imports, (name,) = losses_in_code([loss])
    return LevelSets(
        frame=pd.DataFrame(distributions, columns=["pi0", "pi1", "pi2"]).assign(value=prices, free=costs_nothing),
        title=f"How much a wrong set costs: {loss.title}",
        subtitle=f"n = {counted(len(distributions), 'distribution')} of the label, {settings}sets of {K}: free for {free:.0%}",
        text=(
            f"What it costs {display_names.of_thing(loss)} at least to leave the Bayes set of K = {K} classes, for n = "
            f"{len(distributions)} distributions of the label on a triangle. The price is at most {prices.max():.3g}, "
            f"and zero for {free:.0%} of those without a tie."
        ),
        code=Code(
            f"wb.figures.calibration_map(loss, K={K}, probabilities={marked}, steps={steps}, grid={grid})",
            [f"loss = {name}"],
            imports,
        ),
        steps=steps,
        value_range=(0.0, round_up(float(prices.max()))),
        units="price",
        regions=K,
        corners=("π₀ = 1", "π₁ = 1", "π₂ = 1"),
        symbol="π",
        marks=() if marked is None else (Mark(marked, "circle", "threshold", "the chosen π"),),
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ConditionalRisk(LevelSets):
    """The risk on the plane of scores, with its minimiser (a star) and the best point that breaks the Bayes set."""

    minimiser: tuple[float, float, float]
    bayes_set: tuple[int, ...]
    price: float  # of breaking the Bayes set
    keeps_bayes_set: bool


class Risk:
    """The conditional risk of score vectors (n, 3): a mean of the loss over the distribution of the label."""

    def __init__(self, loss: Loss, probabilities: np.ndarray) -> None:
        self.loss = loss.exact()
        self.probabilities = probabilities

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        labels = np.flatnonzero(self.probabilities)  # a loss may be infinite where the label never is
        risk: np.ndarray = sum(
            self.probabilities[label] * loss_values(self.loss, scores, int(label)) for label in labels
        )
        return risk


def _of_labels(loss: Loss, scores: np.ndarray) -> np.ndarray:
    """(n, 3): the loss of score vectors (n, 3) if the label is class 0, 1, 2."""
    return np.stack([Risk(loss, law)(scores) for law in np.eye(3)], axis=1)


def _as_beside(free: np.ndarray, distributions: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(distributions,) whether one is free, or for those not known, whether the nearest known one is."""
    if not known.any():
        return free
    distances = np.linalg.norm(distributions[~known][:, None] - distributions[known], axis=2)
    completed = free.copy()
    completed[~known] = free[known][distances.argmin(axis=1)]
    return completed


def _gained(loss: Loss, distributions: np.ndarray, best: np.ndarray, step: float) -> np.ndarray:
    """(distributions,) by how much each risk falls below that of its best scores on a grid, among ever closer neighbours."""
    if not len(distributions):
        return np.zeros(0)
    n_tried = len(AROUND)
    first = np.einsum("lk,lk->l", _of_labels(loss, best), distributions)
    for _ in range(CLOSER):
        step /= 2
        tried = best[:, None] + step * AROUND  # (distributions, tried, 3)
        risks = np.einsum("ltk,lk->lt", _of_labels(loss, tried.reshape(-1, 3)).reshape(-1, n_tried, 3), distributions)
        lowest = risks.argmin(axis=1)
        best = tried[np.arange(len(best)), lowest]
    gained: np.ndarray = first - risks.min(axis=1)
    return gained


def plane_grid(steps: int) -> np.ndarray:
    """Score vectors that sum to 0, on the triangle whose corners have one score of 4 and two of −2: (n, 3)."""
    return simplex_grid(steps, REACH) - REACH / 3


def _minimiser(
    risk: Risk, scores: np.ndarray, values: np.ndarray, allowed: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray | None:
    """The allowed score vector of the lowest risk: the best of the grid, refined among ever closer neighbours.

    None if the grid has no allowed point. Of points that are equally good, the one nearest to the centre.
    """
    admitted = allowed(scores)
    if not admitted.any():
        return None
    best = _lowest(scores[admitted], values[admitted])
    step = np.abs(np.diff(scores[:2], axis=0)).max()
    for _ in range(ZOOMS):
        near = best + step * AROUND
        near = near[(near >= -REACH / 3 - 1e-12).all(axis=1)]
        near = np.concatenate([best[None], near[allowed(near)]])
        best, step = _lowest(near, risk(near)), step / 2
    return best


def _lowest(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    equal = scores[values <= values.min() + 1e-10]
    nearest: np.ndarray = equal[np.linalg.norm(equal, axis=1).argmin()]
    return nearest


def _shares(scores: np.ndarray) -> tuple[float, float, float]:
    """The shares of the corners at a point of the plane."""
    a, b, c = ((scores + REACH / 3) / REACH).tolist()
    return a, b, c


def _checked_probabilities(probabilities: Sequence[float]) -> np.ndarray:
    pi = np.asarray(probabilities, float)
    if pi.shape != (3,) or not (pi >= 0).all() or not math.isclose(pi.sum(), 1, abs_tol=1e-6):
        raise ValueError(f"probabilities = {probabilities!r}; give three numbers ≥ 0 that sum to 1")
    return pi


def _checked_K(loss: Loss, K: int | None) -> int:
    given = loss.settings().get("K", 1) if K is None else K
    if given not in (1, 2):
        raise ValueError(f"K = {given!r}; of three classes a set holds 1 or 2: say which, K=1 or K=2")
    return int(given)
