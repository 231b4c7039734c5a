"""Relaxed permutations: for each rank, a probability distribution over the classes that could hold it.

Each function takes scores (..., n) and returns P (..., k, n): row r is the distribution of the class with the (r+1)-th
largest score. Rows always sum to 1. As the temperature falls (or the steepness grows) P tends to the first k rows of
the permutation matrix that sorts the scores, largest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from workbench.operators.applying import applied
from workbench.operators.comparators import Comparator
from workbench.operators.networks import selection_network
from workbench.operators.order import at_least_float32, in_plain_memory
from workbench.operators.rowwise import once

LEAST_TEMPERATURE_OF_PRODUCTS = (
    1 / 200
)  # of Sinkhorn's algorithm: e^−200 and its inverse are float64s with room to spare
SMALLEST_VARIANCE = 1e-4  # scores that differ by less than about 0.01 count as nearly tied: a head may start at 0


def neural_sort(scores: Tensor, k: int | None = None, temperature: float = 1.0) -> Tensor:
    r"""Row r is a softmax that peaks at the class of rank r because of how far all classes lie from each other.

    Args:
        scores: (…, L), any number of leading dimensions.
        k: Number of rows of P to return; all without it.
        temperature: Small is near to sorting, large is smooth.

    $$P_{r} = \mathrm{softmax}\big(((n + 1 - 2r) s - A \mathbf 1) / T\big), \qquad A_{jl} = |s_j - s_l|$$

    s are the n scores, r = 1…k the rank, T the temperature. Rows sum to 1, columns only nearly.

    >>> neural_sort(torch.tensor([1.0, 3.0, 2.0]), k=2, temperature=0.1).round(decimals=2)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])

    Paper: Petersen et al. 2022, Sec. 2.1 (there after Grover et al. 2019).
    """
    return _sorted_by(_neural_sort_logits, scores, *_checked(scores, k, temperature=temperature))


def soft_sort(scores: Tensor, k: int | None = None, temperature: float = 1.0) -> Tensor:
    r"""Row r is a softmax over how near each score is to the r-th largest.

    Args:
        scores: (…, L), any number of leading dimensions.
        k: Number of rows of P to return; all without it.
        temperature: Small is near to sorting, large is smooth.

    $$P_{rj} = \mathrm{softmax}_j\big(-|s_{[r]} - s_j| / T\big)$$

    s_[r] is the r-th largest score, T the temperature. Rows sum to 1, columns only nearly.

    >>> soft_sort(torch.tensor([1.0, 3.0, 2.0]), k=1, temperature=1.0).round(decimals=4)
    tensor([[0.0900, 0.6652, 0.2447]])

    Paper: Petersen et al. 2022, Sec. 2.1 (there after Prillo and Eisenschlos 2020).
    """
    return _sorted_by(_soft_sort_logits, scores, *_checked(scores, k, temperature=temperature))


def sinkhorn_sort(scores: Tensor, k: int | None = None, temperature: float = 0.01, n_iterations: int = 50) -> Tensor:
    r"""Sorting as transport of the scores to a grid of ranks, blurred by entropy.

    Args:
        scores: (…, L), any number of leading dimensions.
        k: Number of rows of P to return; all without it.
        temperature: Small is near to sorting, large is smooth.

    $$P = n \cdot \arg\min_{\Pi \ge 0} \sum_{rj} \Pi_{rj} (x_j - y_r)^2 + T\, \Pi_{rj} \log \Pi_{rj}
      \quad\text{with}\quad \Pi \mathbf 1 = \Pi^\top \mathbf 1 = \mathbf 1 / n$$

    x are the scores, standardised and squashed to (0, 1) by a logistic function; y_r = 1, …, 0 is a regular grid with
    one place per rank, T the temperature. Solved on logarithms by Sinkhorn's alternating normalisation: rows sum to 1
    exactly, columns ever more nearly (`n_iterations`). With the defaults the columns of 16 normal scores sum to 1 up to
    a few thousandths, at worst 0.02; at T = 0.1 they do exactly. The whole n × n matrix is needed, k only trims the result.

    >>> P = sinkhorn_sort(torch.tensor([1.0, 3.0, 2.0]), temperature=0.1)
    >>> P.sum(-2).round(decimals=5)
    tensor([1., 1., 1.])

    Paper: Petersen et al. 2022, Sec. 2.2 (there after Cuturi et al. 2019).
    """
    if not isinstance(n_iterations, Integral) or n_iterations < 1:
        raise ValueError(f"n_iterations = {n_iterations}; Sinkhorn's algorithm needs a whole number, at least 1")
    logits = partial(_sinkhorn_logits, n_iterations=n_iterations)
    return _sorted_by(logits, scores, *_checked(scores, k, temperature=temperature))


def comparator_network_sort(
    scores: Tensor,
    k: int | None = None,
    kind: str = "splitter",
    relaxation: str = "cauchy",
    steepness: float = 1.0,
    art_lambda: float = 0.25,
) -> Tensor:
    r"""A selection network whose comparators swap only with a probability.

    Args:
        scores: (…, L), any number of leading dimensions.
        k: Number of rows of P to return; all without it.
        relaxation: F, one of logistic, art, reciprocal, cauchy and optimal.
        steepness: Β; large is near to sorting, small is smooth.
        art_lambda: Λ of `art`.

    $$P = M_t \cdots M_2 M_1, \qquad \begin{pmatrix} \widetilde{\max} \\ \widetilde{\min} \end{pmatrix}
      = \begin{pmatrix} 1 - f & f \\ f & 1 - f \end{pmatrix} \begin{pmatrix} a \\ b \end{pmatrix}, \quad
      f = F(\beta (b - a))$$

    a and b are the values on the two wires of a comparator, β the steepness and F a distribution function, of which
    `comparators.py` has the formulas (that of Cauchy has long tails, which keep gradients alive). M_i is the doubly
    stochastic matrix of layer i, so all n rows of P together are doubly stochastic. Only the first k rows are computed: the
    values go through the network front to back, then k × n entries go through it back to front. `kind` is one of
    `selection_network`.

    P depends on the order of the classes, that is on which wire carries which score; the other operators do not.

    >>> comparator_network_sort(torch.tensor([1.0, 3.0]), steepness=100.0, relaxation="logistic")
    tensor([[0., 1.],
            [1., 0.]])

    Paper: Petersen et al. 2022, Sec. 2.3, 3.1 and 3.2, Eq. 3.
    """
    k, steepness = _checked(scores, k, steepness=steepness)
    comparator = Comparator(relaxation, steepness, art_lambda)
    n = scores.shape[-1]
    partners, wants = _wiring(n, k, kind, scores.device)
    values = steepness * _exact(scores)
    layers = []
    for partner, want in zip(partners, wants, strict=True):
        met = values.index_select(-1, partner)
        stay, swap = comparator.mixing(want * (met - values))
        values = stay * values + swap * met
        layers.append((partner, stay.unsqueeze(-2), swap.unsqueeze(-2)))
    P = torch.eye(k, n, dtype=values.dtype, device=values.device).expand(*scores.shape[:-1], k, n)
    for partner, stay, swap in reversed(layers):
        P = stay * P + swap * P.index_select(-1, partner)
    return P.to(scores.dtype)


def log_worth_of_last(
    scores: Tensor, weights: Tensor, operator: str, comparator: Comparator, n_iterations: int = 50
) -> Tensor:
    r"""(n,): $\log \sum_{r \le k} w_r P_{r,n}$, what the last class is worth when rank r is worth w_r.

    One column of P, that of the last of the scores (n, m), is all that a loss needs. The weights are (1 or n, k). A
    network swaps as the `comparator` says; the other sorts know its steepness, 1 / temperature, alone. Probabilities too
    small for a float32 are no trouble: softmaxes stay logarithms throughout, and those of a network are summed in double
    precision.
    """
    m, k = scores.shape[-1], weights.shape[-1]
    if operator in _LOGITS:
        iterations = {"n_iterations": n_iterations} if operator == "sinkhorn_sort" else {}
        log_column = _LOGITS[operator](scores, k, 1 / comparator.steepness, **iterations).log_softmax(-1)[..., -1]
        # A rank that is worth nothing: not −inf, because where all are the gradient of a log-sum would be NaN.
        log_weights = weights.log().clamp(min=torch.finfo(weights.dtype).min)
        return (log_column + log_weights).logsumexp(-1)
    layers = _comparators(m, k, operator, scores.device)
    log_worth, *_ = applied(_LogWorthOfLast, scores, weights, comparator, layers)
    # Where no rank is worth anything: not the least a float64 holds.
    worth: Tensor = log_worth.where(weights.any(-1), -math.inf)
    return worth


def _sorted_by(logits: Callable[..., Tensor], scores: Tensor, k: int, temperature: float) -> Tensor:
    """The softmax of these logits, (..., k, n); half precision is computed in float32."""
    return logits(at_least_float32(scores), k, temperature).softmax(-1).to(scores.dtype)


def _neural_sort_logits(scores: Tensor, k: int, temperature: float) -> Tensor:
    n = scores.shape[-1]
    # A·1 without the n × n matrix A: in falling order, Σ_l |s_r − s_l| needs only sums of the scores before and after r.
    falling, order = scores.sort(-1, descending=True)
    before = falling.cumsum(-1) - falling
    after = falling.sum(-1, keepdim=True) - falling - before
    place = torch.arange(n, device=scores.device, dtype=scores.dtype)
    distances = (before - place * falling) + ((n - 1 - place) * falling - after)
    distances = distances.gather(-1, order.argsort(-1))
    ranks = torch.arange(1, k + 1, device=scores.device, dtype=scores.dtype)[:, None]
    return ((n + 1 - 2 * ranks) * scores.unsqueeze(-2) - distances.unsqueeze(-2)) / temperature


def _soft_sort_logits(scores: Tensor, k: int, temperature: float) -> Tensor:
    largest = scores.topk(k).values
    return -(largest.unsqueeze(-1) - scores.unsqueeze(-2)).abs() / temperature


def _sinkhorn_logits(scores: Tensor, k: int, temperature: float, n_iterations: int = 50) -> Tensor:
    n = scores.shape[-1]
    centred = scores - scores.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True).clamp(min=SMALLEST_VARIANCE)
    squashed = (centred * variance.rsqrt()).sigmoid()
    grid = torch.linspace(1, 0, n, device=scores.device, dtype=scores.dtype)
    log_kernel = -(grid[:, None] - squashed.unsqueeze(-2)).square() / temperature  # (..., ranks, classes)
    if temperature < LEAST_TEMPERATURE_OF_PRODUCTS or scores.device.type == "mps":  # which has no float64
        of_class = _balanced_logarithms(log_kernel, n_iterations)
    else:
        balanced: Tensor = applied(_Balanced, log_kernel, n_iterations)[0]
        of_class = balanced
    return log_kernel[..., :k, :] + of_class.unsqueeze(-2)


def _balanced_logarithms(log_kernel: Tensor, n_iterations: int) -> Tensor:
    """The logarithms of the factors of the classes, where the kernel has numbers too small for products."""
    of_rank = torch.zeros_like(log_kernel[..., 0])
    for i in range(n_iterations):
        of_class = -(log_kernel + of_rank.unsqueeze(-1)).logsumexp(-2)
        if i + 1 < n_iterations:  # the softmax over classes that follows is the last step for the ranks
            of_rank = -(log_kernel + of_class.unsqueeze(-2)).logsumexp(-1)
    return of_class


class _Balanced(torch.autograd.Function):
    r"""The logarithms of the factors v of the classes, after $v = 1 / K^\top u$ and $u = 1 / K v$ by turns, u = 1 at first.

    In double precision, as products of the kernel and vectors. The way back goes through the same products; what it adds to
    the kernel is summed in one product at the end.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(log_kernel: Tensor, n_iterations: int) -> tuple[Tensor, Tensor, Tensor]:
        kernel = log_kernel.double().exp()
        transposed = kernel.mT.contiguous()
        u, us, vs = torch.ones_like(kernel[..., 0]), [], []
        for _ in range(n_iterations):
            v = _product(kernel, u).reciprocal()
            us.append(u)
            vs.append(v)
            u = _product(transposed, v).reciprocal()
        return vs[-1].log().to(log_kernel.dtype), torch.stack(us, -1), torch.stack(vs, -1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(inputs[0], *output[1:])

    @staticmethod
    def backward(ctx: Any, into_log_v: Tensor, *_: Tensor) -> tuple[Tensor, None]:
        log_kernel, *factors = ctx.saved_tensors
        kernel = log_kernel.double().exp()
        transposed = kernel.mT.contiguous()
        us, vs = (each.unbind(-1) for each in factors)
        into_log_v, left, right = into_log_v.double(), [], []
        for i in reversed(range(len(us))):
            into_sum = vs[i] * into_log_v
            left.append(us[i])
            right.append(into_sum)
            if i:
                into_sum = us[i].square() * _product(transposed, into_sum).neg()
                left.append(into_sum)
                right.append(vs[i - 1])
                into_log_v = _product(kernel, into_sum).neg() * vs[i - 1]
        into_log_kernel = -kernel * (torch.stack(left, -1) @ torch.stack(right, -2))
        return once(into_log_kernel.to(log_kernel.dtype), log_kernel), None


def _product(matrices: Tensor, vectors: Tensor) -> Tensor:
    """The transposes of small matrices times vectors: a sum over rows takes half the time of a product of many matrices."""
    return (matrices * vectors.unsqueeze(-1)).sum(-2)


_LOGITS: dict[str, Callable[..., Tensor]] = {
    "neural_sort": _neural_sort_logits,
    "soft_sort": _soft_sort_logits,
    "sinkhorn_sort": _sinkhorn_logits,
}


@lru_cache(maxsize=64)
def _wiring(n: int, k: int, kind: str, device: torch.device) -> tuple[tuple[Tensor, ...], Tensor]:
    """A network as whole-layer operations: whom each wire meets (an idle one itself), and what it wants of it.

    The partners are (n,), one tensor per layer. The wants are (depth, n): the larger value (+1), the smaller (−1) or
    nothing (0).
    """
    network = selection_network(n, k, kind)
    with torch.inference_mode(False):  # the cached tensors must also serve training
        partners = torch.arange(n, device=device).repeat(len(network), 1)
        wants = torch.zeros(len(network), n, device=device)
        for partner, want, layer in zip(partners, wants, network, strict=True):
            larger, smaller = torch.tensor(layer, device=device).unbind(1)
            partner[larger], partner[smaller] = smaller, larger
            want[larger], want[smaller] = 1.0, -1.0
        return tuple(partners), wants


@lru_cache(maxsize=64)
def _comparators(n: int, k: int, kind: str, device: torch.device) -> tuple[Tensor, ...]:
    """(2, comparators) for each layer: the wires of the larger values and of the smaller ones."""
    with torch.inference_mode(False):  # the cached tensors must also serve training
        return tuple(torch.tensor(layer.T, device=device) for layer in selection_network(n, k, kind))


class _LogWorthOfLast(torch.autograd.Function):
    """The logarithm of the weighted sum of the last column of M_t ⋯ M_1, first k rows.

    The matrix of a layer acts on any vector v as (1 − f)·v + f·v[partner]. So the column, which starts as the indicator
    of the last wire, travels with the values: one pass where k rows need two. Both 1 − f and f come from the tail of the
    distribution, or a label far behind would have probability 0. The steps are many and small: the backward pass is
    written out, and NumPy takes them where it can, because a step costs it a fraction of what it costs torch.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        scores: Tensor,  # (rows, n)
        weights: Tensor,  # (1 or rows, k)
        comparator: Comparator,
        layers: tuple[Tensor, ...],  # (2, comparators) each
    ) -> tuple[Tensor, ...]:
        # log-worth (rows,); and for the way back worth, ranks (k, rows) and of all comparators the gaps (·, 2, rows) of
        # values and of the column, 1 − f and f (·, 1, rows)
        values = (comparator.steepness * _exact(scores)).T  # (n, rows): a layer picks whole wires
        column = torch.zeros_like(values)
        column[-1] = 1
        carried, kept = torch.stack([values, column], 1), []
        array, tensor = _numpy_if_possible(carried)
        carried = array(carried)
        for wires in map(array, layers):
            pair = carried[wires]  # (2, comparators, 2, rows)
            gap = pair[1] - pair[0]
            stay, swap = map(array, comparator.mixing(tensor(gap[:, :1])))
            carried[wires] = stay * pair + swap * pair[[1, 0]]
            kept.append((gap, stay, swap))
        ranks = tensor(carried)[: weights.shape[-1], 1]
        worth = (weights.T * ranks).sum(0).clamp(min=torch.finfo(values.dtype).tiny)
        mixed = (torch.cat([tensor(each) for each in every]) for every in zip(*kept, strict=True))
        return worth.log().to(scores.dtype), worth, ranks, *mixed

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        scores, weights, ctx.comparator, ctx.layers = inputs
        _, *kept = output
        ctx.mark_non_differentiable(*kept)
        ctx.save_for_backward(scores, weights, *kept)

    @staticmethod
    def backward(ctx: Any, into_log_worth: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        scores, weights, worth, ranks, gaps, stays, swaps = ctx.saved_tensors
        into_worth = (into_log_worth / worth).where(worth > torch.finfo(worth.dtype).tiny, 0)
        into = worth.new_zeros(scores.shape[-1], 2, len(worth))  # into the values, and into the column
        into[: len(ranks), 1] = weights.T * into_worth
        # A gap of values also moves f, by the density of the distribution, and with it both values and the column.
        through_f = gaps * ctx.comparator.density(gaps[:, :1])
        array, tensor = _numpy_if_possible(into, stays)
        into, stays, swaps, through_f = map(array, (into, stays, swaps, through_f))
        of_values, end = into[:, 0], len(gaps)
        for wires in map(array, reversed(ctx.layers)):
            layer = slice(end - wires.shape[1], end)
            end = layer.start
            pair = into[wires]
            into_gap = (through_f[layer] * (pair[0] - pair[1])).sum(1)
            mixed = stays[layer] * pair + swaps[layer] * pair[[1, 0]]
            mixed[0, :, 0] -= into_gap
            mixed[1, :, 0] += into_gap
            into[wires] = mixed
        into_scores = (ctx.comparator.steepness * tensor(of_values).T).to(into_log_worth.dtype)
        into_weights = (ranks * into_worth).T.to(weights.dtype) if ctx.needs_input_grad[1] else None
        return once(into_scores, scores), into_weights, None, None


def _numpy_if_possible(*tensors: Tensor) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions to and from NumPy's arrays for tensors in plain memory; elsewhere both return what they are given."""
    if all(in_plain_memory(each) and not each.requires_grad for each in tensors):
        return Tensor.numpy, torch.from_numpy
    return _same, _same


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _exact(scores: Tensor) -> Tensor:
    """The scores in double precision, where the device has it.

    A class that loses a comparison stays in front with probability 1 − f. In float32 that is 0 from f = 1 − 3e-8 on,
    and a product of such tails over the layers would be nothing but rounding errors.
    """
    return scores if scores.device.type == "mps" else scores.double()


def _checked(scores: Tensor, k: int | None, **positive: float) -> tuple[int, float]:
    """k (all of them when None) and the one number that must be positive."""
    if not isinstance(scores, Tensor) or not scores.is_floating_point() or scores.ndim == 0 or scores.shape[-1] == 0:
        raise ValueError("scores must be a floating-point tensor with the classes on its last axis")
    n = scores.shape[-1]
    k = n if k is None else k
    if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= k <= n:
        raise ValueError(f"k = {k} with {n} classes; give a whole number from 1 to {n}")
    ((name, number),) = positive.items()
    if not isinstance(number, Real) or not number > 0:
        raise ValueError(f"{name} = {number}; give a number > 0")
    return int(k), number
