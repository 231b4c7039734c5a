"""`workbench worker`: the process that trains for the app."""

from __future__ import annotations

from workbench.cli.base import Command, Options


def _run(_: Options) -> int:
    from workbench.workers.server import main

    main()
    return 0


WORKER = Command(
    "worker",
    "train on request of the app (internal)",
    """
    A warm process that trains the requested runs one at a time; the app starts one for itself. Requests and
    progress are JSON, one object a line; it ends when its input closes.
    """,
    run=_run,
)
