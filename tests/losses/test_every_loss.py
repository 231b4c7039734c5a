"""What is true of every loss, at both ends of every knob, and of a custom loss."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F

import workbench as wb
from workbench.cli.main import main
from workbench.knobs import knob
from workbench.losses import LOSSES, PAPERS, Loss, class_named, from_spec, summary

N, L = 6, 24  # more classes than the largest K of a slider


@dataclass(frozen=True)
class Tempered(Loss):
    r"""Cross-entropy at a temperature: a custom loss, which meets every table, gallery and test.

    $$\ell(s, y) = -T \log \mathrm{softmax}_y(s / T)$$

    Paper: none.
    """

    title = "Tempered cross-entropy"
    formula = r"-T \log \mathrm{softmax}_y(s / T)"
    paper = "Garcin, thesis"
    equation = "none"
    convex = True
    smooth = True
    calibrated = True

    @property
    def proper(self):
        return self.temperature == 1

    temperature: float = knob(1.0, low=0.1, high=10.0, scale="log", symbol="T", meaning="temperature")

    def values(self, scores, labels, **_):
        return self.temperature * F.cross_entropy(scores / self.temperature, labels, reduction="none")


def with_counts(loss):
    """Losses with a margin per class are tried with uneven margins too."""
    filled = loss.for_classes(torch.arange(1, L + 1).numpy() ** 2)
    return [loss] if filled is loss else [loss, filled]


def at_the_ends(loss_class):
    """The loss with every knob at its default, and at each end of each knob."""
    yield from with_counts(loss_class())
    for name, declared in loss_class.knobs().items():
        for end in declared.ends():
            if end != declared.default:
                yield loss_class(**{name: end})


EVERY_LOSS = (*LOSSES, Tempered)
EVERY_END = [loss for loss_class in EVERY_LOSS for loss in at_the_ends(loss_class)]


def every_class(where=lambda loss: True):
    chosen = [loss_class for loss_class in EVERY_LOSS if where(loss_class())]
    return pytest.mark.parametrize("loss_class", chosen, ids=lambda loss_class: loss_class.__name__)


def every_end(where=lambda loss: True):
    return pytest.mark.parametrize("loss", [*filter(where, EVERY_END)], ids=lambda loss: repr(loss)[:60])


def batch(loss, n=N, n_classes=L, dtype=torch.float64, size=1.0, seed=0):
    """Scores, labels and what else the call needs to be repeatable."""
    generator = torch.Generator().manual_seed(seed)
    heads = (2,) if loss.heads == 2 else ()
    scores = size * torch.randn(n, *heads, n_classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(n_classes, (n,), generator=generator)
    if loss.labels == "many":
        labels = F.one_hot(labels, n_classes).bool() | (torch.rand(n, n_classes, generator=generator) < 0.1)
        labels[n // 2] = False  # a row without a label
    noise = torch.randn(n, loss.n_samples, n_classes, generator=generator, dtype=dtype) if loss.random else None
    return scores.to(dtype), labels, {"noise": noise} if loss.random else {}


def value_and_gradient(loss, scores, labels, **rest):
    scores = scores.detach().clone().requires_grad_()
    values = loss(scores, labels, **rest)
    values.sum().backward()
    return values.detach(), scores.grad


def is_label(loss, scores, labels):
    """(n, L) bool, or (n, 2, L) for two heads: where the labels of a row are."""
    own = labels if labels.ndim == 2 else F.one_hot(labels, scores.shape[-1]).bool()
    return own.unsqueeze(1).expand_as(scores) if loss.heads == 2 else own


# Values and gradients


@every_end()
def test_there_is_one_value_per_row(loss):
    scores, labels, rest = batch(loss)
    values = loss(scores, labels, **rest)
    assert values.shape == (N,)
    assert values.dtype == scores.dtype
    assert loss(scores, labels).shape == (N,)  # two arguments are enough


@every_end()
@pytest.mark.parametrize("size", [1e-4, 1e4])
def test_value_and_gradient_are_finite_for_scores_of_any_size(loss, size):
    scores, labels, rest = batch(loss, dtype=torch.float32, size=size)
    values, gradient = value_and_gradient(loss, scores, labels, **rest)
    assert values.isfinite().all()
    assert gradient.isfinite().all()


@every_end(lambda loss: getattr(loss, "K", 1) < 16)  # the sets must fit into the classes that are left
def test_masked_classes_leave_value_and_gradient_finite_and_get_no_gradient(loss):
    scores, labels, rest = batch(loss, dtype=torch.float32)
    masked = torch.zeros(L, dtype=torch.bool)
    masked[::3] = True
    masked = masked.expand_as(scores) & ~is_label(loss, scores, labels)
    values, gradient = value_and_gradient(loss, scores.masked_fill(masked, -math.inf), labels, **rest)
    assert values.isfinite().all()
    assert gradient.isfinite().all()
    assert gradient[masked].abs().max() < 1e-6


@every_end()
def test_half_precision_is_computed_in_float32(loss):
    scores, labels, rest = batch(loss, dtype=torch.float32)
    coarse = scores.bfloat16()
    values = loss(coarse, labels, **rest)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, loss(coarse.float(), labels, **rest))
    assert value_and_gradient(loss, coarse, labels, **rest)[1].dtype == torch.bfloat16


# Each side of ROLE is taught by the other as it stands: what it follows is not a gradient.
@every_end(lambda loss: not isinstance(loss, wb.losses.ROLE))
def test_gradient_equals_finite_differences(loss):
    scores, labels, rest = batch(loss)
    _, gradient = value_and_gradient(loss, scores, labels, **rest)
    step = 1e-6 * torch.randn(scores.shape, generator=torch.Generator().manual_seed(1), dtype=scores.dtype)
    rise = loss(scores + step, labels, **rest) - loss(scores - step, labels, **rest)
    torch.testing.assert_close(rise.sum(), 2 * (gradient * step).sum(), rtol=1e-5, atol=1e-10)


@every_end()
def test_the_order_of_the_classes_does_not_matter(loss):
    scores, labels, rest = batch(loss)
    order = torch.randperm(L, generator=torch.Generator().manual_seed(2))
    moved = labels[:, order] if labels.ndim == 2 else order.argsort()[labels]
    moved_rest = {"noise": rest["noise"][..., order]} if loss.random else {}
    counts = getattr(loss, "class_counts", None)
    moved_loss = loss.for_classes([counts[j] for j in order]) if counts else loss
    torch.testing.assert_close(moved_loss(scores[..., order], moved, **moved_rest), loss(scores, labels, **rest))


@every_end()
def test_batches_can_be_mapped(loss):
    batches = [batch(loss, n=3, seed=seed) for seed in range(2)]
    scores, labels = (torch.stack([one[part] for one in batches]) for part in (0, 1))
    expected = torch.stack([loss(scores, labels, **rest) for scores, labels, rest in batches])
    if loss.random:
        noise = torch.stack([rest["noise"] for _, _, rest in batches])
        mapped = torch.func.vmap(lambda s, y, z: loss(s, y, noise=z))(scores, labels, noise)
    else:
        mapped = torch.func.vmap(loss)(scores, labels)
    torch.testing.assert_close(mapped, expected)


@every_end()
def test_gradients_can_be_mapped(loss):
    batches = [batch(loss, n=3, seed=seed) for seed in range(2)]
    scores, labels = (torch.stack([one[part] for one in batches]) for part in (0, 1))
    expected = torch.stack([value_and_gradient(loss, scores, labels, **rest)[1] for scores, labels, rest in batches])
    if loss.random:
        noise = torch.stack([rest["noise"] for _, _, rest in batches])
        mapped = torch.func.vmap(torch.func.grad(lambda s, y, z: loss(s, y, noise=z).sum()))(scores, labels, noise)
    else:
        mapped = torch.func.vmap(torch.func.grad(lambda s, y: loss(s, y).sum()))(scores, labels)
    torch.testing.assert_close(mapped, expected)


@every_class()
def test_K_of_all_classes_is_refused_inside_a_mapped_gradient_too(loss_class):
    if "K" not in loss_class.knobs():
        return
    loss = loss_class(K=5)
    scores, labels, rest = batch(loss, n_classes=5)
    gradient = torch.func.grad(lambda s, y: loss(s, y, **rest).sum())
    with pytest.raises(ValueError, match="K = 5 with 5 classes"):
        gradient(scores, labels)
    with pytest.raises(ValueError, match="K = 5 with 5 classes"):
        torch.func.vmap(gradient)(scores[None], labels[None])


def test_K_beyond_the_classes_is_refused_inside_a_gradient_of_the_projection():
    scores = torch.zeros(2, 3)
    with pytest.raises(ValueError, match="give numbers from 0 to 3"):
        torch.func.grad(lambda s: wb.operators.project_top_k_simplex(s, K=9).sum())(scores)


@every_end()
def test_labels_alone_can_be_mapped(loss):
    scores, labels, rest = batch(loss)
    several = torch.stack([labels, labels.flip(0)])
    expected = torch.stack([loss(scores, one, **rest) for one in several])
    torch.testing.assert_close(torch.func.vmap(lambda y: loss(scores, y, **rest))(several), expected)


# Their gradients are written out by hand.
NO_SECOND_DERIVATIVE = (
    wb.losses.SmoothTopKHinge,
    wb.losses.ExactNoisedTopK,
    wb.losses.DifferentiableTopK,
    wb.losses.Sparsemax,
    wb.losses.SparseTop,
)


@every_class(lambda loss: not isinstance(loss, NO_SECOND_DERIVATIVE))
def test_second_derivatives_equal_finite_differences_of_gradients(loss_class):
    loss = loss_class()
    scores, labels, rest = batch(loss)
    step = 1e-5 * torch.randn(scores.shape, generator=torch.Generator().manual_seed(1), dtype=scores.dtype)
    slope = torch.func.grad(lambda s: loss(s, labels, **rest).sum())
    change = torch.func.grad(lambda s: (slope(s) * step).sum())(scores)
    torch.testing.assert_close(2 * change, slope(scores + step) - slope(scores - step), rtol=1e-4, atol=1e-10)


@every_class(lambda loss: isinstance(loss, NO_SECOND_DERIVATIVE))
def test_second_derivatives_that_are_not_known_are_refused(loss_class):
    loss = loss_class()
    scores, labels, _ = batch(loss)
    slope = torch.func.grad(lambda s: loss(s, labels).sum())
    with pytest.raises(NotImplementedError, match="only the first derivative"):
        torch.func.grad(lambda s: slope(s).sum())(scores)
    scores.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(scores, labels).sum() + scores.square().sum(), scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="only the first derivative"):
        gradient.sum().backward()


@every_class()
def test_words_that_no_loss_knows_are_refused(loss_class):
    loss = loss_class()
    scores, labels, rest = batch(loss)
    with pytest.raises(TypeError, match="noize"):
        loss(scores, labels, **rest, noize=None)


@every_end()
@pytest.mark.parametrize("where", ["every class", "another class", "the label"])
def test_a_score_of_nan_is_seen_in_the_loss_of_its_row(loss, where):
    scores, labels, rest = batch(loss)
    own = is_label(loss, scores, labels)[0]
    bad = {"every class": torch.ones_like(own), "the label": own, "another class": ~own & (torch.arange(L) == 5)}[where]
    assert bad.any()
    scores[0] = scores[0].masked_fill(bad, math.nan)
    values = loss(scores, labels, **rest)
    assert values[0].isnan()
    assert loss.couples_batch or values[1:].isfinite().all()
    assert loss(scores, labels)[0].isnan()  # with noise of its own, if it draws any


@every_end()
def test_every_tensor_is_made_on_the_device_of_the_scores(loss):
    scores, labels, rest = batch(loss)
    expected = value_and_gradient(loss, scores, labels, **rest)
    with torch.device("meta"):  # where a tensor lands that is made without saying where
        found = value_and_gradient(loss, scores, labels, **rest)
    torch.testing.assert_close(found, expected)


@every_class()
def test_an_empty_batch_has_no_values(loss_class):
    loss = loss_class()
    scores, labels, _ = batch(loss)
    assert loss(scores[:0], labels[:0]).shape == (0,)


# Facts


@every_class()
def test_a_loss_says_what_it_is(loss_class):
    loss = loss_class()
    assert loss.title
    assert loss.formula
    assert loss.equation
    assert loss.paper in PAPERS
    assert {type(loss.convex), type(loss.smooth), type(loss.calibrated), type(loss.proper), type(loss.trains)} == {bool}
    assert "$$" in loss_class.__doc__
    assert "Paper:" in loss_class.__doc__
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.title = "another"


@every_end()
def test_a_loss_is_made_again_from_its_repr_and_from_its_spec(loss):
    names = {loss_class.__name__: loss_class for loss_class in EVERY_LOSS}
    assert eval(repr(loss), {**names, "anneal": wb.schedules.anneal}) == loss
    if getattr(loss, "class_counts", None) is None:
        assert from_spec(loss.spec(), allowed=[__name__]) == loss


@every_end(lambda loss: loss.convex)
def test_convex_losses_lie_below_their_chords(loss):
    (a, labels, rest), (b, _, _) = (batch(loss, n=200, size=2.0, seed=seed) for seed in (0, 1))
    above = loss((a + b) / 2, labels, **rest) - (loss(a, labels, **rest) + loss(b, labels, **rest)) / 2
    assert (above.mean() if loss.couples_batch else above.max()) <= 1e-9


@every_class(lambda loss: not loss.convex)
def test_losses_that_are_not_convex_rise_above_a_chord(loss_class):
    loss = loss_class()
    worst = -math.inf
    for seed in range(6):
        middle, labels, rest = batch(loss, seed=seed)
        middle = middle + (0, 2, -2)[seed % 3]
        directions = [
            batch(loss, seed=100 + seed)[0],
            torch.ones_like(middle),
            is_label(loss, middle, labels).to(middle),
            F.one_hot(torch.tensor(seed), L).expand_as(middle),
        ]
        for direction in directions:
            for length in (0.2, 1.0, 5.0):
                step = length * direction
                chords = (loss(middle + step, labels, **rest) + loss(middle - step, labels, **rest)) / 2
                above = loss(middle, labels, **rest) - chords
                worst = max(worst, float(above.mean() if loss.couples_batch else above.max()))
    assert worst > 1e-6


@every_end(lambda loss: loss.smooth)
def test_smooth_losses_have_no_kink_where_scores_tie(loss):
    scores, labels, rest = batch(loss, n=50)
    scores = scores.round()  # many ties, many whole margins
    step = 1e-7 * torch.randn(scores.shape, generator=torch.Generator().manual_seed(1), dtype=scores.dtype)
    ahead = loss(scores + step, labels, **rest) - loss(scores, labels, **rest)
    behind = loss(scores, labels, **rest) - loss(scores - step, labels, **rest)
    steepness = value_and_gradient(loss, scores, labels, **rest)[1].abs().max()
    assert (ahead - behind).abs().max() < 1e-3 * 1e-7 * (1 + steepness)


def top_k_preserving(scores, probabilities, K):
    """Definition A.1 of Garcin et al. 2022: the scores keep the K most probable classes apart from the others."""
    ranked, likely = (values.sort(-1, descending=True).values for values in (scores, probabilities))
    inside = (probabilities <= likely[K]) | (scores > ranked[:, K : K + 1])
    outside = (probabilities >= likely[K - 1]) | (scores < ranked[:, K - 1 : K])
    return (inside & outside).all(-1)


def calibration_gap(loss, probabilities, K):
    """How much more the best scores that are not top-K preserving risk than the best of all (Definition A.2)."""
    probabilities = torch.tensor(probabilities, dtype=torch.float64)
    n_classes = len(probabilities)
    scores = torch.cartesian_prod(*[torch.arange(-20, 21, dtype=torch.float64) / 5] * n_classes)
    if loss.link in ("softmax", "sparsemax") and not isinstance(loss, wb.losses.AssumeNegative):
        scores = scores[scores[:, -1] == 0]  # a constant added to all scores changes nothing
    rows = scores.unsqueeze(1) if loss.heads == 1 else scores[:, None, None].expand(-1, 1, 2, -1)
    risk = torch.zeros(len(scores), dtype=torch.float64)
    for label, probability in enumerate(probabilities):
        labels = torch.full((len(scores), 1), label)
        labels = F.one_hot(labels, n_classes).bool() if loss.labels == "many" else labels
        if loss.couples_batch:  # one row a batch
            risk += probability * torch.func.vmap(loss)(rows, labels).squeeze(-1)
        else:
            risk += probability * loss(rows.squeeze(1), labels.squeeze(1))
    preserving = top_k_preserving(scores, probabilities, K)
    return float(risk[~preserving].min() - risk.min())


def on_three_classes(K):
    """The calibrated losses, with sets of K of three classes; a cosine head has its margins on a grid of scores."""
    for loss_class in EVERY_LOSS:
        knobs = {"K": K, "scale": 1.0, "epsilon": 0.2}
        if loss_class.head == "cosine":
            knobs["epsilon"] = 0.0
        loss = loss_class(**{name: value for name, value in knobs.items() if name in loss_class.knobs()})
        loss = loss.exact()  # what draws of noise estimate is calibrated; the draws themselves are not
        if loss.calibrated:
            yield pytest.param(loss, K, id=f"{loss_class.__name__}-{K}")


@pytest.mark.parametrize(("loss", "K"), [*on_three_classes(1), *on_three_classes(2)])
def test_calibrated_losses_are_least_only_where_the_top_K_classes_are_right(loss, K):
    for probabilities in ([0.65, 0.3, 0.05], [0.1, 0.3, 0.6]):
        assert calibration_gap(loss, probabilities, K) > 1e-4


@every_end()
def test_only_losses_that_say_so_couple_the_rows_of_a_batch(loss):
    scores, labels, rest = batch(loss)
    other = scores.clone()
    other[1:] = batch(loss, seed=9)[0][1:]
    values, others = loss(scores, labels, **rest), loss(other, labels, **rest)
    changed = not torch.allclose(values[0], others[0], rtol=1e-9)
    K_alone = isinstance(loss, wb.losses.AverageKTwoHead) and loss.K == 1  # no candidates, nothing to share
    assert changed == (loss.couples_batch and not K_alone)


@every_class()
def test_only_losses_that_say_so_are_random_and_none_touches_the_global_state(loss_class):
    loss = loss_class()
    scores, labels, _ = batch(loss)
    before = torch.get_rng_state()
    first, second = loss(scores, labels), loss(scores, labels)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first, second) != loss.random
    draws = [loss(scores, labels, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*draws)


@every_class()
def test_only_losses_that_train_have_a_gradient(loss_class):
    loss = loss_class()
    scores, labels, rest = batch(loss)
    assert bool(value_and_gradient(loss, scores, labels, **rest)[1].any()) == loss.trains


@every_class()
def test_a_table_caches_the_predicting_scores(loss_class):
    loss = loss_class()
    scores, _, _ = batch(loss)
    logits = loss.logits(scores)
    assert logits.shape == (N, L)
    assert torch.equal(logits, (scores[:, 0] if loss.heads == 2 else scores) * getattr(loss, "scale", 1))


# Bad input


@every_class(lambda loss: "K" in loss.knobs())
def test_K_as_large_as_the_number_of_classes_is_refused(loss_class):
    loss = loss_class(K=L)
    scores, labels, rest = batch(loss)
    with pytest.raises(ValueError, match="smaller than the number of classes"):
        loss(scores, labels, **rest)


@every_class()
def test_values_outside_the_range_of_a_knob_are_refused(loss_class):
    for name, declared in loss_class.knobs().items():
        low, high = declared.accepted
        bad = {"choice": ["nonsense"], "weights": [(-1.0, 2.0), (0.5,)]}.get(declared.kind)
        for value in bad or [low - 1, *([high + 1] if math.isfinite(high) else []), math.nan]:
            with pytest.raises(ValueError, match=name):
                loss_class(**{name: value})
        with pytest.raises(TypeError, match=name):
            loss_class(**{name: "five" if declared.numeric else 5})


@every_class()
def test_labels_that_do_not_fit_are_refused(loss_class):
    loss = loss_class()
    scores, labels, rest = batch(loss)
    if loss.labels == "many":
        wrong = [labels.long(), labels[:, :-1], labels[:-1], torch.zeros(N, dtype=torch.int64)]
    else:
        wrong = [labels - L, labels + L, labels.double(), labels[:-1], labels[:, None]]
    for bad in wrong:
        with pytest.raises(ValueError, match="labels"):
            loss(scores, bad, **rest)


@every_class()
def test_labels_that_are_no_tensor_are_refused(loss_class):
    loss = loss_class()
    scores, labels, rest = batch(loss)
    for bad in (None, labels.tolist(), labels.numpy()):
        with pytest.raises(TypeError, match=r"labels are (NoneType|list|ndarray); give a tensor"):
            loss(scores, bad, **rest)


@every_class()
def test_scores_that_do_not_fit_are_refused(loss_class):
    loss = loss_class()
    scores, labels, rest = batch(loss)
    another_number_of_heads = scores[:, 0] if loss.heads == 2 else scores.unsqueeze(1).expand(-1, 2, -1)
    for bad in (scores.long(), another_number_of_heads, scores[..., :1]):
        with pytest.raises(ValueError, match="scores"):
            loss(bad, labels, **rest)
    with pytest.raises(TypeError, match="scores are ndarray; give a tensor"):
        loss(scores.numpy(), labels, **rest)


@every_class()
def test_the_values_of_a_batch_are_given_as_they_are_as_their_mean_or_as_their_sum(loss_class):
    loss = loss_class()
    scores, labels, rest = batch(loss)
    values = loss(scores, labels, **rest)
    assert values.shape == (N,)
    torch.testing.assert_close(loss(scores, labels, **rest, reduction="mean"), values.mean())
    torch.testing.assert_close(loss(scores, labels, **rest, reduction="sum"), values.sum())
    with pytest.raises(ValueError, match="reduction = 'max'; give one of none, mean, sum"):
        loss(scores, labels, **rest, reduction="max")


@pytest.mark.parametrize("loss_class", [wb.losses.LDAM, wb.losses.NoisedTopKImbalanced])
@pytest.mark.parametrize("class_counts", [[3, 0, 5], [3, -1, 5], [], [1.5, 2, 3], [[1, 2, 3]]])
def test_class_counts_that_are_not_counts_are_refused(loss_class, class_counts):
    with pytest.raises(ValueError, match=r"class_counts|training image"):
        loss_class().for_classes(class_counts)


@pytest.mark.parametrize("loss_class", [wb.losses.LDAM, wb.losses.NoisedTopKImbalanced])
def test_class_counts_of_another_number_of_classes_are_refused(loss_class):
    loss = loss_class().for_classes([1, 2, 3])
    with pytest.raises(ValueError, match="3 class_counts for scores of 24 classes"):
        loss(torch.zeros(2, L), torch.tensor([0, 1]))


@pytest.mark.parametrize("shape", [(N, L, 5), (N, L), (5, N, L), (N, 0, L), (N, 5, L + 1)])
def test_noise_of_another_shape_is_refused(shape):
    scores, labels, _ = batch(wb.losses.NoisedTopK())
    with pytest.raises(ValueError, match="n_samples"):
        wb.losses.NoisedTopK()(scores, labels, noise=torch.zeros(shape))


# Everywhere at once


def test_a_loss_defined_elsewhere_is_found_by_name_and_by_module():
    assert class_named("Tempered", losses=(*LOSSES, Tempered)) is Tempered
    assert class_named(f"{__name__}:Tempered") is Tempered
    with pytest.raises(ValueError, match="CrossEntropy"):
        class_named("Tempered")


def test_a_loss_defined_elsewhere_joins_the_catalogue_and_the_table_of_the_readme():
    entry = summary.entries(losses=(*LOSSES, Tempered))[-1]
    assert (entry["name"], entry["knobs"]["temperature"]["symbol"]) == ("Tempered", "T")
    assert "| `Tempered` |" in summary.markdown(losses=(*LOSSES, Tempered))


def test_a_loss_defined_elsewhere_joins_the_gallery_of_level_sets():
    figure = wb.figures.gallery([*LOSSES, Tempered], steps=5)
    assert len(figure.frame["loss"].unique()) == len(LOSSES) + 1
    assert repr(Tempered()) in set(figure.frame["loss"])


def test_the_command_line_reads_the_catalogue_when_it_is_called(monkeypatch, capsys):
    monkeypatch.setattr(wb.losses, "LOSSES", (*LOSSES, Tempered))
    assert main(["losses"]) == 0
    assert "Tempered" in capsys.readouterr().out


OF_THE_PAPERS = {
    *("TopKError", "CrossEntropy", "Focal", "LDAM", "TopKHinge", "ConvexTopKHinge", "CalibratedTopKHinge"),
    *("SmoothTopKHinge", "NoisedTopK", "ExactNoisedTopK", "NoisedTopKImbalanced", "DifferentiableTopK"),
    *("AssumeNegative", "ExpectedPositive", "ROLE", "AverageKTwoHead", "BinaryCrossEntropy", "Quasibinary"),
    *("SoftmaxUniform", "SoftmaxMaxConfidence", "Sparsemax", "SparseTop"),
}


def test_all_losses_of_the_papers_are_there_and_all_but_one_train():
    assert len(LOSSES) == len(set(LOSSES))
    assert len(OF_THE_PAPERS) == 22
    assert OF_THE_PAPERS <= {loss.__name__ for loss in LOSSES}  # others may join them
    assert [loss.__name__ for loss in LOSSES if not loss.trains] == ["TopKError"]
