"""The address of the page as something to give away, and the way back to where every control stood at first."""

from __future__ import annotations

from typing import Any

import streamlit as st

from session.address import reset

COPY = """
export default function ({ parentElement }) {
    const button = parentElement.querySelector("button");
    const copied = () => {
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy link"; }, 2000);
    };
    button.onclick = () => {
        if (navigator.clipboard) return navigator.clipboard.writeText(location.href).then(copied);
        const text = document.createElement("textarea");  // where the page is not on this machine and not encrypted
        text.value = location.href;
        document.body.append(text);
        text.select();
        document.execCommand("copy");
        text.remove();
        copied();
    };
}
"""
STYLE = """
.wb-copy { font: inherit; font-size: 0.875rem; color: inherit; background: none; cursor: pointer; width: 100%;
    min-height: 2.5rem; border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 0.5rem); }
.wb-copy:hover, .wb-copy:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
"""


def copy_and_reset() -> None:
    """Two buttons: the link to what is seen, and the defaults of all controls of the view."""
    with st.container(horizontal=True, vertical_alignment="center", key="link"):
        _copying()(key="copy link")
        st.button(
            "Reset", icon=":material/restart_alt:", on_click=reset, width="stretch",
            help="All controls of this view go back to where they stood at first; the run stays.",
        )  # fmt: skip


@st.cache_resource(show_spinner=False)
def _copying() -> Any:
    """The component."""
    html = '<button type="button" class="wb-copy" title="The link to what is seen here">Copy link</button>'
    return st.components.v2.component("copy_link", html=html, js=COPY, css=STYLE, isolate_styles=False)
