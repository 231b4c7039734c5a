"""`workbench app`: the dashboard."""

from __future__ import annotations

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument(
        "--port", type=int, metavar="N", help="the port to serve on (default: the first free one from 8501)"
    )
    parser.add_argument("--headless", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--allow",
        nargs="+",
        default=(),
        metavar="MODULE",
        help="modules of yours that stored runs and links may import, with the losses and models they use",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address to listen on (default: this machine only); 0.0.0.0 draws a token unless --token gives one",
    )
    parser.add_argument(
        "--token",
        metavar="TEXT",
        help="token required from every visitor, once in the address, then in a cookie; '' requires none",
    )
    parser.add_argument("--read-only", action="store_true", help="visitors can look, but not change the store or train")
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="number of server processes behind the one address (default: 1)",
    )
    parser.add_argument("--base-path", default="", metavar="PATH", help="path of the app behind a reverse proxy")
    parser.add_argument(
        "--server-name",
        default="",
        metavar="NAME",
        help="name under which a reverse proxy is reached, such as lab.example.org; draws a token as --host does",
    )


def _run(options: Options) -> int:
    from workbench.app_server import run_app

    return run_app(
        options.port,
        headless=options.headless,
        allow=options.allow,
        host=options.host,
        token=options.token,
        read_only=options.read_only,
        base_path=options.base_path,
        server_name=options.server_name,
        workers=options.workers,
    )


APP = Command(
    "app",
    "open the workbench in a browser",
    "Open the workbench in a browser. It listens on 127.0.0.1 unless --host says otherwise; /_stcore/health says ok.",
    _options,
    _run,
    examples=(("workbench app", "open the dashboard on the demo runs"),),
)
