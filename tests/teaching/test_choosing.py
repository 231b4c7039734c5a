"""The decision trees: every leaf names a rule or a loss of the library, with numbers that the library gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import workbench as wb
from workbench.teaching import choosing
from workbench.teaching.choosing import Fork, Leaf
from workbench.teaching.demo_tables import tables
from workbench.teaching.published_numbers import CLAIMS


def leaves(node: Fork | Leaf) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    else:
        for _, inner in node.branches:
            yield from leaves(inner)


@pytest.fixture(scope="module")
def numbers_of_leaf() -> dict[str, str]:
    return {leaf.take: leaf.numbers for tree in (choosing.rules(), choosing.losses()) for leaf in leaves(tree)}


def test_every_leaf_is_a_rule_or_a_loss_of_the_library_with_a_number(numbers_of_leaf):
    for take, numbers in numbers_of_leaf.items():
        name = take.partition("(")[0]
        assert hasattr(wb, name) or hasattr(wb.losses, name), take
        assert any(character.isdigit() for character in numbers), take


def test_numbers_of_rules_are_those_of_the_demo_run(numbers_of_leaf):
    val, test = tables("garden", "CrossEntropy")
    average = wb.AverageK(3).fit(val)(test)
    assert f"coverage {100 * wb.metrics.accuracy(average):.1f} %" in numbers_of_leaf["AverageK(3)"]
    assert f"coverage {100 * wb.metrics.accuracy(wb.LAC(0.9).fit(val)(test)):.1f} %" in numbers_of_leaf["LAC(0.9)"]


def test_a_leaf_says_which_differences_are_not_decided(numbers_of_leaf):
    quoted = [measured for claim in CLAIMS.values() for measured in claim.values()]
    for numbers in numbers_of_leaf.values():
        for measured in (each for each in quoted if f"({each.interval}" in numbers):
            assert (f"({measured.interval}; not decided)" in numbers) == (measured.low <= 0 <= measured.high)


def test_both_trees_are_on_the_page():
    page = choosing.page()
    assert page.count('class="leaf"') == sum(1 for tree in (choosing.rules(), choosing.losses()) for _ in leaves(tree))
