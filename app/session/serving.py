"""Additions to Streamlit's server: it sends ahead, and refuses pages from elsewhere.

plotly.js is asked for in the head of every page; otherwise the browser would begin to read it when the first picture has
arrived.

Streamlit's own scripts are a hundred files. Past the layers of its server they are there a quarter of a second sooner.
Starlette's `StaticFiles` in their place takes 170 to 270 ms for them, 75 ms of it at work, where `Ahead` takes 4 to 9: it
looks at the disk for every file in a thread of its own, while these are read once asked for and never change.
"""

from __future__ import annotations

import mimetypes
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders

from streamlit_patches import HISTORY, server_script, theme_script
from workbench.drawings import pad
from workbench.figures.browser import PLOTLY

CHOSEN_THEME = "workbench theme"  # in the storage of a browser: "Light" or "Dark"; nothing: as the machine has it
# In the head of every page: nothing moves when the first words arrive.
FRAME = Path(__file__).parents[1] / "frame.css"
LOADING = Path(__file__).with_name("loading.css")
SCRIPTS = tuple(Path(__file__).with_name(name) for name in ("reconnect.js", "loading.js"))
OF_STREAMLIT = Path(st.__file__).parent / "static" / "static"  # their names hold a hash of their content
TYPES = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}  # what a machine calls them may differ
A_DAY, FOR_EVER = "public, max-age=86400", "public, immutable, max-age=31536000"
Message = dict[str, Any]
AHEAD = ThreadPoolExecutor(1, thread_name_prefix="ahead")  # one: the person in front of the page comes first


def plotly_address() -> str:
    """Address of plotly.js."""
    return f"{_base()}/{PLOTLY.name}"


def pad_addresses() -> tuple[str, str]:
    """Addresses of the weights of the network for drawn symbols, and of the symbols."""
    return f"{_base()}/{pad.WEIGHTS.name}", f"{_base()}/{pad.SYMBOLS.name}"


def _base() -> str:
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"/{base}" if base else ""


class Ahead:
    """ASGI middleware that answers for these files itself and adds plotly.js and what `_scripts` has to every HTML page."""

    def __init__(self, app: Any) -> None:
        self.app = app

    @cached_property
    def files(self) -> dict[str, Path]:
        """Address → file. What is not here, Streamlit answers for."""
        of_streamlit = {
            f"{_base()}/static/{file.relative_to(OF_STREAMLIT).as_posix()}": file
            for file in OF_STREAMLIT.rglob("*")
            if file.is_file()
        }
        weights, symbols = pad_addresses()
        return of_streamlit | {plotly_address(): PLOTLY, weights: pad.WEIGHTS, symbols: pad.SYMBOLS}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "GET":
            if (file := self.files.get(scope["path"])) is not None:
                await _send_file(file, send)
                return
            scope, send = _as_it_is(scope), _Announcing(send)
        await self.app(scope, receive, send)


def _as_it_is(scope: dict[str, Any]) -> dict[str, Any]:
    """A request for a page, which may not come compressed: nothing could be added to it."""
    headers = MutableHeaders(raw=list(scope["headers"]))
    if "text/html" in headers.get("accept", ""):
        del headers["accept-encoding"]
    return {**scope, "headers": headers.raw}


async def _send_file(file: Path, send: Any) -> None:
    content = file.read_bytes()
    headers = {
        "content-type": TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream",
        "content-length": str(len(content)),
        "cache-control": FOR_EVER if file.is_relative_to(OF_STREAMLIT) else A_DAY,
        "x-content-type-options": "nosniff",
    }
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": encoded})
    await send({"type": "http.response.body", "body": content})


class _Announcing:
    """Sends on what it is given, and an HTML page as a whole with a few more scripts."""

    def __init__(self, send: Any) -> None:
        self.send = send
        self.start: Message | None = None  # of a page, until all of it is here
        self.page = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_html(message):
            self.start = message
        elif self.start is None:
            await self.send(message)
        else:
            self.page += message.get("body", b"")
            if not message.get("more_body", False):
                page = self.page.replace(b"</head>", f"{_scripts()}</head>".encode(), 1)
                MutableHeaders(scope=self.start)["content-length"] = str(len(page))
                await self.send(self.start)
                await self.send({"type": "http.response.body", "body": page})


def _scripts() -> str:
    """The frame, the chosen theme, a shorter history, the way back to a server that was started anew, and plotly.js."""
    frame, loading, *scripts = (file.read_text(encoding="utf-8") for file in (FRAME, LOADING, *SCRIPTS))
    styles = f'<style>{frame}</style><style id="wb-loading">{loading}</style>'
    patches = server_script(_base()) + theme_script(CHOSEN_THEME) + HISTORY
    own = "".join(f"<script>{script}</script>" for script in (patches, *scripts))
    return f'{styles}{own}<script async src="{plotly_address()}" onerror="this.remove()"></script>'


def _is_html(start: Message) -> bool:
    return MutableHeaders(scope=start).get("content-type", "").startswith("text/html") and start["status"] == 200


class SameOrigin:
    """ASGI middleware that refuses a websocket of a page from elsewhere.

    Streamlit refuses it too, but asks an address on the internet first whether the page may come from this very machine.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "websocket" and _from_elsewhere(Headers(scope=scope)):
            await receive()  # its wish to connect
            await send({"type": "websocket.close"})
        else:
            await self.app(scope, receive, send)


def _from_elsewhere(headers: Headers) -> bool:
    """Whether a browser says that another page than ours is asking; who says nothing is no browser."""
    origins = headers.getlist("origin")
    return any(urlsplit(origin).netloc != headers.get("host") for origin in origins)
