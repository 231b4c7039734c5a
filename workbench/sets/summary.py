"""Tables of the rules for the guide, derived from their declarations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

from workbench import sets as declared
from workbench.sets.base import Rule


def markdown(rules: Iterable[type[Rule]] | None = None) -> str:
    """One line per rule of `RULES`, or of the rules given: title, summary and knobs with their defaults."""
    lines = ["| rule | title | a set contains | knobs (default) |", "|---|---|---|---|"]
    for rule in declared.RULES if rules is None else rules:
        knobs = ", ".join(f"`{name}` = {knob.default}" for name, knob in rule.knobs().items())
        lines.append(f"| `{rule.__name__}` | {rule.title} | {_summary(rule)} | {knobs} |")
    return "\n".join(lines) + "\n"


def promises() -> str:
    """One line per rule of `RULES`: what it promises and needs, what its sets cost, and other packages that have it."""
    lines = ["| rule | promises | needs | sets cost | also in |", "|---|---|---|---|---|"]
    for rule in declared.RULES:
        needs = ", ".join(rule.requires) or "nothing but scores"
        promise = re.sub(r"`(\w+)`", r"*\1*", rule.promise)
        lines.append(f"| `{rule.__name__}` | {promise} | {needs} | {rule.cost} | {', '.join(rule.elsewhere) or '–'} |")
    return "\n".join(lines) + "\n"


def _summary(rule: type[Rule]) -> str:
    """The first paragraph of the docstring on one line; a bar would end the cell."""
    paragraph = (inspect.getdoc(rule) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).replace("|", r"\|")
