"""`workbench reproduce`: recompute a table of a paper beside the printed numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from workbench.cli.base import Command, Options, Parser

if TYPE_CHECKING:
    from workbench.claims import PaperTable, Reproduction

FORMATS = ("text", "markdown", "latex", "csv")


def _options(parser: Parser) -> None:
    parser.add_argument("table", nargs="?", help="its name, such as '001 Table 2'; without one, all tables are listed")
    parser.add_argument("--list", action="store_true", help="list all tables and their reproductions")
    parser.add_argument(
        "--data",
        action="append",
        metavar="PATH",
        help="the data of the paper, or other data that meet its requirements; if it has several, NAME=PATH for each that "
        "is to be run",
    )
    parser.add_argument(
        "--small", action="store_true", help="the same protocol at a reduced scale, on data of the package"
    )
    parser.add_argument("--printed", action="store_true", help="show the printed numbers and the settings; run nothing")
    parser.add_argument(
        "--tune", action="store_true", help="search the parameters as the paper did, on validation rows"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="number of seeds (default: that of the paper)")
    parser.add_argument("--model", metavar="NAME", help="the network, where the paper fine-tunes a published one")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 or mps (default: auto)")
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="ranks that share each batch (default: 1)")
    parser.add_argument(
        "--share",
        metavar="I/N",
        help="train the I-th of N parts of the runs: for N machines that work side by side on one store",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="what to print (default: text)")


def _run(options: Options) -> int:
    from workbench.claims import TABLES

    if options.list or options.table is None:
        _list_all()
        return 0
    table = TABLES[options.table]
    if options.printed:
        _describe(table)
        return 0
    found = table.reproduce(
        _data(table, options.data),
        small=options.small,
        tune=options.tune,
        seeds=options.seeds,
        model=options.model,
        device=options.device,
        devices=options.devices,
        share=_share(options.share),
    )
    for message in found.diverged:
        print(f"diverged: {message}", file=sys.stderr)
    _show(found, options.format)
    return 0


def _data(table: PaperTable, given: list[str] | None) -> dict[str, str] | str | None:
    """A path, or one for each dataset that was named."""
    names = [one.name for one in table.data]
    pairs = dict(text.rsplit("=", 1) for text in given or () if text.rsplit("=", 1)[0] in names and "=" in text)
    if given and len(pairs) < len(given):
        if len(given) > 1 or pairs or len(names) > 1:
            raise ValueError(
                f"--data {' '.join(given)}: {table.name} is about {', '.join(names)}; give --data '{names[0]}=PATH', and so on"
            )
        return given[0]
    return pairs or None


def _share(given: str | None) -> tuple[int, int]:
    """The part of the runs to train, and the number of parts."""
    mine, _, of = (given or "1/1").partition("/")
    if not (mine.isdigit() and of.isdigit()):
        raise ValueError(f"--share {given}; give which part of the runs to train and of how many, such as 2/4")
    return int(mine), int(of)


def _list_all() -> None:
    from workbench.claims import TABLES

    wide = max(map(len, TABLES))
    for name, table in TABLES.items():
        scales = ["small" if found.small else "whole" for found in table.reproductions() if table.protocol is not None]
        stored = f"  (stored: {', '.join(scales)})" if scales else ""
        print(f"{name:<{wide}}  {table.paper}: {table.title}{stored}")
    print("next: workbench reproduce '001 Table 2' --small, or --data PATH for the scale of the paper")


def _describe(table: PaperTable) -> None:
    """Print the printed numbers and how the table would be run."""
    print(f"{table.name}: {table.title}\n{table.citation}\n\n{table.markdown()}")
    for name, words in table.conditions().items():
        print(f"{name}: {words}")


def _show(found: Reproduction, how: str) -> None:
    if how == "csv":
        print(found.frame.to_csv(index=False), end="")
    elif how == "latex":
        print(found.latex(), end="")
    else:
        heading = f"{found.title}: {found.table.title}\n{found.table.citation}\n\n" if how == "text" else ""
        print(f"{heading}{found.markdown()}", end="")


REPRODUCE = Command(
    "reproduce",
    "recompute a table of a paper and compare",
    """
    Train the runs of a table of a paper and print our numbers beside the printed ones. Runs and results are stored: an
    interrupted call resumes, several machines can share the work (--share), and the app shows the result (Compare,
    Papers' tables). The data are checked before training starts.
    """,
    _options,
    _run,
    examples=(("workbench reproduce '001 Table 2' --small", "a table of a paper at a reduced scale"),),
)
