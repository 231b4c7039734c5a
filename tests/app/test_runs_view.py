"""The view of all runs: found, tagged, renamed, pinned, removed, and brought back. Without a browser."""

from __future__ import annotations

import pytest
from browsing import KEYS

from workbench.store.marks import pin

pytestmark = pytest.mark.writes


def choose(app, *names):
    """Choose lines of the table by the names of their runs."""
    shown = app.dataframe[0].value["name"].tolist()
    app.session_state["chosen runs"] = {"selection": {"rows": [shown.index(name) for name in names], "columns": []}}
    app.run()
    assert not app.exception
    return {button.label: button for button in app.button}


def test_runs_are_found_by_a_part_of_what_is_known_of_them(drawn):
    app = drawn("runs")
    assert {"garden", "sharper", "garden · Noised top-K"} <= {*app.dataframe[0].value["name"]}
    app.text_input(key="find").set_value("noised").run()
    assert app.dataframe[0].value["name"].tolist() == ["garden · Noised top-K"]
    app.text_input(key="find").set_value("no such thing").run()
    assert app.info[0].value == "No run is like that."


def test_the_pinned_run_comes_first_and_opens_first(drawn, store):
    pin(store, KEYS["many labels"])
    app = drawn("runs")
    assert app.dataframe[0].value["name"].iloc[0] == "many labels"
    assert "Or begin with many labels" in [button.label for button in drawn("start").button]
