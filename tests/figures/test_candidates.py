"""The candidates of a batch, as the two-head loss chooses them."""

import numpy as np
import pytest
import torch

import workbench as wb
from workbench.metrics.bayes import candidates, right_candidates, right_candidates_by

RNG = np.random.default_rng(0)
POSTERIOR = RNG.dirichlet(np.full(9, 0.3), size=60)
LABELS = np.array([RNG.choice(9, p=p) for p in POSTERIOR])


@pytest.mark.parametrize("K", [1, 1.5, 2, 4])
def test_they_are_those_of_the_loss(K):
    scores = RNG.normal(size=(20, 9))
    both = torch.from_numpy(np.stack([np.zeros_like(scores), scores], axis=1))
    theirs = wb.losses.AverageKTwoHead(K).candidates(both, torch.from_numpy(LABELS[:20]))
    ours = candidates(wb.LogitTable(scores).probabilities(), LABELS[:20], K)
    assert (ours == theirs.numpy()).all()
    assert ours.sum() == round((K - 1) * 20)


def test_a_cell_is_the_label_a_candidate_or_neither_and_every_row_has_its_label():
    figure = wb.figures.candidates(wb.LogitTable.from_probabilities(POSTERIOR, LABELS), K=2, batch=10)
    roles = figure.frame.groupby("row")["role"].value_counts().unstack(fill_value=0)
    assert (roles["label"] == 1).all()
    assert roles["candidate"].sum() == 10
    labels = figure.frame[figure.frame["role"] == "label"]
    assert labels["name"].tolist() == [f"class {LABELS[row]}" for row in labels["row"]]


def test_candidates_of_the_true_posterior_are_right_and_those_of_a_guess_are_less_so():
    known = wb.LogitTable.from_probabilities(POSTERIOR, LABELS, posterior=POSTERIOR)
    guessed = wb.LogitTable(RNG.normal(size=(60, 9)), LABELS, posterior=POSTERIOR)
    assert right_candidates(known, 2, batch=60).mean() > 0.9 > 0.5 > right_candidates(guessed, 2, batch=60).mean()
    assert "are right" in wb.figures.candidates(known, K=2, batch=20).subtitle
    assert not len(right_candidates(known, 1, batch=60))


def test_how_many_are_right_is_counted_by_network_K_and_batch():
    tables = {
        "known": wb.LogitTable.from_probabilities(POSTERIOR, LABELS, posterior=POSTERIOR),
        "guessed": wb.LogitTable(RNG.normal(size=(60, 9)), LABELS, posterior=POSTERIOR),
    }
    frame = right_candidates_by(tables, K_values=(2, 3), batches=(10, 30))
    assert len(frame) == 2 * 2 * 2
    at = frame.set_index(["panel", "series", "x"])["value"]
    assert (at.xs("known", level="series") > at.xs("guessed", level="series")).all()
    assert at["batches of 10", "known", 2] == pytest.approx(100 * right_candidates(tables["known"], 2, 10).mean())
    assert "batches of 30" in wb.figures.with_intervals(frame, "K", "right candidates, %").text
    with pytest.raises(ValueError, match="K = 1, batch = 10: no candidates; K above 1, and at most 60 rows"):
        right_candidates_by(tables, K_values=(1,), batches=(10,))


def test_what_cannot_be_is_refused_in_words():
    table = wb.LogitTable.from_probabilities(POSTERIOR, LABELS)
    with pytest.raises(ValueError, match="give a mean size from 1 to the number of classes, 9"):
        wb.figures.candidates(table, K=10)
    many = wb.LogitTable(POSTERIOR, POSTERIOR > 0.3, link="sigmoid")
    with pytest.raises(ValueError, match="candidates stand beside one label"):
        wb.figures.candidates(many)
