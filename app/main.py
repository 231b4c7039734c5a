"""The frame of the app: navigation, the chosen run, files people bring, and messages instead of stack traces.

Started by `workbench app`. What matters is in the address of the page, so a link shows another person the same thing.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from controls import rules
from controls.runs import told_apart
from pages import PAGES
from session import navigation, reading
from session.address import came_back, look_back, say_what_was_dropped, translate
from session.messages import friendly, plain, without_places
from session.serving import loaded
from workbench import glossary
from workbench.figures.base import counted
from workbench.figures.style import theme
from workbench.tables.links import LINKS

HERE = Path(__file__).parent


@friendly
def choose_run() -> None:
    """The run every view is about, chosen in the sidebar and kept in the address as `run`."""
    runs = reading.runs()
    titles = told_apart({run.key[: reading.SHORT]: run.title for run in runs})
    translate(reading.former_keys(runs))
    asked, broken = st.query_params.get("run"), reading.unreadable()
    with st.container():  # always there, so that nothing below changes its place when the warning goes
        if asked is not None and asked not in titles:
            why = "cannot be read" if asked in broken else "is not here"
            st.warning(f"The link asks for run {plain(asked[:64])}, which {why}.", icon=":material/link_off:")
    if came_back() and asked in titles:
        st.session_state["run"] = asked
    if st.session_state.get("run") not in titles:  # the first visit, or somebody deleted the run
        st.session_state["run"] = asked if asked in titles else next(filter(reading.opens, titles), None)
    if titles:
        st.selectbox("Run", list(titles), format_func=titles.__getitem__, key="run")
        st.query_params["run"] = st.session_state["run"]
        st.caption(plain(reading.in_words(st.session_state["run"])))


def set_aside() -> None:
    """The runs that cannot be read, by name; all others are shown as if these were not there."""
    if broken := reading.unreadable():
        with st.expander(f"{counted(len(broken), 'run')} cannot be read", icon=":material/report:"):
            for why in broken.values():
                st.caption(plain(without_places(why)))


def open_file() -> None:
    """Bring a file of logits: it becomes a run like any other."""
    with st.expander("Open a file of logits", icon=":material/upload_file:"):
        file = st.file_uploader("Scores and labels", type=list(reading.FILE_TYPES), help=reading.FILE_HELP, key="file")
        if file is not None:
            _bring(file.file_id, file.name, file.getvalue(), **_what_it_holds())


def _what_it_holds() -> dict[str, str | None]:
    """What a file leaves open, in the words of its owner; None where it says so itself."""
    with st.popover("Say what it holds", icon=":material/help:", width="stretch"):
        scores = st.text_input(
            "Scores are called", key="file_scores", help="An array, a part of one (logits[0]), or p_*"
        )
        truth = st.text_input("Labels are called", key="file_labels", help="An array or a column")
        link = st.selectbox("Link", list(LINKS), index=None, key="file_link", placeholder="as the numbers call for")
    return {"scores": scores or None, "labels": truth or None, "link": link}


@friendly
def _bring(file_id: str, name: str, content: bytes, **said: str | None) -> None:
    brought = reading.bring(file_id, name, content, **said)
    st.success(plain(brought.understood), icon=":material/check_circle:")
    st.button("Show it", on_click=navigation.choose_run, args=(brought.key,), type="primary", width="stretch")


@st.dialog("Words and symbols", width="large")
def words() -> None:
    """The glossary that app, notebooks and docs share."""
    st.dataframe(glossary.frame(), hide_index=True, width="stretch")


st.set_page_config(page_title="workbench", page_icon=str(HERE / "icon.svg"), layout="wide")
colours = theme(st.context.theme.type == "dark")
css = (HERE / "frame.css").read_text(encoding="utf-8")
st.html(f"<style>:root {{ --wb-paper: {colours.paper}; --wb-ink: {colours.ink}; }}\n{css}</style>")
view, page = navigation.choose(PAGES)
look_back(page)
navigation.arrive(page, rules.kept() if view.rules else None)
with st.sidebar:
    choose_run()
    set_aside()
    open_file()
    if st.button("Words and symbols", icon=":material/dictionary:", type="tertiary"):
        words()
above = st.container()
friendly(page.run)()
with above:
    say_what_was_dropped()
loaded(view.title)
