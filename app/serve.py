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

from ahead import Ahead

SWITCH = 0.0005  # seconds after which a thread that computes lets the others go on, so that what is ready is sent
OUTSIDE_A_PAGE = "streamlit.runtime.scriptrunner_utils.script_run_context"  # who warns that a spinner has no page


@asynccontextmanager
async def starting(_: st.App) -> AsyncIterator[None]:
    """Opens the browser, as `streamlit run` does for a plain script, and begins with the first page."""
    if not st.get_option("server.headless"):
        webbrowser.open(f"http://{st.get_option('server.address')}:{st.get_option('server.port')}")
    threading.Thread(target=prepare, daemon=True).start()
    yield


def prepare() -> None:
    from views import sets

    logging.getLogger(OUTSIDE_A_PAGE).setLevel(logging.ERROR)
    with suppress(Exception):  # the page itself will say what is wrong
        sets.prepare()


app = st.App(Path(__file__).with_name("main.py"), middleware=[Middleware(Ahead)], lifespan=starting)


if __name__ == "__main__":
    import views.sets  # noqa: F401  (it takes long to load: the first page would do so otherwise, with a person waiting)

    sys.setswitchinterval(SWITCH)
    with suppress(Abort):  # Ctrl-C is how it is meant to be stopped
        cli.main(["run", __file__, *sys.argv[1:]], prog_name="streamlit", standalone_mode=False)
