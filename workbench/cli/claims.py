"""`workbench claims`: test claims of the papers and give verdicts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workbench.cli.base import Command, Options, Parser

if TYPE_CHECKING:
    from workbench.claims.claim import Claim


def _options(parser: Parser) -> None:
    parser.add_argument("number", nargs="*", type=int, help="claims to run anew (default: all that have no result yet)")
    parser.add_argument(
        "--regime",
        metavar="NAME",
        help="only claims tried in this regime: counted, head, network, memorising or graded (default: all)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="data sets of claims that memorise: letters, and CIFAR-100 (with --data) or garden (default: both)",
    )
    parser.add_argument("--list", action="store_true", help="list the claims and run nothing")
    parser.add_argument("--write", action="store_true", help="write the page from stored results and run nothing")
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
    from workbench.claims.claim import REGIMES, Bench
    from workbench.claims.page import page_of, run_claims
    from workbench.files.atomic import whole_file
    from workbench.store import chosen_store

    numbers, regimes = {claim.number for claim in CLAIMS}, [regime.name for regime in REGIMES]
    if unknown := [number for number in options.number if number not in numbers]:
        raise ValueError(
            f"there is no claim {unknown[0]}; there are {min(numbers)} to {max(numbers)} (workbench claims --list)"
        )
    if options.regime not in (None, *regimes):
        raise ValueError(f"there is no regime {options.regime!r}; give one of {', '.join(regimes)}")
    claims = _selected(CLAIMS, options.number or sorted(numbers), options.regime)
    if options.list:
        for claim in claims:
            print(f"{claim.number:>2}  {claim.says}  [{claim.source}; {claim.regime.name}]")
        return 0
    data = None if options.data is None else Path(options.data)
    if data is not None and not data.is_dir():
        raise ValueError(
            f"--data {options.data} is not a folder; give the one that holds the files (workbench claims --list)"
        )
    page = Path(options.page)
    if page.suffix != ".md":
        raise ValueError(f"--page {options.page}: the page is Markdown; give a name that ends in .md")
    folder = page.with_suffix("")
    bench = Bench(chosen_store(None), data, only=tuple(options.only))
    failed = [] if options.write else run_claims(claims, bench, folder, again=options.number)
    with whole_file(page) as aside:
        aside.write_text(page_of(CLAIMS, folder, folder.name), "utf-8")
    for claim, why in failed:
        print(f"{claim.title} was not run: {why}", file=sys.stderr)
    print(f"written: {page}")
    return 1 if failed and options.number else 0


def _selected(claims: Iterable[Claim], numbers: Sequence[int], regime: str | None) -> list[Claim]:
    """The claims of these numbers in one regime, or in all."""
    of_numbers = [claim for claim in claims if claim.number in numbers]
    selected = [claim for claim in of_numbers if regime in (None, claim.regime.name)]
    if not selected:
        regimes = ", ".join(dict.fromkeys(claim.regime.name for claim in of_numbers))
        given = ", ".join(map(str, numbers))
        raise ValueError(f"claim {given} is not tried in the regime {regime}; it is in {regimes}")
    return selected


CLAIMS = Command(
    "claims",
    "test claims of the papers and write a page of verdicts",
    """
    Test claims of the papers on small data with several seeds. Settings are selected on validation rows, and the verdict
    follows from 95 % intervals by one rule. Claims that have a result are run again only if you name them.
    """,
    _options,
    _run,
    examples=(
        ("workbench claims --list", "the claims and their verdicts"),
        ("workbench claims 29", "a weak model on letters: where a loss for sets wins"),
        ("workbench claims 5 --regime memorising", "label noise, with networks that memorise their training rows"),
    ),
)
