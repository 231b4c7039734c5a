"""Docstrings as pages: their examples are blocks of code. An extension of griffe, which reads docstrings for mkdocstrings."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?m)(?:^>>> .*(?:\n(?!>>> |\s*$).*)*\n?)+")


def fenced(text: str) -> str:
    """The text with every example in a block of its own.

    >>> print(fenced("One.\\n\\n>>> 1 + 1\\n2"))
    One.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    """
    return EXAMPLE.sub(lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", text)


class Examples(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
