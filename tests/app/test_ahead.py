"""What a page needs is asked for and sent ahead: plotly.js and Streamlit's own scripts."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import plotly
import pytest
import uvicorn

APP = Path(__file__).resolve().parents[2] / "app"


@pytest.fixture
def serving(monkeypatch):
    """The module, without a server."""
    monkeypatch.syspath_prepend(str(APP))
    from session import serving

    return serving


def version_of(path):
    return re.search(r"plotly\.js \(?.*?v([\d.]+)", path.read_text(encoding="utf-8")[:200])[1]


def test_the_bundle_is_of_the_version_for_which_plotly_writes_figures(serving):
    whole = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    assert version_of(serving.PLOTLY) == version_of(whole)


def test_every_page_asks_for_the_bundle_and_gets_it(serving, server):
    for view in ("", "samples"):
        with urllib.request.urlopen(f"{server}/{view}") as page:
            content = page.read().decode()
            assert int(page.headers["content-length"]) == len(content.encode())
        (address,) = re.findall(r'<script async src="([^"]*plotly[^"]*)"', content)
        assert content.index(address) < content.index("</head>")
        with urllib.request.urlopen(f"{server}{address}") as script:
            assert script.read() == serving.PLOTLY.read_bytes()


def test_a_browser_gets_our_scripts_with_every_view_though_it_would_take_a_page_compressed(server):
    asked = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "gzip, deflate, br, zstd"}
    for view in ("", "samples"):
        with urllib.request.urlopen(urllib.request.Request(f"{server}/{view}", headers=asked)) as page:
            content = page.read().decode()
        assert all(ours in content for ours in ("plotly", "history.pushState", "wb-gone"))


def test_scripts_of_streamlit_come_as_they_are_and_nothing_else_is_sent_ahead(serving, server):
    scripts = sorted(serving.OF_STREAMLIT.glob("js/*.js"))
    for script in (scripts[0], scripts[-1]):
        with urllib.request.urlopen(f"{server}/static/js/{script.name}") as answer:
            assert answer.read() == script.read_bytes()
            assert answer.headers["content-type"] == "text/javascript"
            assert "immutable" in answer.headers["cache-control"]
    known = serving.Ahead(None).files
    assert not [address for address in known if ".." in address]
    assert set(known.values()) == {
        serving.PLOTLY,
        serving.pad.WEIGHTS,
        serving.pad.SYMBOLS,
        *(path for path in serving.OF_STREAMLIT.rglob("*") if path.is_file()),
    }


@pytest.mark.parametrize(
    ("content_type", "status", "expected"),
    [
        ("text/html; charset=utf-8", 200, True),
        ("text/html", 404, False),
        ("application/json", 200, False),
    ],
)
def test_only_whole_pages_are_changed_however_they_arrive(serving, content_type, status, expected):
    page = b"<html><head></head><body></body></html>"

    async def streamlit(scope, receive, send):
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", content_type.encode())]}
        )
        await send({"type": "http.response.body", "body": page[:9], "more_body": True})
        await send({"type": "http.response.body", "body": page[9:]})

    sent = []

    async def send(message):
        sent.append(message)

    answered = serving.Ahead(streamlit)({"type": "http", "method": "GET", "path": "/", "headers": []}, None, send)
    with ThreadPoolExecutor() as elsewhere:  # Playwright keeps a loop in the thread of the tests
        elsewhere.submit(asyncio.run, answered).result()
    start, *bodies = sent
    whole = b"".join(body["body"] for body in bodies)
    assert (b"plotly" in whole) is expected
    assert re.sub(rb"<style.*</style>|<script.*</script>", b"", whole, flags=re.DOTALL) == page
    if expected:
        assert (b"content-length", str(len(whole)).encode()) in start["headers"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop for Windows")
def test_small_answers_leave_at_once_also_from_a_socket_that_was_opened_beforehand():
    async def sent_at_once():
        """Whether a connection to a socket that was opened as Streamlit opens its own waits for nothing."""
        loop, connected = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        class Accepting(asyncio.Protocol):
            def connection_made(self, transport):
                connection = transport.get_extra_info("socket")
                connected.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

        with socket.socket(socket.AF_INET) as opened:
            opened.bind(("127.0.0.1", 0))
            await loop.create_server(Accepting, sock=opened)
            await asyncio.open_connection(*opened.getsockname())
            return await connected

    def answered():
        with asyncio.Runner(loop_factory=uvicorn.Config(app=None).get_loop_factory()) as runner:
            return runner.run(sent_at_once())

    with ThreadPoolExecutor() as elsewhere:  # Playwright keeps a loop in the thread of the tests
        assert elsewhere.submit(answered).result()
