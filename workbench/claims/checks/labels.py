"""Claims about quasibinary classifiers: many labels, none, and many classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from workbench.calibration import TemperatureScaling
from workbench.claims.claim import HEAD, NETWORK, Bench, Claim, Found
from workbench.claims.data import CIFAR, MANY_LABELS, cifar_heads, many_labels, meadow_rows, prototypes
from workbench.claims.experiment import Measure, Sample, Tables, Trained, arm, found, gain, over_seeds, score, trained
from workbench.datasets import Dataset, ZeroLabels
from workbench.losses import BinaryCrossEntropy, CrossEntropy, Loss, Quasibinary, SoftmaxMaxConfidence, SoftmaxUniform
from workbench.metrics import auroc, confidences, top_k_accuracy, top_k_calibration_error
from workbench.tables import LogitTable
from workbench.training import Run, TrainedRun

SEEDS = 5
RATES = [1e-3, 3e-3, 1e-2]
N_CLASSES = (10, 100, 200, 300)
FIRST, TOP_4 = Measure(top_k_accuracy), Measure(top_k_calibration_error)


def _many_labels(bench: Bench) -> Found:
    data = {"meadow": meadow_rows(bench)}
    data |= {name: many_labels(bench.file(file)) for name, file in MANY_LABELS.items() if bench.has(file)}
    expected, lines, used = [], [], dict[str, Trained]()
    for name, rows in data.items():
        sides = _many_labels_of(bench, rows)
        error = _calibration_errors(sides)
        expected += [
            (error["quasibinary"] - error[other])
            .estimate()
            .expected(f"points of top-4 calibration error of quasibinary over {other}, {name}", below=0)
            for other in ("sigmoids", "softmax", "softmax, temperature")
        ]
        lines += [of.estimate().at(name, loss) for loss, of in error.items()]
        used |= {f"{loss}, {name}": side for loss, side in sides.items()}
    return found(expected, lines, used)


def _many_labels_of(bench: Bench, rows: Dataset) -> dict[str, Trained]:
    losses = {"sigmoids": BinaryCrossEntropy(), "softmax": CrossEntropy(), "quasibinary": Quasibinary()}
    return _tuned_on_val_loss(bench, Run(rows, model="mlp", epochs=60, batch_size=256), losses)


def _calibration_errors(sides: Mapping[str, Trained]) -> dict[str, Sample]:
    """Top-4 calibration error in points, of softmax also with a temperature."""
    error = {name: side.sample(TOP_4) * 100 for name, side in sides.items()}
    return error | {"softmax, temperature": sides["softmax"].sample(TOP_4, _softened) * 100}


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
    arms = [arm("quasibinary", loss=Quasibinary()), arm("softmax, uniform", loss=SoftmaxUniform())]
    sides = trained(bench, run, arms, tuned_by=lambda _: 0.0, seeds=SEEDS)
    courses = {name: _log_normalisers(side) for name, side in sides.items()}
    late = {name: np.ptp(course[:, _last_third(course)], axis=1) for name, course in courses.items()}
    early = np.ptp(courses["quasibinary"][:, : courses["quasibinary"].shape[1] // 3], axis=1)
    expected = (
        over_seeds(late["quasibinary"]).expected("range of log C in the last third of the training", below=0.1),
        over_seeds(late["quasibinary"] / early).expected("that range over the one in the first third", below=0.5),
        over_seeds(late["softmax, uniform"] / late["quasibinary"]).expected(
            "range of the log normaliser of softmax in the last third over that of log C", above=1
        ),
        over_seeds(_relative_spread(sides["softmax, uniform"]) / _relative_spread(sides["quasibinary"])).expected(
            "relative spread of the normaliser of softmax over rows, over that of C over batches, last epoch", above=1
        ),
    )
    lines = [
        over_seeds(course[:, epoch]).at(name, epoch + 1)
        for name, course in courses.items()
        for epoch in range(course.shape[1])
    ]
    return found(expected, lines, sides, f"In the first third log C moves by {early.mean():.2f}.")


def _log_normalisers(side: Trained) -> np.ndarray:
    """(seeds, epochs): log C of quasibinary, the mean log Σ exp(scores) of validation rows of a softmax."""
    histories = [run.history for run in side.runs]
    return np.stack([each["log_C" if "log_C" in each else "val_log_normaliser"].to_numpy() for each in histories])


def _last_third(course: np.ndarray) -> slice:
    return slice(2 * course.shape[1] // 3, None)


def _relative_spread(side: Trained) -> np.ndarray:
    """Standard deviation over mean of the normaliser in the last epoch, one for each seed."""
    last = [run.history.iloc[-1] for run in side.runs]
    return np.array([np.sqrt(each["normaliser_variance"]) / each["normaliser_mean"] for each in last])


def _many_classes(bench: Bench) -> Found:
    losses = {"softmax": CrossEntropy(), "sigmoids": BinaryCrossEntropy(), "quasibinary": Quasibinary()}
    expected, lines, used = [], [], dict[str, Trained]()
    for n_classes in N_CLASSES:
        sides = _tuned_on_val_accuracy(
            bench, Run(prototypes(n_classes), model="linear", epochs=20, batch_size=256), losses
        )
        behind = {name: gain(sides[name], sides["softmax"], FIRST) for name in ("sigmoids", "quasibinary")}
        told = {name: f"top-1 points of {name} over softmax, {n_classes} classes" for name in behind}
        bounds = {"above": -2.0} if n_classes == 10 else {"below": -2.0}
        expected.append(behind["sigmoids"].expected(told["sigmoids"], **bounds))
        if n_classes <= 200:
            expected.append(behind["quasibinary"].expected(told["quasibinary"], above=-2))
        lines += [score(side, FIRST).at(name, n_classes) for name, side in sides.items()]
        used |= {f"{name}, {n_classes} classes": side for name, side in sides.items()}
    return found(expected, lines, used)


def _tuned_on_val_loss(bench: Bench, run: Run, losses: Mapping[str, Loss]) -> dict[str, Trained]:
    arms = [arm(name, loss=loss, learning_rate=RATES) for name, loss in losses.items()]
    return trained(bench, run, arms, tuned_by=lambda one: -one.metrics["val_loss"], seeds=SEEDS)


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
        "meadow (0 to 3 plants a photograph) on features of the garden's network and, where their files are given, yeast, scene "
        "and emotions; a small multilayer network, 60 epochs, 5 seeds; learning rate chosen by the loss on val",
        "on each data set the calibration error of the top four is below that of sigmoids, softmax, and softmax with "
        "a temperature",
        _many_labels,
        NETWORK,
        y="calibration error, %",
    ),
    Claim(
        19,
        "The quasibinary classifier suppresses its confidence in rows without a label and stays accurate on the others.",
        f"{PAPER}, Table II",
        f"{HEADS}; learning rate chosen by accuracy on labelled val rows; the ResNet-32 had been trained with the labels of all "
        "classes, so that its features know the classes that should be unknown",
        "its mean confidence in unlabelled rows is the lowest, its AU-ROC the highest, and it loses less than a point of "
        "accuracy against softmax with the uniform term",
        _no_labels,
        HEAD,
        y="%",
        needs=CIFAR,
        changed="the best rates had been ends of their grids; wider grids choose the same",
    ),
    Claim(
        20,
        "The quasibinary constant converges, the normaliser of softmax does not.",
        f"{PAPER}, Fig. 2",
        f"{HEADS}; quasibinary, and softmax with the uniform term; learning rate 1e-3",
        "in the last third of the training log C moves by less than 0.1, and by less than half of its range in the first third; "
        "the log normaliser of softmax moves more there, and that of single rows spreads more than C does over batches",
        _constant_converges,
        HEAD,
        x="epoch",
        y="log C",
        needs=CIFAR,
    ),
    Claim(
        21,
        "Sigmoids keep up with a softmax for few classes and fall behind when there are many; the quasibinary classifier is as "
        "accurate as a softmax up to 200 classes.",
        f"{PAPER}, Table I",
        "clouds around random prototypes in 64 dimensions, 20 training rows a class, a linear model, 20 epochs, 3 seeds; "
        "learning rate chosen on val",
        "sigmoids are at most 2 points behind for 10 classes and more than 2 points for 100, 200 and 300; quasibinary is at most "
        "2 points behind for 10, 100 and 200",
        _many_classes,
        HEAD,
        x="classes",
        y="top-1 accuracy, %",
        logarithmic=True,
        seeds=3,
    ),
)
