"""A static figure that shows itself. A module of its own, because matplotlib is loaded only when something is drawn."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Sheet(Figure):
    """A matplotlib figure that a notebook shows as it is, with or without pyplot; its label is its words."""

    def __repr__(self) -> str:
        return str(self.get_label() or super().__repr__())

    def _repr_png_(self) -> bytes:
        return png(self)


def png(figure: Figure) -> bytes:
    """A static figure as the content of a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png", facecolor=figure.get_facecolor())
    return file.getvalue()
