"""Access to the server: a token, security headers, and one server per page."""

from __future__ import annotations

import hmac
import os
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders

from workbench import app_balancer
from workbench.app_server import TOKEN

COOKIE = "workbench_token"
HEALTH = "/_stcore/health"  # answers without a token, for a proxy or a supervisor
# Nothing is loaded from, sent to or framed by another address. Streamlit writes inline styles and compiles expressions; its
# components are modules at blob: addresses.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "media-src 'self' data: blob:",
        "frame-src 'self' data: blob:",
        "frame-ancestors 'none'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class SecurityHeaders:
    """ASGI middleware that adds `HEADERS` to every answer."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        async def guarded(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, guarded)


class OneServer:
    """ASGI middleware that keeps a visitor with this server, where several stand behind one address."""

    def __init__(self, app: Any) -> None:
        self.app, self.number = app, os.environ.get(app_balancer.SERVER, "")

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        async def marked(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{app_balancer.COOKIE}={self.number}; Path=/; HttpOnly; SameSite=Lax"
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        is_page = scope["type"] == "http" and "text/html" in Headers(scope=scope).get("accept", "")
        await self.app(scope, receive, marked if self.number and is_page else send)


class TokenGate:
    """ASGI middleware that asks for a token, where the server has one: in the address once, then in a cookie."""

    def __init__(self, app: Any) -> None:
        self.app, self.token = app, os.environ.get(TOKEN, "")

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        guarded = scope["type"] in ("http", "websocket") and not scope.get("path", "").endswith(HEALTH)
        if not self.token or not guarded or self._known(_cookie(Headers(scope=scope))):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()  # its wish to connect
            await send({"type": "websocket.close"})
        else:
            await self._at_the_door(scope, send)

    def _known(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def _at_the_door(self, scope: dict[str, Any], send: Any) -> None:
        """Turn the token of an address into a cookie, and refuse requests without either."""
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        if not any(name == "token" and self._known(value) for name, value in query):
            await _answer(send, 403, b"This server asks for a token: use the whole address that it printed.", {})
            return
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope["path"].lstrip("/")  # //host/ would lead elsewhere
        cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        await _answer(send, 303, b"", {"location": f"{path}?{rest}" if rest else path, "set-cookie": cookie})


def _cookie(headers: Headers) -> str:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get("cookie", ""))
    except Exception:  # a cookie of another program may be anything
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""


async def _answer(send: Any, status: int, body: bytes, headers: dict[str, str]) -> None:
    headers = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **headers}
    encoded = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
