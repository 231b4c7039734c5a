"""A loss written as a formula: parsed into a few operations on scores, never executed as Python."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.knobs import knob
from workbench.losses.base import Loss
from workbench.losses.top_k import score_of_label, set_size, without_label

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 200  # characters, so that no formula is nested too deeply to be read
EXAMPLES = (
    "logsumexp(s) - s_y",
    "relu(a + max(s_others) - s_y)",
    "relu(a + kth_largest(s_others, K) - s_y)",
    "-(1 - p_y)**a * log(p_y)",
    "sum(softplus(a + s_others - s_y))",
    "sum((p - y)**2)",
    "s_y < kth_largest(s, K)",
)


class Name(NamedTuple):
    """A name that a formula may use."""

    per_class: bool  # one number a class; otherwise one number a row
    meaning: str


class Function(NamedTuple):
    """A function that a formula may use, by its name in torch or in `workbench.operators`."""

    per_class: bool | None  # what it returns; None: as its arguments
    n_arguments: tuple[int, ...] = (1,)


NAMES = {
    "s": Name(True, "scores"),
    "s_y": Name(False, "score of the label"),
    "s_others": Name(True, "scores of the other classes, −∞ at the label"),
    "p": Name(True, "softmax(s)"),
    "p_y": Name(False, "probability of the label"),
    "y": Name(True, "1 at the label, 0 elsewhere"),
    "K": Name(False, "knob"),
    "a": Name(False, "knob"),
    "L": Name(False, "number of classes"),
}
READS_SCORES = {"s", "s_y", "s_others", "p", "p_y"}
EACH = ("exp", "expm1", "log", "log1p", "sqrt", "abs", "relu", "sigmoid", "softplus", "tanh")
PLACED = ("kth_largest", "top_sum")  # of an order: their second argument is a place in it
FUNCTIONS = {
    **dict.fromkeys(EACH, Function(None)),
    "softmax": Function(True),
    **dict.fromkeys(("sum", "mean", "logsumexp"), Function(False)),
    **dict.fromkeys(("max", "min"), Function(False, (1, 2))),  # of two arguments: the larger, the smaller
    **dict.fromkeys(PLACED, Function(False, (2,))),
}
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ALLOWED = (
    f"names {', '.join(NAMES)}; functions {', '.join(FUNCTIONS)}; numbers, + − * / ** and < <= > >= (1 if true, else 0)"
)


@dataclass(frozen=True)
class Formula(Loss):
    r"""A loss of your own, written as a formula of the scores of one row.

    $$\ell(s, y) = \text{what you type}$$

    The text is parsed and only these are allowed; it is never executed as Python.

    - `s`, `s_y`, `s_others`: the scores, the score of the label, and the scores with −∞ at the label. `p`, `p_y`: their
      softmax and its value at the label. `y`: 1 at the label and 0 elsewhere. `L`: the number of classes. `K` and `a`: two
      knobs.
    - `exp`, `expm1`, `log`, `log1p`, `sqrt`, `abs`, `relu`, `sigmoid`, `softplus`, `tanh` of each number; `softmax`; `sum`,
      `mean`, `max`, `min`, `logsumexp` over the classes; `max(u, v)`, `min(u, v)`; `kth_largest(s, K)` and
      `top_sum(s, K)`.
    - Numbers, `+ - * / **`, and comparisons, which are 1 where they hold.

    A formula declares nothing about itself: its facts (convex, smooth, calibrated, proper) are False, which here means "not
    known". It is in no table of losses; everything that takes a loss takes it.

    >>> import torch
    >>> hinge = Formula("relu(a + kth_largest(s_others, K) - s_y)", K=2)
    >>> hinge(torch.tensor([[2.4, 2.6, 2.3, 0.5]]), torch.tensor([3]))
    tensor([2.9000])
    >>> Formula("sum(s)**s_z")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: Formula: 's_z' is not known in 'sum(s)**s_z'; allowed are names s, s_y, s_others, p, p_y, y, K, a, L; ...
    """

    title = "Own formula"
    formula = r"\text{what you type}"
    paper = ""
    equation = ""
    smooth = False
    convex = False
    calibrated = False
    expression: str = knob(EXAMPLES[0], kind="suggestion", choices=EXAMPLES, symbol="ℓ", meaning="loss of one row")
    K: int = set_size(1)
    a: float = knob(
        1.0, low=0.0, high=5.0, minimum=-math.inf, maximum=math.inf, symbol="a", meaning="number of the formula"
    )

    def _checked(self, name: str, declared: Any) -> Any:
        given = super()._checked(name, declared)
        if name == "expression":
            if not isinstance(given, str):
                raise TypeError(f"Formula: expression = {given!r}; give a text, such as {EXAMPLES[0]!r}")
            parsed(given)
        return given

    def settings(self) -> dict[str, Any]:
        """Name → value of the expression and of the knobs that it reads."""
        read = {"expression", *names_in(parsed(self.expression))}
        return {name: value for name, value in super().settings().items() if name in read}

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        import torch

        p, classes = scores.softmax(-1), torch.arange(scores.shape[-1], device=scores.device)
        whole = {"K": self.K, "L": scores.shape[-1]}
        numbers = {name: torch.full_like(scores[:, :1], value) for name, value in {**whole, "a": self.a}.items()}
        known = {
            "s": scores,
            "s_y": score_of_label(scores, labels)[:, None],
            "s_others": without_label(scores, labels),
            "p": p,
            "p_y": score_of_label(p, labels)[:, None],
            "y": (classes == labels[:, None]).to(scores),
            **numbers,
        }
        return _evaluated(parsed(self.expression), known, whole).squeeze(-1)


@cache
def parsed(expression: str) -> ast.expr:
    """The tree of a formula.

    Raises:
        ValueError: It is too long, no formula, uses something else than what is allowed, or is not a number a row.
    """
    if len(expression) > LONGEST:
        raise ValueError(f"Formula: {len(expression)} characters; write at most {LONGEST}")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(f"Formula: {expression!r} is not a formula; write it like {EXAMPLES[0]}") from None
    if _per_class(tree, expression):
        raise ValueError(
            f"Formula: {expression!r} is one number a class; a loss is one a row, such as sum({expression})"
        )
    if not names_in(tree) & READS_SCORES:
        raise ValueError(f"Formula: {expression!r} reads no score; use one of {', '.join(sorted(READS_SCORES))}")
    return tree


def names_in(tree: ast.expr) -> set[str]:
    """The names that a formula reads, functions included."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _per_class(node: ast.expr, expression: str) -> bool:
    """Whether a part of a formula is one number a class; refuses what is not allowed."""
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return False
        case ast.Name(id=name) if name in NAMES:
            return NAMES[name].per_class
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return _per_class(operand, expression)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return any([_per_class(left, expression), _per_class(right, expression)])
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
            return any([_per_class(left, expression), _per_class(right, expression)])
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _of_call(name, arguments, expression)
    unknown = node.func if isinstance(node, ast.Call) else node
    raise ValueError(f"Formula: {ast.unparse(unknown)!r} is not known in {expression!r}; allowed are {ALLOWED}")


def _of_call(name: str, arguments: list[ast.expr], expression: str) -> bool:
    function = FUNCTIONS[name]
    if len(arguments) not in function.n_arguments:
        wanted = " or ".join(map(str, function.n_arguments))
        raise ValueError(f"Formula: {name} takes {wanted} arguments, not {len(arguments)}, in {expression!r}")
    per_class = [_per_class(argument, expression) for argument in arguments]
    if name in PLACED:
        _whole(arguments[1], {"K": 1, "L": 1}, expression)
        per_class.pop()
    elif len(arguments) == 2:
        return any(per_class)
    if function.per_class is None:
        return any(per_class)
    if not all(per_class):
        raise ValueError(
            f"Formula: {name} is over the classes; give it one number a class, such as s, in {expression!r}"
        )
    return function.per_class


def _whole(node: ast.expr, known: Mapping[str, int], expression: str = "") -> int:
    """A whole number: K, L, a number, or a sum or difference of them."""
    match node:
        case ast.Constant(value=value) if type(value) is int:
            return value
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            return int(OPERATORS[type(op)](_whole(left, known, expression), _whole(right, known, expression)))
    raise ValueError(
        f"Formula: {ast.unparse(node)!r} is not a place in an order; give K, K + 1 or a whole number, in {expression!r}"
    )


def _evaluated(node: ast.expr, known: Mapping[str, Tensor], whole: Mapping[str, int]) -> Tensor:
    """(n, 1) or (n, L): the value of a part of a formula that `parsed` let through."""

    def of(part: ast.expr) -> Tensor:
        return _evaluated(part, known, whole)

    value: Tensor
    match node:
        case ast.Constant(value=int() | float() as number):
            value = known["s_y"].new_full((1, 1), float(number))
        case ast.Name(id=name):
            value = known[name]
        case ast.UnaryOp(op=op, operand=operand):
            value = OPERATORS[type(op)](of(operand))
        case ast.BinOp(left=left, op=op, right=right):
            value = OPERATORS[type(op)](of(left), of(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            value = OPERATORS[type(op)](of(left), of(right)).to(known["s"])
        case ast.Call(func=ast.Name(id=name), args=arguments):
            value = _call(name, arguments, of, whole)
        case _:  # pragma: no cover (`parsed` refuses the rest)
            raise AssertionError(ast.dump(node))
    return value


def _call(name: str, arguments: list[ast.expr], of: Callable[[ast.expr], Tensor], whole: Mapping[str, int]) -> Tensor:
    import torch
    from torch.nn import functional

    from workbench import operators

    first = of(arguments[0])
    if name in PLACED:
        value = getattr(operators, name)(first, _whole(arguments[1], whole))[:, None]
    elif len(arguments) == 2:
        value = {"max": torch.maximum, "min": torch.minimum}[name](first, of(arguments[1]))
    elif name in EACH:
        value = getattr(functional if name == "softplus" else torch, name)(first)
    elif name == "softmax":
        value = first.softmax(-1)
    else:
        value = getattr(torch, {"max": "amax", "min": "amin"}.get(name, name))(first, -1, keepdim=True)
    assert isinstance(value, torch.Tensor)
    return value
