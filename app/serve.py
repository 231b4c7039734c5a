"""Serves the app as `streamlit run` does and, while the browser still loads its scripts, computes what it will show."""

from __future__ import annotations

import logging
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

from session.serving import Ahead, SameOrigin
from session.unsent import leave_no_orphans
from views import sets

OUTSIDE_A_PAGE = "streamlit.runtime.scriptrunner_utils.script_run_context"  # who warns that a spinner has no page


@asynccontextmanager
async def open_browser(_: st.App) -> AsyncIterator[None]:
    """Opens the browser, as `streamlit run` does for a plain script."""
    if not st.get_option("server.headless"):
        webbrowser.open(f"http://{st.get_option('server.address')}:{st.get_option('server.port')}")
    yield


def prepare() -> None:
    """Compute what the first page will show."""
    logging.getLogger(OUTSIDE_A_PAGE).addFilter(lambda _: False)  # its level Streamlit sets again
    with suppress(Exception):  # the page itself will say what is wrong
        sets.prepare()


leave_no_orphans()
app = st.App(
    Path(__file__).with_name("main.py"), middleware=[Middleware(SameOrigin), Middleware(Ahead)], lifespan=open_browser
)


if __name__ == "__main__":
    threading.Thread(target=prepare, daemon=True).start()
    with suppress(Abort):  # Ctrl-C is how it is meant to be stopped
        cli.main(["run", __file__, *sys.argv[1:]], prog_name="streamlit", standalone_mode=False)
