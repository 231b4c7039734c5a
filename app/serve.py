"""Serves the app as `streamlit run` does and, while the browser still opens, makes what the first page will show."""

from __future__ import annotations

import contextlib
import sys
import threading

from streamlit.web import cli

SWITCH = 0.0005  # seconds after which a thread that computes lets the others go on, so that what is ready is sent


def warm_up() -> None:
    """Load the modules of the first page and make its pictures, of the run that is shown when no other is asked for."""
    import reading
    from views import sets

    with contextlib.suppress(ValueError, OSError):  # the page says what is wrong with a run
        for run in reading.runs()[:1]:
            sets.prepare(run.key[: reading.SHORT])


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH)
    threading.Thread(target=warm_up, daemon=True).start()
    cli.main(prog_name="streamlit")
