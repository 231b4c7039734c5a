"""Whatever stands in the address of a page, the page is drawn: what cannot be read is said, and the usual is shown.

Without a browser: `AppTest` runs the whole page. Which names the widgets of a view have is found by looking.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from browsing import KEYS, asks, choose, click, settled

import workbench as wb
from workbench.metrics.rows import RowFilter

APP = Path(__file__).resolve().parents[2] / "app"
OF_SLIDERS = ("K", "threshold", "confidence")
# A view, what it must be asked for to show its controls, and the names that it reads beside those of its widgets.
VIEWS = [
    ("start", {}, ()),
    ("sets", {}, OF_SLIDERS),
    ("sets", {"rule": wb.RAPS.title}, ()),
    (
        "samples",
        {"by": "organs", "other": KEYS["sharper"][:12]},
        ("row", "lasso", "answer", "pair", "two_of", "slice", *OF_SLIDERS),
    ),
    ("samples", {"run": KEYS["sharper"][:12], "picture": "Bayes"}, ()),
    ("samples", {"run": KEYS["many labels"][:12]}, ()),
    ("classes", {}, ()),
    ("calibration", {}, ()),
    ("train", {}, ()),
    ("train", {"train": "A new run"}, ()),
    ("train", {"train": "A new run", "new_loss": "Differentiable top-k", "data": "meadow"}, ()),
    ("train", {"train": "A new run", "new_loss": "Noised top-K"}, ()),
    ("train", {"train": "A new run", "data": "a path on this machine"}, ()),
    ("train", {"train": "Sweeps"}, ()),
    ("compare", {}, ()),
    ("compare", {"compare": "Papers' tables"}, ()),
    ("labels", {}, OF_SLIDERS),
    ("landscapes", {}, ()),
    ("landscapes", {"part": "Level sets", "beside": "Average-K two-head"}, ()),
    ("landscapes", {"part": "Level sets", "loss": "Own formula", "loss_formula": "sum(s) - a * s_y"}, ()),
    ("landscapes", {"part": "Conditional risk"}, ()),
    ("landscapes", {"part": "Along a line"}, ()),
    ("landscapes", {"part": "Why small ε stalls"}, ()),
    ("landscapes", {"part": "Weight space"}, ()),
    ("lessons", {}, ("lesson",)),
    ("lessons", {"lessons": "Quiz"}, ()),
    ("lessons", {"lessons": "Which one?"}, ()),
    ("runs", {}, ()),
]
TEXTS = ("find", "path")  # of which any one can be read
NONE_CHOSEN = (
    "holds",
    "augmentation",
    "apart_NoisedTopK_AverageKTwoHead",
    "vary_CrossEntropy",
)  # which are empty where nothing is chosen


@pytest.fixture
def readers(monkeypatch, drawn):
    """Name of a widget → what says whether its value in the address can be read, of all widgets drawn so far."""
    from session import address
    from views import calibration, classes, compare, labels, landscapes, lessons, runs, samples, sets, start, train  # noqa: F401

    found, bound = {}, address.bound

    def bound_and_known(name, readable):
        found[name] = readable
        return bound(name, readable)

    for module in list(sys.modules.values()):
        if getattr(module, "bound", None) is bound:
            monkeypatch.setattr(module, "bound", bound_and_known)
    return found


def dropped(app):
    """What the page says it could not read."""
    said = [warning.value.replace("\\", "") for warning in app.warning if "Part of this link is not" in warning.value]
    return {part.partition(" = ")[0] for text in said for part in text.partition("shown: ")[2].split("; ")}


@pytest.mark.parametrize(("view", "asked", "others"), VIEWS, ids=lambda value: str(value)[:30])
def test_every_name_of_every_view_may_be_empty_doubled_or_junk(drawn, readers, view, asked, others):
    usual = drawn(view, **asked)
    assert dropped(usual) == set()
    assert usual.query_params.items() >= asked.items()
    for name, readable in readers.items():
        assert readable([""]) == (name in (*TEXTS, *NONE_CHOSEN)), name
        assert readable(["junk"]) == (name in TEXTS), name
        assert not readable(["junk", "junk"]), name
        assert not readable(["", "junk"]), name
    names = sorted({*readers, *others} - {*asked, *TEXTS, *NONE_CHOSEN})
    junk = dict(zip(names, itertools.cycle(["", ["junk", "junk"], "junk"]), strict=False))
    app = drawn(view, **asked, **junk)
    assert dropped(app) == {*names}
    assert app.query_params == usual.query_params


@pytest.mark.parametrize("size", [["50", "0"], ["3", "1"], ["3"], ["1", "2", "3"], ["1", "junk"], ["-1", "3"]])
def test_sizes_that_are_no_range_are_not_guessed_at(drawn, size):
    app = drawn("samples", size=size)
    assert dropped(app) == {"size"}
    assert "size" not in app.query_params
    assert any("**400** of 400" in text.value for text in app.markdown)


def test_a_range_and_two_classes_are_read_as_ever(drawn, store):
    names = store.open(KEYS["garden"]).tables["test"].class_names
    app = drawn("samples", size=["1", "3"], sure=["0.25", "1"], holds=list(names[:2]), K="2")
    assert dropped(app) == set()
    assert app.query_params["size"] == ["1", "3"]
    assert app.query_params["holds"] == list(names[:2])


def test_filters_of_classes_leave_the_address_with_the_run_that_has_them(drawn, store):
    name = store.open(KEYS["garden"]).tables["test"].class_names[3]
    app = drawn("samples", label=name, holds=name, by="organs", size=["1", "3"], K="2")
    app.selectbox(key="run").set_value(KEYS["many labels"][:12]).run()
    assert dropped(app) == set()  # it was no link that asked
    assert not {"label", "holds", "by"} & app.query_params.keys()
    assert app.query_params["size"] == ["1", "3"]


def test_other_runs_that_are_not_here_are_named(drawn):
    app = drawn("compare", **{"with": f"junk,{KEYS['sharper'][:12]}"})
    assert dropped(app) == {"with"}
    assert app.query_params["with"] == KEYS["sharper"][:12]
    assert dropped(drawn("compare", **{"with": ""})) == set()  # which is how one says that there is none
    assert dropped(drawn("classes", other="junk")) == {"other"}


def test_a_slice_stays_in_the_address_of_a_view_and_compare_compares_its_rows(drawn, store):
    text = 'missed pairs~{"sizes":[2,3],"hit":false}'
    assert drawn("runs", slice=text).query_params["slice"] in (text, [text])
    app = drawn("compare", slice=text, K="2", rows="missed pairs")
    tables = {name: store.open(KEYS[name]).tables for name in ("garden", "sharper")}
    sets = wb.AverageK(2.0).fit(tables["garden"]["val"])(tables["garden"]["test"])
    rows = RowFilter(sizes=(2, 3), hit=False).rows(sets)
    sliced, val = (
        {name: run["test"].rows(rows) for name, run in tables.items()},
        {n: r["val"] for n, r in tables.items()},
    )
    expected = wb.comparison.compare(sliced, wb.AverageK(2.0), (wb.metrics.accuracy,), val=val, resamples=2)
    shown = app.dataframe[0].value
    coverage = shown[shown["metric"] == "Coverage (%)"]["value"].tolist()
    assert coverage == pytest.approx((100 * expected["value"]).tolist(), abs=1e-6)
    assert coverage[0] == 0  # those that the first run misses


def test_every_number_of_sets_classes_and_calibration_is_that_of_the_rows_of_the_slice(drawn, store):
    address = {"slice": 'flowers~{"groups":[["organs","flower"]]}', "rows": "flowers"}
    tables = store.open(KEYS["garden"]).tables
    rows = RowFilter(groups=(("organs", "flower"),)).rows(wb.TopK(1).fit(tables["val"])(tables["test"]))
    test = tables["test"].slice(rows, name="flowers")
    sets = wb.AverageK(2.0).fit(tables["val"])(test)  # fitted on all validation rows
    chip = f"slice flowers, n = {len(rows)}"

    app = drawn("sets", K="2", **address)
    strip = next(content for content in contents(app) if content["kind"] == "sliders")
    place = strip["sliders"][0]["values"].index(2.0)
    numbers = {number["label"]: number["texts"][place] for number in strip["numbers"]}
    assert numbers["Correct"] == f"{wb.metrics.accuracy(sets):.1%}"
    assert numbers["Mean size"] == f"{wb.metrics.mean_size(sets):.2f}"
    assert "Expected" not in numbers  # a promise holds for rows like the validation rows
    assert chip in [button.label for button in app.button]
    cards = next(content for content in contents(app) if content["kind"] == "cards")["cards"]
    assert [card["number"] for card in cards] == rows[: len(cards)].tolist()  # as they are numbered in the whole table

    frame = drawn("classes", K="2", **address).dataframe[0].value.set_index("class")
    assert frame["n"].sort_index().tolist() == np.bincount(test.labels, minlength=test.n_classes).tolist()
    expected = wb.metrics.class_accuracy(sets)
    assert frame["accuracy"].sort_index().tolist() == pytest.approx(expected, abs=5e-4, nan_ok=True)

    app = drawn("calibration", **address)
    before = dict(zip(app.dataframe[0].value["Error"], app.dataframe[0].value["Before"], strict=True))
    assert before["Brier score"] == f"{wb.metrics.brier_score(test):.3f}"
    app.button(key="chip slice").click().run()
    assert "rows" not in app.query_params
    before = dict(zip(app.dataframe[0].value["Error"], app.dataframe[0].value["Before"], strict=True))
    assert before["Brier score"] == f"{wb.metrics.brier_score(tables['test']):.3f}"


def contents(app):
    """What the live elements of a page were given."""
    return [json.loads(each.proto.json) for each in app.get("bidi_component") if '"kind"' in each.proto.json]


def test_a_slice_that_asks_for_sets_is_left_to_samples_and_compare(drawn):
    app = drawn("sets", slice='missed pairs~{"sizes":[2,3],"hit":false}')
    assert "rows" not in [each.key for each in app.selectbox]


def test_a_slice_that_is_opened_selects_its_rows_and_no_others(drawn, store):
    text = 'missed pairs~{"sizes":[2,3],"hit":false,"two_of":[0,1,2,3]}'
    app = drawn("samples", slice=text, K="2", sure=["0.25", "1"])
    app.button(key="open slice 0").click().run()
    assert not app.error
    tables = store.open(KEYS["garden"]).tables
    sets = wb.AverageK(2.0).fit(tables["val"])(tables["test"])
    rows = RowFilter(sizes=(2, 3), hit=False, two_of=(0, 1, 2, 3)).rows(sets)
    assert any(f"**{len(rows)}** of {len(sets)}" in each.value for each in app.markdown)


def test_the_name_of_a_module_in_an_address_is_shown_and_never_imported(drawn, monkeypatch, tmp_path):
    (tmp_path / "foreign.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = {"train": "A new run", "model_quick-photographs": "foreign:model", "new_loss": "foreign:Loss"}
    app = drawn("train", **asked, data="foreign:data")
    assert dropped(app) == {"model_quick-photographs", "new_loss", "data"}
    assert any("foreign:model" in warning.value.replace("\\", "") for warning in app.warning)
    assert app.selectbox(key="model_quick-photographs").value == "cnn"


@pytest.mark.browser
@pytest.mark.parametrize(
    ("view", "control", "option", "then", "asked"),
    [
        ("sets", "What is promised", "Size of every set", "shots", {"by": "shots"}),
        ("landscapes", "View", "Level sets", "0", {"label": "0"}),
    ],
)
def test_a_choice_writes_the_address_after_the_rule_or_the_part_has_changed(opened, view, control, option, then, asked):
    page = opened(view=view)
    choose(page, control, option)
    settled(page)
    click(page.get_by_role("radio", name=then, exact=True))
    asks(page, **asked)
