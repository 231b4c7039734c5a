"""The address of a page: widgets that read it and write it, and messages where it cannot be read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st

from session.messages import plain
from streamlit_patches import address_went_back, default_of_widget, in_fragment

CAME_BACK, ONCE_MORE = "came back", "came back, once more"  # of a session: see `look_back`
BOUND, VISIT = "names in the address", "times begun anew"  # of a session: see `reset`
POSITION = "position"  # of a session: the slider that is held, and its value
KEPT = "kept rule"  # of a session: the rule that was chosen last with its knobs, as the widgets are named; None: one threshold
DROPPED = "dropped from the address"  # of a session: name → value that cannot be used, until it is reported
LONGEST = 64  # letters of a value that a message repeats
Readable = Callable[[list[str]], bool]  # whether these values of a name can be read


def bound(name: str, readable: Readable) -> dict[str, Any]:
    """The arguments that make a widget read its first value from the address, under its name, and write it there.

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
    by_widgets = st.session_state.get(BOUND, set())
    for name in [name for name in st.query_params if name not in (*by_widgets, "run")]:
        st.session_state.pop(name, None)
        del st.query_params[name]
    for name in by_widgets & set(st.session_state.keys()):
        with contextlib.suppress(KeyError):
            st.session_state[name] = default_of_widget(str(name))
    st.session_state.pop(KEPT, None)
    anew()


def forget(names: Iterable[str]) -> None:
    """Bring widgets back to their defaults, and take what no widget asks for out of the address."""
    for name in names:
        if name in st.session_state:
            with contextlib.suppress(KeyError):
                st.session_state[name] = default_of_widget(name)  # which takes it out of the address
        else:
            st.query_params.pop(name, None)


def anew() -> None:
    """Forget where moving parts stood: what the address says holds, and what it does not say begins at its default."""
    st.session_state.pop(POSITION, None)
    st.session_state[VISIT] = st.session_state.get(VISIT, 0) + 1


def visit() -> int:
    """How often the page began anew: a moving part that was drawn before that is not the one to be drawn now."""
    return st.session_state.get(VISIT, 0)


def look_back(page: Any) -> None:
    """Detect, before a page is drawn, a Back or Forward of the browser.

    Streamlit then takes out of the address what widgets of the other view are bound to, though this one has such widgets
    too; so the page is asked for once more, with all of it.
    """
    whole, once_more = address_went_back(), st.session_state.pop(ONCE_MORE, False)
    st.session_state[CAME_BACK] = whole is not None or once_more
    if whole is None:
        return
    anew()
    if whole.keys() - st.query_params.keys():
        st.session_state[ONCE_MORE] = True
        st.switch_page(page, query_params=whole)


def came_back() -> bool:
    """Whether the page is drawn because of Back or Forward: then the whole address applies again."""
    return not in_fragment() and st.session_state.get(CAME_BACK, False)


def one_of(options: Iterable[Any]) -> Readable:
    """One of these, as they are written."""
    texts = set(map(str, options))
    return lambda values: len(values) == 1 and values[0] in texts


def some_of(options: Iterable[Any]) -> Readable:
    """Some of these, or none."""
    texts = {"", *map(str, options)}
    return lambda values: texts.issuperset(values)


def any_text(values: list[str]) -> bool:
    """One text."""
    return len(values) == 1


def switch(values: list[str]) -> bool:
    """On or off."""
    return len(values) == 1 and values[0].lower() in ("true", "false")


def number(values: list[str]) -> bool:
    """One number."""
    return len(values) == 1 and _finite(values[0]) is not None


def number_in_address(name: str) -> float | None:
    """The number that the address has under a name, if it has one."""
    if name not in st.query_params:
        return None
    if not number(st.query_params.get_all(name)):
        drop(name)
        return None
    return float(st.query_params[name])


def two_numbers(values: list[str]) -> bool:
    """The ends of a range, the lower one first."""
    ends = [_finite(text) for text in values]
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
    """Report the parts of the link that are not shown."""
    dropped = st.session_state.pop(DROPPED, {})
    if dropped:
        summary = "; ".join(f"{name} = {value[:LONGEST] or 'nothing'}" for name, value in dropped.items())
        st.warning(
            f"Part of this link is not available, so defaults are shown: {plain(summary)}.",
            icon=":material/link_off:",
        )


def in_address(key: str) -> None:
    """Write the run that a part of a page shows into the address.

    A part that runs alone begins with the address as the browser knew it, which may still be that of the run before; with
    whatever else it writes there, it would bring that run back.
    """
    st.query_params["run"] = key
