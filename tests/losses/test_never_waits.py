"""No loss asks the device for a value: a GPU that is asked finishes all it was given and then stands idle."""

from __future__ import annotations

import math

import pytest
import torch
from host_reads import HostReads
from test_every_loss import batch, every_class, every_end, value_and_gradient

import workbench as wb
from workbench.operators import applying, noised

N_ROWS = 10  # of a training set


def with_rest(loss, n=6, n_classes=24, dtype=torch.float32):
    """A batch and all that training gives beside it: noise or a generator, the loss's state, the numbers of the rows."""
    scores, labels, rest = batch(loss, n, n_classes, dtype)
    state = loss.state(N_ROWS, n_classes)
    return scores, labels, rest | ({} if state is None else {"state": state, "rows": torch.arange(n)})


def moved(rest, device):
    return {name: value.to(device) for name, value in rest.items()}


@pytest.fixture
def nobody_looks(monkeypatch):
    """Tensors on the CPU are treated as those of a GPU: whatever looks at values for the sake of speed does not."""
    monkeypatch.setattr(applying, "is_here", lambda tensor: False)


@every_end()
def test_a_loss_is_computed_where_tensors_have_no_values(loss):
    scores, labels, rest = with_rest(loss)
    scores, labels = scores.to("meta"), labels.to("meta")
    fresh = {"noise": None, "generator": torch.Generator()}
    for given in (rest, rest | fresh) if loss.random else (rest,):
        given = {name: value.to("meta") if hasattr(value, "to") else value for name, value in given.items()}
        for counted in (HostReads("meta"), HostReads("meta")):  # what is made once and kept is made in the first
            with counted:
                values, gradient = value_and_gradient(loss, scores, labels, **given)
        assert (values.shape, gradient.shape) == (labels.shape[:1], scores.shape)
        assert counted.found == []


@every_end()
def test_the_way_of_a_gpu_gives_the_values_of_the_cpu_and_reads_none(loss, nobody_looks, monkeypatch):
    scores, labels, rest = with_rest(loss, n_classes=24 if getattr(loss, "class_counts", None) else 60)
    with HostReads() as counted:
        found = value_and_gradient(loss, scores, labels, **rest)
    assert counted.found == []
    monkeypatch.undo()
    _, _, again = with_rest(loss, n_classes=scores.shape[-1])
    torch.testing.assert_close(found, value_and_gradient(loss, scores, labels, **again), rtol=2e-5, atol=2e-5)


@every_class(lambda loss: loss.random)
def test_a_loss_that_draws_noise_learns_the_same_on_average_where_nobody_looks(loss_class, nobody_looks):
    loss = loss_class(K=2, epsilon=0.5)
    scores, labels, _ = batch(loss, n=1, n_classes=12)
    scores, labels = scores.expand(4000, -1), labels.expand(4000)
    drawn = loss(scores, labels, generator=torch.Generator().manual_seed(0))
    expected = loss.exact()(scores[:1], labels[:1])
    assert abs(float(drawn.mean() - expected)) < 4 * float(drawn.std()) / math.sqrt(4000)


@pytest.mark.parametrize("n_samples", [1, 7])
def test_noise_that_is_drawn_for_some_rows_at_a_time_is_the_same_noise(n_samples, monkeypatch):
    loss = wb.losses.NoisedTopK(K=2, epsilon=5.0, n_samples=n_samples)
    scores, labels, _ = batch(loss, n=300, n_classes=13)
    at_once = loss(scores, labels, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(noised, "NUMBERS_AT_ONCE", 1)
    in_parts = loss(scores, labels, generator=torch.Generator().manual_seed(0))
    assert torch.equal(at_once, in_parts)


def test_a_row_that_allows_too_few_classes_is_nan_where_nobody_looks(nobody_looks):
    scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, -math.inf, -math.inf], [-math.inf] * 3])
    found = wb.operators.project_top_k_simplex(scores, torch.tensor([2.0, 2.0, 0.0]))
    assert found.isnan().all(-1).tolist() == [False, True, False]
    assert found[2].tolist() == [0.0, 0.0, 0.0]


def test_the_count_notices_what_waits():
    numbers, elsewhere = torch.arange(4.0), torch.zeros(3, device="meta")
    asks = {
        "item": lambda: numbers[0].item(),
        "if": lambda: bool(numbers.any()),
        "mask": lambda: numbers[numbers > 1],
        "mask to write": lambda: numbers.__setitem__(numbers > 1, torch.tensor([1.0, 2.0])),
        "size": lambda: numbers.nonzero(),
        "numbers of Python": lambda: torch.tensor([1.0, 2.0], device="meta"),
        "sent": lambda: numbers.to("meta"),
        "copied": lambda: elsewhere.copy_(numbers[:3]),
    }
    for name, ask in asks.items():
        with HostReads() as counted:
            ask()
        assert counted.found, name
    with HostReads() as counted:
        numbers[torch.tensor([0, 1])].sum().add(1).where(numbers > 1, 0.5)
        torch.full((2,), 3.0, device="meta")
    assert counted.found == []


@every_class()
def test_a_loss_on_a_gpu_gives_the_values_of_the_cpu_and_never_waits(loss_class):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    loss = loss_class()
    scores, labels, rest = with_rest(loss)
    expected = value_and_gradient(loss, scores, labels, **rest)
    _, _, rest = with_rest(loss)
    there = scores.cuda(), labels.cuda(), moved(rest, "cuda")
    value_and_gradient(loss, there[0], there[1], **there[2])  # what is made once and kept
    there = scores.cuda(), labels.cuda(), moved(with_rest(loss)[2], "cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = value_and_gradient(loss, there[0], there[1], **there[2])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close([each.cpu() for each in found], list(expected), rtol=1e-4, atol=1e-4)
