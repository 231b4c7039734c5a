"""Labels from many annotators: Pl@ntNet's weighted majority vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench.warning_capture import warn


@dataclass(frozen=True, eq=False)
class ValidatedLabels:
    """The label of each item with its weight and whether it is valid, and the weight of each user.

    Args:
        labels: a line for each item.
        users: a line for each user.
    """

    labels: pd.DataFrame  # item, label, weight, valid
    users: pd.DataFrame  # user, species, weight


def validated_labels(
    votes: pd.DataFrame,
    *,
    b0: float,
    threshold: float,
    alpha: float = 0.5,
    beta: float = 0.2,
    authors: Mapping[Any, Any] | None = None,
) -> ValidatedLabels:
    r"""The label with the greatest weight of votes, valid when that weight exceeds a threshold.

    Args:
        votes: Columns `item`, `user` and `label`; the last vote of a user on an item counts.
        b0: b_0, the weight of a new author.
        threshold: θ.
        alpha: Exponent α.
        beta: Exponent β.
        authors: Item → user who observed it.

    $$y_i = \arg\max_k \sum_{u \in U_i} w_u \mathbb 1[y_i^u = k], \qquad w_u = n_u^\alpha - n_u^\beta + b_0, \qquad
    \text{valid iff } \sum_{u \in U_i} w_u \mathbb 1[y_i^u = y_i] > \theta$$

    `votes` has the columns `item`, `user` and `label`: U_i are the users who proposed a label for item i (if someone
    votes twice on an item the last vote counts). n_u is the number of distinct labels that u proposed anywhere, plus the
    number of species of which u is the author of a valid item (`authors` {item: user}). Validity depends on weights and
    weights on validity, so with authors the two are repeated until nothing changes (a warning says if that never comes);
    equal weights go to the label that sorts first. The constants b0 and θ are not published: choose them. With b0 = 1 a
    newcomer (n_u = 1) weighs 1.

    >>> votes = pd.DataFrame(
    ...     [("a", "ann", "oak"), ("a", "bob", "elm"), ("b", "ann", "fir"), ("c", "ann", "yew"), ("d", "bob", "elm")],
    ...     columns=["item", "user", "label"],
    ... )
    >>> found = validated_labels(votes, b0=1.0, threshold=1.2)
    >>> found.users.round(2).to_dict("records")
    [{'user': 'ann', 'species': 3, 'weight': 1.49}, {'user': 'bob', 'species': 1, 'weight': 1.0}]
    >>> found.labels.round(2).to_dict("records")[0], found.labels.valid.tolist()
    ({'item': 'a', 'label': 'oak', 'weight': 1.49, 'valid': True}, [True, True, True, False])

    Paper: Garcin, thesis, Sec. 3.8.1.
    """
    missing = [name for name in ("item", "user", "label") if name not in votes]
    if missing:
        raise ValueError(f"votes lack the column {', '.join(missing)}; give item, user and label")
    if votes.empty:
        raise ValueError("there are no votes; give at least one line of item, user and label")
    votes = votes[["item", "user", "label"]].drop_duplicates(["item", "user"], keep="last")
    proposed = votes.groupby("user")["label"].nunique()
    species = proposed
    for _ in range(len(votes) + 1):
        weights = species**alpha - species**beta + b0
        labels = _majority(votes, weights, threshold)
        users = pd.DataFrame({"user": species.index, "species": species.to_numpy(), "weight": weights.to_numpy()})
        earned = _authored_species(labels, authors or {}).reindex(proposed.index, fill_value=0)
        if (proposed + earned).equals(species):
            break
        species = proposed + earned
    else:
        warn(
            "labels and weights keep changing each other: an author's item is valid only with a weight that it gives the "
            "author, or only without it; what the last round found is returned",
            stacklevel=2,
        )
    return ValidatedLabels(labels, users)


def _majority(votes: pd.DataFrame, weights: pd.Series, threshold: float) -> pd.DataFrame:
    weighed = votes.assign(weight=votes["user"].map(weights))
    totals = weighed.groupby(["item", "label"])["weight"].sum().reset_index()
    heaviest = totals.sort_values(["item", "weight", "label"], ascending=[True, False, True])
    labels = heaviest.drop_duplicates("item").reset_index(drop=True)
    return labels.assign(valid=labels["weight"] > threshold)


def _authored_species(labels: pd.DataFrame, authors: Mapping[Any, Any]) -> pd.Series:
    """How many species each author has at least one valid item of."""
    valid = labels[labels["valid"]].assign(author=lambda frame: frame["item"].map(dict(authors)))
    return valid.groupby("author")["label"].nunique()
