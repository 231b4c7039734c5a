"""plotly.js for the pages: served from here, and asked for by every page before Streamlit has made it.

Its cartesian bundle, 1.5 MB in place of the 4.8 MB in the plotly package, has all that our figures use and is read by a
browser in a third of the time. It comes from npm, plotly.js-cartesian-dist-min, in the version that plotly.py has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.responses import FileResponse

FILE = Path(__file__).with_name("plotly-cartesian.min.js")
CACHED = {"Cache-Control": "public, max-age=86400"}


def address() -> str:
    """Where the browser finds it."""
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"{'/' + base if base else ''}/{FILE.name}"


class PlotlyAhead:
    """ASGI middleware that answers for plotly.js and adds it to every HTML page.

    Without it the browser would begin to read plotly.js only when the first picture has arrived.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] == address():
            await FileResponse(FILE, headers=CACHED)(scope, receive, send)
        else:
            await self.app(scope, receive, _Announcing(send))


class _Announcing:
    """Sends on what it is given, and an HTML page as a whole with one more script."""

    def __init__(self, send: Any) -> None:
        self.send = send
        self.start: dict[str, Any] | None = None  # of a page, until all of it is here
        self.page = b""

    async def __call__(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start" and _is_html(message):
            self.start = message
        elif self.start is None:
            await self.send(message)
        else:
            self.page += message.get("body", b"")
            if not message.get("more_body", False):
                page = self.page.replace(b"</head>", f"{_script()}</head>".encode(), 1)
                MutableHeaders(scope=self.start)["content-length"] = str(len(page))
                await self.send(self.start)
                await self.send({"type": "http.response.body", "body": page})


def _script() -> str:
    return f'<script async src="{address()}" onerror="this.remove()"></script>'


def _is_html(start: dict[str, Any]) -> bool:
    return MutableHeaders(scope=start).get("content-type", "").startswith("text/html") and start["status"] == 200
