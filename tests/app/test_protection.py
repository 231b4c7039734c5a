"""What the server sends to whom: headers on every answer, nothing without the token, no path of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from workbench import app_server
from workbench.app_server import TOKEN, app_command
from workbench.store import DEMO, Store
from workbench.store.tags import pin
from workbench.trusted_imports import READ_ONLY

APP = Path(__file__).resolve().parents[2] / "app"


@pytest.fixture
def door(monkeypatch):
    """A page behind the token and the headers."""
    monkeypatch.syspath_prepend(str(APP))
    monkeypatch.setenv(TOKEN, "correct-horse")
    from session.protection import SecurityHeaders, TokenGate

    async def page(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"inside"})

    return TestClient(SecurityHeaders(TokenGate(page)), follow_redirects=False)


def test_every_answer_has_the_headers_that_keep_a_browser_at_home(door):
    for answer in (door.get("/"), door.get("/?token=correct-horse"), door.get("/_stcore/health")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy  # no other address, whatever a text of the user says


@pytest.mark.parametrize("wrong", ["", "?token=", "?token=wrong", "?token=correct-hors", "?other=correct-horse"])
def test_a_visitor_without_a_token_sees_nothing_but_the_health_of_the_server(door, wrong):
    assert door.get(f"/{wrong}").status_code == 403
    assert "inside" not in door.get(f"/sets{wrong}").text
    assert door.get("/", cookies={"workbench_token": "wrong"}).status_code == 403
    assert door.get("/_stcore/health").text == "inside"


def test_a_token_in_the_address_becomes_a_cookie_that_no_script_reads(door):
    answer = door.get("/sets?token=correct-horse&K=3")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sets?K=3")
    assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
    assert door.get("/sets?K=3").text == "inside"  # the client keeps the cookie
    assert door.get("//example.org/?token=correct-horse").headers.get("location", "/").startswith("/") is True


def test_a_config_of_the_folder_one_stands_in_cannot_open_the_server():
    command = app_command(1, headless=True)
    assert {"--server.enableXsrfProtection=true", "--server.enableCORS=true", "--client.showErrorDetails=none"} < {
        *command
    }
    assert {"--server.allowedHosts=127.0.0.1", "--server.allowedHosts=localhost"} < {*command}
    assert "--server.allowedHosts=*" in app_command(1, headless=True, host="0.0.0.0")
    named = app_command(1, headless=True, host="0.0.0.0", server_name="lab.example.org")
    assert "--server.allowedHosts=lab.example.org" in named
    assert "--server.allowedHosts=*" not in named


def test_another_address_than_this_machine_always_has_a_token_and_a_warning(monkeypatch, capsys):
    for name in (TOKEN, READ_ONLY, "MALLOC_ARENA_MAX"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(app_server.os, "execv", lambda *_: None)
    monkeypatch.setattr(app_server.subprocess, "run", lambda *_, **__: type("Done", (), {"returncode": 0}))
    for public in ({"host": "0.0.0.0"}, {"server_name": "lab.example.org"}):
        app_server.run_app(**public, headless=True)
        told = capsys.readouterr().out
        assert "WARNING" in told
        assert "/?token=" in told
    with pytest.raises(ValueError, match="a token has at least 8 letters"):
        app_server.run_app(token="short", headless=True)
    with pytest.raises(ValueError, match="give a name alone, such as lab"):
        app_server.run_app(server_name="https://lab.example.org", headless=True)


def test_a_server_that_only_shows_refuses_every_change(monkeypatch, tmp_path):
    monkeypatch.setenv(READ_ONLY, "1")
    store = Store(tmp_path)
    for change in (
        lambda: pin(store, Store(DEMO).runs()[0].key),
        lambda: store.trash("a"),
        lambda: store.rename("a", "b"),
    ):
        with pytest.raises(PermissionError, match="this server only shows what there is"):
            change()


def test_the_path_of_the_script_is_sent_to_no_browser(monkeypatch):
    monkeypatch.syspath_prepend(str(APP))
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from streamlit.runtime.app_session import AppSession

    import serve
    from streamlit_patches import hide_paths

    assert serve.app
    assert AppSession._create_new_session_message.__qualname__ == "hide_paths.<locals>.without_path"
    greeting = ForwardMsg()
    greeting.new_session.main_script_path = "/home/ann/app/main.py"
    monkeypatch.setattr(AppSession, "_create_new_session_message", lambda _: greeting)
    hide_paths()
    assert "ann" not in str(AppSession._create_new_session_message(None))
