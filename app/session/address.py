"""What the address of a page asks for: widgets that read it and write it, and what is said where it cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from session.messages import plain

CAME_BACK, ONCE_MORE = "came back", "came back, once more"  # of a session: see `look_back`
BOUND, VISIT = "names in the address", "times begun anew"  # of a session: see `reset`
POSITION = "position"  # of a session: the slider that is held, and its value
KEPT = "kept rule"  # of a session: the rule that was chosen last with its knobs, as the widgets are named; None: one threshold
DROPPED = "dropped from the address"  # of a session: name → what was asked for and cannot be, until it is said
LONGEST = 64  # letters of a value that are repeated to whoever followed the link
Readable = Callable[[list[str]], bool]  # whether these values of a name can be read


def bound(name: str, readable: Readable) -> dict[str, Any]:
    """What makes a widget read its first value from the address, under its name, and write it there.

    A value that cannot be read is taken out of the address before the widget sees it, and the page begins anew: Streamlit
    would read an empty one as nothing at all, and one bad end of a range as the default of that end. What could be read
    until another run was chosen, such as the name of a class, Streamlit drops itself once it has forgotten the widget.
    """
    st.session_state.setdefault(BOUND, set()).add(name)
    if name in st.query_params and not readable(st.query_params.get_all(name)):
        if name in st.session_state:
            del st.session_state[name]
        else:
            drop(name)
            del st.query_params[name]
            st.rerun()
    return {"key": name, "bind": "query-params"}


def reset() -> None:
    """Bring the defaults of all controls of the page back: its sliders, and every widget that stands in the address."""
    context, by_widgets = get_script_run_ctx(), st.session_state.get(BOUND, set())
    for name in [name for name in st.query_params if name not in (*by_widgets, "run")]:
        st.session_state.pop(name, None)
        del st.query_params[name]
    if context is not None:
        state = context.session_state._state
        for name in by_widgets & set(st.session_state.keys()):
            widget = state._key_id_mapper.get_id_from_key(str(name)) or ""
            if (known := state._new_widget_state.widget_metadata.get(widget)) is not None:
                st.session_state[name] = known.deserializer(None)  # what a widget says that nobody has touched
    st.session_state.pop(KEPT, None)
    anew()


def anew() -> None:
    """Forget where moving parts stood: what the address says holds, and what it does not say begins at its default."""
    st.session_state.pop(POSITION, None)
    st.session_state[VISIT] = st.session_state.get(VISIT, 0) + 1


def visit() -> int:
    """How often the page began anew: a moving part that was drawn before that is not the one to be drawn now."""
    return st.session_state.get(VISIT, 0)


def translate(words: Mapping[str, str]) -> None:
    """Words in the address that mean something else today, alone or between commas, are translated: old links work.

    The page then begins anew: a widget that is bound to a name reads the address as it was when the page began.
    """
    asked = st.query_params.to_dict()
    meant = {name: ",".join(words.get(each, each) for each in value.split(",")) for name, value in asked.items()}
    if changed := {name: value for name, value in meant.items() if value != asked[name]}:
        st.query_params.update(changed)
        st.rerun()


def look_back(page: Any) -> None:
    """Find out, before a page is drawn, whether somebody went back or forward to it.

    Streamlit then takes out of the address what widgets of the other view are bound to, though this one has such widgets
    too; so the page is asked for once more, with all of it.
    """
    context = get_script_run_ctx()
    gone_back = context is not None and context.is_history_navigation
    st.session_state[CAME_BACK] = gone_back or st.session_state.pop(ONCE_MORE, False)
    if gone_back:
        anew()
    if context is not None and gone_back:
        whole = parse_qs(context.query_string, keep_blank_values=True)
        if whole.keys() - st.query_params.keys():
            st.session_state[ONCE_MORE] = True
            st.switch_page(page, query_params=whole)


def came_back() -> bool:
    """Whether the page is drawn because somebody went back or forward: then all that the address says holds again."""
    context = get_script_run_ctx()
    a_part = context is not None and bool(context.fragment_ids_this_run)
    return not a_part and st.session_state.get(CAME_BACK, False)


def one_of(options: Iterable[Any]) -> Readable:
    """One of these, as they are written."""
    texts = set(map(str, options))
    return lambda asked: len(asked) == 1 and asked[0] in texts


def some_of(options: Iterable[Any]) -> Readable:
    """Some of these, or none."""
    texts = {"", *map(str, options)}
    return lambda asked: texts.issuperset(asked)


def any_text(asked: list[str]) -> bool:
    """One text."""
    return len(asked) == 1


def switch(asked: list[str]) -> bool:
    """On or off."""
    return len(asked) == 1 and asked[0].lower() in ("true", "false")


def number(asked: list[str]) -> bool:
    """One number."""
    return len(asked) == 1 and _finite(asked[0]) is not None


def number_asked(name: str) -> float | None:
    """The number that the address has under a name, if it has one."""
    if name not in st.query_params:
        return None
    if not number(st.query_params.get_all(name)):
        drop(name)
        return None
    return float(st.query_params[name])


def two_numbers(asked: list[str]) -> bool:
    """The ends of a range, the lower one first."""
    ends = [_finite(text) for text in asked]
    return len(ends) == 2 and None not in ends and ends[0] <= ends[1]  # type: ignore[operator]


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None  # NaN is not less


def drop(name: str) -> None:
    """Remember what the address asks for under a name as something that cannot be shown."""
    st.session_state.setdefault(DROPPED, {})[name] = ", ".join(st.query_params.get_all(name))


def say_what_was_dropped() -> None:
    """Tell whoever followed the link what of it is not shown."""
    dropped = st.session_state.pop(DROPPED, {})
    if dropped:
        told = "; ".join(f"{name} = {value[:LONGEST] or 'nothing'}" for name, value in dropped.items())
        st.warning(
            f"The link asks for what is not here; the usual is shown instead: {plain(told)}.",
            icon=":material/link_off:",
        )


def in_address(key: str) -> None:
    """Write the run that a part of a page shows into the address.

    A part that runs alone begins with the address as the browser knew it, which may still be that of the run before; with
    whatever else it writes there, it would bring that run back.
    """
    st.query_params["run"] = key
