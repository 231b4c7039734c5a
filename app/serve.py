"""Serves the app as `streamlit run` does and, while the browser still opens, loads what the first page will need."""

from __future__ import annotations

import importlib
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import streamlit as st
from click import Abort
from starlette.middleware import Middleware
from streamlit.web import cli

from plotly_js import PlotlyAhead

FIRST_VIEW = "views.sets"  # it takes long to load: the first page would do so otherwise, with a person waiting for it
SWITCH = 0.0005  # seconds after which a thread that computes lets the others go on, so that what is ready is sent


@asynccontextmanager
async def open_browser(_: st.App) -> AsyncIterator[None]:
    """As `streamlit run` does for a plain script."""
    if not st.get_option("server.headless"):
        webbrowser.open(f"http://{st.get_option('server.address')}:{st.get_option('server.port')}")
    yield


app = st.App(Path(__file__).with_name("main.py"), middleware=[Middleware(PlotlyAhead)], lifespan=open_browser)


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH)
    threading.Thread(target=importlib.import_module, args=(FIRST_VIEW,), daemon=True).start()
    with suppress(Abort):  # Ctrl-C is how it is meant to be stopped
        cli.main(["run", __file__, *sys.argv[1:]], prog_name="streamlit", standalone_mode=False)
