"""The frame of the app: navigation, the chosen run, files people bring, and messages instead of stack traces.

Started by `workbench app`. What matters is in the address of the page, so a link shows another person the same thing.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from controls import link, rules
from controls.bringing import offer_to_keep, open_file
from pages import PAGES
from session import navigation, reading
from session.address import came_back, look_back, say_what_was_dropped, translate
from session.messages import friendly, plain, without_places
from session.serving import loaded
from workbench import glossary
from workbench.figures.base import counted
from workbench.figures.style import theme

HERE = Path(__file__).parent


@friendly
def choose_run(view: navigation.Page) -> None:
    """The run that the view is about, chosen in the sidebar and kept in the address as `run`."""
    asked = st.query_params.get("run")
    if asked is not None:
        reading.take_up(asked)
    runs = reading.runs()
    names = reading.named(runs)
    translate(reading.former_keys(runs) | rules.FORMERLY)
    asked, broken = st.query_params.get("run"), reading.unreadable()
    with st.container():  # always there, so that nothing below changes its place when the warning goes
        if asked is not None and asked not in names:
            why = "cannot be read" if asked in broken else "is not here"
            st.warning(f"The link asks for run {plain(asked[:64])}, which {why}.", icon=":material/link_off:")
    if came_back() and asked in names:
        st.session_state["run"] = asked
    if st.session_state.get("run") not in names:  # the first visit, or somebody deleted the run
        order = [asked, st.session_state.get(navigation.LAST_RUN)]
        known = [key for key in order if key in names]
        st.session_state["run"] = known[0] if known else next(filter(reading.opens, reading.at_first()), None)
    if names:
        st.selectbox("Run", list(names), format_func=names.__getitem__, key="run")
        key = st.query_params["run"] = st.session_state[navigation.LAST_RUN] = st.session_state["run"]
        st.caption(plain(reading.in_words(key)))
        offer_to_keep(key)
        st.set_page_config(page_title=f"{view.title} · {names[key]}")


def set_aside() -> None:
    """The runs that cannot be read, by name; all others are shown as if these were not there."""
    if broken := reading.unreadable():
        with st.expander(f"{counted(len(broken), 'run')} cannot be read", icon=":material/report:"):
            for why in broken.values():
                st.caption(plain(without_places(why)))


@st.dialog("Words and symbols", width="large")
def words() -> None:
    """The glossary that app, notebooks and docs share."""
    st.dataframe(glossary.frame(), hide_index=True, width="stretch")


st.set_page_config(page_title="workbench", page_icon=str(HERE / "icon.svg"), layout="wide")
colours = theme(st.context.theme.type == "dark")
css = (HERE / "frame.css").read_text(encoding="utf-8")
st.html(
    f"<style>:root {{ --wb-paper: {colours.paper}; --wb-ink: {colours.ink}; --wb-grid: {colours.grid}; }}\n{css}</style>"
)
view, page = navigation.choose(PAGES)
look_back(page)
navigation.arrive(page, rules.kept() if view.rules else None)
st.set_page_config(page_title=f"{view.title} · workbench")
with st.sidebar:
    if view.of_run:
        choose_run(view)
        set_aside()
        with st.expander("Open a file of logits", icon=":material/upload_file:"):
            open_file()
    if st.button("Words and symbols", icon=":material/dictionary:", type="tertiary"):
        words()
    link.copy_and_reset()
above = st.container()
friendly(page.run)()
with above:
    say_what_was_dropped()
loaded(view.title)
