"""Label validation by weighted votes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.metrics.crowd_labels import validated_labels


def ballots(*lines: tuple) -> pd.DataFrame:
    return pd.DataFrame(list(lines), columns=["item", "user", "label"])


def test_the_heaviest_label_wins_against_the_most_frequent():
    expert = [(f"x{i}", "expert", f"species {i}") for i in range(60)]
    votes = ballots(*expert, ("a", "expert", "oak"), ("a", "u", "elm"), ("a", "v", "elm"))
    found = validated_labels(votes, b0=1, threshold=3)
    weights = found.users.set_index("user")["weight"]
    assert weights["expert"] == pytest.approx(61**0.5 - 61**0.2 + 1)
    assert weights["u"] == 1  # a newcomer: 1 − 1 + b0
    line = found.labels.set_index("item").loc["a"]
    assert (line["label"], line["valid"]) == ("oak", True)
    assert line["weight"] == pytest.approx(weights["expert"])


def test_validity_asks_for_strictly_more_than_the_threshold():
    votes = ballots(("a", "u", "elm"), ("a", "v", "elm"))
    assert validated_labels(votes, b0=1, threshold=1.99).labels["valid"].tolist() == [True]
    assert validated_labels(votes, b0=1, threshold=2.0).labels["valid"].tolist() == [False]


def test_authors_of_valid_items_gain_weight_until_nothing_changes():
    votes = ballots(("a", "u", "oak"), ("b", "u", "elm"), ("c", "v", "fir"))
    alone = validated_labels(votes, b0=1, threshold=1.2)
    assert alone.users["species"].tolist() == [2, 1]
    assert alone.labels["valid"].tolist() == [True, True, False]
    # u's two labels are valid, so as the author of both items u counts two species more; v gains nothing.
    authored = validated_labels(votes, b0=1, threshold=1.2, authors={"a": "u", "b": "u", "c": "v"})
    assert authored.users["species"].tolist() == [4, 1]
    assert authored.users["weight"].iloc[0] == pytest.approx(2 - 4**0.2 + 1)


def test_only_the_last_vote_of_a_user_on_an_item_counts_and_ties_go_to_the_first_name():
    votes = ballots(("a", "u", "oak"), ("a", "u", "elm"), ("a", "v", "fir"))
    found = validated_labels(votes, b0=1, threshold=0)
    assert found.labels["label"].tolist() == ["elm"]
    assert found.labels["weight"].tolist() == [1]


def test_votes_without_the_columns_or_without_a_line_are_refused():
    with pytest.raises(ValueError, match="lack the column user, label"):
        validated_labels(pd.DataFrame({"item": [1]}), b0=1, threshold=1)
    with pytest.raises(ValueError, match="no votes"):
        validated_labels(ballots(), b0=1, threshold=1)


def test_labels_that_never_settle_are_told_of_and_agree_with_their_weights():
    votes = ballots((1, 0, 0), (0, 2, 1), (2, 2, 2), (1, 1, 1), (2, 1, 1))
    with pytest.warns(UserWarning, match="keep changing each other"):
        found = validated_labels(votes, b0=1.0, threshold=1.2, authors={0: 0, 1: 1, 2: 1})
    n = found.users["species"]
    assert np.allclose(found.users["weight"], n**0.5 - n**0.2 + 1)
