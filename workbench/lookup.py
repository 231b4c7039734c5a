"""Things of other people, found by their name: foreign code is imported when a person has said so, and never otherwise.

A name that somebody writes in a call or on the command line is said. One that stands in a stored run, in an address or in
a request is only data: its module must be among those that the person has allowed, in the call (`allow=["my_module"]`)
or at the start (`workbench app --allow my_module`), which the processes that are started inherit.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

OURS = "workbench"
T = TypeVar("T")
ALLOW = "WORKBENCH_ALLOW"  # in the environment: modules, separated by commas
# Packages that a person with a file of logits does without → the extra that brings them.
EXTRAS = {
    "torch": "train",
    "lightning": "train",
    "sklearn": "train",
    "streamlit": "app",
    "onnx": "export",
    "onnxscript": "export",
    "dask": "cluster",
    "distributed": "cluster",
    "fsspec": "cluster",
}


def imported(name: str, kind: str, *, allowed: Iterable[str] | None = None) -> Any:
    """What `module:name` names; `kind` is the word for what it should have been.

    `allowed` are the modules that may be imported, for a name that is only data; None if a person wrote it here.

    >>> imported("math:tau", "number") / imported("math:pi", "number")
    2.0
    >>> imported("math:rho", "number")
    Traceback (most recent call last):
        ...
    ValueError: 'math:rho' does not name a number: module 'math' has no attribute 'rho'
    >>> imported("antigravity:fly", "number", allowed=[])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: 'antigravity:fly' is code of somebody else, and a file or an address that names it is no reason to run it; ...
    """
    module_name, _, inside = name.partition(":")
    if not module_name or not inside:
        raise ValueError(f"{name!r} does not name a {kind}; write module:name, both of them")
    if allowed is not None and not _among(module_name, allowed):
        raise ValueError(
            f"{name!r} is code of somebody else, and a file or an address that names it is no reason to run it; if you "
            f"trust {module_name}, say so: --allow {module_name} on the command line (workbench app, train, sweep), or "
            f"allow=[{module_name!r}] in Python"
        )
    try:
        return getattr(importlib.import_module(module_name), inside)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name!r} does not name a {kind}: {error}") from None


def named(
    name: str,
    known: Mapping[str, T],
    kind: str,
    *,
    others: str = "; or give module:name for one of yours",
    allowed: Iterable[str] | None = None,
) -> T | Any:
    """What a name means: one of the `known`, which are ours, or what somebody else has called `module:name`.

    Ours are known by their bare name (`stored_name`). `workbench.some.place:Name` is how files of an earlier version spell
    it: the place says nothing. `kind` is the word for what is looked for, and `others` says what else could be given.

    >>> named("tau", {"tau": 6.28}, "number"), named("workbench.circles:tau", {"tau": 6.28}, "number")
    (6.28, 6.28)
    >>> named("rho", {"tau": 6.28}, "number")
    Traceback (most recent call last):
        ...
    ValueError: there is no number named 'rho'; known: tau; or give module:name for one of yours
    """
    module, _, inside = name.rpartition(":")
    ours = ":" not in name or module.split(".")[0] == OURS
    if inside in known and (ours or getattr(known[inside], "__module__", None) == module):
        return known[inside]
    if ours:
        raise ValueError(f"there is no {kind} named {name!r}; known: {', '.join(known)}{others}")
    return imported(name, kind, allowed=allowed)


def stored_name(kind: type) -> str:
    """How a class is called in a file: by its name if it comes with the workbench, else by `module:name`.

    So a file of ours can move, and what is stored still means the same.

    >>> from fractions import Fraction
    >>> stored_name(Fraction)
    'fractions:Fraction'
    """
    ours = kind.__module__.split(".")[0] == OURS
    return kind.__qualname__ if ours else f"{kind.__module__}:{kind.__qualname__}"


def allowed_modules(said: Iterable[str] = ()) -> tuple[str, ...]:
    """The modules that a person has allowed: in this call, and when this process or the one before it was started."""
    if isinstance(said, str):
        raise ValueError(f"allow = {said!r}; give a list of modules, [{said!r}]")
    return (*said, *filter(None, os.environ.get(ALLOW, "").split(",")))


def allowing(said: Iterable[str]) -> dict[str, str]:
    """What is added to the environment of a process that may import these modules besides those allowed here."""
    return {ALLOW: ",".join(dict.fromkeys(allowed_modules(said)))}


def check_installed(package: str) -> None:
    """Refuses to go on without a package, and says which extra brings it."""
    if importlib.util.find_spec(package) is None:
        raise with_extra(ModuleNotFoundError(name=package))


def with_extra(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error in words that say which extra brings what is missing; the error itself if none does.

    >>> with_extra(ModuleNotFoundError("No module named 'torch'", name="torch"))
    ModuleNotFoundError("this needs torch, which is not installed: pip install 'workbench[train]'")
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return error
    words = f"this needs {package}, which is not installed: pip install 'workbench[{EXTRAS[package]}]'"
    return ModuleNotFoundError(words, name=package)


def _among(module_name: str, allowed: Iterable[str]) -> bool:
    """Whether a module, or a package that it is part of, is allowed."""
    parts = module_name.split(".")
    return bool({".".join(parts[: depth + 1]) for depth in range(len(parts))} & set(allowed))
