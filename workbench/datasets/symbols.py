"""Symbols drawn by a program: shapes that people draw alike and mean differently, as strokes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench.datasets.base import Dataset, Split, recipe_key
from workbench.drawings import LATEX, drawing_to_text, inputs
from workbench.knobs import Knobbed, knob
from workbench.tables.texts import checked_texts

Drawing = list[np.ndarray]
SIDE = 300  # of the pad that a drawing would fill
VERSION = 2  # of the drawings: other ones have another key


def _line(*corners: tuple[float, float]) -> np.ndarray:
    """A stroke through corners, with points between them."""
    ends = np.array(corners, float)
    steps = np.linspace(0, len(ends) - 1, 8 * (len(ends) - 1) + 1)
    return np.stack([np.interp(steps, np.arange(len(ends)), ends[:, axis]) for axis in (0, 1)], axis=1)


def _arc(
    start: float, end: float, x: float = 0.5, y: float = 0.5, width: float = 0.5, height: float = 0.5
) -> np.ndarray:
    """A part of an ellipse, from one angle to another in degrees; 0 is to the right, 90 is up."""
    angles = np.deg2rad(np.linspace(start, end, 25))
    return np.stack([x + width * np.cos(angles), y - height * np.sin(angles)], axis=1)


def _curve(x: Callable[[np.ndarray], np.ndarray], y: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    time = np.linspace(0, 1, 33)
    return np.stack([x(time), y(time)], axis=1)


CIRCLE = _arc(90, 450)
PLUS = [_line((0.2, 0.5), (0.8, 0.5)), _line((0.5, 0.2), (0.5, 0.8))]
# Name of a shape → its strokes in the unit square, and the symbols that it may stand for.
SHAPES: dict[str, tuple[Drawing, tuple[str, ...]]] = {
    "circle": ([CIRCLE], (r"\circ", r"\degree", "0", "o", "O", r"\mathcal{O}", r"\fullmoon")),
    "cross": ([_line((0, 0), (1, 1)), _line((1, 0), (0, 1))], (r"\times", "x", "X", r"\chi")),
    "bar": ([_line((0, 0.5), (1, 0.5))], ("-", r"\frac{}{}")),
    "zigzag": ([_line((0.9, 0), (0, 0), (0.5, 0.5), (0, 1), (0.9, 1))], (r"\sum", r"\Sigma")),
    "loop": (
        [_curve(lambda t: 0.5 + 0.5 * np.cos(0.5 + 5.3 * t), lambda t: 0.5 - 0.25 * np.sin(1 + 10.6 * t))],
        (r"\alpha", r"\propto", r"\varpropto"),
    ),
    "plus": (PLUS, ("+",)),
    "stick": ([_line((0.5, 0), (0.5, 1))], ("|", r"\mid", "1", "l", "I")),
    "two sticks": ([_line((0.3, 0), (0.3, 1)), _line((0.7, 0), (0.7, 1))], (r"\|", r"\parallel")),
    "angle left": ([_line((0.9, 0), (0.1, 0.5), (0.9, 1))], ("<", r"\langle")),
    "angle right": ([_line((0.1, 0), (0.9, 0.5), (0.1, 1))], (">", r"\rangle")),
    "valley": ([_line((0, 0), (0.5, 1), (1, 0))], ("v", r"\vee", "V", r"\nu")),
    "peak": ([_line((0, 1), (0.5, 0), (1, 1))], (r"\wedge", r"\Lambda")),
    "cup": ([_arc(180, 360, 0.5, 0.2, 0.5, 0.8)], (r"\cup", "u", "U")),
    "cap": ([_arc(180, 0, 0.5, 0.8, 0.5, 0.8)], (r"\cap",)),
    "open left": ([_arc(60, 300)], (r"\subset", "c", "C", r"\mathcal{C}")),
    "open right": ([_arc(120, -120)], (r"\supset",)),
    "triangle": ([_line((0.5, 0), (0, 1), (1, 1), (0.5, 0))], (r"\triangle", r"\Delta", r"\vartriangle")),
    "triangle down": ([_line((0, 0), (1, 0), (0.5, 1), (0, 0))], (r"\nabla", r"\triangledown")),
    "square": ([_line((0, 0), (0, 1), (1, 1), (1, 0), (0, 0))], (r"\square",)),
    "slash": ([_line((0.8, 0), (0.2, 1))], ("/", r"\prime")),
    "backslash": ([_line((0.2, 0), (0.8, 1))], (r"\backslash", r"\setminus")),
    "foot": ([_line((0.5, 0), (0.5, 1)), _line((0, 1), (1, 1))], (r"\perp", r"\bot")),
    "roof": ([_line((0, 0), (1, 0)), _line((0.5, 0), (0.5, 1))], (r"\top", "T")),
    "two bars": ([_line((0, 0.35), (1, 0.35)), _line((0, 0.65), (1, 0.65))], ("=",)),
    "wave": ([_curve(lambda t: t, lambda t: 0.5 - 0.15 * np.sin(2 * np.pi * t))], (r"\sim",)),
    "eight": ([_curve(lambda t: 0.5 + 0.5 * np.sin(2 * np.pi * t), lambda t: 0.5 - 0.25 * np.sin(4 * np.pi * t))], (r"\infty",)),
    "arrow": ([_line((0, 0.5), (1, 0.5)), _line((0.75, 0.3), (1, 0.5), (0.75, 0.7))], (r"\rightarrow", r"\longrightarrow")),
    "lightning": ([_line((0, 0), (1, 0), (0, 1), (1, 1))], ("z", "Z")),
    "circle with bar": ([CIRCLE, _line((0.1, 0.5), (0.9, 0.5))], (r"\theta", r"\Theta", r"\ominus")),
    "circle with slash": ([CIRCLE, _line((1, 0), (0, 1))], (r"\emptyset", r"\varnothing", r"\O", r"\diameter")),
    "circle with plus": ([CIRCLE, *PLUS], (r"\oplus",)),
    "circle with dot": ([CIRCLE, _line((0.49, 0.5), (0.51, 0.5))], (r"\odot", r"\astrosun")),
    "table": (
        [_line((0, 0.1), (1, 0.1)), _line((0.3, 0.1), (0.25, 1)), _line((0.7, 0.1), (0.75, 1))],
        (r"\pi", r"\Pi"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Symbols(Knobbed):
    """Hand-drawn symbols, by a program: 33 shapes, turned, stretched and shaken a little, meant as one of 78 symbols.

    A circle is meant as ∘, °, 0, o, O, 𝒪 or a full moon, each as often; no classifier can tell. Rows are the 167 numbers
    that the published network of `workbench.drawings` reads, as they are, and each row shows its strokes. The program draws;
    real drawings come from the pad (`workbench draw`).
    """

    n_train: int = knob(2000, low=500, high=10_000, minimum=200, maximum=10**6, meaning="training drawings")
    n_val: int = knob(300, low=100, high=2000, minimum=1, maximum=10**6, meaning="validation drawings")
    n_test: int = knob(500, low=100, high=4000, minimum=1, maximum=10**6, meaning="test drawings")
    seed: int = knob(0, low=0, high=20, maximum=2**31 - 1, meaning="seed of all drawings")
    classes: str = knob(
        "drawn",
        choices=("drawn", "all"),
        meaning="classes: symbols that are drawn, or all 378 of the published network",
    )

    def dataset(self) -> Dataset:
        """The drawings of three splits, each from a generator of its own."""
        sizes = {"train": self.n_train, "val": self.n_val, "test": self.n_test}
        generators = np.random.default_rng(self.seed).spawn(len(sizes))
        train, val, test = (self._split(n, random) for n, random in zip(sizes.values(), generators, strict=True))
        spec = {"name": "symbols", "knobs": self.settings()}
        key = recipe_key({**spec, "version": VERSION})
        every = self.classes == "all"
        names = LATEX if every else MEANT
        return Dataset("symbols", train, val, test, names, spec=spec, key=key, standardise=False, unseen=every)

    def _split(self, n: int, random: np.random.Generator) -> Split:
        intended = random.permutation(
            np.resize(np.arange(len(MEANT)), n)
        )  # each as often: every symbol has a training row
        names = [SHAPE_OF[MEANT[label]] for label in intended]
        drawings = [_shaken(SHAPES[name][0], random) for name in names]
        strokes = checked_texts("strokes", [drawing_to_text(drawing) for drawing in drawings])
        attributes = {"shape": np.array(names)}
        labels = np.array([LATEX.index(name) for name in MEANT])[intended] if self.classes == "all" else intended
        return Split(
            inputs(drawings).astype(np.float32), labels.astype(np.int64), attributes=attributes, strokes=strokes
        )


SHAPE_OF = {meaning: name for name, (_, meanings) in SHAPES.items() for meaning in meanings}
MEANT = tuple(SHAPE_OF)


def _shaken(strokes: Drawing, random: np.random.Generator) -> Drawing:
    """The strokes on the pad: turned, stretched, and bent by a slow wave, to whole pixels."""
    turn = np.deg2rad(random.uniform(-6, 6))
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) * random.uniform(0.85, 1.15, 2)
    bends, phases = random.uniform(-0.015, 0.015, 2), random.uniform(0, 2 * np.pi, 2)
    moved = [(stroke - 0.5) @ matrix.T for stroke in strokes]
    bent = [stroke + bends * np.sin(2 * np.pi * stroke[:, ::-1] + phases) for stroke in moved]
    return [np.round(SIDE / 2 + 0.6 * SIDE * stroke) for stroke in bent]
