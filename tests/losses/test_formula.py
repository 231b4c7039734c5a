"""A loss written as a formula: the values of the losses it writes down, everywhere a loss goes, and nothing else is parsed."""

from __future__ import annotations

import time

import pytest
import torch

import workbench as wb
from workbench.losses import LOSSES, from_spec, of_modules
from workbench.losses.formula import ALLOWED, EXAMPLES, FUNCTIONS, NAMES
from workbench.store import Store

Formula = wb.losses.Formula
SAME = [
    ("logsumexp(s) - s_y", {}, wb.losses.CrossEntropy()),
    ("-log(p_y)", {}, wb.losses.CrossEntropy()),
    ("relu(a + kth_largest(s_others, K) - s_y)", {"K": 2}, wb.losses.TopKHinge(K=2)),
    ("max(0, 1 + max(s_others) - s_y)", {}, wb.losses.TopKHinge(K=1)),
    ("max(s + 1 - y) - s_y", {}, wb.losses.TopKHinge(K=1)),
    ("relu(1 + kth_largest(s, K + 1) - s_y)", {"K": 3}, wb.losses.CalibratedTopKHinge(K=3)),
    ("-(1 - p_y)**a * log(p_y)", {"a": 2.0}, wb.losses.Focal(gamma=2.0)),
    ("s_y < kth_largest(s, K)", {"K": 2}, wb.losses.TopKError(K=2)),
]


@pytest.fixture(scope="module")
def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(50, 6, generator=generator, dtype=torch.float64), torch.randint(6, (50,), generator=generator)


@pytest.mark.parametrize(("expression", "knobs", "loss"), SAME)
def test_a_formula_has_the_values_and_gradients_of_the_loss_that_it_writes_down(batch, expression, knobs, loss):
    scores, labels = batch
    for each in (torch.float32, torch.float64):
        ours, theirs = (scores.to(each).clone().requires_grad_() for _ in range(2))
        mine, known = Formula(expression, **knobs)(ours, labels), loss(theirs, labels)
        torch.testing.assert_close(mine, known)
        if loss.trains:
            mine.sum().backward()
            known.sum().backward()
            torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("expression", EXAMPLES)
def test_every_example_works_under_vmap_and_has_a_finite_gradient_on_the_triangle(batch, expression):
    scores, labels = batch
    loss = Formula(expression)
    mapped = torch.func.vmap(lambda row, label: loss(row[None], label[None])[0])(scores, labels)
    torch.testing.assert_close(mapped, loss(scores, labels))
    frame = wb.figures.level_sets(loss, steps=11, gradients=True).frame
    assert frame.notna().all(axis=None)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "s.sum()",
        "s[0]",
        "(lambda: s_y)()",
        "[x for x in s]",
        "open('x')",
        "s_y if 1 else 2",
        "s_y and 1",
        "0 < s_y < 1",
        "(z := s_y)",
        "f'{s_y}'",
        "sum(s, axis=0)",
        "sum(*s)",
        "s_y // 2",
        "s_y ^ 2",
        "not s_y",
        "True + s_y",
        "1j * s_y",
        "sum",
        "exp + s_y",
        "K()",
        "sum(s_y, s",
        "s_y; s_y",
        "",
        "\0",
        "s",
        "1 + K",
        "sum(s_y)",
        "sum()",
        "max(s, K, 3)",
        "kth_largest(s, a)",
        "kth_largest(s, 1.5)",
        "-" * 201 + "s_y",
        3,
    ],
)
def test_all_else_is_refused_by_name(expression):
    with pytest.raises((ValueError, TypeError), match="Formula"):
        Formula(expression)


def test_an_unknown_name_is_answered_with_all_that_is_allowed():
    with pytest.raises(ValueError, match="'scores' is not known") as refused:
        Formula("sum(scores) - s_y")
    assert ALLOWED in str(refused.value)
    assert all(name in ALLOWED for name in (*NAMES, *FUNCTIONS))


def test_a_tower_of_powers_is_infinite_at_once_and_has_no_level_sets():
    began = time.process_time()
    loss = Formula("s_y + 9**9**9**9**9")
    assert loss(torch.zeros(1, 3), torch.tensor([0])).isinf().all()
    assert time.process_time() - began < 5  # Python's own whole numbers would take for ever
    with pytest.raises(ValueError, match="not finite"):
        wb.figures.level_sets(loss, steps=3)


@pytest.mark.parametrize(
    "deep", ["-" * 197 + "s_y", "(" * 90 + "s_y" + ")" * 90, "exp(" * 39 + "s_y" + ")" * 39, "s_y" + "+s_y" * 49]
)
def test_the_longest_formula_is_not_nested_too_deeply_to_be_evaluated(deep):
    assert Formula(deep)(torch.zeros(2, 3), torch.tensor([0, 1])).shape == (2,)


def test_its_repr_is_code_and_its_spec_holds_the_knobs_that_it_reads():
    loss = Formula("relu(a + max(s_others) - s_y)", a=0.5)
    assert eval(repr(loss), {"Formula": Formula}) == loss
    assert loss.spec() == {"loss": "Formula", "knobs": {"expression": loss.expression, "a": 0.5}}
    assert from_spec(loss.spec()) == loss


def test_it_is_in_no_table_of_losses():
    assert Formula not in LOSSES
    assert "Formula" not in wb.losses.by_name()


def test_figures_of_losses_take_it_and_their_code_makes_them_again():
    loss = Formula("relu(a + max(s_others) - s_y)")
    other = wb.losses.CrossEntropy()
    figures = [
        wb.figures.loss_difference(loss, other, steps=5),
        wb.figures.descent_paths(loss, start=(1.0, 0.6, 0.4), n_steps=3),
        wb.figures.probe([loss, other]),
        wb.figures.filmstrip(loss, "a", (0.5, 1.0), steps=5),
        wb.figures.line_profile([loss]),
    ]
    for figure in figures:
        space = {}
        exec(figure.code, space)
        assert space["figure"].frame.equals(figure.frame)
        assert figure.static() is not None


def test_a_run_trains_with_it_and_reads_it_back(tmp_path):
    run = wb.Run(
        dataset="digits", model="linear", loss=Formula("relu(a + max(s_others) - s_y)"), epochs=2, learning_rate=0.01
    )
    done = wb.train(run, store=Store(tmp_path), progress=False)
    assert done.history["train_loss"].iloc[-1] < done.history["train_loss"].iloc[0]
    assert wb.training.TrainedRun.open(run.key, store=Store(tmp_path)).run.loss == run.loss


def test_losses_of_a_module_are_found_by_its_name(monkeypatch, tmp_path):
    (tmp_path / "my_losses.py").write_text(
        "from workbench.losses import CrossEntropy, Formula\n"
        "class Mine(CrossEntropy):\n    '''Mine.'''\n    title = 'Mine'\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(of_modules(["my_losses", "there_is_no_such_module"])) == ["my_losses:Mine"]
