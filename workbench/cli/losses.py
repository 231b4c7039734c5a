"""`workbench losses`: list the losses."""

from __future__ import annotations

import json

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print all properties as JSON")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table with formulas")


def _run(options: Options) -> int:
    from workbench.losses import summary

    rows = summary.entries()
    if options.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif options.markdown:
        print(summary.markdown(), end="")
    else:
        for row in rows:
            print(f"{row['name']}: {row['title']} ({row['paper']}, {row['equation']}); {summary.traits(row)}")
            for name, facts in row["knobs"].items():
                print(f"    --{name} {facts['default']}: {facts['meaning']}; {facts['accepts']}")
    return 0


LOSSES = Command(
    "losses",
    "list the losses with their properties and parameters",
    "List the losses.",
    _options,
    _run,
    examples=(("workbench losses", "the losses"),),
)
