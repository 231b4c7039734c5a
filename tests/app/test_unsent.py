"""A fragment that runs again leaves nothing in the queue that the browser would find no place for."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

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
    from session import unsent

    return unsent


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
    """What is mended here: when this fails, Streamlit does it itself, and `session/unsent.py` may go."""
    queue = ForwardMsgQueue()
    queue.enqueue(block([0, 4, 6], "body"))
    queue.enqueue(reference([0, 4, 6, 0]))
    unsent.as_streamlit_clears(queue, retain_lifecycle_msgs=True, fragment_ids_this_run=["body"])
    assert queue.flush() == [reference([0, 4, 6, 0])]
