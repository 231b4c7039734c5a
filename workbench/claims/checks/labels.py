"""Claims about quasibinary classifiers: many labels, none, and many classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from workbench.calibration import TemperatureScaling
from workbench.claims.arms import Measure, Tables, Trained, arm, found, gain, over_seeds, score, trained
from workbench.claims.claim import Bench, Claim, Found
from workbench.claims.data import CIFAR, cifar_heads, meadow_rows, prototypes
from workbench.datasets import ZeroLabels
from workbench.losses import BinaryCrossEntropy, CrossEntropy, Loss, Quasibinary, SoftmaxMaxConfidence, SoftmaxUniform
from workbench.metrics import auroc, confidences, top_k_accuracy, top_k_calibration_error
from workbench.tables import LogitTable
from workbench.training import Run, TrainedRun

SEEDS = 5
RATES = [1e-3, 3e-3, 1e-2]
N_CLASSES = (10, 100, 300)
FIRST, TOP_4 = Measure(top_k_accuracy), Measure(top_k_calibration_error)


def _many_labels(bench: Bench) -> Found:
    losses = {"sigmoids": BinaryCrossEntropy(), "softmax": CrossEntropy(), "quasibinary": Quasibinary()}
    sides = _tuned_on_val_loss(bench, Run(meadow_rows(bench), model="mlp", epochs=60, batch_size=256), losses)
    error = {name: side.sample(TOP_4) * 100 for name, side in sides.items()}
    error["softmax, temperature"] = sides["softmax"].sample(TOP_4, _softened) * 100
    expected = tuple(
        (error["quasibinary"] - error[name])
        .estimate()
        .expected(f"points of top-4 calibration error of quasibinary over {name}", below=0)
        for name in ("sigmoids", "softmax", "softmax, temperature")
    )
    lines = [of.estimate().at("top-4 calibration error", name) for name, of in error.items()]
    return found(expected, lines, sides)


def _softened(run: TrainedRun) -> Tables:
    """The tables with a temperature fitted on val."""
    scaling = TemperatureScaling().fit(run.tables["val"])
    return {split: scaling(run.tables[split]) for split in ("val", "test")}


def _no_labels(bench: Bench) -> Found:
    losses = {
        "sigmoids": BinaryCrossEntropy(),
        "softmax, uniform": SoftmaxUniform(),
        "softmax, least confident": SoftmaxMaxConfidence(),
        "quasibinary": Quasibinary(),
    }
    run = cifar_heads(bench, transforms=(ZeroLabels(2),))
    arms = [arm(name, loss=loss, learning_rate=RATES) for name, loss in losses.items()]
    sides = trained(bench, run, arms, tuned_by=FIRST.on_val, seeds=SEEDS)
    inside = {name: _on_test(side, top_k_accuracy) for name, side in sides.items()}
    outside = {name: _on_test(side, _outside_confidence) for name, side in sides.items()}
    apart = {name: _on_test(side, _told_apart) for name, side in sides.items()}
    others = [name for name in losses if name != "quasibinary"]
    expected = [
        (over_seeds(outside["quasibinary"] - outside[name]) * 100).expected(
            f"points of confidence in rows without a label, quasibinary over {name}", below=0
        )
        for name in others
    ]
    expected += [
        over_seeds(apart["quasibinary"] - apart[name]).expected(f"AU-ROC of quasibinary over {name}", above=0)
        for name in others
    ]
    expected.append(
        (over_seeds(inside["quasibinary"] - inside["softmax, uniform"]) * 100).expected(
            "points of accuracy on labelled rows, quasibinary over softmax, uniform", above=-1
        )
    )
    lines = [
        (over_seeds(values) * 100).at(told, name)
        for told, of in (("accuracy, labelled", inside), ("confidence, unlabelled", outside), ("AU-ROC × 100", apart))
        for name, values in of.items()
    ]
    return found(expected, lines, sides)


def _constant_converges(bench: Bench) -> Found:
    run = cifar_heads(bench, transforms=(ZeroLabels(2),))
    side = trained(bench, run, [arm("quasibinary", loss=Quasibinary())], tuned_by=lambda _: 0.0, seeds=SEEDS)[
        "quasibinary"
    ]
    courses = np.stack([one.history["log_C"].to_numpy() for one in side.runs])  # (seeds, epochs)
    n = courses.shape[1]
    late = over_seeds(np.ptp(courses[:, 2 * n // 3 :], axis=1))
    early = over_seeds(np.ptp(courses[:, : n // 3], axis=1))
    expected = (
        late.expected("range of log C in the last third of the training", below=0.1),
        over_seeds(np.ptp(courses[:, 2 * n // 3 :], axis=1) / np.ptp(courses[:, : n // 3], axis=1)).expected(
            "that range over the one in the first third", below=0.5
        ),
    )
    lines = tuple(over_seeds(courses[:, epoch]).at("log C", epoch + 1) for epoch in range(n))
    return found(expected, lines, {"quasibinary": side}, f"In the first third log C moves by {early.value:.2f}.")


def _many_classes(bench: Bench) -> Found:
    losses = {"softmax": CrossEntropy(), "sigmoids": BinaryCrossEntropy(), "quasibinary": Quasibinary()}
    expected, lines, used = [], [], dict[str, Trained]()
    for n_classes in N_CLASSES:
        sides = _tuned_on_val_accuracy(
            bench, Run(prototypes(n_classes), model="linear", epochs=20, batch_size=256), losses
        )
        behind = gain(sides["sigmoids"], sides["softmax"], FIRST)
        told = f"top-1 points of sigmoids over softmax, {n_classes} classes"
        expected.append(behind.expected(told, above=-2) if n_classes == 10 else behind.expected(told, below=-2))
        lines += [score(side, FIRST).at(name, n_classes) for name, side in sides.items()]
        used |= {f"{name}, {n_classes} classes": side for name, side in sides.items()}
    return found(expected, lines, used)


def _tuned_on_val_loss(bench: Bench, run: Run, losses: Mapping[str, Loss]) -> dict[str, Trained]:
    arms = [arm(name, loss=loss, learning_rate=RATES) for name, loss in losses.items()]
    return trained(bench, run, arms, tuned_by=lambda one: -one.kept["val_loss"], seeds=SEEDS)


def _tuned_on_val_accuracy(bench: Bench, run: Run, losses: Mapping[str, Loss]) -> dict[str, Trained]:
    arms = [arm(name, loss=loss, learning_rate=RATES) for name, loss in losses.items()]
    return trained(bench, run, arms, tuned_by=FIRST.on_val, seeds=3)


def _on_test(side: Trained, measure: Callable[[LogitTable], float]) -> np.ndarray:
    return np.array([measure(run.tables["test"]) for run in side.runs])


def _labelled(table: LogitTable) -> np.ndarray:
    labelled: np.ndarray = np.asarray(table.labels, dtype=bool).max(axis=1)
    return labelled


def _outside_confidence(table: LogitTable) -> float:
    """Mean of the largest probability of rows without a label, at most 1."""
    return float(np.minimum(confidences(table)[~_labelled(table)], 1).mean())


def _told_apart(table: LogitTable) -> float:
    confidence, labelled = confidences(table), _labelled(table)
    return float(auroc(confidence[labelled], confidence[~labelled]))


PAPER = "Liao et al."
HEADS = (
    "CIFAR-100 features of a published ResNet-32, linear heads, two classes of each superclass without labels, 30 epochs, "
    "5 seeds"
)

CLAIMS = (
    Claim(
        18,
        "Quasibinary probabilities of many labels are better calibrated than those of sigmoids and of a softmax.",
        f"{PAPER}, Table III",
        "meadow (0 to 3 plants a photograph) on features of the garden's network, a small multilayer network, 60 epochs, "
        "5 seeds; "
        "learning rate chosen by the loss on val",
        "the calibration error of the top four is below that of sigmoids, softmax, and softmax with a temperature",
        _many_labels,
        y="calibration error, %",
    ),
    Claim(
        19,
        "The quasibinary classifier suppresses its confidence in rows without a label and stays accurate on the others.",
        f"{PAPER}, Table II",
        f"{HEADS}; learning rate chosen by accuracy on labelled val rows",
        "its mean confidence in unlabelled rows is the lowest, its AU-ROC the highest, and it loses less than a point of "
        "accuracy against softmax with the uniform term",
        _no_labels,
        y="%",
        needs=CIFAR,
    ),
    Claim(
        20,
        "The quasibinary constant converges.",
        f"{PAPER}, Fig. 2",
        f"{HEADS}; learning rate 1e-3",
        "in the last third of the training log C moves by less than 0.1, and by less than half of its range in the first third",
        _constant_converges,
        x="epoch",
        y="log C",
        needs=CIFAR,
    ),
    Claim(
        21,
        "Sigmoids keep up with a softmax for few classes and fall behind when there are many.",
        f"{PAPER}, Table I",
        "clouds around random prototypes in 64 dimensions, 20 training rows a class, a linear model, 20 epochs, 3 seeds; "
        "learning rate chosen on val",
        "sigmoids are at most 2 points behind for 10 classes and more than 2 points for 100 and 300",
        _many_classes,
        x="classes",
        y="top-1 accuracy, %",
        logarithmic=True,
        seeds=3,
    ),
)
