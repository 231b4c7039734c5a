"""From one view to another: what was chosen stays chosen, and what is clicked in one view opens another.

The state of a new page is put into its address and into the state of its widgets. The address alone would not do:
Streamlit keeps out of it what widgets of the old page are bound to, and a default in it does not undo an earlier choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import streamlit as st

from session import cached_data
from session.address import came_back

# Of a session: address → page, as Streamlit has them; the pages of the table; the page that is shown; what is asked of the next.
MADE, TABLE, VIEW, ASKED = "made pages", "pages", "view", "asked"
LAST_RUN = "last run"  # of a session: what was chosen when a run was last asked for
RESERVED = "home"  # by Streamlit, for the page at the bare address, which is not found there
FIRST, OF_SETS = "start", "sets"  # the page at the bare address, and the view that links to it once meant


@dataclass(frozen=True)
class Page:
    """A view: its address, its name, its symbol (of Google's Material Symbols) and the function that draws it.

    `parts` are what can be chosen between at its top. `rules` says whether a rule can be chosen in it, which is then taken
    along, and `slices` whether it can show the rows of a slice alone; `opens_runs` whether a run that was trained just now
    can be opened in it, `of_run` whether it is about a run at all. `group` is its heading in the navigation.
    """

    url: str
    title: str
    icon: str
    draw: Callable[[], None]
    parts: tuple[str, ...] = ()
    rules: bool = False
    slices: bool = False
    opens_runs: bool = False
    of_run: bool = True
    group: str = ""

    def made(self, **more: Any) -> Any:
        """The page as Streamlit has it."""
        return st.Page(self.draw, title=self.title, **{"icon": f":material/{self.icon}:", "url_path": self.url} | more)


def choose(pages: Sequence[Page]) -> tuple[Page, Any]:
    """The navigation of the app, made from the table of its pages: the requested page, as we and as Streamlit have it.

    The first page of the table is the default, and has a name, too. A link without a view that names a run is
    older than that page, and means its sets.
    """
    first = pages[0]
    shown = {first.url: first.made(url_path=RESERVED, default=True), **{page.url: page.made() for page in pages[1:]}}
    chosen = st.navigation([*shown.values(), first.made(icon=None, visibility="hidden")], expanded=True)
    st.session_state[MADE], st.session_state[TABLE] = shown, pages
    found = next(page for page in pages if page.title == chosen.title)
    if chosen.url_path == "" and "run" in st.query_params:
        whole = {name: st.query_params.get_all(name) for name in st.query_params}
        st.switch_page(shown[OF_SETS], query_params=whole)
    return found, chosen


def group_headings(pages: Sequence[Page]) -> str:
    """Style that writes the heading of each group above its first page (Streamlit's own sections are not valid lists)."""
    first = {page.group: place for place, page in reversed(list(enumerate(pages, 1))) if page.group}
    return "".join(
        f'[data-testid="stSidebarNavItems"] > li:nth-child({place}) {{ --group: "{group}"; }}'
        for group, place in first.items()
    )


def arrive(page: Any, *kept: tuple[Mapping[str, Any], Mapping[str, Any]] | None) -> None:
    """Take over, before a page is drawn, what another page asked of it, or else what was `kept` from the last such views.

    What is kept is the state of widgets, and what of it stands in the address. Who goes back finds what was chosen there.
    """
    before, st.session_state[VIEW] = st.session_state.get(VIEW), page.url_path
    state, address = st.session_state.pop(ASKED, None), {}
    arrived = before not in (None, page.url_path) and not came_back()
    if state is None and any(kept) and arrived:
        state = {name: value for each in kept if each for name, value in each[0].items()}
        address = {name: value for each in kept if each for name, value in each[1].items()}
    if state is not None:
        st.session_state.update(state)
        # Once more: Streamlit writes into the address only what it knows from an earlier run.
        address |= {name: st.query_params.get_all(name) for name in st.query_params}
        st.switch_page(page, query_params=address)


def go_to(url: str, query: Mapping[str, Any], widgets: Mapping[str, Any]) -> NoReturn:
    """Show another page: `query` stands in its address, and `widgets` is the state of its widgets."""
    st.session_state[ASKED] = dict(widgets)
    st.switch_page(st.session_state[MADE][url], query_params=dict(query))


def open_elsewhere(key: str) -> None:
    """Buttons that show a run of the store in other views; in Compare only where there is a run to compare it with."""
    alone = not cached_data.comparable(key[: cached_data.SHORT])
    for page in st.session_state[TABLE]:
        why = "No other run has the same test rows." if alone and page.url == "compare" else None
        if page.opens_runs and st.button(
            f"Open in {page.title}", icon=f":material/{page.icon}:", on_click=choose_run, args=(key,),
            disabled=why is not None, help=why,
        ):  # fmt: skip
            query = {"run": key[: cached_data.SHORT]}
            st.switch_page(st.session_state[MADE][page.url], query_params=query)


def show_run(key: str) -> None:
    """Show a run: where we are, if this view is of a run, or else its sets."""
    here = next(page for page in st.session_state[TABLE] if page.url == (st.session_state[VIEW] or FIRST))
    if not here.of_run:
        go_to(OF_SETS, {"run": key[: cached_data.SHORT]}, {"run": key[: cached_data.SHORT]})


def choose_run(key: str) -> None:
    """The run that every view is about from now on."""
    st.session_state["run"] = key[: cached_data.SHORT]
