"""The words of this field: the symbol on paper, the word people say, the name in the code. The one source of them.

The app, the notebooks and `docs/glossary.md` all read `TERMS`; a name has the same meaning wherever it appears.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Term:
    """A term: its symbol, its name and its identifier."""

    symbol: str  # "" where papers have none
    word: str
    name: str  # "" where the code has none
    meaning: str


TERMS = (
    Term("x", "row", "", "one input: a photograph, a line of a table"),
    Term("y", "label", "labels", "the class written down for a row; some data have none or several"),
    Term("L", "number of classes", "n_classes", "how many classes there are"),
    Term("s, z", "scores, logits", "scores", "what a network returns: one real number per row and class"),
    Term("softmax(s), q", "probabilities", "probabilities", "scores after the link, in [0, 1]"),
    Term(
        "", "link", "link", "what turns scores into probabilities: softmax, sigmoid, quasibinary, sparsemax or identity"
    ),
    Term("P(y|x), η(x)", "posterior", "posterior", "the true probabilities of the classes; known for the garden only"),
    Term("", "table", "LogitTable", "the scores and labels of one split, and whatever else is known of its rows"),
    Term("S(x), Γ(x)", "predicted set", "sets", "the classes a set-valued classifier answers with"),
    Term("K", "set size", "K", "target size of a set: exact for top-K, on average for average-K"),
    Term("λ, t, 1 − q̂", "threshold", "threshold", "a class is in the set if its probability is at least this"),
    Term(
        "G",
        "mean size at a threshold",
        "SetIndex.mean_size",
        "how many classes reach a threshold, on average over rows",
    ),
    Term(
        "G⁻¹", "threshold of a mean size", "SetIndex.threshold", "where to cut so that sets hold K classes on average"
    ),
    Term("", "hit", "hits", "the label is in the set"),
    Term("", "accuracy", "accuracy", "share of rows whose set holds the label; of conformal sets, coverage"),
    Term("", "macro accuracy", "macro_accuracy", "mean over classes of their accuracy: every class counts alike"),
    Term(
        "1 − α",
        "confidence",
        "confidence",
        "promised probability that a set holds the label (conformal rules); this α, the share of misses, has no name in the code",
    ),
    Term(
        "",
        "conformal",
        "LAC, APS, …",
        "of a rule: fitted on labelled rows so that the set of a new row holds its label with the promised probability",
    ),
    Term(
        "",
        "exchangeable",
        "",
        "of rows: any order of them is equally probable, as if all were drawn from one urn; what conformal rules need",
    ),
    Term(
        "LAC", "least ambiguous sets", "LAC", "conformal sets with one threshold for all rows: the smallest on average"
    ),
    Term(
        "APS",
        "adaptive prediction sets",
        "APS",
        "conformal sets that add classes until they hold enough probability: coverage varies less between kinds of rows",
    ),
    Term(
        "RAPS",
        "regularised adaptive sets",
        "RAPS",
        "APS with a price on classes far down the ranking, so that few sets are very large",
    ),
    Term("", "rule", "AverageK, LAC, …", "what turns probabilities into sets; fitted on one table, used on another"),
    Term("", "top-K", "TopK", "the K most probable classes of every row"),
    Term("", "average-K", "AverageK", "all classes above one threshold, K of them on average"),
    Term("", "Bayes classifier", "bayes", "the best there can be, made from the posterior"),
    Term("", "Bayes set", "bayes.sets", "the set that a rule makes of the posterior: no classifier has a better one"),
    Term("", "Bayes risk", "bayes", "share of labels that even the Bayes sets miss; no training takes it away"),
    Term(
        "H",
        "entropy",
        "",
        "−Σ p log p: how spread probabilities are, 0 for a sure row, log L for a row of which nothing is known",
    ),
    Term("", "regret", "bayes.regret", "accuracy lost against the best sets of the same mean size"),
    Term(
        "",
        "heterogeneity",
        "heterogeneity",
        "spread over rows of the size of the best sets: how unequally ambiguous they are",
    ),
    Term(
        "", "best possible", "", "accuracy of the Bayes classifier at the same mean size; known where the posterior is"
    ),
    Term("n_y", "class counts", "class_counts", "training rows of each class"),
    Term("", "few, medium, many", "shot_accuracy", "classes with < 20, 20 to 100 and > 100 training rows"),
    Term("ε", "noise scale", "epsilon", "standard deviation of the noise that smooths top-K"),
    Term("", "schedule", "schedules.anneal", "the course of a knob over the training, from a start to an end"),
    Term("", "moat", "figures.moat", "a gap below the K best classes that a loss with little noise does not cross"),
    Term("M, B", "noise draws", "n_samples", "how many noise vectors a noised loss draws for a row"),
    Term("τ, T", "temperature", "temperature", "number that divides scores"),
    Term(
        "m_y",
        "margin",
        "margin, max_margin",
        "how far the label's score must lead; larger for rare classes in some losses, whose papers scale it by a C of its own",
    ),
    Term(
        "", "surrogate", "losses", "a loss that slopes, trained in place of the error, which is flat almost everywhere"
    ),
    Term(
        "(1 + s_j − s_y)₊",
        "hinge",
        "TopKHinge, …",
        "a surrogate that is 0 once the label leads by the margin, and grows by 1 for each point of score that it lacks",
    ),
    Term(
        "",
        "conditional risk",
        "figures.conditional_risk",
        "mean of a loss over the labels that one row may have, each with its probability",
    ),
    Term(
        "",
        "pseudo-label",
        "AverageKTwoHead",
        "a class that is not annotated and that training treats as a label: proposed by the second head",
    ),
    Term(
        "α",
        "weight of pseudo-labels",
        "alpha",
        "how much the two-head loss heeds the candidates its second head proposes; not the α of 1 − α",
    ),
    Term("β", "weight of the promise", "beta", "weight of the expected number of positives in a loss"),
    Term("P_K", "distribution of k", "p_k", "how much training heeds top-1, top-2, …: weights that sum to 1"),
    Term("P", "relaxed permutation matrix", "neural_sort, …", "entry (i, j): the degree to which class j has rank i"),
    Term("m", "classes that are sorted", "m", "only the m highest scores enter the relaxed sorting"),
    Term(
        "C",
        "normaliser",
        "link_constant",
        "what divides exp(score) in the quasibinary link; the code keeps log C; not the C that scales margins",
    ),
    Term(
        "",
        "calibrated probabilities",
        "expected_calibration_error",
        "of predictions with confidence 80 %, 80 % are correct",
    ),
    Term(
        "ECE",
        "expected calibration error",
        "expected_calibration_error",
        "mean distance between confidence and accuracy over bins of the confidence",
    ),
    Term("", "calibrated loss", "calibrated", "minimising it leads to the best top-K sets: it ranks classes rightly"),
    Term("", "proper loss", "proper", "minimising it leads to the true probabilities: also to the best average-K sets"),
    Term("", "none of these", "none_of_these", "the answer of an empty set: no class reaches the threshold"),
    Term("MMC", "mean maximum confidence", "max_confidence", "mean over rows of the largest probability"),
    Term("AU-ROC", "area under the curve", "auroc", "how often a row with a label is surer than a row without one"),
    Term("F1", "agreement with many labels", "micro_f1", "2 × labels found / (classes in the sets + labels)"),
)


def frame() -> pd.DataFrame:
    """The glossary as a frame, one line per term.

    >>> frame().set_index("word").loc["confidence", ["symbol", "name"]].tolist()
    ['1 − α', 'confidence']
    """
    import pandas as pd

    return pd.DataFrame([vars(term) for term in TERMS])


def explained(*words: str) -> list[Term]:
    """The terms of these words, in their order; an error for a word that is not here.

    >>> [term.symbol for term in explained("mean maximum confidence", "threshold")]
    ['MMC', 'λ, t, 1 − q̂']
    """
    known = {term.word: term for term in TERMS}
    if missing := [word for word in words if word not in known]:
        raise ValueError(f"{missing[0]!r} is not in the glossary; it has {', '.join(known)}")
    return [known[word] for word in words]


def markdown() -> str:
    """The glossary as a Markdown page: what `docs/glossary.md` holds."""
    rows = [
        f"| {term.symbol.replace('|', chr(92) + '|')} | {term.word} | {f'`{term.name}`' if term.name else ''} | {term.meaning} |"
        for term in TERMS
    ]
    head = ["# Glossary", "", "Made by `python docs/glossary.py` from `workbench/glossary.py`.", ""]
    return "\n".join([*head, "| symbol | word | in the code | meaning |", "|---|---|---|---|", *rows]) + "\n"
