"""Serves the app as `streamlit run` does and, while the browser still opens, loads what the first page will need."""

from __future__ import annotations

import importlib
import threading

from streamlit.web import cli

# What takes long to load: the first page would load it otherwise, with a person waiting for it.
NEEDED = ("views.sets", "plotly.graph_objects", "scipy.stats")


def warm_up() -> None:
    """Load the modules of the first page."""
    for name in NEEDED:
        importlib.import_module(name)


if __name__ == "__main__":
    threading.Thread(target=warm_up, daemon=True).start()
    cli.main(prog_name="streamlit")
