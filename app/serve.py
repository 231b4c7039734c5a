"""Serves the app as `streamlit run` does and, while the browser still loads its scripts, computes what it will show."""

from __future__ import annotations

import gc
import logging
import os
import signal
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

from session import cached_data
from session.protection import OneServer, SecurityHeaders, TokenGate
from session.serving import Ahead, SameOrigin
from streamlit_patches import check, hide_paths, keep_steps, leave_no_orphans
from views import sets

OUTSIDE_A_PAGE = "streamlit.runtime.scriptrunner_utils.script_run_context"  # who warns that a spinner has no page


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Open the browser, as `streamlit run` does for a plain script; delete the uploads when the server ends."""
    if not st.get_option("server.headless"):
        webbrowser.open(f"http://{st.get_option('server.address')}:{st.get_option('server.port')}")
    with cached_data.HELD:
        yield


def prepare() -> None:
    """Compute what the first page will show, and take what is loaded by then from the collector of garbage.

    It stops all sessions while it looks at every object: most of them are modules and classes, which stay.
    """
    logging.getLogger(OUTSIDE_A_PAGE).addFilter(lambda _: False)  # its level Streamlit sets again
    with suppress(Exception):  # the page itself will say what is wrong
        sets.prepare()
    gc.collect()
    gc.freeze()


check()
leave_no_orphans()
keep_steps()
hide_paths()
app = st.App(
    Path(__file__).with_name("main.py"),
    middleware=[Middleware(layer) for layer in (SecurityHeaders, OneServer, SameOrigin, TokenGate, Ahead)],
    lifespan=lifespan,
)


if __name__ == "__main__":
    # The server shuts down and then raises SIGTERM once more. Nothing waits for pictures that are still being made.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    threading.Thread(target=prepare, daemon=True).start()
    with suppress(Abort):  # Ctrl-C is how it is meant to be stopped
        cli.main(["run", __file__, *sys.argv[1:]], prog_name="streamlit", standalone_mode=False)
