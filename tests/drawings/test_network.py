"""The published network for drawn symbols says what it said when it was published, of any drawing that can be made."""

from __future__ import annotations

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.drawings import LATEX, SYMBOLS, drawing_from_text, drawing_to_text, inputs, scores, table
from workbench.drawings.network import STROKES

CIRCLE = [[(100 - 50 * np.sin(t), 100 - 50 * np.cos(t)) for t in np.linspace(0, 2 * np.pi, 40)]]
CROSS = [[(0, 0), (100, 100)], [(100, 0), (0, 100)]]
BAR = [[(0, 50), (100, 50)]]
PLUS = [[(0, 50), (100, 50)], [(50, 0), (50, 100)]]
points = arrays.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=st.integers(-500, 500))
drawings = st.lists(points, min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("drawing", "expected"),
    [
        (CIRCLE, {r"\circ": 0.47, r"\degree": 0.29, r"\fullmoon": 0.06, "0": 0.05, "o": 0.04, r"\mathcal{O}": 0.03}),
        (CROSS, {r"\times": 0.67, "x": 0.31, r"\aleph": 0.01, r"\chi": 0.01}),
        (BAR, {"-": 0.61, r"\frac{}{}": 0.38}),
        (PLUS, {"+": 1.0}),
    ],
    ids=["circle", "cross", "bar", "plus"],
)
def test_an_ambiguous_drawing_has_the_probabilities_that_were_measured_from_outside(drawing, expected):
    probabilities = table([drawing]).probabilities()[0]
    found = [LATEX[j] for j in np.argsort(-probabilities)[: len(expected)]]
    assert found == list(expected)
    assert [probabilities[LATEX.index(name)] for name in expected] == pytest.approx(list(expected.values()), abs=0.006)


def test_weights_in_half_precision_answer_as_those_in_single_precision():
    with np.load("tests/data/drawn_symbols.npz", allow_pickle=False) as kept:
        ours = scores([drawing_from_text(text) for text in kept["strokes"].tolist()])
        assert ours == pytest.approx(kept["scores"], abs=0.01)
        assert (ours.argmax(axis=1) == kept["scores"].argmax(axis=1)).all()


@given(drawings, st.floats(0.01, 100), st.integers(-1000, 1000))
def test_any_drawing_has_finite_scores_that_do_not_depend_on_unit_and_place(drawing, unit, shift):
    given_inputs = inputs([drawing])
    assert np.isfinite(scores([drawing])).all()
    moved = [unit * (stroke + shift) for stroke in drawing]
    extent = np.ptp(np.concatenate(drawing), axis=0)
    if extent.min() > 0 and abs(extent[0] - extent[1]) > 1e-6:  # a tie of width and height may fall to either side
        assert inputs([moved]) == pytest.approx(given_inputs, abs=1e-6)


def test_one_point_and_a_hundred_strokes_are_drawings_and_only_four_strokes_have_points():
    assert LATEX[scores([[[(3, 3)]]]).argmax()] == r"\cdot"
    hundred = [[(j, 0), (j, 9)] for j in range(100)]
    values = inputs([hundred])[0]
    assert values[-2] == 100
    first = inputs([hundred[:STROKES]])[0]
    assert (values[: STROKES * 40] != 0).any()
    assert values.shape == first.shape == (167,)
    assert np.isfinite(scores([hundred])).all()


@pytest.mark.parametrize(
    ("drawing", "error", "message"),
    [
        ([], ValueError, "drawing 0 has no stroke"),
        ([[]], ValueError, r"stroke 0 has shape \(0,\)"),
        ([[(1, 2, 3)]], ValueError, r"give \(m, 2\)"),
        ([[(np.nan, 1)]], ValueError, "NaN or infinite"),
        ("circle", TypeError, "list of strokes"),
        ([["a", "b"]], ValueError, r"not a list of \(x, y\) points"),
    ],
)
def test_what_is_no_drawing_is_refused_with_what_to_give(drawing, error, message):
    with pytest.raises(error, match=message):
        scores([drawing])


def test_a_table_of_drawings_keeps_its_strokes_through_disk_and_rows(tmp_path):
    drawn = table([CIRCLE, CROSS, BAR], labels=[r"\degree", "x", "-"])
    assert drawn.class_names == LATEX
    assert len(set(LATEX)) == len(SYMBOLS) == 378
    drawn.save(tmp_path / "table")
    read = wb.LogitTable.load(tmp_path / "table").rows([2, 0])
    assert read.strokes.tolist() == [drawing_to_text(BAR), drawing_to_text(CIRCLE)]
    again = table([drawing_from_text(text) for text in read.strokes.tolist()])
    assert (again.scores == read.scores).all()


def test_the_symbols_dataset_is_read_by_the_network_and_shows_its_strokes():
    data = wb.load_dataset("symbols", n_train=200, n_val=50, n_test=100)
    drawn = table(
        [drawing_from_text(text) for text in data.test.strokes.tolist()],
        [data.class_names[j] for j in data.test.labels],
    )
    assert wb.metrics.top_k_accuracy(drawn, 5) > 0.8
    shapes = data.test.attributes["shape"]
    assert wb.metrics.top_k_accuracy(drawn.rows(shapes == "circle"), 1) < 0.4  # seven meanings: no classifier can tell
    assert data.key == wb.load_dataset("symbols", n_train=200, n_val=50, n_test=100).key
