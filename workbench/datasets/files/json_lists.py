"""JSON that is larger than one likes to hold in memory: an object of lists, read one element after the other."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from workbench.untrusted_files import open_regular

AT_ONCE = 2**20  # characters that are read, or as many as the longest element needs


def elements(path: Path) -> Iterator[tuple[str, Any]]:
    """Every element of every list of the object in a file, with the name of its list; what is not a list is passed over.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "small.json"
    >>> _ = file.write_text('{"info": {"year": 2017}, "images": [{"id": 7}, {"id": 9}]}')
    >>> list(elements(file))
    [('images', {'id': 7}), ('images', {'id': 9})]
    """
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8") as file:
            yield from _Text(file).lists()
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply; it is another file: fetch it again") from None
    except ValueError as error:
        raise ValueError(
            f"{path} is not an object of JSON ({error}); it is cut off or another file: fetch it again"
        ) from error


class _Text:
    """The text of a file from a place on; what was read is forgotten."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.text, self.place = file, "", 0
        self.decoder = json.JSONDecoder()

    def lists(self) -> Iterator[tuple[str, Any]]:
        self.take("{")
        following = self.next()
        while following != "}":
            name = self.value()
            self.take(":")
            if self.next() == "[":
                self.place += 1
                while self.next() != "]":
                    yield name, self.value()
                    if self.next() == ",":
                        self.place += 1
                self.place += 1
            else:
                self.value()
            following = self.take(",}")

    def next(self) -> str:
        """The next character that is no space."""
        while True:
            while self.place < len(self.text) and self.text[self.place].isspace():
                self.place += 1
            if self.place < len(self.text):
                return self.text[self.place]
            if not self.more():
                raise ValueError("it ends too early")

    def take(self, allowed: str) -> str:
        found = self.next()
        if found not in allowed:
            raise ValueError(f"there is {found!r} where {' or '.join(allowed)} should be")
        self.place += 1
        return found

    def value(self) -> Any:
        """The next value. One that ends where the text ends may go on in the file: 1 may be the beginning of 17."""
        self.next()
        while True:
            try:
                found, end = self.decoder.raw_decode(self.text, self.place)
                if end < len(self.text):
                    self.place = end
                    return found
            except json.JSONDecodeError as error:
                if not self.more():
                    raise ValueError(error.msg) from None
            else:
                if not self.more():
                    raise ValueError("it ends too early")

    def more(self) -> bool:
        """Reads on; False at the end of the file."""
        left = self.text[self.place :]
        chunk = self.file.read(max(AT_ONCE, len(left)))  # a long element is not tried again for every little more
        self.text, self.place = left + chunk, 0
        return bool(chunk)
