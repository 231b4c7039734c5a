"""`workbench site`: lessons, quiz, losses and the demo as a static site."""

from __future__ import annotations

from pathlib import Path

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder to write, created if missing")
    parser.add_argument("--only", nargs="+", metavar="PAGE", help="write these pages, such as lesson_3 or sets")


def _run(options: Options) -> int:
    from workbench.teaching import site

    written = site.write(options.folder, only=options.only, guide=options.only is None)
    if options.only is None and not site.has_guide():
        print(f"left out: {site.NO_GUIDE}")
    print(f"written: {len(written)} pages in {options.folder}; open {written[0]}")
    return 0


SITE = Command(
    "site",
    "write lessons, quiz, losses and the demo as a static site",
    "Write the lessons, the quiz, the drawing pad, the losses with their knobs, and the demo's sets, classes and calibration "
    "as files that need no server and no network. Each picture can be embedded in another page by one line.",
    _options,
    _run,
    examples=(("workbench site public", "the site in the folder public, for any web server"),),
)
