"""`workbench check`: whether this machine is ready for a course."""

from __future__ import annotations

import platform
import socket
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec

from workbench.cli.base import Command, Options

OLDEST = (3, 11)


def python() -> str:
    """The version of Python."""
    if sys.version_info < OLDEST:
        raise RuntimeError(f"Python {platform.python_version()}; install {OLDEST[0]}.{OLDEST[1]} or newer")
    return platform.python_version()


def packages() -> str:
    """The packages that app, notebooks and training need."""
    missing = [name for name in ("torch", "streamlit", "plotly", "jupyterlab", "matplotlib") if find_spec(name) is None]
    if missing:
        raise RuntimeError(f"missing: {', '.join(missing)}; run pip install 'set-workbench[all]'")
    return "all there"


def store() -> str:
    """The folder of runs can be written to."""
    from workbench.store import Store

    folder = Store().root
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return str(folder)


def demo() -> str:
    """The demo run opens and gives sets."""
    from workbench.sets import AverageK
    from workbench.teaching.demo_tables import tables

    val, test = tables("garden", "CrossEntropy")
    return f"{AverageK(3).fit(val)(test).sizes.mean():.2f} classes on average for K = 3"


def training() -> str:
    """A loss has a gradient."""
    import torch

    from workbench.losses import CrossEntropy

    scores = torch.zeros(1, 3, requires_grad=True)
    CrossEntropy()(scores, torch.tensor([0])).sum().backward()
    return f"torch {torch.__version__}"


def port() -> str:
    """A port for the app is free on this machine."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listening.getsockname()[1]} is free"


CHECKS: tuple[Callable[[], str], ...] = (python, packages, store, demo, training, port)


def _run(_: Options) -> int:
    failed = 0
    for check in CHECKS:
        try:
            print(f"✓ {check.__name__}: {check()}")
        except Exception as error:
            failed += 1
            print(f"✗ {check.__name__}: {error}")
    print("Ready." if not failed else f"{failed} of {len(CHECKS)} checks failed.")
    return int(failed > 0)


CHECK = Command(
    "check",
    "check that this machine is ready for a course",
    "Check Python, packages, the folder of runs, the demo, a gradient and a free port, and print one line for each. Run it "
    "before a course.",
    run=_run,
    examples=(("workbench check", "is this machine ready?"),),
)
