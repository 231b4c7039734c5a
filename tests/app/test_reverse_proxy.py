"""The app behind nginx: with the lines of the guide, below a path, under another name, websockets included."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import KEYS, in_address, pressed, settled

pytestmark = [pytest.mark.browser, pytest.mark.long]
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "deploy.md"
NAME, TOKEN = "lab.localhost", "correct-horse"  # a browser finds every name in localhost on this machine
KEY = base64.b64encode(bytes(16)).decode()
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": KEY}


@contextlib.contextmanager
def started(command, ready, **options):
    """A process, from the line on that says it is ready; SIGTERM ends it cleanly."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    try:
        lines = [""]
        for line in process.stdout:
            lines.append(line)
            if ready in line:
                break
        assert ready in lines[-1], "".join(lines)
        yield process
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


@pytest.fixture
def proxied(store, own_port, tmp_path):
    """The port of nginx, in front of two servers of the app."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("no nginx on this machine: install it (Debian: apt-get install nginx-light)")
    app_port = own_port()
    command = [sys.executable, "-m", "workbench", "app", "--headless", "--port", str(app_port), "--workers", "2"]
    command += ["--base-path", "/workbench", "--server-name", NAME, "--token", TOKEN]
    environment = os.environ | {"WORKBENCH_HOME": str(store.root)}
    with started(command, "The workbench is at", env=environment, cwd=tmp_path):
        port = own_port()
        location = re.search(r"```nginx\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1]
        folders = "".join(
            f"{each}_temp_path {tmp_path};" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        server = f"server {{ listen 127.0.0.1:{port}; {location.replace('8501', str(app_port))} }}"
        config = tmp_path / "nginx.conf"
        config.write_text(
            f"daemon off; pid {tmp_path}/pid; error_log stderr notice; events {{}}"
            f"http {{ access_log off; {folders} {server} }}"
        )
        with started([program, "-c", config, "-e", "stderr"], "start worker processes"):
            yield port


def answer_to_a_websocket(port, host, cookie):
    """The status of the answer to a websocket of a page of this name."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    origin = {"Host": host, "Origin": f"http://{host}", "Cookie": cookie}
    client.request("GET", "/workbench/_stcore/stream", headers=UPGRADE | origin)
    return client.getresponse().status


def test_a_page_behind_nginx_is_drawn_and_follows_its_sliders(proxied, chromium):
    context = chromium.new_context(viewport={"width": 1440, "height": 2600})
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("weberror", lambda problem: complaints.append(str(problem.error)))
    page.goto(f"http://{NAME}:{proxied}/workbench/classes?run={KEYS['sharper'][:12]}&K=3&token={TOKEN}")
    page.wait_for_selector(".wb-drawing", timeout=240_000)
    settled(page)
    assert "token" not in in_address(page)
    pressed(page, "K", "ArrowRight")
    assert in_address(page)["K"] == ["3.1"]
    page.reload()
    page.wait_for_selector(".wb-drawing", timeout=240_000)
    settled(page)
    assert complaints == []
    context.close()
    cookie = f"workbench_token={TOKEN}"
    assert answer_to_a_websocket(proxied, f"{NAME}:{proxied}", cookie) == 101
    assert answer_to_a_websocket(proxied, f"elsewhere.localhost:{proxied}", cookie) == 403
    assert answer_to_a_websocket(proxied, f"{NAME}:{proxied}", "") == 403
