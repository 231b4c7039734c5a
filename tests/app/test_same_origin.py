"""A page from elsewhere gets no word from the server, and the server asks no other host."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamlit import net_util

APP = Path(__file__).resolve().parents[2] / "app"
HOST = "127.0.0.1:8501"


@pytest.fixture
def served(monkeypatch):
    """The whole app as it is served, and the addresses it looked up meanwhile."""
    monkeypatch.syspath_prepend(str(APP))
    import serve

    looked_up = []
    for lookup in ("get_internal_ip", "get_external_ip"):
        monkeypatch.setattr(net_util, lookup, lambda lookup=lookup: looked_up.append(lookup))
    return serve.app, looked_up


def answer_to(app, **headers):
    """What a websocket with these headers is answered first."""
    answers = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        answers.append(message["type"])

    scope = {
        **{"type": "websocket", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "ws"},
        **{"path": "/_stcore/stream", "raw_path": b"/_stcore/stream", "root_path": "", "query_string": b""},
        **{"subprotocols": [], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8501), "state": {}},
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    with ThreadPoolExecutor() as elsewhere:  # Playwright keeps a loop in the thread of the tests
        elsewhere.submit(asyncio.run, app(scope, receive, send)).result()
    return answers[0]


@pytest.mark.parametrize(
    "origin",
    ["http://example.org", "https://127.0.0.1.example.org", "http://127.0.0.1:9999", "http://localhost:8501", "null"],
)
def test_a_websocket_from_elsewhere_is_refused_and_nothing_is_looked_up(served, origin):
    app, looked_up = served
    assert answer_to(app, host=HOST, origin=origin) == "websocket.close"
    assert looked_up == []
