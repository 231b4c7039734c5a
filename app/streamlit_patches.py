"""Private interfaces of Streamlit 1.67 that the app uses, all in this file, except two attributes that scripts read.

| interface | used for | upstream (streamlit/streamlit) |
|---|---|---|
| `ForwardMsgQueue.clear` | `leave_no_orphans` | #9381 clears the messages of a fragment, but not its references |
| `AppSession._create_new_session_message` | `hide_paths` | no issue known |
| `ScriptRequests._request_rerun_locked`, `_state`, `_rerun_data` | `keep_steps` | no issue known |
| `ScriptRunContext.is_history_navigation`, `query_string` | `address_went_back` | #13853, proposed fix #16998 |
| `ScriptRunContext.fragment_ids_this_run` | `in_fragment` | no issue known |
| `SessionState`: widgets by key, their metadata | `default_of_widget` | no issue known |
| `history.pushState` and `replaceState` of its pages | `HISTORY` | #5292, #13853 |
| `window.__streamlit.BACKEND_BASE_URL` (#11378) | `server_script` | #7074 |
| theme in `localStorage["stActiveTheme-PATH-v2"]` | `theme_script` | no issue known |
| attribute `aria-valuetext` of a slider | `live/live.js` | #11879: a slider reports its value on release only |
| attribute `data-test-connection-state` of the page | `session/reconnect.js` | no issue known |

The upper bound of the dependency is the version they were written for. `check` fails at start where a Python name is gone;
`tests/app/test_streamlit_patches.py` fails when an interface changes or a patch is no longer needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.state.session_state import SessionState, WStates

VERSION = "1.67"
PRIVATE = {
    ForwardMsgQueue: ("clear", "_queue"),
    AppSession: ("_create_new_session_message",),
    ScriptRequests: ("_request_rerun_locked", "_state", "_rerun_data"),
    ScriptRunContext: ("fragment_ids_this_run", "is_history_navigation", "query_string", "session_state"),
    SessionState: ("_key_id_mapper", "_new_widget_state"),
    WStates: ("widget_metadata",),
}
clear_of_streamlit = ForwardMsgQueue.clear
request_of_streamlit = ScriptRequests._request_rerun_locked

# Back undoes the last move of a person. Streamlit makes an entry in the history for some changes of the address and none for
# others, as of a bound widget: here the first change after a touch or a key makes one, and what completes it does not. The
# address of another view comes a moment before its path: both are one entry, and the one before it keeps the address it had
# when the user left it. After Back or Forward, until the next touch or key, the page only completes the address of the entry
# it came to: a new entry would take away all that lie ahead.
#
# On a busy machine the answer to an earlier step arrives when the page has gone on to another entry, and would write its
# address there. That of another view is left out (a page that is sent on from the bare address is not another), and the
# state of an entry keeps its own address, which only a person's move changes: Back and Forward find that one.
HISTORY = """
let left = location.href, moved = false, entered = false, travelled = false;
const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
for (const input of ["pointerdown", "keydown"])
    addEventListener(input, () => { left = location.href; moved = true; entered = travelled = false; }, true);
addEventListener("popstate", () => {
    const { own } = history.state ?? {};
    if (own && own !== location.href) replace({ own }, "", own);
    left = location.href; moved = entered = false; travelled = true;
}, true);
history.pushState = history.replaceState = (state, title, url) => {
    const to = new URL(url ?? "", location), here = to.pathname === location.pathname;
    if (travelled && !to.pathname.startsWith(location.pathname)) return;
    if (travelled) return replace({ own: history.state?.own ?? location.href }, title, url);
    if (to.href === location.href) return replace({ own: to.href }, title, url);
    if (!here && !entered && new URL(left).pathname === location.pathname) replace({ own: left }, "", left);
    ((here ? !moved : entered) ? replace : push)({ own: to.href }, title, url);
    entered = here && (moved || entered);
    moved = false;
};
"""


def check() -> None:
    """Fail at start if this is another Streamlit than the one whose internals are used.

    Raises:
        RuntimeError: If another version is installed or a private name is gone.
    """
    gone = [] if st.__version__.startswith(f"{VERSION}.") else [f"version {VERSION} (this is {st.__version__})"]
    gone += [f"{kind.__name__}.{name}" for kind, names in PRIVATE.items() for name in names if not _has(kind, name)]
    if gone:
        raise RuntimeError(f"the app needs of Streamlit: {', '.join(gone)}; install streamlit>=1.67,<1.68")


def _has(kind: type, name: str) -> bool:
    """Whether objects of a class have an attribute, one that is declared or one that `__init__` sets."""
    return hasattr(kind, name) or name in kind.__annotations__ or f"self.{name}" in inspect.getsource(kind)


def server_script(base: str) -> str:
    """Tells the page where its server is: below the address of a view it would ask there first, and be answered 404 twice."""
    return f"window.__streamlit = {{ BACKEND_BASE_URL: location.origin + '{base}/' }};"


def theme_script(name: str) -> str:
    """Gives Streamlit the theme that the browser stores under a name, "Light" or "Dark"; without one, that of the machine.

    Streamlit keeps its theme under the path of the page that was loaded first, and reads it there when it starts: each view
    would have a choice of its own.
    """
    return f"""
try {{
    const chosen = JSON.stringify(localStorage.getItem("{name}") ?? "System");
    localStorage.setItem(`stActiveTheme-${{location.pathname}}-v2`, chosen);
}} catch {{}} // a browser that stores nothing shows what the machine says
"""


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
    """Drop queued references whose container belongs to the fragment that runs again.

    Streamlit takes the messages of that fragment out of the queue, but not those that only refer to an element the browser
    has already: they do not name their fragment. Such an element would arrive without its container, and the page go blank.
    """

    def clear(
        self: Any, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: Collection[str] | None = None
    ) -> None:
        if fragment_ids_this_run:
            self._queue = without_orphans(self._queue, fragment_ids_this_run)
        clear_of_streamlit(self, retain_lifecycle_msgs, fragment_ids_this_run)  # type: ignore[arg-type]

    ForwardMsgQueue.clear = clear  # type: ignore[method-assign]


def hide_paths() -> None:
    """Send no browser the path of the script of the app on this machine."""
    create = AppSession._create_new_session_message

    def without_path(self: AppSession, *given: Any, **options: Any) -> ForwardMsg:
        message = create(self, *given, **options)
        message.new_session.main_script_path = "main.py"
        return message

    AppSession._create_new_session_message = without_path  # type: ignore[method-assign]


def keep_steps() -> None:
    """Let a Back or Forward that waits for the page keep its place.

    Streamlit joins the requests that wait, and the last one says which view is drawn. A view that sends itself on
    (`st.switch_page`, `st.rerun`), or a fragment whose time has come, still names the view that the person has left: the step
    would be lost, with the address of one view above the other.
    """

    def joined(self: ScriptRequests, new_data: RerunData) -> bool:
        waiting = self._rerun_data
        step = self._state is ScriptRequestType.RERUN and waiting.is_history_navigation
        if step and not new_data.is_history_navigation:
            if get_script_run_ctx(suppress_warning=True) is not None:
                return True  # the view itself asks: it ends here, and the one that was stepped to is drawn
            if new_data.fragment_id or new_data.is_auto_rerun:
                new_data = replace(
                    new_data,
                    page_script_hash=waiting.page_script_hash,
                    query_string=waiting.query_string,
                    is_history_navigation=True,
                )
        return request_of_streamlit(self, new_data)

    ScriptRequests._request_rerun_locked = joined  # type: ignore[method-assign]


def in_session() -> bool:
    """Whether this is called by a page, not by a thread of the server."""
    return get_script_run_ctx() is not None


def in_fragment() -> bool:
    """Whether only a fragment of the page is being run."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)


def address_went_back() -> dict[str, list[str]] | None:
    """The whole query of the address, if Back or Forward brought the page here; `st.query_params` may lack a part of it."""
    context = get_script_run_ctx()
    if context is None or not context.is_history_navigation:
        return None
    return parse_qs(context.query_string, keep_blank_values=True)


def default_of_widget(key: str) -> Any:
    """The value that the widget of a key has untouched; raises `KeyError` where there is no such widget on the page."""
    context = get_script_run_ctx()
    if context is None:
        raise KeyError(key)
    state = context.session_state._state
    widget = state._key_id_mapper.get_id_from_key(key) or ""
    return state._new_widget_state.widget_metadata[widget].deserializer(None)
