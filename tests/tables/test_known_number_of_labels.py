"""Sparse-top as a prediction, where the number of labels of a row is known (Garcin, thesis, section 6.2.7)."""

import numpy as np
import pytest
import torch

import workbench as wb
from workbench.operators import project_top_k_simplex
from workbench.tables.links import sparse_top

SCORES = np.random.default_rng(0).normal(scale=2, size=(200, 7))
LABELS = np.random.default_rng(1).random((200, 7)) < 0.3  # some rows have none


@pytest.mark.parametrize("n_labels", [0, 1, 2.5, 7, LABELS.sum(1)])
def test_it_is_the_projection_of_the_loss(n_labels):
    theirs = project_top_k_simplex(torch.from_numpy(SCORES), torch.as_tensor(n_labels))
    np.testing.assert_allclose(sparse_top(SCORES, n_labels), theirs.numpy(), atol=1e-12)


def test_equal_scores_share_what_there_is():
    np.testing.assert_allclose(sparse_top(np.zeros((1, 4)), 3), 0.75)


def test_probabilities_of_a_table_sum_to_the_number_of_its_labels_and_score_as_any_others():
    table = wb.LogitTable(SCORES + 6 * LABELS, LABELS, link="sparsemax").with_n_labels()
    np.testing.assert_allclose(table.probabilities().sum(1), LABELS.sum(1), atol=1e-9)
    assert (table.probabilities() == 0).mean() > 0.4
    sets = wb.Threshold(0.5, min_size=0).fit(table).sets(table)
    assert wb.metrics.micro_f1(sets) > 0.8


def test_a_row_cannot_have_more_labels_than_there_are_classes():
    with pytest.raises(ValueError, match="n_labels = 8; a row of 7 classes has from 0 to 7 labels"):
        wb.LogitTable(SCORES).with_n_labels(8)
    with pytest.raises(ValueError, match="no labels"):
        wb.LogitTable(SCORES).with_n_labels()
