"""`workbench sets`: write the sets of the test rows of a file or a run."""

from __future__ import annotations

import sys
from pathlib import Path

from workbench.cli.base import Command, Options, Parser
from workbench.cli.files import add_what_a_file_holds, val_and_test_of
from workbench.cli.set_files import write_sets, writer_for


def _options(parser: Parser) -> None:
    parser.add_argument("what", metavar="SOURCE", help="key of a run, or a file of scores")
    add_what_a_file_holds(parser)
    parser.add_argument(
        "--rule", default="AverageK", metavar="RULE", help="how sets are made, such as 'LAC(0.95)' (default: AverageK)"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to a .csv, .json or .parquet file instead of printing CSV"
    )


def _run(options: Options) -> int:
    write = writer_for(options.output)
    from workbench.sets import rule_from_text

    rule = rule_from_text(options.rule, foreign=True)
    val, test, note = val_and_test_of(options.what, options)
    if note:
        print(note, file=sys.stderr)
    write_sets(rule.fit(val).sets(test), {"source": options.what}, write, options.output)
    return 0


SETS = Command(
    "sets",
    "write the sets of a file of logits or of a run",
    """
    Fit a rule on validation rows and write the set of each test row: id, label, whether the set contains it, size, classes
    and probabilities. A file is split as its column or array `split` says, or in two random halves; ids are the row numbers
    of the file.
    """,
    _options,
    _run,
    examples=(("workbench sets my_logits.npz --rule 'LAC(0.95)' --output sets.csv", "one line per test row"),),
)
