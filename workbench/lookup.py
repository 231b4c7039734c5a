"""Things of other people, found by their name."""

from __future__ import annotations

import importlib
from typing import Any


def imported(name: str, kind: str) -> Any:
    """What `module:name` names; `kind` is the word for what it should have been.

    >>> imported("math:tau", "number") / imported("math:pi", "number")
    2.0
    >>> imported("math:rho", "number")
    Traceback (most recent call last):
        ...
    ValueError: 'math:rho' does not name a number: module 'math' has no attribute 'rho'
    """
    module_name, _, inside = name.partition(":")
    if not module_name or not inside:
        raise ValueError(f"{name!r} does not name a {kind}; write module:name, both of them")
    try:
        return getattr(importlib.import_module(module_name), inside)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name!r} does not name a {kind}: {error}") from None
