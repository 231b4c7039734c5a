"""A hyper-parameter is declared once; ranges, grids, parsing and errors follow from it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import pydoc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import workbench as wb
from workbench.knob_kinds import KINDS, three_digits
from workbench.knobs import Knob, Knobbed, knob
from workbench.losses import LOSSES
from workbench.sets import RULES


@dataclass(frozen=True)
class Example(Knobbed):
    K: int = knob(5, low=1, high=20, maximum=float("inf"), symbol="K", meaning="size of a set")
    epsilon: float = knob(0.2, low=1e-3, high=100, minimum=0, scale="log", symbol="ε", meaning="scale of the noise")
    operator: str = knob("bitonic", choices=("bitonic", "splitter"), meaning="way to sort")
    exact: bool = knob(False, meaning="wish for no sampling")
    p_k: tuple[float, ...] = knob((0.5, 0.5), meaning="law of k")
    class_counts: tuple[int, ...] | None = None


def test_a_kind_of_knob_is_one_class_that_every_knob_of_it_asks():
    assert list(KINDS) == ["real", "integer", "choice", "suggestion", "switch", "weights"]
    for name, declared in Example.knobs().items():
        kind = KINDS[declared.kind]
        assert type(declared.default) is kind.of
        assert declared.accepts() == kind.accepts(declared)
        assert declared.ends() == kind.ends(declared)
        assert declared.parsed(name, str(declared.default)) == kind.checked(declared, declared.default)
    assert [name for name, declared in Example.knobs().items() if declared.numeric] == ["K", "epsilon"]


def test_a_field_without_a_knob_is_not_a_knob():
    assert list(Example.knobs()) == ["K", "epsilon", "operator", "exact", "p_k"]


def test_the_kind_is_read_off_the_default():
    kinds = {name: declared.kind for name, declared in Example.knobs().items()}
    assert kinds == {"K": "integer", "epsilon": "real", "operator": "choice", "exact": "switch", "p_k": "weights"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"K": 0}, r"K = 0 is below 1; K is the size of a set \(default 5\)"),
        ({"K": 2.5}, "give a whole number ≥ 1"),
        ({"epsilon": -1}, r"outside \[0, 100\]"),
        ({"epsilon": float("nan")}, "not allowed"),
        ({"operator": "quick"}, "one of bitonic, splitter"),
        ({"p_k": (0.5, 0.6)}, "sum to 1"),
        ({"p_k": (1.5, -0.5)}, "sum to 1"),
        ({"p_k": ()}, "sum to 1"),
    ],
)
def test_a_value_outside_the_range_says_what_was_given_and_what_is_allowed(settings, message):
    with pytest.raises(ValueError, match=message):
        Example(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"K": True}, "give a whole number"),
        ({"K": "3"}, "give a whole number"),
        ({"epsilon": "much"}, r"'much' is not allowed; give a number in \[0, 100\]"),
        ({"operator": 3}, "one of bitonic, splitter"),
        ({"exact": 1}, "true or false"),
        ({"p_k": 1.0}, "sum to 1"),
    ],
)
def test_a_value_of_another_type_is_a_type_error_that_says_what_is_allowed(settings, message):
    with pytest.raises(TypeError, match=message):
        Example(**settings)


def test_what_is_accepted_may_be_wider_than_the_slider():
    assert Example(K=300).K == 300
    assert Example(epsilon=0).epsilon == 0.0
    assert Example.knobs()["epsilon"].values()[0] == 0.001


def test_values_are_kept_in_their_own_plain_type():
    made = Example(K=np.int64(3), epsilon=np.float32(0.5), p_k=np.array([1.0]))
    assert (type(made.K), type(made.epsilon), made.p_k) == (int, float, (1.0,))
    assert made.settings() == {"K": 3, "epsilon": 0.5, "operator": "bitonic", "exact": False, "p_k": (1.0,)}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("K", "7", 7),
        ("epsilon", "1e-2", 0.01),
        ("operator", "splitter", "splitter"),
        ("exact", "yes", True),
        ("p_k", "0.2,0.8", (0.2, 0.8)),
    ],
)
def test_what_a_person_types_is_understood(name, text, value):
    assert Example.knobs()[name].parsed(name, text) == value


@pytest.mark.parametrize(("name", "text"), [("K", "many"), ("exact", "perhaps"), ("p_k", "a,b"), ("epsilon", "1000")])
def test_what_cannot_be_understood_is_an_error_that_says_what_is_allowed(name, text):
    with pytest.raises(ValueError, match=r"allowed|outside"):
        Example.knobs()[name].parsed(name, text)


@given(st.floats(1e-4, 1e4), st.floats(1.5, 1e4), st.integers(2, 300), st.sampled_from(["linear", "log"]))
def test_the_grid_rises_from_low_to_high_and_has_three_significant_digits(low, factor, n, scale):
    low, high = three_digits(low), three_digits(low * factor)
    grid = Knob(default=low, kind="real", low=low, high=high, scale=scale).values(n)
    assert grid[0] == low
    assert grid[-1] == high
    assert np.all(np.diff(grid) > 0)
    assert all(value == three_digits(value) for value in grid)


@given(
    st.floats(1e-4, 1e4), st.floats(1.5, 1e4), st.floats(0, 1), st.integers(3, 300), st.sampled_from(["linear", "log"])
)
@example(low=0.125, factor=2.0, share=2.0**-52, n=5, scale="log")  # next to the lowest value
def test_a_slider_can_stand_at_the_default(low, factor, share, n, scale):
    low, high = three_digits(low), three_digits(low * factor)
    default = low + share * (high - low)
    declared = Knob(default=default, kind="real", low=low, high=high, scale=scale)
    grid = declared.values(n)
    assert declared.snapped(default, n) == default
    assert (grid[0], grid[-1]) == (low, high)
    assert len(grid) <= n
    assert np.all(np.diff(grid) > 0)


@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss_class: loss_class.__name__)
def test_the_sliders_of_every_loss_can_stand_at_its_defaults(loss_class):
    for name, declared in loss_class.knobs().items():
        if declared.numeric:
            assert declared.default in declared.values(), name


@given(st.floats(1e-3, 100), st.integers(2, 50))
def test_snapping_gives_a_value_of_the_grid_and_leaves_it_alone_the_second_time(value, n):
    declared = Example.knobs()["epsilon"]
    once = declared.snapped(value, n)
    assert once in declared.values(n)
    assert declared.snapped(once, n) == once


def test_the_ends_of_a_knob_are_what_a_contract_test_tries():
    ends = {name: declared.ends() for name, declared in Example.knobs().items()}
    assert ends == {
        "K": (1, 20),
        "epsilon": (0.001, 100.0),
        "operator": ("bitonic", "splitter"),
        "exact": (False, True),
        "p_k": ((0.5, 0.5),),
    }


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"default": 1.0, "kind": "real"}, "low < high"),
        ({"default": 1.0, "kind": "real", "low": 0, "high": 1, "scale": "log"}, "low > 0"),
        ({"default": "a", "kind": "choice", "choices": ("a",)}, "two choices"),
        ({"default": 1.0, "kind": "number"}, "one of real"),
        ({"default": 1.0, "kind": "real", "low": 0, "high": 1, "scale": "square"}, "'linear' or 'log'"),
    ],
)
def test_a_knob_that_makes_no_sense_cannot_be_declared(facts, message):
    with pytest.raises(ValueError, match=message):
        Knob(**facts)


def test_a_wrong_keyword_names_the_knobs_and_guesses_the_one_that_was_meant():
    guesses = {
        "K: size of a set; a whole number ≥ 1 (default 5)": {"k": 3},
        "did you mean K?": {"k": 3},
        "did you mean epsilon?": {"epsilonn": 1},
        "did you mean operator?": {"Operator": "splitter"},
        "did you mean class_counts?": {"cls_num_list": (1, 2)},
        "Example has no knob 'colour'. It takes": {"colour": "red"},
        "Example has no knob 'x'. Example has no knob 'eps': did you mean epsilon?": {"x": 1, "eps": 0.1},
    }
    for said, wrong in guesses.items():
        with pytest.raises(TypeError) as caught:
            Example(**wrong)
        assert said in str(caught.value)
    with pytest.raises(TypeError, match="did you mean epsilon"):
        dataclasses.replace(Example(), eps=0.1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: wb.AverageK(k=3), "AverageK has no knob 'k': did you mean K?"),
        (lambda: wb.LAC(alpha=0.1), "did you mean confidence = 1 − alpha = 0.9?"),
        (lambda: wb.LAC(alpha="low"), "did you mean confidence = 1 − alpha?"),
        (lambda: wb.RAPS(coverage=0.9), "did you mean confidence?"),
        (lambda: wb.Run(lr=0.1), "Run has no knob 'lr': did you mean learning_rate?"),
        (lambda: wb.losses.NoisedTopK(k=5), "NoisedTopK has no knob 'k': did you mean K?"),
        (lambda: wb.losses.AverageKTwoHead(tau=5), "AverageKTwoHead has no knob 'tau'. It takes"),
    ],
)
def test_keywords_of_other_packages_are_answered_with_ours(make, said):
    with pytest.raises(TypeError) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize("kind", [*RULES, *LOSSES, wb.Run])
def test_help_shows_every_knob_with_its_meaning(kind):
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    for name, declared in kind.knobs().items():
        assert f"- `{name}`: {declared.meaning}; {declared.accepts()}" in text
        assert f"{name}: " in str(inspect.signature(kind))


def test_a_class_with_an_init_of_its_own_takes_what_that_takes():
    class Own(Example):
        def __init__(self, colour):
            super().__init__(K=len(colour))

    assert Own(colour="red").K == 3
    with pytest.raises(TypeError, match="color"):
        Own(color="red")
    assert copy.copy(Example(K=3)) == pickle.loads(pickle.dumps(Example(K=3))) == Example(K=3)
