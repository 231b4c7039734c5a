"""The frame without a browser: settings, theme, empty state, errors, and what the app may import."""

from __future__ import annotations

import signal
import tomllib
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import workbench as wb
from workbench import glossary
from workbench.app_server import app_command, start_server
from workbench.figures.style import streamlit_theme
from workbench.store import Store, StoredRun
from workbench.store import store as stores
from workbench.store.imported_tables import keep_tables

APP = Path(__file__).resolve().parents[2] / "app"
SETTINGS = tomllib.loads((APP / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def at_sets():
    """The page of sets, not run yet."""
    app = AppTest.from_file(str(APP / "main.py"), default_timeout=120)
    app._page_hash = calc_hash("sets")
    return app


@pytest.fixture
def app_modules(monkeypatch):
    monkeypatch.syspath_prepend(str(APP))


def test_the_theme_is_the_palette_of_the_figures():
    assert SETTINGS["theme"] == streamlit_theme()


def test_the_app_listens_here_only_sends_no_statistics_and_shows_no_stack_trace():
    assert SETTINGS["server"] == {
        "address": "127.0.0.1",
        "allowedHosts": ["127.0.0.1", "localhost"],
        "showEmailPrompt": False,
    }
    assert SETTINGS["browser"] == {"gatherUsageStats": False}
    assert SETTINGS["client"]["showErrorDetails"] == "none"
    assert SETTINGS["client"]["showErrorLinks"] is False


def test_without_a_run_the_page_says_what_to_type(monkeypatch, tmp_path, app_modules):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(stores, "DEMO", tmp_path / "no-demo")
    app = at_sets().run()
    assert not app.exception
    assert app.subheader[0].value == "There is no run here yet"
    assert any("workbench train --dataset garden" in block.value for block in app.code)


def test_the_words_of_the_glossary_open_from_every_page(monkeypatch, tmp_path, app_modules):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(stores, "DEMO", tmp_path / "no-demo")
    app = at_sets().run()
    (words,) = [button for button in app.sidebar.button if button.label == "Words and symbols"]
    words.click().run()
    assert not app.exception
    assert app.dataframe[0].value["word"].tolist() == [term.word for term in glossary.TERMS]


def test_an_unexpected_error_leaves_a_message_and_no_stack_trace(app_modules):
    def script():
        import streamlit as st

        from session.messages import friendly

        friendly(lambda: 1 / 0)()
        friendly(lambda: int("seven"))()
        st.write("the rest of the page")

    app = AppTest.from_function(script).run()
    assert not app.exception
    assert app.error[0].value.startswith("Something went wrong here.")
    assert "seven" in app.error[1].value
    assert app.markdown[0].value == "the rest of the page"


def test_text_of_users_is_not_read_as_markdown(app_modules):
    from session.messages import plain

    assert plain("a_b*c* [x](y) $z$") == r"a\_b\*c\* \[x\]\(y\) \$z\$"


def damaged_store(folder):
    """Three runs on the same rows: one that is whole, one whose scores are cut, one of which a byte is flipped."""
    scores = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    keys = {}
    for title in ("whole", "cut", "flipped"):
        keys[title] = keep_tables(wb.LogitTable(scores, np.arange(60) % 4), title=title, store=Store(folder)).key
    for title, change in (("cut", lambda content: content[:-1]), ("flipped", lambda content: content[:-1] + b"?")):
        file = folder / keys[title] / "test" / "scores.npy"
        file.write_bytes(change(file.read_bytes()))
    return {title: key[:12] for title, key in keys.items()}


def test_a_damaged_run_is_named_quietly_and_all_others_are_shown(monkeypatch, tmp_path, app_modules):
    from session import cached_data

    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(stores, "DEMO", tmp_path / "no-demo")
    keys = damaged_store(tmp_path)
    with pytest.warns(UserWarning, match="a run is left out"):
        app = at_sets().run()
    assert not app.exception
    assert not app.error
    assert app.session_state["run"] == keys["whole"]  # not the one that is newer and cannot be read
    assert "1 run cannot be read" in [part.label for part in app.expander]
    (named,) = [text.value for text in app.caption if "damaged" in text.value]
    assert keys["cut"] in named
    assert str(tmp_path) not in named.replace("\\", "")
    assert list(cached_data.comparable(keys["whole"])) == [
        keys["flipped"]
    ]  # as far as one knows without reading it all
    assert not cached_data.opens(keys["flipped"])


def test_a_run_that_turns_out_to_be_damaged_when_it_is_chosen_is_named_and_left_out(monkeypatch, tmp_path, app_modules):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(stores, "DEMO", tmp_path / "no-demo")
    keys = damaged_store(tmp_path)
    app = at_sets()
    app._page_hash = calc_hash("compare")
    app.query_params["run"] = keys["whole"]
    with pytest.warns(UserWarning, match="a run is left out"):
        app.run()
    assert not app.exception
    assert not app.error
    assert [warning.value for warning in app.warning] == [
        f"Run {keys['flipped']} is left out: it is damaged or was changed."
    ]
    assert "Choose at least one run to compare with." in [told.value for told in app.info]


def test_which_runs_can_be_compared_is_known_without_opening_a_table(monkeypatch, tmp_path, app_modules):
    from session import cached_data

    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(stores, "DEMO", tmp_path / "no-demo")
    scores = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    keys = []
    for number in range(12):  # every third on other rows
        labels = (np.arange(60) + (number % 3 == 2)) % 4
        kept = keep_tables(wb.LogitTable(scores + number, labels), title=f"run {number}", store=Store(tmp_path))
        keys.append(kept.key[:12])
    opened, checked = [], []
    monkeypatch.setattr(wb.LogitTable, "load", lambda *given: opened.append(given))
    check = StoredRun.check
    monkeypatch.setattr(StoredRun, "check", lambda run: checked.append(run.key) or check(run))
    assert set(cached_data.comparable(keys[0])) == {key for number, key in enumerate(keys) if number % 3 != 2} - {
        keys[0]
    }
    assert len(checked) == 12
    assert len(cached_data.comparable(keys[2])) == 3
    assert cached_data.run(keys[5]).short == keys[5]
    assert len(checked) == 12  # the runs were looked at once
    assert opened == []


def test_a_link_to_a_run_that_cannot_be_read_says_so(monkeypatch, tmp_path, app_modules):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(stores, "DEMO", tmp_path / "no-demo")
    keys = damaged_store(tmp_path)
    app = at_sets()
    app.query_params["run"] = keys["cut"]
    with pytest.warns(UserWarning, match="a run is left out"):
        app.run()
    assert app.warning[0].value == f"The link asks for run {keys['cut']}, which cannot be read."
    assert app.session_state["run"] == keys["whole"]


def test_no_folder_of_this_machine_is_told_to_a_browser(monkeypatch, tmp_path, app_modules):
    from session.messages import without_places

    home = tmp_path / "a home with spaces"
    monkeypatch.setenv("WORKBENCH_HOME", str(home))
    told = {
        f"the disk that holds {home} is full: 8 bytes": "the disk that holds the store is full: 8 bytes",
        f"the best are kept in {home}/.unfinished/ab.safetensors": "the best are kept in .unfinished/ab.safetensors",
        f"no run has a key that starts with 'ab' in {home};": "no run has a key that starts with 'ab' in the store;",
        f"{tmp_path}/mine.csv: row 3 is empty": "mine.csv: row 3 is empty",
        "/srv/plants/train holds nothing (of '/srv/x y')": "train holds nothing (of 'x y')",
    }
    told |= dict.fromkeys(["test/scores.npy, 1/2 of it", "see http://127.0.0.1:8501/train or a / b"])
    told = {text: text if expected is None else expected for text, expected in told.items()}
    assert {text: without_places(text) for text in told} == told


@pytest.mark.parametrize("name", ["set_sizes", "per_class", "accuracy_against_size", "reliability"])
def test_the_code_that_is_shown_makes_the_picture_again(monkeypatch, store, app_modules, name):
    from session import cached_data

    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    tables = store.open("aaaa").tables
    drawn = {
        "set_sizes": lambda: wb.figures.set_sizes(wb.AverageK(2.5).fit(tables["val"])(tables["test"]), by="shots"),
        "per_class": lambda: wb.figures.per_class(wb.Threshold(0.01).fit(tables["val"])(tables["test"])),
        "accuracy_against_size": lambda: wb.figures.accuracy_against_size(wb.SetIndex(tables["test"])),
        "reliability": lambda: wb.figures.reliability(tables["test"]),
    }[name]()
    made = {}
    exec(cached_data.code("aaaaaaaaaaaa", drawn), made)
    assert made["figure"].frame.equals(drawn.frame)


def test_a_first_start_asks_for_nothing_opens_the_browser_and_ends_in_peace_at_ctrl_c(own_port, tmp_path):
    port, opened, log = own_port(), tmp_path / "opened", tmp_path / "log"
    (tmp_path / "browser").write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    (tmp_path / "browser").chmod(0o755)
    # A home in which Streamlit was never started, where it would ask for an address to send mail to.
    environment = {"HOME": str(tmp_path), "WORKBENCH_HOME": str(tmp_path), "BROWSER": str(tmp_path / "browser")}
    with (
        log.open("w") as written,
        start_server(app_command(port, headless=False), port, environment, log=written) as app,
    ):
        app.server.send_signal(signal.SIGINT)
        assert app.server.wait(60) == 0
    assert opened.read_text().strip() == app.url
    assert "email" not in log.read_text().lower()
    assert "Abort" not in log.read_text()
    assert "ScriptRunContext" not in log.read_text()


def test_a_request_to_end_deletes_the_uploads_and_is_no_error(own_port, tmp_path):
    port, log = own_port(), tmp_path / "log"
    brings = (  # the server brings a file itself
        "import runpy, sys; from pathlib import Path; sys.path.insert(0, str(Path(sys.argv[1]).parent));"
        "import numpy, workbench; from session import cached_data; from views import sets;"
        "from workbench.store.imported_tables import keep_tables;"
        "table = workbench.LogitTable(numpy.eye(8), numpy.arange(8));"
        "keep_tables(table, title='secret', store=cached_data.claim_uploads()); sets.prepare = int;"
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    python, *command = app_command(port, headless=True)
    with (
        log.open("w") as written,
        start_server([python, "-c", brings, *command], port, {"WORKBENCH_HOME": str(tmp_path)}, log=written) as app,
    ):
        assert list((tmp_path / "uploads").glob("*/*/run.json"))
        app.server.terminate()
        assert app.server.wait(60) == 0
    assert list((tmp_path / "uploads").iterdir()) == []
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("n_classes", [99, 100, 101, 300])
def test_bars_of_single_classes_open_rows_and_those_of_many_classes_do_not(n_classes):
    table = wb.LogitTable(9 * np.eye(400, dtype=np.float32)[:n_classes], np.arange(n_classes))  # some without rows
    sets = wb.TopK(1).fit(table).sets(table)
    figure = wb.figures.per_class(sets)
    assert figure.histogram == (n_classes > 100)
    assert figure.opens_rows == (not figure.histogram)
    assert wb.figures.set_sizes(sets).opens_rows
    assert not wb.figures.accuracy_against_size(wb.SetIndex(table)).opens_rows


def test_the_point_of_G_lies_on_its_curve_also_where_ties_make_sets_larger(app_modules, tmp_path, monkeypatch):
    from controls import positions
    from session import cached_data

    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    stored = keep_tables(wb.LogitTable(np.zeros((40, 6)), np.arange(40) % 6), title="ties")
    at = positions.places(stored.key[: cached_data.SHORT])
    assert set(at.mean_size) == {0, 6}  # all classes tie: all of them, or none, reach a threshold
    assert set(at.K[: len(at.K_values)]) == set(at.K_values)  # the slider keeps what was asked


def test_the_slider_of_K_begins_below_one_where_rows_have_less_than_one_label(app_modules, tmp_path, monkeypatch):
    from controls import positions
    from session import cached_data

    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    scores = np.random.default_rng(0).normal(size=(80, 6))
    labels = np.where(np.arange(80) % 5 < 2, -1, scores.argmax(1))
    stored = keep_tables(wb.LogitTable(scores, labels), title="four in ten without a label")
    at = positions.places(stored.key[: cached_data.SHORT])
    assert at.sliders()[0].values[0] == 0.1
    asked = at.nearest("K", 0.6)
    assert (asked.value, asked.rule) == (0.6, wb.AverageK(0.6))
    assert at.mean_size[asked.place] == pytest.approx(0.6)
    assert at.nearest("K", 5.0).value == 5.0


def test_a_position_is_the_same_in_address_session_and_browser(app_modules, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    scores = np.random.default_rng(0).normal(size=(80, 6))
    stored = keep_tables(wb.LogitTable(scores, scores.argmax(1)), title="any")

    def script(key):
        import streamlit as st

        from controls.positions import places

        asked = places(key).current()
        asked.keep()
        assert places(key).current() == asked  # as the address has it
        address = dict(st.query_params)
        st.query_params.clear()
        assert places(key).current() == asked  # as the session has it
        assert places(key).nearest(**{"held": asked.held, "value": asked.value}) == asked  # as the browser tells it
        st.session_state["found"] = asked.held, asked.value, repr(asked.rule), address

    for address, found in {
        ("K", "2.03"): ("K", 2.0, repr(wb.AverageK(2)), {"K": "2"}),
        ("threshold", "0.1"): ("threshold", 0.1, repr(wb.Threshold(0.1)), {"threshold": "0.1"}),
        ("confidence", "0.9"): ("confidence", 0.9, repr(wb.LAC(0.9)), {"confidence": "0.9"}),
    }.items():
        app = AppTest.from_function(script, args=(stored.key[:12],), default_timeout=120)
        app.query_params = dict([address])
        app.run()
        assert not app.exception
        assert app.session_state["found"] == found


def test_the_photographs_of_the_same_rows_are_packed_once(monkeypatch, app_modules):
    from drawing import photos

    packed = []
    monkeypatch.setattr(photos.cached_data, "photographs", lambda _: np.zeros((9, 4, 4, 3), np.uint8))
    monkeypatch.setattr(photos, "data_url", lambda picture: packed.append(picture.shape) or f"data:{len(packed)}")
    rows = np.arange(3)
    assert [photos.sheet("packed once", each) for each in (rows, rows, rows[:2], rows)] == [
        "data:1",
        "data:1",
        "data:2",
        "data:1",
    ]
    assert packed == [(4, 12, 3), (4, 8, 3)]
