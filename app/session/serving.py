"""What our server does beside what Streamlit's does: it sends ahead, refuses pages from elsewhere, and keeps what it loaded.

plotly.js is asked for in the head of every page; otherwise the browser would begin to read it when the first picture has
arrived. It is the cartesian bundle, 1.5 MB in place of the 4.8 MB in the plotly package: it has all that our figures use
and is read in a third of the time. It comes from npm, plotly.js-cartesian-dist-min, in the version that plotly.py has.

Streamlit's own scripts are a hundred files. Past the layers of its server they are there a quarter of a second sooner.
Starlette's `StaticFiles` in their place takes 170 to 270 ms for them, 75 ms of it at work, where `Ahead` takes 4 to 9: it
looks at the disk for every file in a thread of its own, while these are read once asked for and never change.
"""

from __future__ import annotations

import gc
import mimetypes
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders

PLOTLY = Path(__file__).parents[1] / "live" / "plotly-cartesian.min.js"
RECONNECT = Path(__file__).with_name("reconnect.js")
OF_STREAMLIT = Path(st.__file__).parent / "static" / "static"  # their names hold a hash of their content
TYPES = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}  # what a machine calls them may differ
A_DAY, FOR_EVER = "public, max-age=86400", "public, immutable, max-age=31536000"
# Back undoes the last move of a person. Streamlit makes an entry in the history for some changes of the address and none for
# others, as of a bound widget: here the first change after a touch or a key makes one, and what completes it does not. The
# address of another view comes a moment before its path: both are one entry, and the one before it keeps the address it had
# when somebody left it.
BACK = """
let left = location.href, moved = false, entered = false;
for (const input of ["pointerdown", "keydown"])
    addEventListener(input, () => { left = location.href; moved = true; entered = false; }, true);
const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
history.pushState = history.replaceState = (state, title, url) => {
    const to = new URL(url ?? "", location), here = to.pathname === location.pathname;
    if (to.href === location.href) return replace(state, title, url);
    if (!here && !entered && new URL(left).pathname === location.pathname) replace(history.state, "", left);
    (here ? !moved : entered) ? replace(state, title, url) : push(state, title, url);
    entered = here && (moved || entered);
    moved = false;
};
"""
Message = dict[str, Any]
AHEAD = ThreadPoolExecutor(1, thread_name_prefix="ahead")  # one: the person in front of the page comes first


def plotly_address() -> str:
    """Where the browser finds plotly.js."""
    return f"{_base()}/{PLOTLY.name}"


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
        return of_streamlit | {plotly_address(): PLOTLY}

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
        "cache-control": A_DAY if file == PLOTLY else FOR_EVER,
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
    """A shorter history, the way back to a server that was started anew, and plotly.js."""
    own = f"<script>{BACK}</script><script>{RECONNECT.read_text(encoding='utf-8')}</script>"
    return f'{own}<script async src="{plotly_address()}" onerror="this.remove()"></script>'


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


@st.cache_resource(show_spinner=False)
def loaded(what: str) -> None:
    """Says, once for each `what`, that everything loaded so far stays.

    Streamlit collects garbage after every run of a page, and the collector looks at all that was ever loaded: with torch
    that takes longer than drawing a landscape does. What is frozen it leaves alone.
    """
    gc.collect()
    gc.freeze()
