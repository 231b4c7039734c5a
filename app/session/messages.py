"""Messages for what is missing or went wrong. The app goes on; the details go to the terminal."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import streamlit as st

from workbench.optional_dependencies import EXTRAS, install_command
from workbench.store import DEMO, Store

log = logging.getLogger("workbench.app")


def friendly(part: Callable[..., Any]) -> Callable[..., Any]:
    """A part of a page that, when it fails, leaves a message where it would have been.

    The errors of the library say what was given, what is allowed and what to do, so they are shown as they are; anything
    else is a fault of ours.
    """

    @functools.wraps(part)
    def guarded(*arguments: Any, **options: Any) -> Any:
        try:
            return part(*arguments, **options)
        except (ValueError, OSError) as error:
            st.error(plain(without_places(str(error))), icon=":material/error:")
        except Exception:
            log.exception("%s failed", part.__name__)
            st.error(
                "Something went wrong here. The rest of the app goes on; the terminal it was started from says more.",
                icon=":material/error:",
            )
        return None

    return guarded


def no_runs() -> None:
    """The state of a fresh machine: nothing to show yet, and three ways to change that."""
    st.subheader("There is no run here yet")
    st.write(
        "A run is a trained model with its scores on validation and test rows. Make one, or bring your own scores:"
    )
    st.code("make demo                              # the runs that ship with the workbench", language=None)
    st.code("workbench train --dataset garden       # a first run of your own, a few minutes", language=None)
    st.code("workbench import my_logits.npz         # scores and labels you already have", language=None)
    st.caption("Then load this page again. A file of logits can also be opened in the sidebar.")


def has_torch() -> bool:
    """Whether losses and networks can be computed here; nothing is loaded to know."""
    return find_spec("torch") is not None


def torch_is_missing() -> bool:
    """Say what to install where losses and networks cannot be computed; nothing where they can."""
    missing = not has_torch()
    if missing:
        st.info(
            "Losses and networks are computed by PyTorch, which is not installed here.", icon=":material/extension:"
        )
        st.code(install_command(EXTRAS["torch"]), language=None)
        st.caption("Then start the app anew. Every view of scores that exist already works without it.")
    return missing


def without_places(text: str) -> str:
    """A text without the folders of this machine: of a path only its end is left. A browser may be anybody's."""
    for folder in (Store().root, DEMO):  # their names may have spaces
        text = text.replace(f"{folder}/", "").replace(str(folder), "the store")
    return re.sub(r"""(?<![\w./:])/(?:[^\s/:;,'"()]+/)*(?=[^\s/:;,'"()])""", "", text)


def plain(text: str) -> str:
    """Text that Markdown leaves as it is: an error may quote a file name or a class name of the user."""
    return "".join(f"\\{character}" if character in r"\`*_{}[]<>()#+-.!|$~:" else character for character in text)


def inert(name: str) -> str:
    """A name of the user as the label of a control: as it is, or with marks escaped where Markdown would see some."""
    return name if re.fullmatch(r"[\w ,.%()/-]*", name) and "](" not in name else plain(name)
