"""What `Run` promises of a run that is trained again: where its bits are the same, and where they are only close."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
import torch
from small_runs import assert_same_weights, clouds, small, stripes, threads, weights
from torch import nn

from workbench.datasets import load_dataset
from workbench.losses import CrossEntropy
from workbench.networks.network import build_network
from workbench.store import Store
from workbench.training import Run, TrainedRun, hardware, train

# The steps of a `linear` model on digits are small, though its inputs are images; those of clouds are rows of numbers.
SMALL = {
    "digits": Run("digits", model="linear", epochs=2, device="cpu"),
    "clouds": small(clouds(n=4000), model="mlp", epochs=2),
}


def assert_same(first: TrainedRun, second: TrainedRun) -> None:
    assert_same_weights(weights(first), weights(second))
    np.testing.assert_array_equal(first.tables["test"].scores, second.tables["test"].scores)
    pd.testing.assert_frame_equal(first.history.drop(columns="seconds"), second.history.drop(columns="seconds"))


@pytest.mark.parametrize("run", SMALL.values(), ids=SMALL)
def test_a_small_network_has_the_same_bits_for_any_number_of_threads(run, store):
    trained = []
    for n in (1, 2, 3, 8):
        with threads(n):
            trained.append(train(run, store=Store(store.root / str(n)), progress=False))
    for other in trained[1:]:
        assert_same(other, trained[0])


def test_a_network_that_is_not_small_has_the_same_bits_with_the_same_threads(store):
    run = small(stripes(), model="cnn", epochs=1)
    with threads(2):
        first, second = (train(run, store=Store(store.root / name), progress=False) for name in ("first", "second"))
    assert_same(first, second)


def test_rows_of_one_number_are_standardised_alike_by_any_number_of_threads():
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(100_000, 1)).astype(np.float32))
    found = []
    for n in (1, 2, 8):
        network = build_network("linear", CrossEntropy(), input_shape=(1,), n_classes=3)
        with threads(n):
            network.standardise(rows)
        found.append((network.mean.item(), network.deviation.item()))
    assert len(set(found)) == 1
    np.testing.assert_allclose(found[0], (rows.double().mean(), rows.double().std(correction=0)), rtol=1e-6)


def test_a_column_of_one_number_over_and_over_stays_as_it_is():
    network = build_network("linear", CrossEntropy(), input_shape=(2,), n_classes=3)
    rows = torch.full((10_001, 2), 0.1)
    rows[0, 1] = 0.2
    network.standardise(rows)
    assert (network.mean[0].item(), network.deviation[0].item()) == (rows[0, 0].item(), 1.0)
    assert network.deviation[1] < 0.01


@pytest.mark.parametrize(
    ("model", "shape", "multiplications"),
    [
        (nn.Linear(7, 3), (7,), 7 * 3 + 3),
        (nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), (2, 2, 3), 12 * 5 + 5),
        (nn.Conv2d(3, 4, 2, bias=False), (6, 5, 3), 3 * 4 * 2 * 2 * 6 * 5),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else str(value),
)
def test_a_convolution_uses_its_weights_once_a_pixel(model, shape, multiplications):
    assert hardware.multiplications(model, shape) == multiplications


def test_with_other_instructions_and_threads_of_another_process_a_run_differs_by_rounding_only(tmp_path):
    code = """
        import sys
        from workbench.store import Store
        from workbench.training import Run, train
        train(Run("digits", model="linear", epochs=2, device="cpu"), store=Store(sys.argv[1]), progress=False)
        """
    lowered = os.environ | {"ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "8"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), tmp_path / "there"], env=lowered, check=True)
    here = train(SMALL["digits"], store=Store(tmp_path / "here"), progress=False)
    there = Store(tmp_path / "there").open(here.run.key)
    np.testing.assert_allclose(there.tables["test"].scores, here.tables["test"].scores, atol=1e-4)


def test_the_bundled_rows_and_digits_are_small_for_the_models_the_promise_names():
    for name in ("letters", "digits"):
        data = load_dataset(name)
        for model in ("linear", "mlp"):
            network = build_network(model, CrossEntropy(), input_shape=data.input_shape, n_classes=data.n_classes)
            assert 128 * hardware.multiplications(network, data.input_shape) < hardware.SMALL_STEP
