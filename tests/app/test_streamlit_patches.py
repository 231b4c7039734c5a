"""The private interfaces of Streamlit: each is there, does what we change, and is still needed."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests

STATIC = Path(st.__file__).parent / "static"
APP = Path(__file__).resolve().parents[2] / "app"


def block(path, fragment=""):
    message = ForwardMsg()
    message.metadata.delta_path.extend(path)
    message.delta.add_block.allow_empty = True
    message.delta.fragment_id = fragment
    return message


def reference(path):
    """An element that the browser has already."""
    message = ForwardMsg(ref_hash="of an element")
    message.metadata.delta_path.extend(path)
    return message


@pytest.fixture
def unsent(monkeypatch):
    monkeypatch.syspath_prepend(str(APP))
    monkeypatch.setattr(ForwardMsgQueue, "clear", ForwardMsgQueue.clear)  # and back
    import streamlit_patches

    return streamlit_patches


def test_a_reference_goes_with_the_container_it_stands_in_and_others_stay(unsent):
    unsent.leave_no_orphans()
    queue = ForwardMsgQueue()
    inside, beside = reference([0, 4, 6, 0]), reference([0, 3, 0])
    for message in (block([0, 3]), beside, block([0, 4], "body"), block([0, 4, 6], "body"), inside):
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["body"])
    assert queue.flush() == [block([0, 3]), beside]


def test_all_messages_go_when_the_whole_page_runs_again(unsent):
    unsent.leave_no_orphans()
    queue = ForwardMsgQueue()
    queue.enqueue(block([0, 3]))
    queue.enqueue(reference([0, 3, 0]))
    queue.clear(retain_lifecycle_msgs=True)
    assert queue.flush() == []


def test_an_element_without_its_container_would_be_left_otherwise(unsent):
    """When this fails, Streamlit removes them itself, and `leave_no_orphans` can go."""
    queue = ForwardMsgQueue()
    queue.enqueue(block([0, 4, 6], "body"))
    queue.enqueue(reference([0, 4, 6, 0]))
    unsent.clear_of_streamlit(queue, retain_lifecycle_msgs=True, fragment_ids_this_run=["body"])
    assert queue.flush() == [reference([0, 4, 6, 0])]


def test_another_version_of_streamlit_is_refused_with_what_to_install(unsent, monkeypatch):
    unsent.check()
    monkeypatch.setattr(unsent.st, "__version__", "1.68.0")
    with pytest.raises(RuntimeError, match=r"install streamlit>=1\.67,<1\.68"):
        unsent.check()


def test_a_private_name_that_is_gone_is_named_at_start(unsent, monkeypatch):
    monkeypatch.setitem(unsent.PRIVATE, ForwardMsgQueue, ("clear", "_no_such_name"))
    with pytest.raises(RuntimeError, match=r"needs of Streamlit: ForwardMsgQueue\._no_such_name;"):
        unsent.check()


def test_streamlit_still_sends_the_path_of_the_script_to_the_browser():
    """When this fails, `hide_paths` can go."""
    assert "main_script_path = " in inspect.getsource(AppSession._create_new_session_message)


def test_streamlit_still_has_no_public_sign_of_back_or_of_a_fragment_and_no_public_default_of_a_widget():
    """When this fails, `address_went_back`, `in_fragment` or `default_of_widget` can use it."""
    assert [name for name in dir(st.context) if "history" in name or "fragment" in name] == []
    assert [name for name in dir(st.session_state) if "default" in name] == ["setdefault"]


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("`stActiveTheme-${window.location.pathname}`", "theme_script"),
        ("BACKEND_BASE_URL", "server_script"),
        ("history.pushState(", "HISTORY"),
        ("data-test-connection-state", "session/reconnect.js"),
        ("aria-valuetext", "live/live.js"),
    ],
)
def test_the_pages_of_streamlit_still_do_what_our_scripts_change_or_read(text, users):
    scripts = (STATIC / "static" / "js").glob("*.js")
    assert any(text in script.read_text(encoding="utf-8") for script in scripts), f"look at {users}"


def test_the_pages_of_streamlit_still_do_not_know_their_server():
    """When this fails, `server_script` can go."""
    assert "__streamlit" not in (STATIC / "index.html").read_text(encoding="utf-8")


def test_no_other_file_of_the_app_uses_what_is_not_public():
    private = (
        "get_script_run_ctx",
        "is_history_navigation",
        "._state",
        "ForwardMsg",
        "__streamlit",
        "history.pushState",
    )
    files = [path for path in APP.rglob("*.py") if path.name != "streamlit_patches.py"]
    assert [(path.name, name) for path in files for name in private if name in path.read_text(encoding="utf-8")] == []


STEP = RerunData(page_script_hash="classes", query_string="K=2", is_history_navigation=True)
LATE = {
    "the view that was left sends itself on": RerunData(page_script_hash="sets", query_string="K=3"),
    "a fragment of it": RerunData(page_script_hash="sets", query_string="K=3", fragment_id="row"),
    "a fragment of it whose time has come": RerunData(page_script_hash="sets", fragment_id="row", is_auto_rerun=True),
}


def view_after(late, own, module, monkeypatch):
    """Which view is drawn when a request comes while a step of the history waits."""
    monkeypatch.setattr(module, "get_script_run_ctx", lambda **_: object() if own else None)
    requests = ScriptRequests()
    requests.request_rerun(STEP)
    requests.request_rerun(late)
    drawn = requests.on_scriptrunner_ready().rerun_data
    return drawn.page_script_hash, drawn.query_string, drawn.is_history_navigation


@pytest.mark.parametrize("late", LATE)
def test_a_step_of_the_history_that_waits_is_not_lost_to_what_the_view_before_still_asks(unsent, monkeypatch, late):
    own = not LATE[late].fragment_id
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", unsent.request_of_streamlit)  # and back
    assert view_after(LATE[late], own, unsent, monkeypatch)[0] == "sets", "Streamlit keeps the step: the patch may go"
    unsent.keep_steps()
    assert view_after(LATE[late], own, unsent, monkeypatch) == ("classes", "K=2", True)


@pytest.mark.parametrize(
    "move", [RerunData(page_script_hash="samples"), RerunData(page_script_hash="sets", is_history_navigation=True)]
)
def test_a_later_move_of_a_person_wins_over_a_step_that_waits(unsent, monkeypatch, move):
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", unsent.request_of_streamlit)
    unsent.keep_steps()
    assert view_after(move, False, unsent, monkeypatch)[0] == move.page_script_hash
