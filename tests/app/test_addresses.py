"""Whatever stands in the address of a page, the page is drawn: what cannot be read is said, and the usual is shown.

Without a browser: `AppTest` runs the whole page. Which names the widgets of a view have is found by looking.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from browsing import KEYS

import workbench as wb

APP = Path(__file__).resolve().parents[2] / "app"
OF_SLIDERS = ("K", "threshold", "confidence")
# A view, what it must be asked for to show its controls, and the names that it reads beside those of its widgets.
VIEWS = [
    ("start", {}, ()),
    ("sets", {}, OF_SLIDERS),
    ("sets", {"rule": wb.RAPS.title}, ()),
    ("samples", {"by": "organs", "other": KEYS["sharper"][:12]}, ("row", *OF_SLIDERS)),
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
    ("landscapes", {"part": "Conditional risk"}, ()),
    ("landscapes", {"part": "Along a line"}, ()),
    ("landscapes", {"part": "The moat"}, ()),
    ("landscapes", {"part": "Weight space"}, ()),
    ("lessons", {}, ("lesson",)),
    ("lessons", {"lessons": "Quiz"}, ()),
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
    said = [warning.value.replace("\\", "") for warning in app.warning if "The link asks for what" in warning.value]
    return {part.partition(" = ")[0] for text in said for part in text.partition("instead: ")[2].split("; ")}


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


def test_the_name_of_a_module_in_an_address_is_shown_and_never_imported(drawn, monkeypatch, tmp_path):
    (tmp_path / "foreign.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = {"train": "A new run", "model_quick-photographs": "foreign:model", "new_loss": "foreign:Loss"}
    app = drawn("train", **asked, data="foreign:data")
    assert dropped(app) == {"model_quick-photographs", "new_loss", "data"}
    assert any("foreign:model" in warning.value.replace("\\", "") for warning in app.warning)
    assert app.selectbox(key="model_quick-photographs").value == "cnn"


def test_a_link_to_runs_by_the_keys_of_an_earlier_version_still_shows_them(drawn):
    app = drawn("compare", run="40568a7c7813", **{"with": "df885b00d452,4d7d5a652b91"})
    assert [warning.value for warning in app.warning] == []
    assert (app.session_state["run"], app.session_state["with"]) == ("de37b1c92a90", ["a2260e87a59c", "f90247adc0e0"])
    assert app.query_params["run"] == "de37b1c92a90"
