"""Serves the app as `streamlit run` does and, while the browser still opens, loads what the first page will need."""

from __future__ import annotations

import importlib
import sys
import threading

from streamlit.web import cli

FIRST_VIEW = "views.sets"  # it takes long to load: the first page would do so otherwise, with a person waiting for it
SWITCH = 0.0005  # seconds after which a thread that computes lets the others go on, so that what is ready is sent


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH)
    threading.Thread(target=importlib.import_module, args=(FIRST_VIEW,), daemon=True).start()
    cli.main(prog_name="streamlit")
