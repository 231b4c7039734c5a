"""`workbench compare`: runs or files on the same rows, pair by pair."""

from __future__ import annotations

import json

from workbench.cli.base import Command, Options, Parser
from workbench.cli.files import add_what_a_file_holds, val_and_test_of


def _options(parser: Parser) -> None:
    parser.add_argument("what", nargs="+", help="two or more: keys of runs, or files of logits")
    add_what_a_file_holds(parser)
    parser.add_argument(
        "--rule", default="AverageK", metavar="RULE", help="how sets are made, as Python prints it (default: AverageK)"
    )
    parser.add_argument("--K", metavar="K", help="the same as --rule 'AverageK(K=…)'")
    parser.add_argument(
        "--metric", action="append", metavar="NAME", help="accuracy unless given; may be given several times"
    )
    parser.add_argument("--interval", type=float, default=0.95, metavar="P", help="probability of an interval (0.95)")
    parser.add_argument("--json", action="store_true", help="print the pairs as JSON")


def _run(options: Options) -> int:
    from workbench.metrics import METRICS
    from workbench.metrics.comparison import matrices, pairwise
    from workbench.sets import rule_from_text

    if len(set(options.what)) < max(2, len(options.what)):
        raise ValueError(f"compare {' '.join(options.what)}: give two or more different runs or files")
    known = {metric.name: metric for metric in METRICS if metric.subject in ("sets", "table")}
    asked = options.metric or ["accuracy"]
    if unknown := [name for name in asked if name not in known]:
        raise ValueError(f"--metric {unknown[0]} is unknown; give one of {', '.join(known)}")
    rule = rule_from_text(options.rule if options.K is None else f"AverageK(K={options.K})", foreign=True)
    tables = {what: val_and_test_of(what, options)[:2] for what in options.what}
    pairs = pairwise(
        {what: test for what, (_, test) in tables.items()},
        rule,
        [known[name] for name in asked],
        val={what: val for what, (val, _) in tables.items()},
        interval=options.interval,
    )
    if options.json:
        result = {"rule": repr(rule), "correction": "Holm", "pairs": json.loads(pairs.to_json(orient="records"))}
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        print(f"sets by {rule.short()}\n\n{matrices(pairs)}", end="")
    return 0


COMPARE = Command(
    "compare",
    "compare runs or files of logits on the same rows, pair by pair",
    """
    Every pair of runs (keys, or the beginnings of them) or of files of logits: the difference of each metric on the
    same test rows with its paired interval, and a p-value that is corrected for the number of pairs by Holm's method.
    The rule is fitted for each on its own validation rows; files are split in the same halves.
    """,
    _options,
    _run,
    examples=(("workbench compare a1b2c3 d4e5f6 --K 5", "paired differences, pair by pair"),),
)
