"""What is not sent yet when a fragment runs again: nothing may be left of it whose container is gone.

Streamlit (1.67) takes the messages of a fragment out of the queue when the fragment is asked for again, but not those that
only refer to something the browser has already: they do not say whose they are. Such an element arrives without the
container it stands in, the browser finds no place for it, and the page goes blank.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

as_streamlit_clears = ForwardMsgQueue.clear


def without_orphans(queue: Sequence[ForwardMsg], fragments: Collection[str]) -> list[ForwardMsg]:
    """The messages without references to elements in containers that go with these fragments."""
    gone = {
        tuple(message.metadata.delta_path)
        for message in queue
        if message.delta.HasField("add_block") and message.delta.fragment_id in fragments
    }

    def orphan(message: ForwardMsg) -> bool:
        path = tuple(message.metadata.delta_path)
        return message.HasField("ref_hash") and any(path[:length] in gone for length in range(len(path)))

    return [message for message in queue if not orphan(message)]


def leave_no_orphans() -> None:
    """From now on the queue of every session is cleared like this."""

    def clear(
        self: Any, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: Collection[str] | None = None
    ) -> None:
        if fragment_ids_this_run:
            self._queue = without_orphans(self._queue, fragment_ids_this_run)
        as_streamlit_clears(self, retain_lifecycle_msgs, fragment_ids_this_run)  # type: ignore[arg-type]

    ForwardMsgQueue.clear = clear  # type: ignore[method-assign]
