"""`workbench claims`: what the papers say, tried, with a verdict."""

from __future__ import annotations

import sys

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument("number", nargs="*", type=int, help="claims to run anew (default: all that have no result yet)")
    parser.add_argument("--list", action="store_true", help="list the claims and run nothing")
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder with the files that some claims read and the package does not have"
    )
    parser.add_argument(
        "--page",
        default="claims.md",
        metavar="FILE",
        help="the page to write (default: claims.md); results and pictures lie in a folder beside it, of the same name",
    )


def _run(options: Options) -> int:
    from pathlib import Path

    from workbench.claims import CLAIMS
    from workbench.claims.claim import Bench
    from workbench.claims.page import page_of, run_claims
    from workbench.store import chosen_store
    from workbench.store.atomic import whole_file

    known = {claim.number: claim for claim in CLAIMS}
    if unknown := [number for number in options.number if number not in known]:
        raise ValueError(
            f"there is no claim {unknown[0]}; there are {min(known)} to {max(known)} (workbench claims --list)"
        )
    if options.list:
        for claim in CLAIMS:
            print(f"{claim.number:>2}  {claim.says}  [{claim.source}]")
        return 0
    data = None if options.data is None else Path(options.data)
    if data is not None and not data.is_dir():
        raise ValueError(
            f"--data {options.data} is no folder; give the one that holds the files (workbench claims --list)"
        )
    page = Path(options.page)
    if page.suffix != ".md":
        raise ValueError(f"--page {options.page}: the page is Markdown; give a name that ends in .md")
    asked = [known[number] for number in options.number] or list(CLAIMS)
    folder = page.with_suffix("")
    failed = run_claims(asked, Bench(chosen_store(None), data), folder, again=options.number)
    with whole_file(page) as aside:
        aside.write_text(page_of(CLAIMS, folder, folder.name), "utf-8")
    for claim, why in failed:
        print(f"claim {claim.number} was not run: {why}", file=sys.stderr)
    print(f"written: {page}")
    return 1 if failed and options.number else 0


CLAIMS = Command(
    "claims",
    "try what the papers say, and write a page of verdicts",
    """
    Every claim is run on small data with seeds, its settings chosen on validation rows, and gets a verdict that follows
    from 95 % intervals by one rule. Runs are stored as any other; a claim that has a result is not run again unless it
    is named.
    """,
    _options,
    _run,
    examples=(
        ("workbench claims --list", "the claims and where they stand"),
        ("workbench claims 29", "a weak model on letters: where a loss for sets wins"),
    ),
)
