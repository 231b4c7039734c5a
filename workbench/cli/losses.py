"""`workbench losses`: what there is to train with."""

from __future__ import annotations

import json

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print everything the losses say about themselves as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table of the README")


def _run(options: Options) -> int:
    from workbench.losses import catalogue

    rows = catalogue.entries()
    if options.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif options.markdown:
        print(catalogue.markdown(), end="")
    else:
        for row in rows:
            print(f"{row['name']}: {row['title']} ({row['paper']}, {row['equation']}); {catalogue.traits(row)}")
            for name, facts in row["knobs"].items():
                print(f"    --{name} {facts['default']}: {facts['meaning']}; {facts['accepts']}")
    return 0


LOSSES = Command(
    "losses",
    "list the losses with their facts and knobs",
    "List the losses one can train with.",
    _options,
    _run,
    examples=(("workbench losses", "what there is to train with"),),
)
