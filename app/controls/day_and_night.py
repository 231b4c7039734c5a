"""The switch between daylight and night. Without a choice the page follows the machine."""

from __future__ import annotations

from typing import Any

import streamlit as st

from session.serving import CHOSEN_THEME

# Streamlit reads its theme once, when a page is loaded; the address holds what is seen, so that it is seen again. Whoever
# chooses what the machine says has no choice any more: the page follows the machine again.
SWITCH = f"""
export default function ({{ data, parentElement }}) {{
    const button = parentElement.querySelector("button");
    const words = data.dark ? "Daylight colours" : "Night colours";
    button.title = words;
    button.setAttribute("aria-label", words);
    button.querySelector("span").textContent = data.dark ? "light_mode" : "dark_mode";
    button.onclick = () => {{
        const system = matchMedia("(prefers-color-scheme: dark)").matches;
        if (system === !data.dark) localStorage.removeItem("{CHOSEN_THEME}");
        else localStorage.setItem("{CHOSEN_THEME}", data.dark ? "Light" : "Dark");
        location.reload();
    }};
}}
"""
STYLE = """
.wb-night { display: grid; place-items: center; width: 100%; color: inherit; cursor: pointer; }
.wb-night span { font: 1.25rem/1 "Material Symbols Rounded"; font-feature-settings: "liga"; white-space: nowrap; }
"""


def switch_day_and_night(dark: bool) -> None:
    """A button that shows the app by night, or by day."""
    _element()(data={"dark": dark}, key="day and night")


@st.cache_resource(show_spinner=False)
def _element() -> Any:
    """The component."""
    html = '<button type="button" class="wb-night"><span aria-hidden="true"></span></button>'
    return st.components.v2.component("day_and_night", html=html, js=SWITCH, css=STYLE, isolate_styles=False)
