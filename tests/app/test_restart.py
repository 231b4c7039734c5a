"""A page that is left open while its server ends and another begins on the same port.

The page has another name than this machine and lies below a path, as behind a reverse proxy (the browser finds every name in
`localhost` here).
"""

from __future__ import annotations

import os

import pytest
from browsing import KEYS, numbers, pressed, reads, settled

from workbench.app_server import app_command, free_port, start_server

pytestmark = pytest.mark.browser
PROXIED = {"base_path": "/workbench", "server_name": "lab.localhost"}


def test_a_page_says_that_its_server_is_gone_and_goes_on_with_the_next_one_as_its_address_says(browser, store):
    port = free_port(9000 + os.getpid() % 400)

    def served():
        command, environment = app_command(port, headless=True, **PROXIED), {"WORKBENCH_HOME": str(store.root)}
        return start_server(command, port, environment, base_path=PROXIED["base_path"])

    page = browser.new_page()
    page.set_viewport_size({"width": 1440, "height": 2600})  # only what is in sight is drawn
    page.set_default_timeout(120_000)
    with served() as app:
        page.goto(f"{app.url.replace('127.0.0.1', PROXIED['server_name'])}/classes?run={KEYS['sharper'][:12]}&K=3")
        page.wait_for_selector(".wb-drawing")
        settled(page)
        pressed(page, "K", "ArrowRight")
        before = numbers(page)
    page.get_by_text("The workbench does not answer").wait_for()
    with served():
        page.wait_for_selector("#wb-gone", state="detached")
        page.get_by_role("heading", name="Classes", exact=True, level=1).wait_for()
        page.wait_for_selector(".wb-drawing")
        settled(page)
        reads(page, before)
        assert before["K"] == "3.10"
        pressed(page, "K", "ArrowRight")  # which waits until the address says it too
        assert numbers(page)["K"] == "3.20"
    page.close()
