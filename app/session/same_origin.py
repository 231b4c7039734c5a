"""Who may speak with the server: pages that it has served itself."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers


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
