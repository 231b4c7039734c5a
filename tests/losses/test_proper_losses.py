"""Which losses lead to the true probabilities: the fact `proper` of each, held against its conditional risk."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import workbench as wb
from workbench.losses import LOSSES
from workbench.losses.base import Loss
from workbench.tables.links import LINKS

K_OF_THREE = {"K": 1, "epsilon": 0.2, "scale": 1.0, "p_k": (0.5, 0.5)}
GENERATOR = torch.Generator().manual_seed(0)
LAWS = [torch.tensor(law, dtype=torch.float64) for law in ([0.5, 0.3, 0.2], [0.12, 0.63, 0.25], [0.4, 0.1, 0.3, 0.2])]


def small(loss_class: type[Loss], **knobs: object) -> Loss:
    """The loss for three classes, without noise."""
    given = K_OF_THREE | knobs
    return loss_class(**{name: value for name, value in given.items() if name in loss_class.knobs()}).exact()


def risk(loss: Loss, scores: torch.Tensor, law: torch.Tensor) -> torch.Tensor:
    """(m,) the expected loss of each row of scores, a batch by itself, when its label is drawn from the law."""
    batches = scores[:, None, None, :].expand(-1, 1, 2, -1) if loss.heads == 2 else scores[:, None, :]
    total = torch.zeros(len(scores), dtype=scores.dtype)
    for label, chance in enumerate(law):
        labels = torch.full((len(scores), 1), label)
        given = F.one_hot(labels, len(law)).bool() if loss.labels == "many" else labels
        values = torch.func.vmap(loss)(batches, given) if loss.couples_batch else loss(batches[:, 0], given[:, 0])
        total += chance * values.reshape(-1)
    return total


def predicted(loss: Loss, scores: torch.Tensor) -> np.ndarray:
    """The probabilities that a table gives these scores; C of quasibinary is that of a batch of one row."""
    logits = loss.logits(scores[:, None, :].expand(-1, 2, -1) if loss.heads == 2 else scores).detach().numpy()
    if loss.link == "quasibinary":
        return np.concatenate([LINKS["quasibinary"](row[None], float(np.logaddexp.reduce(row))) for row in logits])
    return LINKS[loss.link](logits, None)


def scores_that_say(loss: Loss, law: torch.Tensor) -> torch.Tensor:
    """Scores whose link gives the law."""
    said = {"sigmoid": torch.logit(law), "sparsemax": law}.get(loss.link, law.log())
    return said / getattr(loss, "scale", 1.0) if loss.head == "cosine" else said


def leads_to_the_law(loss: Loss, law: torch.Tensor) -> bool:
    """Whether no other scores have as low a risk as those that say the law: looked for near and far."""
    truth = scores_that_say(loss, law)
    spread = torch.logspace(-1.5, 0.5, 60, dtype=torch.float64)[:, None]
    steps = torch.randn(60, len(law), generator=GENERATOR, dtype=torch.float64) * spread
    others = torch.cat([truth + steps, truth * torch.linspace(0.2, 4, 12, dtype=torch.float64)[:, None]])
    as_good = risk(loss, others, law) <= risk(loss, truth[None], law) + 1e-12
    apart = np.abs(predicted(loss, others) - law.numpy()).max(1) > 5e-3
    return not bool((as_good.numpy() & apart).any())


@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss_class: loss_class.__name__)
def test_a_loss_is_proper_if_and_only_if_its_risk_is_least_at_the_true_probabilities_alone(loss_class):
    loss = small(loss_class)
    found = [leads_to_the_law(loss, law) for law in LAWS]
    assert all(found) if loss.proper else not any(found)


@pytest.mark.parametrize(
    ("loss", "proper"),
    [
        (wb.losses.Focal(gamma=0.0), True),
        (wb.losses.Focal(gamma=0.5), False),
        (wb.losses.DifferentiableTopK(p_k=(1.0,), top1="cross_entropy"), True),
        (wb.losses.DifferentiableTopK(p_k=(1.0,), top1="softmax"), True),
        (wb.losses.DifferentiableTopK(p_k=(1.0,), top1="sort"), False),
        (wb.losses.AverageKTwoHead(K=1.0), False),
        (wb.losses.LDAM(max_margin=0.0, scale=2.0), True),
    ],
    ids=repr,
)
def test_where_a_knob_decides_whether_a_loss_is_proper_the_fact_follows_it(loss, proper):
    assert loss.proper == proper
    assert leads_to_the_law(loss, LAWS[0]) == proper


def test_the_losses_that_estimate_probabilities_are_these():
    assert [loss.__name__ for loss in LOSSES if loss().proper] == [
        "CrossEntropy",
        "LogitAdjustment",  # without class counts
        "BinaryCrossEntropy",
        "Quasibinary",
        "SoftmaxUniform",
        "SoftmaxMaxConfidence",
        "Sparsemax",
        "SparseTop",
    ]
