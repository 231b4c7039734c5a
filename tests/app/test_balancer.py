"""Several servers behind one address: a visitor stays with one, and bytes pass as they are."""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from workbench import app_server
from workbench.app_balancer import COOKIE, SERVER, Balancer

APP = Path(__file__).resolve().parents[2] / "app"
PAGE = b"GET / HTTP/1.1\r\nHost: a\r\n%s\r\n"


def with_cookie(value: str) -> bytes:
    return PAGE % f"Cookie: other=7; {COOKIE}={value}\r\n".encode()


def test_the_server_of_a_cookie_is_kept_and_others_take_turns():
    balancer = Balancer([1, 2, 3])
    assert [balancer.server_of(PAGE % b"") for _ in range(4)] == [0, 1, 2, 0]
    assert [balancer.server_of(with_cookie("2")) for _ in range(3)] == [2, 2, 2]
    for foreign in (with_cookie("9"), with_cookie("x"), PAGE % f"Cookie: not_{COOKIE}=2\r\n".encode()):
        assert balancer.server_of(foreign) in (0, 1, 2)
    assert balancer.server_of((with_cookie("2")).replace(b"Cookie", b"cookie")) == 2


async def answers(requests: list[bytes]) -> list[bytes]:
    """What comes back through a balancer from two servers that say their name and repeat all they are sent."""

    async def repeat(name: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(name)
        while block := await reader.read(1000):
            writer.write(block)
        writer.close()

    def server(name: bytes) -> asyncio.Future:
        return asyncio.start_server(lambda *streams: repeat(name, *streams), "127.0.0.1", 0)

    backends = [await server(name) for name in (b"A", b"B")]
    balancer = Balancer([backend.sockets[0].getsockname()[1] for backend in backends])
    front = await asyncio.start_server(balancer.pass_on, "127.0.0.1", 0)
    found = []
    for request in requests:
        reader, writer = await asyncio.open_connection(*front.sockets[0].getsockname())
        writer.write(request)
        found.append(await asyncio.wait_for(reader.readexactly(1 + len(request)), 60))
        writer.close()
    for each in (front, *backends):
        each.close()
    return found


def test_a_connection_is_passed_on_byte_by_byte_also_after_the_head():
    frames = bytes(itertools.islice(itertools.cycle(range(256)), 200_000))
    requests = [with_cookie("1") + frames, with_cookie("0"), PAGE % b""]
    with ThreadPoolExecutor(1) as thread:  # Playwright runs a loop in this one
        found = thread.submit(asyncio.run, answers(requests)).result()
    assert found == [b"B" + requests[0], b"A" + requests[1], b"A" + requests[2]]


def test_a_page_carries_the_number_of_its_server_and_other_answers_do_not(monkeypatch):
    monkeypatch.setenv(SERVER, "1")
    monkeypatch.syspath_prepend(str(APP))
    from session.protection import OneServer

    async def page(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    visitor = TestClient(OneServer(page))
    assert visitor.get("/", headers={"accept": "text/html"}).headers["set-cookie"].startswith(f"{COOKIE}=1;")
    assert "set-cookie" not in visitor.get("/picture.png", headers={"accept": "image/png"}).headers


def test_a_number_of_servers_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="workers = 0; give the number of server processes"):
        app_server.run_app(workers=0, headless=True)
