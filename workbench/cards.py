"""How tables and sets look in a notebook: a few lines of HTML, every text of the user escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.sets import PredictionSets
    from workbench.tables import LogitTable

ROWS = 5  # of a collection of sets
MEMBERS = 6  # of a set


def table_card(table: LogitTable) -> str:
    """What a table holds."""
    classes = f"{table.n_classes} classes"
    if table.class_names:
        classes += f" ({', '.join(table.class_names[:3])}{', …' if table.n_classes > 3 else ''})"
    labels = {None: "none", 1: "one a row", 2: "none or many a row"}[
        None if table.labels is None else table.labels.ndim
    ]
    facts = {
        "scores": f"{table.n} rows × {classes}, {table.scores.dtype}, {table.link}",
        "labels": labels,
        "row attributes": ", ".join(table.attributes or ()),
        "also": ", ".join(
            name for name in ("posterior", "votes", "features", "images") if getattr(table, name) is not None
        ),
        "note": table.note,
    }
    return _grid([[name, text] for name, text in facts.items() if text], "LogitTable")


def sets_card(sets: PredictionSets) -> str:
    """The first few sets, with their labels and probabilities."""
    table, names = sets.table, sets.table.named_classes()
    lines = []
    for i in range(min(ROWS, table.n)):
        members = [f"{names[j]} {p:.2f}" for j, p in zip(*sets.members(i), strict=True)]
        shown = ", ".join(members[:MEMBERS]) + (f", … {len(members) - MEMBERS} more" if len(members) > MEMBERS else "")
        line = [str(i), shown or "(empty)"]
        if table.labels is not None:
            wanted = [names[j] for j in table.labels[i].nonzero()[0]] if table.many_labels else [names[table.labels[i]]]
            line += ["✓" if sets.hits[i] else "✗", ", ".join(wanted) or "(none)"]
        lines.append(line)
    return _grid(lines, repr(sets))


def _grid(lines: list[list[str]], caption: str) -> str:
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in line) + "</tr>"
        for line in lines
    )
    return f"<table><caption style='text-align:left'>{escape(caption)}</caption>{body}</table>"
