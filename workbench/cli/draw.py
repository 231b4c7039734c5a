"""`workbench draw`: the pad to draw symbols on, as a page of its own."""

from __future__ import annotations

from pathlib import Path

from workbench.cli.base import Command, Options, Parser, deliver


def _options(parser: Parser) -> None:
    parser.add_argument(
        "--output", type=Path, default=Path("draw.html"), metavar="FILE", help="file to write (default: draw.html)"
    )


def _run(options: Options) -> int:
    from workbench.teaching.drawing_page import page

    return deliver(page(), options.output)


DRAW = Command(
    "draw",
    "write a page to draw symbols on, with their sets",
    "Write one HTML file with a drawing pad and a published network for 378 symbols. It needs no server and no network. "
    "Drawings are exported as a table that `workbench import` reads.",
    _options,
    _run,
    examples=(("workbench draw --output draw.html", "a page to draw symbols on, with their sets"),),
)
