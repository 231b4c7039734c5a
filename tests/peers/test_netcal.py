"""Agreement with netcal on real networks: calibration errors."""

from __future__ import annotations

import numpy as np
import pytest
from netcal.metrics import ECE, MCE

import workbench as wb

M = wb.metrics


def networks(shared_data, *names: str) -> list[wb.LogitTable]:
    files = [shared_data(name) for name in names]
    return [wb.LogitTable(scores, real["y"]) for real in files for scores in real.get("logits", real.get("logp"))]


def test_expected_and_maximum_calibration_errors_are_those_of_netcal(shared_data):
    for table in networks(shared_data, "cifar100_resnets_logits", "cifar10_models_logp"):
        p, y = table.probabilities().astype(np.float64), np.asarray(table.labels)
        assert M.expected_calibration_error(table) == pytest.approx(ECE(15).measure(p, y), abs=1e-9)
        assert M.maximum_calibration_error(table) == pytest.approx(MCE(15).measure(p, y), abs=1e-9)


def test_equal_mass_errors_are_close_to_those_of_netcal(shared_data):
    """netcal keeps equal confidences together, so with ties bins differ slightly (and with many it gives up)."""
    for table in networks(shared_data, "cifar100_resnets_logits"):
        p, y = table.probabilities().astype(np.float64), np.asarray(table.labels)
        theirs = ECE(15, equal_intervals=False).measure(p, y)
        assert M.expected_calibration_error(table, equal_mass=True) == pytest.approx(theirs, abs=2e-3)


def test_the_published_calibration_errors_of_the_two_networks(shared_data):
    real = shared_data("cifar100_resnets_logits")
    errors = [M.expected_calibration_error(wb.LogitTable(scores, real["y"])) for scores in real["logits"]]
    # Of all 10 000 rows; in 500 of them a bin has some thirty, and what they err by chance adds up.
    assert errors == pytest.approx([0.090, 0.108], abs=1e-3 if len(real["y"]) == 10_000 else 0.03)
