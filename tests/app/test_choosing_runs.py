"""Choosing several runs: all at first, then those chosen, and all again for a run on other rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

APP = Path(__file__).resolve().parents[2] / "app"


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(APP))
    monkeypatch.setattr("session.cached_data.opens", lambda key: True)  # there are no such runs to open

    def script():
        import streamlit as st

        from controls.runs import chosen_runs

        rows = {"oak": {"elm": "an elm", "ash": "an ash"}, "fern": {"moss": "a moss"}}
        st.session_state.setdefault("run", "oak")
        key = st.session_state["run"]
        st.write(" ".join(chosen_runs("Compared with", key, rows[key])))

    return AppTest.from_function(script, default_timeout=120)


def test_all_runs_are_chosen_at_first_and_a_choice_is_kept_in_the_address(page):
    page.run()
    assert page.markdown[0].value == "elm ash"
    page.multiselect[0].set_value(["ash"]).run()
    assert page.markdown[0].value == "ash"
    assert page.query_params["with"] == "ash"
    page.multiselect[0].set_value([]).run()
    assert page.markdown[0].value == ""


def test_a_link_chooses_and_what_it_asks_for_in_vain_counts_for_nothing(page):
    page.query_params["with"] = "ash,oleander"
    page.run()
    assert page.markdown[0].value == "ash"


def test_for_a_run_on_other_rows_all_of_its_own_are_chosen_again(page):
    page.run()
    page.multiselect[0].set_value(["ash"]).run()
    page.session_state["run"] = "fern"
    page.run()
    assert page.markdown[0].value == "moss"
