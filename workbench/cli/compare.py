"""`workbench compare`: paired differences of runs or files on the same rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from workbench.cli.base import Command, Options, Parser
from workbench.cli.files import add_metrics, add_what_a_file_holds, is_file, metrics_named, table_at, val_and_test_of

if TYPE_CHECKING:
    from workbench.tables import LogitTable


def _options(parser: Parser) -> None:
    parser.add_argument("what", nargs="+", metavar="SOURCE", help="two or more keys of runs, or files of scores")
    add_what_a_file_holds(parser)
    parser.add_argument(
        "--rule", default="AverageK", metavar="RULE", help="the rule, such as 'LAC(confidence=0.9)' (default: AverageK)"
    )
    parser.add_argument("--K", metavar="K", help="the same as --rule 'AverageK(K=…)'")
    add_metrics(parser, "accuracy")
    parser.add_argument("--interval", type=float, default=0.95, metavar="P", help="probability of an interval (0.95)")
    parser.add_argument("--json", action="store_true", help="print the pairs as JSON")


def _run(options: Options) -> int:
    from workbench.metrics.comparison import matrices, pairwise
    from workbench.sets import rule_from_text

    if len(set(options.what)) < max(2, len(options.what)):
        raise ValueError(f"compare {' '.join(options.what)}: give two or more different runs or files")
    metrics = metrics_named(options.metric or ["accuracy"])
    rule = rule_from_text(options.rule if options.K is None else f"AverageK(K={options.K})", foreign=True)
    tables = _tables(options)
    pairs = pairwise(
        {what: test for what, (_, test) in tables.items()},
        rule,
        metrics,
        val={what: val for what, (val, _) in tables.items()},
        interval=options.interval,
    )
    if options.json:
        result = {"rule": repr(rule), "correction": "Holm", "pairs": json.loads(pairs.to_json(orient="records"))}
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        print(f"sets by {rule.short()}\n\n{matrices(pairs)}", end="")
    return 0


def _tables(options: Options) -> dict[str, tuple[LogitTable, LogitTable]]:
    """The validation and test rows of each; rows of files are paired by their ids before they are split."""
    from workbench.metrics.comparison import aligned
    from workbench.store.imported_tables import val_and_test

    files = {what: table_at(what, options) for what in options.what if is_file(what)}
    files = aligned(files) if files else {}
    return {
        what: (val_and_test(files[what]) if what in files else val_and_test_of(what, options))[:2]
        for what in options.what
    }


COMPARE = Command(
    "compare",
    "compare runs or files of scores on the same rows",
    """
    Compare every pair of runs (by key or its beginning) or files of scores on the same test rows: the difference of each
    metric, its paired interval, and a p-value corrected for the number of pairs by Holm's method. The rule is fitted on
    the validation rows of each run; files are split in the same halves. Rows are paired by their ids if they have any,
    else by their order.
    """,
    _options,
    _run,
    examples=(("workbench compare a1b2c3 d4e5f6 --K 5", "paired differences with intervals"),),
)
