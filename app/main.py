"""The frame of the app: navigation, the chosen run, uploads, and messages instead of stack traces.

Started by `workbench app`. What matters is in the address of the page, so a link shows another person the same thing.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from controls import rules, share_link, slices
from controls.day_and_night import switch_day_and_night
from drawing.upload import offer_to_keep, open_file
from pages import PAGES
from session import cached_data, navigation, save_page
from session.address import came_back, look_back, say_what_was_dropped
from session.messages import friendly, plain, without_places
from workbench import glossary
from workbench.figures.base import counted
from workbench.figures.style import theme

HERE = Path(__file__).parent


@friendly
def choose_run(view: navigation.Page) -> str | None:
    """The run that the view is about, kept in the address as `run`; a warning if the address asks for one that is not here."""
    requested = st.query_params.get("run")
    if requested is not None:
        cached_data.take_up(requested)
    runs = cached_data.runs()
    names = cached_data.named(runs)
    requested, broken = st.query_params.get("run"), cached_data.unreadable()
    warning = None
    if requested is not None and requested not in names:
        why = "cannot be read" if requested in broken else "is not here"
        warning = f"The link asks for run {plain(requested[:64])}, which {why}."
    if came_back() and requested in names:
        st.session_state["run"] = requested
    if st.session_state.get("run") not in names:  # the first visit, or the run was deleted
        order = [requested, st.session_state.get(navigation.LAST_RUN)]
        known = [key for key in order if key in names]
        st.session_state["run"] = known[0] if known else next(filter(cached_data.opens, cached_data.at_first()), None)
    if names:
        st.selectbox("Run", list(names), format_func=names.__getitem__, key="run")
        key = st.query_params["run"] = st.session_state[navigation.LAST_RUN] = st.session_state["run"]
        st.set_page_config(page_title=f"{view.title} · {names[key]}")
    return warning


@friendly
def about_run() -> None:
    """The chosen run in words, the runs that cannot be read, and an uploader."""
    with st.popover("About this run, and other files", icon=":material/folder_open:", type="tertiary"):
        if (key := st.session_state.get("run")) is not None:
            st.markdown(plain(cached_data.in_words(key)))
            offer_to_keep(key)
        if broken := cached_data.unreadable():
            with st.expander(f"{counted(len(broken), 'run')} cannot be read", icon=":material/report:"):
                for why in broken.values():
                    st.caption(plain(without_places(why)))
        st.markdown("**Open a file of scores**")
        open_file()


@st.dialog("Words and symbols", width="large")
def words() -> None:
    """The glossary that app, notebooks and docs share."""
    st.dataframe(glossary.frame(), hide_index=True, width="stretch")


st.set_page_config(
    page_title="workbench", page_icon=str(HERE / "icon.svg"), layout="wide", initial_sidebar_state="expanded"
)
st.logo(str(HERE / "icon.svg"), size="large")
colours = theme(st.context.theme.type == "dark")
look = f":root {{ --wb-paper: {colours.paper}; --wb-ink: {colours.ink}; --wb-grid: {colours.grid}; }}"
st.html(f"<style>{look}{navigation.group_headings(PAGES)}</style>")
view, page = navigation.choose(PAGES)
look_back(page)
navigation.arrive(page, rules.last_rule() if view.rules else None, slices.last_slice() if view.slices else None)
st.set_page_config(page_title=f"{view.title} · workbench")
with st.sidebar, st.container(key="rail"):
    if st.button("Words and symbols", icon=":material/dictionary:", type="tertiary", help="Words and symbols"):
        words()
    share_link.copy_and_reset()
    switch_day_and_night(colours.name == "dark")
    save_page.offer(view.title, dark=colours.name == "dark")
slices.carry()
warning = None
with st.container(key="bar-run", horizontal=True, gap="small", vertical_alignment="center"):
    if view.of_run:
        warning = choose_run(view)
        about_run()
with st.container(key="above"):
    if warning:
        st.warning(warning, icon=":material/link_off:")
friendly(page.run)()
with st.container(key="above-dropped"):
    say_what_was_dropped()
