"""`workbench app`: the dashboard."""

from __future__ import annotations

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument(
        "--port", type=int, metavar="N", help="the port to serve on (default: the first free one from 8501)"
    )
    parser.add_argument("--headless", action="store_true", help="serve, but open no browser")
    parser.add_argument(
        "--allow",
        nargs="+",
        default=(),
        metavar="MODULE",
        help="modules of yours that stored runs and addresses may import: those that their losses and models live in",
    )


def _run(options: Options) -> int:
    from workbench.launching import run_app

    return run_app(options.port, headless=options.headless, allow=options.allow)


APP = Command(
    "app",
    "open the workbench in a browser",
    "Open the workbench in a browser. It listens on 127.0.0.1 only.",
    _options,
    _run,
    examples=(("workbench app", "move K over the built-in demo"),),
)
