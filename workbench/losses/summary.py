"""The table of losses, derived from their declarations: for the command line and the guide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench import losses as declared
from workbench.knobs import Knob
from workbench.losses.base import Loss


def entry(loss: type[Loss]) -> dict[str, Any]:
    """Everything a loss says about itself, in plain types (what `workbench losses --json` prints)."""
    default = loss()
    return {
        "name": loss.__name__,
        "title": loss.title,
        "formula": loss.formula,
        "paper": loss.paper,
        "equation": loss.equation,
        "convex": default.convex,
        "smooth": default.smooth,
        "calibrated": default.calibrated,
        "proper": default.proper,
        "heads": loss.heads,
        "head": loss.head,
        "labels": loss.labels,
        "link": loss.link,
        "couples_batch": loss.couples_batch,
        "random": default.random,
        "trains": loss.trains,
        "knobs": {name: _described(knob) for name, knob in loss.knobs().items()},
    }


def entries(losses: Iterable[type[Loss]] | None = None) -> list[dict[str, Any]]:
    """One entry per loss, in the order of `LOSSES` (or of the losses given)."""
    return [entry(loss) for loss in (declared.LOSSES if losses is None else losses)]


def traits(row: dict[str, Any]) -> str:
    """The facts of an entry as a short phrase: «convex, smooth, two heads»."""
    named = {
        "convex": row["convex"],
        "smooth": row["smooth"],
        "calibrated": row["calibrated"],
        "proper": row["proper"],
        "two heads": row["heads"] == 2,
        "cosine head": row["head"] == "cosine",
        "many labels": row["labels"] == "many",
        "couples the batch": row["couples_batch"],
        "random": row["random"],
        "does not train": not row["trains"],
    }
    return ", ".join(name for name, holds in named.items() if holds)


def markdown(losses: Iterable[type[Loss]] | None = None) -> str:
    """The table of the guide. Facts are those of the default knobs."""
    lines = ["| loss | formula | where | facts | knobs (default) |", "|---|---|---|---|---|"]
    for row in entries(losses):
        knobs = ", ".join(f"`{name}` = {facts['default']}" for name, facts in row["knobs"].items())
        # A bar inside a formula would end the cell.
        formula = row["formula"].replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        lines.append(f"| `{row['name']}` | ${formula}$ | {row['paper']}, {row['equation']} | {traits(row)} | {knobs} |")
    return "\n".join(lines) + "\n"


def _described(knob: Knob) -> dict[str, Any]:
    return {
        "default": knob.default if knob.schedule is None else str(knob.schedule),
        "symbol": knob.symbol,
        "meaning": knob.meaning,
        "accepts": knob.accepts(),
    }
