"""Imports of user code by name (`module:name`), only from modules the user allows.

A name typed in a call or on the command line is trusted. A name read from a stored run, a URL or a request is data: its
module must be allowed in the call (`allow=["my_module"]`) or at start-up (`workbench app --allow my_module`). Child
processes inherit what was allowed.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

PACKAGE = "workbench"
T = TypeVar("T")
ALLOW = "WORKBENCH_ALLOW"  # environment variable: allowed modules, separated by commas
READ_ONLY = "WORKBENCH_READ_ONLY"  # in the environment: nothing in a store may be changed


def import_object(name: str, kind: str, *, allowed: Iterable[str] | None = None) -> Any:
    """Import `module:name`.

    Args:
        name: Module and attribute, separated by a colon.
        kind: Noun for error messages, such as "loss".
        allowed: Modules that may be imported if the name is data; None if the user typed it.

    Raises:
        ValueError: The name has another form, its module is not allowed, or there is no such object.

    >>> import_object("math:tau", "number") / import_object("math:pi", "number")
    2.0
    >>> import_object("math:rho", "number")
    Traceback (most recent call last):
        ...
    ValueError: 'math:rho' does not name a number: module 'math' has no attribute 'rho'
    >>> import_object("antigravity:fly", "number", allowed=[])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: 'antigravity:fly' is code from outside the workbench, and stored runs and links never import it; ...
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ValueError(f"{name!r} does not name a {kind}; write module:name, both of them")
    if allowed is not None and not _is_allowed(module_name, allowed):
        raise ValueError(
            f"{name!r} is code from outside the workbench, and stored runs and links never import it; if you trust "
            f"{module_name}, allow it: --allow {module_name} on the command line (workbench app, train, sweep), or "
            f"allow=[{module_name!r}] in Python"
        )
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name!r} does not name a {kind}: {error}") from None


def resolve(
    name: str,
    known: Mapping[str, T],
    kind: str,
    *,
    others: str = "; or give module:name for one of yours",
    allowed: Iterable[str] | None = None,
) -> T | Any:
    """Return the object of a name: one of `known`, or an import of `module:name`.

    Args:
        name: Bare name of a built-in object (`stored_name`), or `module:name`.
        known: Built-in objects by name.
        kind: Noun for error messages, such as "loss".
        others: End of the error message: what else can be given.
        allowed: Modules that may be imported if the name is data; None if the user typed it.

    >>> resolve("tau", {"tau": 6.28}, "number"), resolve("workbench.circles:tau", {"tau": 6.28}, "number")
    (6.28, 6.28)
    >>> resolve("rho", {"tau": 6.28}, "number")
    Traceback (most recent call last):
        ...
    ValueError: there is no number named 'rho'; known: tau; or give module:name for one of yours
    """
    module, _, attribute = name.rpartition(":")
    built_in = ":" not in name or module.split(".")[0] == PACKAGE
    if attribute in known and (built_in or getattr(known[attribute], "__module__", None) == module):
        return known[attribute]
    if built_in:
        raise ValueError(f"there is no {kind} named {name!r}; known: {', '.join(known)}{others}")
    return import_object(name, kind, allowed=allowed)


def stored_name(kind: type) -> str:
    """Return the name of a class in files: bare for classes of the workbench, else `module:name`.

    Modules of the workbench can move without changing files.

    >>> from fractions import Fraction
    >>> stored_name(Fraction)
    'fractions:Fraction'
    """
    built_in = kind.__module__.split(".")[0] == PACKAGE
    return kind.__qualname__ if built_in else f"{kind.__module__}:{kind.__qualname__}"


def check_writable(what: str) -> None:
    """Refuse a change where this process was started to only show what there is."""
    if os.environ.get(READ_ONLY):
        raise PermissionError(f"this server only shows what there is: {what}; start another without --read-only")


def allowed_modules(allow: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the modules allowed in this call and by the environment of the process."""
    if isinstance(allow, str):
        raise TypeError(f"allow = {allow!r}; give a list of modules, [{allow!r}]")
    return (*allow, *filter(None, os.environ.get(ALLOW, "").split(",")))


def allow_environment(allow: Iterable[str]) -> dict[str, str]:
    """Return the environment variables that let a child process import these modules."""
    return {ALLOW: ",".join(dict.fromkeys(allowed_modules(allow)))}


def _is_allowed(module_name: str, allowed: Iterable[str]) -> bool:
    """Whether a module, or a package that contains it, is allowed."""
    parts = module_name.split(".")
    return bool({".".join(parts[: depth + 1]) for depth in range(len(parts))} & set(allowed))
