"""The tables of the papers: what they print, what was reproduced of it here, and the command that does so."""

from __future__ import annotations

import pandas as pd
import streamlit as st

import live
import workbench as wb
from controls.bar import bar
from drawing.figures import browser_content
from drawing.handout import handout
from session import messages
from session.address import bound, one_of
from workbench.claims import PaperTable, Reproduction
from workbench.claims.render import OURS, grid

LINE, AROUND = 24, 150  # pixels of a cell in the picture, and of what is around all of them
SCALES = {False: "the scale of the paper", True: "a reduced scale"}


@st.fragment
@messages.friendly
def body(dark: bool) -> None:
    """All that follows the controls."""
    tables = {called(table): table for table in wb.claims.TABLES.values()}
    first = list(tables).index(called(wb.claims.TABLES["001 Table 2"]))
    with bar():
        table = tables[st.selectbox("Table", list(tables), first, **bound("table", one_of(tables)))]
    found = {SCALES[one.small]: one for one in table.reproductions()}
    shown = None
    if len(found) > 1:
        scale = st.segmented_control(
            "Ours", list(found), default=next(iter(found)), required=True, **bound("scale", one_of(found))
        )
        shown = found[scale]
    elif found:
        (shown,) = found.values()
    st.markdown(f"**{messages.plain(table.title)}** · {messages.plain(table.citation)}")
    cells(table, shown)
    if shown is not None:
        picture(shown, dark)
    how(table)


def called(table: PaperTable) -> str:
    """A table as the list of all, and the address, name it."""
    return f"{table.name} · {table.paper}: {table.title}"


def cells(table: PaperTable, ours: Reproduction | None) -> None:
    """The table as it is printed, ours beside theirs."""
    heading, lines = grid(table, None if ours is None else ours.frame)
    above = [f"{OURS}: {heading[place - 1]}" if name == OURS else name for place, name in enumerate(heading)]
    frame = pd.DataFrame(lines, columns=[above[0] or " ", *above[1:]])
    st.dataframe(frame, hide_index=True, key=f"cells of {table.name}")
    made = table if ours is None else ours
    with st.container(horizontal=True):
        for label, text, ending in (("Markdown", made.markdown, "md"), ("LaTeX", made.latex, "tex")):
            st.download_button(label, text, f"table.{ending}", "text/plain", type="tertiary")


@messages.friendly
def picture(ours: Reproduction, dark: bool) -> None:
    """Ours beside theirs, with their intervals."""
    if not ours.frame["ours"].notna().any():
        st.caption(messages.plain(f"Nothing to draw: {ours.conditions}."))
        return
    figure = ours.figure
    high = AROUND + LINE * figure.frame["cell"].nunique()
    with st.container(key="figure-reproduced"):
        live.prepared_drawing(browser_content(figure, dark, height=high), key="drawing reproduced")
        handout("reproduced", None, lambda: figure, dark)


def how(table: PaperTable) -> None:
    """The protocol in words, and what to type."""
    words = table.conditions()
    words.pop("command", None)
    st.markdown("\n".join(f"- *{name}*: {messages.plain(text)}" for name, text in words.items()))
    if table.not_run:
        return
    scales = [True, False] if table.small is not None else [False]
    for command in dict.fromkeys(table.command(small) for small in scales):
        st.code(command, language=None)
