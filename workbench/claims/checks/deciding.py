"""What decides whether a loss for sets pays: the same comparisons from networks that hardly fit to networks that memorise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from workbench.claims.checks.memorising import REFERENCE, TOP_5, WRONG, K, noisy, sides_of
from workbench.claims.checks.memorising_averages import ALPHA, average_5, pair, share_of_size
from workbench.claims.claim import GRADED, Bench, Claim, Found
from workbench.claims.data import LETTERS, Memorised, data_to_try, few_letters, memorised
from workbench.claims.experiment import Sample, Trained, arm, found
from workbench.datasets import HorizontalFlip, PaddedCrop
from workbench.losses import SmoothTopKHinge

SEEDS = 3
TAU = 0.1


def conditions(source: Memorised) -> dict[str, Memorised]:
    """The data and the network as they are, and with one change each of what lets it memorise."""
    fields: dict[str, dict[str, Any]]
    if source.name == LETTERS:
        fields = {
            **{f"{n} epochs": {"epochs": n} for n in (2, 5, 20)},
            "8 units": {"model": "mlp-narrow"},
            "250 rows": {"dataset": few_letters(250)},
            "weight decay 1": {"weight_decay": 1.0},
        }
    else:
        fields = {
            "5 epochs": {"epochs": 5},
            "width 4": {"model": "vgg5-narrow"},
            "weight decay 0.01": {"weight_decay": 0.01},
            "augmented": {"transforms": (PaddedCrop(2), HorizontalFlip())},
        }
    settings = {"as it is": {}, **fields}
    few = replace(source, seeds=SEEDS, tuned_on=SEEDS)
    return {name: replace(few, run=replace(source.run, **each)) for name, each in settings.items()}


@dataclass(frozen=True)
class Gain:
    """A difference in points, and how far cross-entropy fits the training rows behind it."""

    points: Sample
    training_accuracy: float


def _what_decides(bench: Bench, data: str) -> Found:
    expected, lines, used = [], [], dict[str, Trained]()
    gains: dict[str, list[Gain]] = {}
    for name, each in conditions(memorised(bench, data)).items():
        clean, wrong = pair(bench, each), _under_noise(bench, each)
        for panel, gain in _gains(clean, wrong).items():
            gains.setdefault(panel, []).append(gain)
        sides = {**clean, **{f"{side}, label noise": of for side, of in wrong.items()}}
        used |= {f"{side}, {name}": of for side, of in sides.items()}
    for panel, of in gains.items():
        most, least = (end(of, key=lambda gain: gain.training_accuracy) for end in (max, min))
        grown = (most.points - least.points).estimate()
        expected.append(grown.expected(f"{panel}: most against least memorising", above=0))
        lines += [replace(gain.points.estimate().at(data, 100 * gain.training_accuracy), panel=panel) for gain in of]
    return found(expected, lines, used)


def _under_noise(bench: Bench, source: Memorised) -> dict[str, Trained]:
    return sides_of(bench, noisy(source), [REFERENCE, arm("smooth top-5", loss=SmoothTopKHinge(K, TAU))])


def _gains(clean: Mapping[str, Trained], wrong: Mapping[str, Trained]) -> dict[str, Gain]:
    """Panel of the figure → what a loss for sets gains there."""
    clean_fit, noisy_fit = (sides["cross-entropy"].training_accuracy() for sides in (clean, wrong))
    top_5 = {name: side.sample(TOP_5) * 100 for name, side in wrong.items()}
    single = {name: share_of_size(side, 1) for name, side in clean.items()}
    average = {name: average_5(side) for name, side in clean.items()}
    return {
        "smooth top-5 over cross-entropy under label noise": Gain(
            top_5["smooth top-5"] - top_5["cross-entropy"], noisy_fit
        ),
        "sets of one class, cross-entropy over two heads": Gain(
            single["cross-entropy"] - single["two heads"], clean_fit
        ),
        "average-5 of two heads over cross-entropy": Gain(average["two heads"] - average["cross-entropy"], clean_fit),
    }


CLAIMS = (
    Claim(
        32,
        "What a loss for sets gains over cross-entropy is decided by how far the network memorises its training rows.",
        "ours",
        "letters (a multilayer network; 2 to 100 epochs, 8 and 256 units, 250 and 1 000 rows, weight decay 1e-4 and 1) and "
        "images of CIFAR-100, or of the garden where they are not given (five convolutions; 5 and 28 epochs, width 4 and 16, "
        "weight decay 1e-4 and 0.01, with and without flips and crops after a border of two pixels), or only one of the two; "
        "training accuracy is that of the rows as they pass, changed where they are augmented; otherwise as claims 5, 8 and 9 in "
        f"the regime that memorises; {SEEDS} seeds, one rate; label noise {WRONG:.0%} with τ = {TAU}; α = {ALPHA}",
        "each of three differences (top-5 of smooth top-5 over cross-entropy under label noise, sets of one class of "
        "cross-entropy over those of two heads, average-5 of two heads over cross-entropy) is larger where cross-entropy fits "
        "its training rows most than where it fits them least",
        _what_decides,
        GRADED,
        x="training accuracy of cross-entropy, %",
        y="points",
        seeds=SEEDS,
        changed="epochs and widths were looked at before weight decay and augmentation were added",
        decides="the largest gains are where cross-entropy memorises, whichever change keeps it from that elsewhere; with more "
        "weight decay the smooth loss hardly learns at the shared rate, so that its point there says little about memorising",
        data_to_try=data_to_try,
    ),
)
