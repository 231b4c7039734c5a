"""plotly.js: the bundle that goes with the app, and the pages that ask for it."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import plotly
import pytest

APP = Path(__file__).resolve().parents[2] / "app"


@pytest.fixture
def plotly_js(monkeypatch):
    """The module, without a server."""
    monkeypatch.syspath_prepend(str(APP))
    import plotly_js

    return plotly_js


def version_of(path):
    return re.search(r"plotly\.js \(?.*?v([\d.]+)", path.read_text(encoding="utf-8")[:200])[1]


def test_the_bundle_is_of_the_version_for_which_plotly_writes_figures(plotly_js):
    whole = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    assert version_of(plotly_js.FILE) == version_of(whole)


def test_every_page_asks_for_the_bundle_and_gets_it(plotly_js, server):
    for view in ("", "samples"):
        with urllib.request.urlopen(f"{server}/{view}") as page:
            content = page.read().decode()
            assert int(page.headers["content-length"]) == len(content.encode())
        (address,) = re.findall(r'<script async src="([^"]*plotly[^"]*)"', content)
        assert content.index(address) < content.index("</head>")
        with urllib.request.urlopen(f"{server}{address}") as script:
            assert script.read() == plotly_js.FILE.read_bytes()


@pytest.mark.parametrize(
    ("content_type", "status", "expected"),
    [
        ("text/html; charset=utf-8", 200, True),
        ("text/html", 404, False),
        ("application/json", 200, False),
    ],
)
def test_only_whole_pages_are_changed_however_they_arrive(plotly_js, content_type, status, expected):
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

    answered = plotly_js.PlotlyAhead(streamlit)({"type": "http", "path": "/"}, None, send)
    with ThreadPoolExecutor() as elsewhere:  # Playwright keeps a loop in the thread of the tests
        elsewhere.submit(asyncio.run, answered).result()
    start, *bodies = sent
    whole = b"".join(body["body"] for body in bodies)
    assert (b"plotly" in whole) is expected
    assert re.sub(rb"<script.*</script>", b"", whole) == page
    if expected:
        assert (b"content-length", str(len(whole)).encode()) in start["headers"]
