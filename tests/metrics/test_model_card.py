"""A model card says what a run is, what its sets promise, and who pays, in numbers that the library gives too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

import workbench as wb
from workbench.cli.main import main
from workbench.metrics.model_card import model_card
from workbench.sets.coverage_band import coverage_band
from workbench.store import DEMO, Store
from workbench.store.imported_tables import keep_tables


@pytest.mark.parametrize(("n", "confidence"), [(20, 0.9), (99, 0.99), (1000, 0.5)])
def test_the_band_is_that_of_the_beta_distribution(n, confidence):
    k = int(np.ceil(round((n + 1) * confidence, 9)))
    assert coverage_band(n, confidence, 0.9) == pytest.approx(beta(k, n + 1 - k).ppf([0.05, 0.95]))
    assert coverage_band(5, 0.9) == (1.0, 1.0)  # so few rows promise so much only by every class


def test_the_card_of_a_demo_run_tells_coverage_and_the_classes_that_are_missed():
    run = Store(DEMO).runs()[0]
    card = model_card(run)
    sets = wb.LAC(0.9).fit(run.tables["val"])(run.tables["test"])
    assert f"| `{wb.LAC(0.9)!r}` | coverage | {wb.metrics.coverage(sets):.3f} |" in card
    for heading in ("## Data", "## Model and training", "## Sets", "## Promise", "## Who pays", "## Code"):
        assert heading in card
    few = wb.metrics.shot_accuracy(sets)["few"]
    assert np.isfinite(few)
    assert "| few |" in card
    code = card.split("```python\n")[1].split("```")[0]
    exec(compile(code, "card", "exec"), {})


def test_rows_without_labels_make_no_number_up(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    kept = keep_tables(wb.LogitTable(np.random.default_rng(0).normal(size=(40, 3))), title="mine", store=store)
    assert main(["card", kept.key[:12], "--output", str(tmp_path / "card.md")]) == 0
    assert "coverage is not known" in (tmp_path / "card.md").read_text(encoding="utf-8")
