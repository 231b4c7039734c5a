"""Which rule, which loss, when: two small decision trees, each leaf with the numbers behind it."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np

from workbench.figures.style import LIGHT
from workbench.metrics.set_metrics import accuracy, macro_accuracy, mean_size, shot_accuracy
from workbench.sets import APS, LAC, AverageK, ClassConditionalLAC, PredictionSets, Rule, TopK
from workbench.sets.conformal import rows_needed
from workbench.teaching import results
from workbench.teaching.base import percent
from workbench.teaching.demo_tables import tables
from workbench.teaching.machines import shifted_world
from workbench.teaching.published_numbers import CLAIMS, TOP_1_OF_CLASSES, TOP_5, Measured, of_two_heads
from workbench.warning_capture import captured_warnings

K, CONFIDENCE = 3, 0.9
TITLE = "Which rule, which loss, when"


@dataclass(frozen=True)
class Leaf:
    """What to take, and the numbers that speak for and against it."""

    take: str
    numbers: str


@dataclass(frozen=True)
class Fork:
    """A question and where each of its answers leads."""

    question: str
    branches: tuple[tuple[str, Fork | Leaf], ...]


def rules() -> Fork:
    """Which rule makes the sets; numbers are of the garden's demo run, 3 000 test rows."""
    top, average = _sets(TopK(K)), _sets(AverageK(K))
    macro, promised, even = _sets(AverageK(K, tau=1.0)), _sets(LAC(CONFIDENCE)), _sets(APS(CONFIDENCE))
    by_class = _sets(ClassConditionalLAC(CONFIDENCE))
    return Fork(
        "What must hold for new rows?",
        (
            ("Every set has the same size", Leaf(f"TopK({K})", f"coverage {percent(accuracy(top))}")),
            (
                "Sets have K classes on average",
                Fork(
                    "Which rows count?",
                    (
                        ("All rows alike", Leaf(f"AverageK({K})", _compared(average, top, f"top-{K}"))),
                        ("All classes alike, also rare ones", Leaf(f"AverageK({K}, tau=1)", _of_shots(macro, average))),
                    ),
                ),
            ),
            (
                "The label is in the set with a promised probability",
                Fork(
                    "Promised for whom?",
                    (
                        ("On average over all rows", Leaf(f"LAC({CONFIDENCE})", _of_promise(promised))),
                        ("Clear and ambiguous rows alike", Leaf(f"APS({CONFIDENCE})", _of_promise(even))),
                        (
                            "Each class",
                            Leaf(
                                f"ClassConditionalLAC({CONFIDENCE})",
                                f"{_of_promise(by_class)}; mean over classes {percent(macro_accuracy(by_class))}, under LAC "
                                f"{percent(macro_accuracy(promised))}. A class with under {rows_needed(CONFIDENCE)} calibration "
                                "rows is in every set.",
                            ),
                        ),
                        (
                            "Rows that differ from the calibration rows in a known way",
                            Leaf(f"Weighted({CONFIDENCE})", _of_shift()),
                        ),
                    ),
                ),
            ),
        ),
    )


def losses() -> Fork:
    """Which loss to train with; every number was measured with several seeds and is quoted with its 95 % interval."""
    noised = _difference("garden", "noised top-K", "accuracy")
    letters = _difference("letters", "noised top-K", "accuracy")
    first = _difference("letters", "noised top-K", "top_k_accuracy@K=1")
    classes = TOP_1_OF_CLASSES[300]
    stalls, reaches = TOP_5["noised, ε = 0.2"], TOP_5["ε = 1"]
    return Fork(
        "What do the labels look like?",
        (
            (
                "One label a row",
                Fork(
                    "What makes the training hard?",
                    (
                        (
                            "Nothing, or not known",
                            Leaf(
                                "CrossEntropy()",
                                f"Two heads differ from it by {of_two_heads()} points of average-3 accuracy on the garden, on "
                                f"rare classes by {of_two_heads('few')}; noised top-K by {noised}.",
                            ),
                        ),
                        (
                            "The model is too weak for its data, and only the set counts",
                            Leaf(
                                "NoisedTopK(K)",
                                f"A linear model of the letters: {letters} points of top-5 accuracy over cross-entropy, but "
                                f"{first} of top-1. Keep ε large enough: ε = 0.2 reached {stalls} % on a small garden, ε = 1 "
                                f"{reaches} %.",
                            ),
                        ),
                        (
                            "The network memorises its training rows",
                            Leaf(
                                "AverageKTwoHead(K)",
                                "A network that memorises 3 000 images of CIFAR-100: "
                                f"{_claimed('09-memorising-CIFAR-100')} points fewer sets of one class than cross-entropy, "
                                f"{_claimed('08-memorising-CIFAR-100')} points of average-5 accuracy over a tuned one.",
                            ),
                        ),
                        (
                            "Many labels are wrong",
                            Leaf(
                                "SmoothTopKHinge(K)",
                                f"A linear head, 40 % wrong labels: {_claimed(5, 'smooth')} points of top-5 accuracy over "
                                f"cross-entropy, noised top-K {_claimed(5, 'noised')}. A network that memorises them: "
                                f"{_claimed('05-memorising-CIFAR-100', 'smooth')} and "
                                f"{_claimed('05-memorising-CIFAR-100', 'noised')} over tuned cross-entropy: tune the "
                                "learning rate first.",
                            ),
                        ),
                        (
                            "Rare classes count",
                            Leaf(
                                "NoisedTopKImbalanced(K)",
                                "Over cross-entropy, top-3 accuracy on rare classes, in points: "
                                f"{_claimed('06-memorising-letters')} with a network that memorises letters, "
                                f"{_claimed('06-memorising-CIFAR-100')} with one that memorises images, {_claimed(6)} with a "
                                "linear head. "
                                "A rule costs no training: average-K with τ = 1, above.",
                            ),
                        ),
                    ),
                ),
            ),
            (
                "None or many labels a row",
                Fork(
                    "How many classes?",
                    (
                        ("Few", Leaf("BinaryCrossEntropy()", _top_1(100))),
                        (
                            "Hundreds",
                            Leaf(
                                "Quasibinary()",
                                f"{_top_1(300)} Its q of a row can add up to the number of labels, also to none; a softmax "
                                f"({classes['softmax']} %) always adds up to one.",
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )


def page() -> str:
    """Both trees as HTML."""
    parts = [
        '<div class="wb-lesson wb-choosing"><p class="lead">Start from what must hold, not from a method. Numbers of rules are '
        "of the garden's demo run, 3 000 test rows; numbers of losses are differences with 95 % intervals, measured on small "
        "data: measure on yours before you choose.</p>",
        f"<h2>Which rule</h2>{_tree(rules())}",
        f"<h2>Which loss</h2>{_tree(losses())}</div>",
    ]
    return "\n".join(parts)


def _tree(node: Fork | Leaf) -> str:
    if isinstance(node, Leaf):
        return f'<div class="leaf"><code>{html.escape(node.take)}</code><p>{html.escape(node.numbers)}</p></div>'
    branches = "".join(f"<li><b>{html.escape(answer)}</b>{_tree(inner)}</li>" for answer, inner in node.branches)
    return f'<div class="fork"><p>{html.escape(node.question)}</p><ul>{branches}</ul></div>'


def _sets(rule: Rule) -> PredictionSets:
    """The demo's test rows under a rule. What is empty or unbounded is part of the comparison, so no warning."""
    val, test = tables("garden", "CrossEntropy")
    with captured_warnings():
        return rule.fit(val)(test)


def _compared(sets: PredictionSets, other: PredictionSets, name: str) -> str:
    return f"coverage {percent(accuracy(sets))} with {mean_size(sets):.2f} classes on average; {name} {percent(accuracy(other))}"


def _of_shots(sets: PredictionSets, other: PredictionSets) -> str:
    after, before = shot_accuracy(sets), shot_accuracy(other)
    return (
        f"rare classes {percent(before['few'])} → {percent(after['few'])}, frequent ones {percent(before['many'])} → "
        f"{percent(after['many'])}, all rows {percent(accuracy(other))} → {percent(accuracy(sets))}"
    )


def _of_promise(sets: PredictionSets) -> str:
    organs = (sets.table.attributes or {})["organs"]
    bark = float(np.asarray(sets.hits)[organs == "bark"].mean())
    return (
        f"coverage {percent(accuracy(sets))} with {mean_size(sets):.2f} classes; on photographs of bark {percent(bark)}"
    )


def _of_shift() -> str:
    """Coverage after the largest shift of lesson 4."""
    numbers = {number.label: number.texts[-1] for number in shifted_world(LIGHT).numbers}
    return (
        f"where most new photographs show bark: coverage {numbers['Weighted: coverage']} with {numbers['Weighted: mean size']} "
        f"classes; LAC {numbers['LAC: coverage']} with {numbers['LAC: mean size']} (lesson 4)"
    )


def _claimed(claim: int | str, about: str = "") -> str:
    """What a claim measured, and whether it is decided: its only number that is quoted, or the one about something."""
    (found,) = (measured for what, measured in CLAIMS[claim].items() if about in what)
    return str(found) if found.low > 0 or found.high < 0 else str(found).replace(")", "; not decided)")


def _difference(data: str, loss: str, metric: str) -> Measured:
    """Points over cross-entropy on all rows, from the table that ships."""
    wanted = "data == @data and loss == @loss and metric == @metric and group == ''"
    (line,) = results.table("differences").query(wanted).to_dict("records")
    return Measured(*(round(100 * line[name], 1) for name in ("difference", "low", "high")))


def _top_1(n_classes: int) -> str:
    found = TOP_1_OF_CLASSES[n_classes]
    return f"Top-1 with {n_classes} classes: sigmoids {found['sigmoids']} %, quasibinary {found['quasibinary']} %."
