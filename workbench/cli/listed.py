"""Evaluation of files that list classes: the best few of each row as bounds, sets made elsewhere beside ours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from workbench.cli.base import Options
from workbench.cli.files import file_arguments

if TYPE_CHECKING:
    import pandas as pd

    from workbench.sets import PredictionSets, Rule
    from workbench.tables.partial import PartialTable


def evaluate_listed(options: Options, rules: list[Rule]) -> pd.DataFrame | None:
    """The evaluation of a file that lists classes; None for a file of all scores."""
    import pandas as pd

    from workbench.sets import PredictionSets
    from workbench.sets.imports import import_any
    from workbench.tables.partial import PartialTable
    from workbench.tables.vote_files import refuse_votes

    found = import_any(options.what, **file_arguments(options))
    if isinstance(found, PartialTable):
        return _bounds(found, rules)
    if isinstance(found, PredictionSets):
        return _judged(found, options)
    if isinstance(found, pd.DataFrame):
        refuse_votes(options.what)
    return None


def _bounds(table: PartialTable, rules: list[Rule]) -> pd.DataFrame:
    import pandas as pd

    from workbench.sets.bounds import UnknownThreshold, bounded_sets
    from workbench.store.imported_tables import val_and_test

    print(table.note, file=sys.stderr)
    val, test, note = val_and_test(table)
    print(f"{note} Numbers are bounds where classes that are not listed may matter.", file=sys.stderr)
    parts = []
    for rule in rules:
        try:
            part = bounded_sets(rule, val, test).summary()
        except UnknownThreshold as error:
            print(f"workbench: {error}", file=sys.stderr)
            part = pd.DataFrame(
                [("threshold", float("nan"), float("nan"), "unknown")], columns=["metric", "low", "high", "known"]
            )
        parts.append(part.assign(rule=rule.short(), n=test.n))
    return pd.concat(parts, ignore_index=True)[["rule", "metric", "low", "high", "known", "n"]]


def _judged(sets: PredictionSets, options: Options) -> pd.DataFrame:
    import pandas as pd

    from workbench.metrics.given_sets import given_against_ours
    from workbench.sets.imports import import_sets

    if options.against is not None:
        return given_against_ours(import_sets(options.what, _rows_of(options)))
    numbers = {"mean_size": float(sets.sizes.mean()), "empty": float((sets.sizes == 0).mean())}
    if sets.labelled.any():
        from workbench.metrics import coverage, macro_accuracy

        numbers |= {"coverage": coverage(sets), "macro_coverage": macro_accuracy(sets)}
    lines: list[tuple[Any, ...]] = [(sets.source, name, value, len(sets)) for name, value in numbers.items()]
    return pd.DataFrame(lines, columns=["sets", "metric", "value", "n"])


def _rows_of(options: Options) -> Any:
    """The table that sets are compared on: the test rows of a run, or all rows of a file."""
    from workbench.cli.files import is_file
    from workbench.store import Store
    from workbench.tables.files import import_table

    return import_table(options.against) if is_file(options.against) else Store().open(options.against).tables["test"]


def as_text(frame: pd.DataFrame, form: str) -> str:
    """The evaluation as text, CSV or JSON."""
    if form == "text":
        return frame.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.4g}") + "\n"
    if form == "csv":
        return frame.to_csv(index=False)
    if form == "json":
        return frame.to_json(orient="records", indent=1, force_ascii=False) + "\n"
    raise ValueError(f"bounds and sets made elsewhere are written as text, csv or json, not {form}")
