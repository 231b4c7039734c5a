"""HTML representation of tables, sets, runs and reports in a notebook.

Every text of the user is escaped. Pictures are SVG in the colour of the text, so they suit a light and a dark page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.class_counts import SHOTS
from workbench.row_sampling import evenly_spaced_rows
from workbench.tables.ordering import likeliest

if TYPE_CHECKING:
    import pandas as pd

    from workbench.sets import PredictionSets
    from workbench.store import StoredRun
    from workbench.tables import LogitTable

ROWS = 5  # of a collection of sets
MEMBERS = 6  # of a set
LOOKED_AT = 2000  # rows of a table, evenly spread, that its card looks at: a card is quick however large the table
BINS = 10
LARGEST = 20  # size with a bar of its own
WIDTH, HEIGHT = 220, 56  # of a picture, in pixels
HEADLINES = ("mean_size", "accuracy", "macro_accuracy", *(f"shot_accuracy ({shot})" for shot in SHOTS))  # of a rule


def table_card(table: LogitTable) -> str:
    """HTML card of a table: its content, top-1 accuracy and confidence."""
    classes = f"{table.n_classes} classes"
    if table.class_names:
        classes += f" ({', '.join(table.class_names[:3])}{', …' if table.n_classes > 3 else ''})"
    labels = {None: "none", 1: "one a row", 2: "none or many a row"}[
        None if table.labels is None else table.labels.ndim
    ]
    if table.labels is not None and (n_without := int(np.count_nonzero(~table.labelled))):
        labels += f", {n_without} rows without"
    guess, picture = _most_probable(table)
    facts = {
        "scores": f"{table.n} rows × {classes}, {table.scores.dtype}, {table.link}",
        "labels": labels,
        "most probable class": guess,
        "row attributes": ", ".join(table.attributes or ()),
        "also": ", ".join(
            name for name in ("posterior", "votes", "features", "images") if getattr(table, name) is not None
        ),
        "note": table.note,
    }
    return card("LogitTable", facts, picture)


def _most_probable(table: LogitTable) -> tuple[str, str]:
    """Top-1 accuracy and mean confidence of a table, as text and picture."""
    rows = evenly_spaced_rows(table.n, LOOKED_AT)
    probabilities = table.probabilities(rows)
    confidence, guesses = np.minimum(probabilities.max(1), 1), likeliest(probabilities, table.scores[rows], table.link)
    words = f"mean probability {confidence.mean():.3f}"
    if table.labels is not None and (labelled := table.labelled[rows]).any():
        labels = table.labels[rows]
        right = labels[np.arange(len(rows)), guesses] if table.many_labels else labels == guesses
        words = f"right in {right[labelled].mean():.1%}, {words}"
    bars = np.histogram(confidence, BINS, (0, 1))[0]
    of_rows = f", {LOOKED_AT} rows" if table.n > LOOKED_AT else ""
    return words, bar_picture(bars, f"largest probability{of_rows}", "0", "1")


def sets_card(sets: PredictionSets) -> str:
    """Mean size and coverage of the sets, and the first few of them."""
    table, names = sets.table, sets.table.named_classes()
    lines = []
    for i in range(min(ROWS, table.n)):
        members = [f"{names[j]} {p:.2f}" for j, p in zip(*sets.members(i), strict=True)]
        shown = ", ".join(members[:MEMBERS]) + (f", … {len(members) - MEMBERS} more" if len(members) > MEMBERS else "")
        line = [str(i), shown or "(empty)"]
        if table.labels is not None:
            true_names = [names[j] for j in table.rows([i]).positives()[1]]
            line += [("✓" if sets.hits[i] else "✗") if sets.labelled[i] else "", ", ".join(true_names) or "(none)"]
        lines.append(line)
    sizes = f"{sets.sizes.mean():.3g} classes on average, {sets.sizes.min()} to {sets.sizes.max()}"
    facts = {
        "sets": f"{table.n} rows of {table.n_classes} classes",
        "sizes": sizes,
        "accuracy": f"{sets.hits[sets.labelled].mean():.1%}" if sets.labelled.any() else "",
        "rule": repr(sets.rule) if sets.rule is not None else "people",
    }
    bars = np.bincount(np.minimum(sets.sizes, LARGEST))
    last = f"{LARGEST} and more" if sets.sizes.max() > LARGEST else str(sets.sizes.max())
    return card("PredictionSets", facts, bar_picture(bars, "classes in a set", "0", last)) + _grid(lines)


def run_card(run: StoredRun) -> str:
    """HTML card of a run: settings, number of rows, results and learning curve."""
    tables = {name: table for name, table in run.tables.items() if "/" not in name}
    first = next(iter(tables.values()))
    guess, picture = _most_probable(tables.get("test", first))
    facts = {
        "key": run.short,
        "tables": ", ".join(f"{name} {table.n} rows" for name, table in tables.items())
        + f" × {first.n_classes} classes",
        "most probable class": guess,
        "note": run.record.note,
    }
    if len(run.history):
        last = run.history.iloc[-1]
        facts["last of the epochs"] = f"{len(run.history)}: validation loss {last['val_loss']:.4g}"
        ends = [f"{run.history['val_loss'].iloc[end]:.3g}" for end in (0, -1)]
        picture = line_picture(run.history["val_loss"].to_numpy(), "validation loss", *ends)
    return card(run.title, facts, picture)


def report_card(report: pd.DataFrame) -> str:
    """One line per rule with its headline numbers and a bar for its accuracy; all the rest folded below."""
    report = report[report["value"].notna()]  # a group without rows has no value
    cells = {(line.rule, _measured(line)): _value(line) for line in report.itertuples()}
    rules = list(dict.fromkeys(rule for rule in report["rule"] if rule))
    found = [name for name in HEADLINES if any((rule, name) in cells for rule in rules)]
    lines = [["", *found], *([rule, *(cells.get((rule, name), "") for name in found)] for rule in rules)]
    accuracies = report[(report["metric"] == "accuracy") & (report["rule"] != "")]["value"].tolist()
    bars = ["", *accuracies] if "accuracy" in found and len(accuracies) == len(rules) else []
    n = f", n = {report['n'].iloc[0]} rows" if len(report) else ""
    columns = [*rules, *([""] if "" in set(report["rule"]) else [])]
    names = list(dict.fromkeys(name for _, name in cells))
    everything = [["", *(rule or "probabilities" for rule in columns)]]
    everything += [[name, *(cells.get((rule, name), "") for rule in columns)] for name in names]
    notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in report.attrs.get("notes", []))
    return (
        _grid(lines, f"Report{n}", bars)
        + notes
        + f"<details><summary>all {len(names)} measurements</summary>{_grid(everything)}</details>"
    )


def _measured(line: Any) -> str:
    return f"{line.metric} ({line.group})" if line.group else line.metric


def _value(line: Any) -> str:
    low, high = getattr(line, "low", np.nan), getattr(line, "high", np.nan)
    return f"{line.value:.4g}" + (f" [{low:.3g}, {high:.3g}]" if np.isfinite(low) else "")


def card(title: str, facts: Mapping[str, str], picture: str = "") -> str:
    """A title, lines of name and text (empty ones are left out), and a picture beside them."""
    grid = _grid([[name, text] for name, text in facts.items() if text], title)
    return f"<div style='display: flex; flex-wrap: wrap; gap: 2em; align-items: end'>{grid}{picture}</div>"


def bar_picture(heights: Sequence[float] | np.ndarray, words: str, first: str, last: str) -> str:
    """A small histogram; `words` say what is counted, `first` and `last` what the ends are."""
    top = max(float(np.max(heights)), 1e-12)
    step = WIDTH / len(heights)
    bars = "".join(
        f"<rect x='{place * step:.1f}' width='{0.85 * step:.1f}' y='{HEIGHT * (1 - height / top):.1f}' "
        f"height='{HEIGHT * height / top:.1f}'/>"
        for place, height in enumerate(heights)
    )
    return _picture(f"<g fill='currentColor' opacity='.65'>{bars}</g>", words, first, last)


def line_picture(values: Sequence[float] | np.ndarray, words: str, first: str, last: str) -> str:
    """A small curve, from its lowest to its highest value; nothing for fewer than two values."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2 or not np.isfinite(values).all():
        return ""
    span = max(float(np.ptp(values)), 1e-12)
    across = np.linspace(2, WIDTH - 2, len(values))
    down = 2 + (HEIGHT - 4) * (values.max() - values) / span
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
    curve = f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='2' opacity='.75'/>"
    return _picture(curve, words, first, last)


def _picture(drawn: str, words: str, first: str, last: str) -> str:
    words, first, last = escape(words, quote=True), escape(first), escape(last)
    return (
        f"<figure style='margin: 0 0 .6em; font-size: 85%; width: {WIDTH}px'>"
        f"<svg width='{WIDTH}' height='{HEIGHT}' role='img' aria-label='{words}'>{drawn}</svg>"
        f"<figcaption style='display: flex; justify-content: space-between'>"
        f"<span>{first}</span><span>{words}</span><span>{last}</span></figcaption></figure>"
    )


def _grid(lines: list[list[str]], caption: str = "", bars: Sequence[Any] = ()) -> str:
    """Lines of cells; `bars` adds to each line a bar of that share of its width ("" for none)."""
    rows = []
    for place, line in enumerate(lines):
        cells = "".join(f"<td style='text-align: left'>{escape(cell)}</td>" for cell in line)
        share = bars[place] if bars else ""
        bar = f"<rect width='{100 * share:.1f}' height='10'/>" if share != "" else ""
        picture = f"<td><svg width='100' height='10' fill='currentColor' opacity='.65'>{bar}</svg></td>" if bar else ""
        rows.append(f"<tr>{cells}{picture}</tr>")
    above = f"<caption style='text-align: left; font-weight: bold'>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}{''.join(rows)}</table>"
