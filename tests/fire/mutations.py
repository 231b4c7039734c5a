"""Damage to a file: of its bytes, and of what they mean."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

ODD_NUMBERS = ["0", "-1", "-5", "1e308", "1e999", "NaN", "inf", "2147483648", "9" * 40, "50000000", "0.5", "1_0", "٣"]
ODD_VALUES = [
    None,
    True,
    -1,
    0,
    2**40,
    1e308,
    "",
    "x" * 5000,
    [],
    {},
    [[]],
    "../..",
    "/dev/zero",
    "http://192.0.2.1/",
    "<b>",
]
ODD_TEXTS = [
    "",
    "\0",
    "../../x",
    "'(" * 40,
    "{'descr': '|O'",
    "__import__('os')",
    "\ud7ff",
    "[" * 3000,
    '"',
    ",",
    "\n",
    "e+",
    ";",
]


def flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 4, 40))):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def flipped_at_the_beginning(content: bytes, chance: random.Random) -> bytes:
    return flipped(content[:140], chance) + content[140:]


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def repeated(content: bytes, chance: random.Random) -> bytes:
    start, stop = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:stop] + content[start:stop] * chance.choice((1, 2, 50)) + content[stop:]


def inserted(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    text = chance.choice(ODD_TEXTS).encode("utf-8", "surrogatepass")
    return content[:place] + text + content[place + chance.choice((0, len(text))) :]


def other_numbers(content: bytes, chance: random.Random) -> bytes:
    """A number that is written out becomes an odd one: shapes of arrays, cells of tables, ids, class numbers."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?", content))
    if not found:
        return flipped(content, chance)
    which = chance.choice(found)
    return content[: which.start()] + chance.choice(ODD_NUMBERS).encode() + content[which.end() :]


def other_integers(content: bytes, chance: random.Random) -> bytes:
    """Four or eight bytes that may be a length or an offset become an extreme one."""
    width = chance.choice((2, 4, 8))
    place = chance.randrange(max(1, len(content) - width))
    value = chance.choice((0, 1, 2 ** (8 * width) - 1, 2 ** (8 * width - 1), 2**15, 10**4))
    return content[:place] + (value % 2 ** (8 * width)).to_bytes(width, "little") + content[place + width :]


def other_values(content: bytes, chance: random.Random) -> bytes:
    """A value of a JSON file becomes another one, or goes."""
    try:
        said = json.loads(content)
    except ValueError:
        return other_numbers(content, chance)
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            places.append((node, key))
            visit(value)

    visit(said)
    if not places:
        return flipped(content, chance)
    node, key = chance.choice(places)
    if chance.random() < 0.2:
        del node[key]
    else:
        node[key] = chance.choice(ODD_VALUES)
    return json.dumps(said).encode()


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flipped,
    flipped_at_the_beginning,
    cut,
    repeated,
    inserted,
    other_numbers,
    other_integers,
    other_values,
)
