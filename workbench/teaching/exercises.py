"""Twenty exercises whose answers are checked: `wb.exercises.check("3.2", answer)` says what is wrong, not what is right.

They are numbered by the notebook they belong to. `wb.exercises.show("3.2")` tells the task and gives its data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.calibration import TemperatureScaling
from workbench.metrics import accuracy, expected_calibration_error
from workbench.metrics.bayes import posterior_of, top_k_against_average_k
from workbench.sets import APS, LAC, AverageK, TopK
from workbench.teaching.demo_tables import tables
from workbench.warning_capture import captured_warnings

ROW = 81  # a test photograph of the garden that shows a flower alone
Value = Any  # a number, an array of numbers, or a set of pairs


@dataclass(frozen=True)
class Exercise:
    """A task, its answer, and what known mistakes give.

    `mistakes` are pairs of words and the value that the mistake leads to; nothing of them is shown but the words.
    """

    number: str
    task: str
    answer: Callable[[], Value]
    mistakes: Callable[[], list[tuple[str, Value]]]
    tolerance: float = 1e-3
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Checked:
    """Feedback on an answer; true if the answer is correct."""

    right: bool
    words: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return f"{'✓' if self.right else '✗'} {self.words}"


def check(number: str, answer: Any) -> Checked:
    """Whether the answer to an exercise is right, and if not what is wrong with it.

    >>> check("3.2", 2.0)
    ✗ A threshold on probabilities lies between 0 and 1.
    """
    exercise = _found(number)
    expected = exercise.answer()
    given = _read(answer, expected)
    if isinstance(given, str):
        return Checked(False, given)
    if _same(given, expected, exercise.tolerance):
        return Checked(True, "Right.")
    for words, value in exercise.mistakes():
        if _same(given, value, exercise.tolerance):
            return Checked(False, words)
    return Checked(False, _compared(given, expected, exercise))


def show(number: str) -> dict[str, Any]:
    """Print the task of an exercise; its data, by name, are returned."""
    exercise = _found(number)
    print(f"{number}. {exercise.task}")
    return dict(exercise.data)


def _found(number: str) -> Exercise:
    known = {exercise.number: exercise for exercise in EXERCISES}
    if str(number) not in known:
        raise ValueError(f"there is no exercise {number!r}; there are {', '.join(known)}")
    return known[str(number)]


def _read(answer: Any, expected: Value) -> Any:
    """The answer in the form of the expected one, or words that say what form that is."""
    if isinstance(expected, frozenset):
        try:
            return frozenset((int(row), int(column)) for row, column in answer)
        except (TypeError, ValueError):
            return "Give pairs (row, class), such as [(0, 2), (1, 0)]."
    shape = np.shape(expected)
    wanted = f"{shape[0]} numbers" if shape else "one number"
    try:
        given = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return f"Give {wanted}; this is {type(answer).__name__}."
    if given.size == 1 and not shape:
        given = given.reshape(())
    if given.shape != shape:
        return f"Give {wanted}; this has the shape {given.shape}."
    return given if np.isfinite(given).all() else "That is not a number."


def _same(given: Value, value: Value, tolerance: float) -> bool:
    if isinstance(value, frozenset):
        return bool(given == value)
    return np.shape(given) == np.shape(value) and bool(np.allclose(given, value, rtol=0, atol=tolerance))


def _compared(given: Value, expected: Value, exercise: Exercise) -> str:
    if isinstance(expected, frozenset):
        if len(given) != len(expected):
            return f"That is {len(given)} pairs; count again how many there are."
        return f"{len(given - expected)} of the {len(given)} pairs do not belong there."
    if _same(given, 100 * np.asarray(expected), 100 * exercise.tolerance) and np.any(expected):
        return "The number is right in per cent; give a share between 0 and 1."
    if _same(given, -np.asarray(expected), exercise.tolerance):
        return "The sign is the other way round."
    if np.shape(expected):
        return f"{int((np.abs(given - expected) > exercise.tolerance).sum())} of the {np.size(expected)} numbers are not right."
    if "threshold" in exercise.task and not 0 <= given <= 1:
        return "A threshold on probabilities lies between 0 and 1."
    return f"Not yet: that is too {'small' if given < expected else 'large'}."


def _garden(loss: str = "CrossEntropy") -> Any:
    return tables("garden", loss)


def _shows(table: Any, organ: str) -> np.ndarray:
    return np.asarray((table.attributes or {})["organs"] == organ)


def _average_3(split: str = "val") -> Any:
    garden = _garden()
    return AverageK(3).fit(getattr(garden, split))(garden.test)


def _quietly(rule: Any, val: Any, test: Any) -> Any:
    with captured_warnings():
        return rule.fit(val)(test)


THREE_ROWS = np.array([[0.96, 0.02, 0.01, 0.01], [0.4, 0.3, 0.2, 0.1], [0.6, 0.25, 0.1, 0.05]])
FIVE_ROWS = np.array(
    [
        [0.85, 0.1, 0.03, 0.02],
        [0.6, 0.31, 0.07, 0.02],
        [0.42, 0.39, 0.14, 0.05],
        [0.36, 0.27, 0.24, 0.13],
        [0.72, 0.16, 0.08, 0.04],
    ]
)
TWELVE = np.array([0.93, 0.12, 0.88, 0.71, 0.34, 0.97, 0.55, 0.8, 0.21, 0.66, 0.9, 0.47])
SCORES = np.array([1.9, 3.1, 0.3, 2.2, 1.4])
CANDIDATE_SCORES = np.array([[3.0, 2.8, 0.0, -1.0], [0.5, 4.0, 0.0, -0.5], [1.0, 0.9, 0.8, 0.7]])
CANDIDATE_LABELS = np.array([0, 1, 3])
PERMUTATION = np.array([[0.5, 0.2, 0.2, 0.1], [0.3, 0.35, 0.2, 0.15], [0.15, 0.25, 0.4, 0.2], [0.05, 0.2, 0.2, 0.55]])
# 4 rows, 3 classes, 2 labels: no two counts are equal, so an answer shows what it divides by.
BATCH = np.array([[1.5, 0.2, -1.0], [0.0, 2.0, 1.0], [-2.0, -1.5, -0.5], [-1.0, -0.5, 0.5]])
BATCH_LABELS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]])


def _gain(probabilities: np.ndarray) -> float:
    """Return the mass of the six largest probabilities minus that of the two largest of each row."""
    return float(np.sort(probabilities.ravel())[-6:].sum() - np.sort(probabilities, axis=1)[:, -2:].sum())


def _midpoint(m: int) -> float:
    falling = -np.sort(-FIVE_ROWS.ravel())
    return float((falling[m - 1] + falling[m]) / 2)


def _kth(k: int, largest_first: bool = True) -> float:
    return float(np.sort(TWELVE)[:: -1 if largest_first else 1][k - 1])


def _candidates(whole_batch: bool = True, labels: bool = False) -> frozenset[tuple[int, int]]:
    shares = np.exp(CANDIDATE_SCORES) / np.exp(CANDIDATE_SCORES).sum(1, keepdims=True)
    if not labels:
        shares[np.arange(3), CANDIDATE_LABELS] = -1
    if whole_batch:
        places = np.argsort(-shares.ravel())[:3]
        return frozenset((int(place) // 4, int(place) % 4) for place in places)
    return frozenset((row, int(shares[row].argmax())) for row in range(3))


def _worth(column: np.ndarray, weights: tuple[float, ...]) -> float:
    return float(sum(weight * column[: k + 1].sum() for k, weight in enumerate(weights)))


def _noised_temperature(split: str) -> float:
    return float(TemperatureScaling().fit(getattr(_garden("NoisedTopK"), split)).temperature)


def _error_after(split: str | None) -> float:
    garden = _garden("NoisedTopK")
    table = garden.test if split is None else TemperatureScaling().fit(getattr(garden, split))(garden.test)
    return float(expected_calibration_error(table))


def _empty(loss: str) -> int:
    test = tables("meadow", loss).test
    return int((test.probabilities() < 0.5).all(1).sum())


EXERCISES = (
    Exercise(
        "0.1",
        f"How many species does the average-3 set of test photograph {ROW} of the garden hold (run of cross-entropy, "
        "fitted on val)?",
        lambda: int(_average_3().sizes[ROW]),
        lambda: [("That is the mean size; asked is the size of one set.", 3)],
        0.1,
    ),
    Exercise(
        "0.2",
        "Which share of the test photographs has its species in its average-3 set (run of cross-entropy, fitted on val)?",
        lambda: accuracy(_average_3()),
        lambda: [
            (
                "That is the accuracy on the rows the threshold was found on; judge on test.",
                accuracy(AverageK(3).fit(_garden().val)(_garden().val)),
            ),
            (
                "That is top-3. Average-3 has one threshold for all rows.",
                accuracy(TopK(3).fit(_garden().val)(_garden().test)),
            ),
            ("The threshold was found on test; find it on val.", accuracy(_average_3("test"))),
        ],
    ),
    Exercise(
        "1.1",
        "By the exact posterior, how often is the best single guess right on test photographs that show bark alone?",
        lambda: float(posterior_of(_garden().test)[_shows(_garden().test, "bark")].max(1).mean()),
        lambda: [
            (
                "That is over all photographs; take those whose organs are exactly `bark`.",
                float(posterior_of(_garden().test).max(1).mean()),
            ),
            (
                "Those are the network's probabilities; take the posterior.",
                float(_garden().test.probabilities()[_shows(_garden().test, "bark")].max(1).mean()),
            ),
        ],
    ),
    Exercise(
        "1.2",
        "What is the Bayes risk of one guess on the test photographs, by the exact posterior?",
        lambda: float(1 - posterior_of(_garden().test).max(1).mean()),
        lambda: [
            (
                "That is how often the best guess is right; the risk is how often it is wrong.",
                float(posterior_of(_garden().test).max(1).mean()),
            )
        ],
    ),
    Exercise(
        "2.1",
        "Three rows have the true `probabilities`. By how much does the best average-2 set hold the label more "
        "often than the best top-2 set?",
        lambda: _gain(THREE_ROWS) / 3,
        lambda: [("That is the sum over the rows; give the mean.", _gain(THREE_ROWS))],
        data={"probabilities": THREE_ROWS},
    ),
    Exercise(
        "2.2",
        "At which whole K from 1 to 20 is the gap between the best average-K and the best top-K sets of the test "
        "photographs largest?",
        lambda: int(
            max(top_k_against_average_k(_garden().test, range(1, 21)).to_dict("records"), key=lambda line: line["gap"])[
                "K"
            ]
        ),
        lambda: [("There the accuracy is largest; asked is the difference of the two.", 20)],
        0.1,
    ),
    Exercise(
        "3.1",
        "Five rows of four classes have the probabilities `rows`. Which threshold does average-K take for K = 1.6?",
        lambda: _midpoint(8),
        lambda: [
            (
                "That is the last probability that is in; the threshold is midway to the next.",
                float(np.sort(FIVE_ROWS.ravel())[-8]),
            ),
            (
                "That is the first probability that is out; the threshold is midway to the one before.",
                float(np.sort(FIVE_ROWS.ravel())[-9]),
            ),
            ("One class too few is in: K · n classes must reach the threshold.", _midpoint(7)),
            ("One class too many is in: K · n classes must reach the threshold.", _midpoint(9)),
        ],
        data={"rows": FIVE_ROWS},
    ),
    Exercise(
        "3.2",
        "The true labels of twelve calibration rows have the probabilities `values`. Which threshold does LAC take for "
        "a confidence of 0.8?",
        lambda: _kth(11),
        lambda: [
            ("The + 1 is missing: the new row is one of n + 1.", _kth(10)),
            (
                "The values are sorted the other way round: labels must reach the threshold, so count from the largest.",
                _kth(11, False),
            ),
            ("That is the smallest value; it promises more than was asked.", _kth(12)),
        ],
        data={"values": TWELVE},
    ),
    Exercise(
        "3.3",
        "LAC(0.9) is fitted on val of the cross-entropy run. Which share of the test photographs of bark alone has its "
        "label in its set?",
        lambda: float(LAC(0.9).fit(_garden().val)(_garden().test).hits[_shows(_garden().test, "bark")].mean()),
        lambda: [
            (
                "That is over all photographs; take those whose organs are exactly `bark`.",
                float(LAC(0.9).fit(_garden().val)(_garden().test).hits.mean()),
            ),
            (
                "That is APS.",
                float(_quietly(APS(0.9), _garden().val, _garden().test).hits[_shows(_garden().test, "bark")].mean()),
            ),
        ],
    ),
    Exercise(
        "4.1",
        "The scores of a row are `scores` and the label is class 2. What is the calibrated top-2 hinge?",
        lambda: float(1 + np.sort(SCORES)[-3] - SCORES[2]),
        lambda: [
            ("The margin of 1 is missing.", float(np.sort(SCORES)[-3] - SCORES[2])),
            (
                "That compares with the second highest score; the calibrated hinge takes the (K + 1)-th of all.",
                float(1 + np.sort(SCORES)[-2] - SCORES[2]),
            ),
            ("Classes are counted from 0: class 2 is the third.", float(max(0, 1 + np.sort(SCORES)[-3] - SCORES[1]))),
        ],
        data={"scores": SCORES},
    ),
    Exercise(
        "4.2",
        "The same scores, and the label is class 0. How many of the five scores does the gradient of the calibrated "
        "top-2 hinge move?",
        lambda: 0,
        lambda: [
            ("The label holds place K + 1 itself here: what becomes of its two pulls?", 2),
            ("A pull up and a pull down on the same score: add them.", 1),
            ("That is cross-entropy.", 5),
        ],
        0.1,
        {"scores": SCORES},
    ),
    Exercise(
        "4.3",
        "From which ε on, to two digits behind the point, is the noised top-4 loss no longer top-K calibrated?",
        lambda: round(_limit(4), 2),
        lambda: [
            (
                "That is the mean of the largest of K + 1 standard normal numbers; the answer is one over it.",
                round(1 / _limit(4), 2),
            ),
            ("It is about the largest of K + 1 numbers, not of K.", round(_limit(3), 2)),
        ],
        0.005,
    ),
    Exercise(
        "5.1",
        "The candidate head gives three rows the scores `scores`; their labels are `labels`. Which (row, class) are the "
        "candidates for K = 2?",
        _candidates,
        lambda: [
            (
                "Candidates are the most probable of the whole batch, not the best of each row.",
                _candidates(whole_batch=False),
            ),
            ("Labels are taken out before candidates are chosen.", _candidates(labels=True)),
        ],
        data={"scores": CANDIDATE_SCORES, "labels": CANDIDATE_LABELS},
    ),
    Exercise(
        "5.2",
        "By which share do average-3 sets of the two-head run hold the test label more often than those of "
        "cross-entropy (each fitted on its val)?",
        lambda: (
            accuracy(AverageK(3).fit(_garden("AverageKTwoHead").val)(_garden("AverageKTwoHead").test))
            - accuracy(_average_3())
        ),
        lambda: [
            (
                "That is top-3.",
                accuracy(TopK(3).fit(_garden("AverageKTwoHead").val)(_garden("AverageKTwoHead").test))
                - accuracy(TopK(3).fit(_garden().val)(_garden().test)),
            )
        ],
        5e-4,
    ),
    Exercise(
        "6.1",
        "`P` is a relaxed permutation matrix, rows are ranks. The label is class 1 and P_K = (0.5, 0, 0.5). What is the loss?",
        lambda: -math.log(_worth(PERMUTATION[:, 1], (0.5, 0, 0.5))),
        lambda: [
            ("That is the number inside the logarithm.", _worth(PERMUTATION[:, 1], (0.5, 0, 0.5))),
            (
                "That reads a row; the ranks of a class are its column.",
                -math.log(_worth(PERMUTATION[1], (0.5, 0, 0.5))),
            ),
            (
                "That takes the probability of rank 3; among the first three is a sum.",
                -math.log(0.5 * PERMUTATION[0, 1] + 0.5 * PERMUTATION[2, 1]),
            ),
        ],
        data={"P": PERMUTATION},
    ),
    Exercise(
        "6.2",
        "Scores are 1, 3, 2. What is the first row of the matrix of SoftSort at temperature 1, three numbers?",
        lambda: np.exp([-2.0, 0.0, -1.0]) / np.exp([-2.0, 0.0, -1.0]).sum(),
        lambda: [
            ("That is not divided by its sum.", np.exp([-2.0, 0.0, -1.0])),
            (
                "The sign in the exponent is missing: near scores get much.",
                np.exp([2.0, 0.0, 1.0]) / np.exp([2.0, 0.0, 1.0]).sum(),
            ),
        ],
        2e-3,
        {"scores": np.array([1.0, 3.0, 2.0])},
    ),
    Exercise(
        "7.1",
        "A batch has the scores `scores` and the labels `labels`. What is the quasibinary constant C?",
        lambda: float(np.exp(BATCH).sum() / BATCH_LABELS.sum()),
        lambda: [
            ("That is log C.", float(np.log(np.exp(BATCH).sum() / BATCH_LABELS.sum()))),
            (
                "Those are the q summed to 1; they must sum to the number of labels of the batch.",
                float(np.exp(BATCH).sum()),
            ),
            *(
                (
                    f"That divides by the number of {counted}; divide by the number of labels.",
                    float(np.exp(BATCH).sum() / n),
                )
                for counted, n in (("rows", len(BATCH)), ("classes", BATCH.shape[1]), ("scores", BATCH.size))
            ),
        ],
        1e-2,
        {"scores": BATCH, "labels": BATCH_LABELS},
    ),
    Exercise(
        "7.2",
        "How many test photographs of the meadow get an empty set from the quasibinary run at the threshold 0.5?",
        lambda: _empty("Quasibinary"),
        lambda: [
            (
                "That is how many have no label; asked is how many get no class.",
                int((np.asarray(tables("meadow", "Quasibinary").test.labels).sum(1) == 0).sum()),
            ),
            ("That is the run of sigmoids.", _empty("BinaryCrossEntropy")),
        ],
        0.1,
    ),
    Exercise(
        "8.1",
        "Which temperature does temperature scaling find on val for the noised top-K run of the garden? (two digits)",
        lambda: _noised_temperature("val"),
        lambda: [
            ("That was fitted on test.", _noised_temperature("test")),
            ("That multiplies scores; a temperature divides them.", 1 / _noised_temperature("val")),
        ],
        6e-3,
    ),
    Exercise(
        "8.2",
        "What is the calibration error (15 bins) of that run on test after the scaling?",
        lambda: _error_after("val"),
        lambda: [
            ("That is before the scaling.", _error_after(None)),
            ("The temperature was fitted on test.", _error_after("test")),
        ],
        5e-4,
    ),
)


def _limit(K: int) -> float:
    from workbench.losses.noised import largest_calibrated_epsilon

    return largest_calibrated_epsilon(K)
