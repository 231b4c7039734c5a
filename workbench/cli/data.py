"""`workbench data`: describe data before a model is trained."""

from __future__ import annotations

import json
from pathlib import Path

from workbench.cli.base import Command, Options, Parser
from workbench.cli.files import add_partial, add_what_a_file_holds, file_arguments


def _options(parser: Parser) -> None:
    parser.add_argument(
        "path",
        metavar="SOURCE",
        help="a dataset, its folder, or a file of scores, of listed classes, of sets or of votes, or a folder of sounds",
    )
    add_what_a_file_holds(parser)
    add_partial(parser)
    parser.add_argument(
        "--lorenz", type=Path, metavar="FILE", help="write the Lorenz curve of the classes (.html, .png, .svg)"
    )
    parser.add_argument("--json", action="store_true", help="print the description as JSON")


def _run(options: Options) -> int:
    from workbench.data_description import describe

    about = describe(options.path, **file_arguments(options))
    if options.lorenz is not None:
        _write_lorenz(about.lorenz, options.lorenz)
    print(json.dumps(about.to_json(), indent=2, ensure_ascii=False, default=str) if options.json else about)
    return 0


def _write_lorenz(figure: object, path: Path) -> None:
    from workbench.figures.data.inequality import Lorenz

    if not isinstance(figure, Lorenz):
        raise ValueError("--lorenz: there are no labels to count")
    if path.suffix == ".html":
        path.write_text(figure.page(), encoding="utf-8")
    elif path.suffix in (".png", ".svg"):
        figure.static().savefig(path, dpi=200)
    else:
        raise ValueError(f"--lorenz {path}: give a name that ends in .html, .png or .svg")


DATA = Command(
    "data",
    "describe data before a model is trained",
    """
    Describe a dataset (by name or folder), a file of scores, of listed classes, of sets, or of votes (answers.json of
    peerannot), or a folder of .wav files in folders of classes: classes, groups, counts, attributes of rows, and examples.
    """,
    _options,
    _run,
    examples=(("workbench data answers.jsonl", "describe a file before anything is trained"),),
)
