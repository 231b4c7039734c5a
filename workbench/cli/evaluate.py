"""`workbench evaluate`, also called `report`: metrics of the sets of a run or a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from workbench.cli.base import Command, Options, Parser, deliver
from workbench.cli.files import (
    add_cluster,
    add_metrics,
    add_partial,
    add_what_a_file_holds,
    is_file,
    metrics_named,
    on_the_cluster_of,
    val_and_test_of,
)
from workbench.cli.listed import as_text, evaluate_listed

ENDINGS = {"": "text", ".txt": "text", ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}


def _options(parser: Parser) -> None:
    parser.add_argument(
        "what", metavar="SOURCE", help="key of a run, a file of scores, or the folder or address of shards (s3://…)"
    )
    add_what_a_file_holds(parser)
    add_partial(parser)
    add_cluster(parser)
    parser.add_argument(
        "--against",
        metavar="RUN",
        help="compare sets made elsewhere with ours on a run, or a file of scores, of the same rows",
    )
    parser.add_argument("--K", nargs="+", action="extend", metavar="K", help="target sizes for top-K and average-K")
    parser.add_argument(
        "--rule",
        action="append",
        metavar="RULE",
        help="a rule with its knobs, such as 'RAPS(confidence=0.9)', or module:Rule for one of yours; may be given several "
        "times",
    )
    add_metrics(parser, "all that the table has the fields for")
    parser.add_argument("--interval", type=float, metavar="P", help="add intervals of this probability, such as 0.95")
    parser.add_argument(
        "--format",
        choices=tuple(dict.fromkeys(ENDINGS.values())),
        help="how to write the table (default: as --output ends, .csv, .json, .md, .tex or .txt; else text)",
    )
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to a file instead of printing it")


def _run(options: Options) -> int:
    with on_the_cluster_of(options):
        return _evaluate(options)


def _evaluate(options: Options) -> int:
    import workbench as wb
    from workbench.metrics.reporting import FORMATS
    from workbench.sets import rule_from_text
    from workbench.store.imported_tables import SPLIT_NOTE

    written_as = options.format or _format_of(options.output)
    rules: list[Any] = [rule_from_text(text, foreign=True) for text in options.rule or ()]
    sizes = [wb.AverageK.knobs()["K"].parsed("K", text) for text in options.K or ()]
    if is_file(options.what):
        averages = [wb.AverageK(K) for K in sizes or ([] if rules else [1, 2, 3, 5])]
        listed = evaluate_listed(options, [*rules, *averages])
        if listed is not None:
            return deliver(as_text(listed, written_as), options.output)
    val, test, note = val_and_test_of(options.what, options)
    if not rules and not sizes:
        sizes = sorted({min(K, max(1, val.n_classes - 1)) for K in (1, 3, 5)})
    for K in sizes:
        rules += (
            [wb.TopK(int(K)), wb.AverageK(K)] if K == int(K) else [wb.AverageK(K)]
        )  # top-K is for whole numbers only
    metrics = wb.metrics.METRICS if options.metric is None else metrics_named(options.metric)
    frame = wb.report(test, rules=rules, metrics=metrics, val=val, interval=options.interval)
    text = FORMATS[written_as](frame)
    if note:
        halves = f"one table: rules are fitted on {val.n} of its rows and evaluated on the other {test.n}"
        print(halves if note == SPLIT_NOTE else note, file=sys.stderr)
    return deliver(text, options.output)


def _format_of(output: Path | None) -> str:
    """The format that the name of a file asks for."""
    ending = "" if output is None else output.suffix.lower()
    if ending not in ENDINGS:
        known = ", ".join(filter(None, ENDINGS))
        raise ValueError(f"--output {output}: a table is written as {known}; or give --format")
    return ENDINGS[ending]


EVALUATE = Command(
    "evaluate",
    "evaluate the sets of a run or of a file of scores",
    """
    Fit rules on validation rows and evaluate their sets on test rows of a run (its key or the beginning of it; see
    `workbench runs`) or of a file of scores, which is split by its column or array `split`, else into halves. Of a file
    that lists some classes of each row, sizes and coverage are bounds; given sets are evaluated as they are.
    """,
    _options,
    _run,
    aliases=("report",),
    examples=(
        ("workbench evaluate my_logits.npz --K 5", "evaluate top-5 and average-5 sets"),
        ("workbench evaluate s3://bucket/logits --K 5 --cluster tcp://scheduler:8786", "shards, on a Dask cluster"),
        ("workbench evaluate answers.jsonl --classes 1000", "bounds, of the best few classes of each row"),
        ("workbench evaluate their_sets.csv --against my_logits.npz", "sets made elsewhere beside ours"),
        ("workbench evaluate my_logits.npz --rule 'RAPS(confidence=0.9)' --rule my_module:MyRule", ""),
    ),
)
