"""`workbench evaluate`, also called `report`: sets of a run or of a file, judged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from workbench.cli.base import Command, Options, Parser
from workbench.cli.files import add_cluster, add_what_a_file_holds, on_the_cluster_of, val_and_test_of

ENDINGS = {"": "text", ".txt": "text", ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}


def _options(parser: Parser) -> None:
    parser.add_argument("what", help="a run's key, a file of logits, or the folder or address of shards (s3://…)")
    add_what_a_file_holds(parser)
    add_cluster(parser)
    parser.add_argument("--K", nargs="+", action="extend", metavar="K", help="target sizes for top-K and average-K")
    parser.add_argument(
        "--rule",
        action="append",
        metavar="RULE",
        help="a rule with its knobs, such as 'RAPS(confidence=0.9)', or module:Rule for one of yours; may be given several "
        "times",
    )
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
    from workbench.store.imported import SPLIT_NOTE

    written_as = options.format or _format_of(options.output)
    val, test, note = val_and_test_of(options.what, options)
    rules: list[Any] = [rule_from_text(text, foreign=True) for text in options.rule or ()]
    sizes = [wb.AverageK.knobs()["K"].parsed("K", text) for text in options.K or ()]
    if not rules and not sizes:
        sizes = sorted({min(K, max(1, val.n_classes - 1)) for K in (1, 3, 5)})
    for K in sizes:
        rules += (
            [wb.TopK(int(K)), wb.AverageK(K)] if K == int(K) else [wb.AverageK(K)]
        )  # top-K is for whole numbers only
    frame = wb.report(test, rules=rules, val=val, interval=options.interval)
    text = FORMATS[written_as](frame)
    if note:
        halves = f"one table: rules are fitted on {val.n} of its rows and judged on the other {test.n}"
        print(halves if note == SPLIT_NOTE else note, file=sys.stderr)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
        print(f"written to {options.output}")
    else:
        print(text, end="")
    return 0


def _format_of(output: Path | None) -> str:
    """The format that the name of a file asks for."""
    ending = "" if output is None else output.suffix.lower()
    if ending not in ENDINGS:
        known = ", ".join(filter(None, ENDINGS))
        raise ValueError(f"--output {output}: a table is written as {known}; or give --format")
    return ENDINGS[ending]


EVALUATE = Command(
    "evaluate",
    "judge sets made from a run or a file of logits",
    """
    Fit rules on validation rows and judge their sets on test rows. Takes a run (its key, or the beginning of it; see
    `workbench runs`) or a file of logits, which is split as its column or array `split` says, or in halves.
    """,
    _options,
    _run,
    aliases=("report",),
    examples=(
        ("workbench evaluate my_logits.npz --K 5", "top-5 and average-5 sets, judged"),
        ("workbench evaluate s3://bucket/logits --K 5 --cluster tcp://scheduler:8786", "shards, on a Dask cluster"),
        ("workbench evaluate my_logits.npz --rule 'RAPS(confidence=0.9)' --rule my_module:MyRule", ""),
    ),
)
