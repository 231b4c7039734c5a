"""A static figure that shows itself. A module of its own, because matplotlib is loaded only when something is drawn."""

from __future__ import annotations

import base64
import html
import io
import warnings

from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure


class Sheet(Figure):
    """A matplotlib figure that a notebook shows as it is, with or without pyplot; its label is its words."""

    def draw(self, renderer: RendererBase) -> None:
        with warnings.catch_warnings():
            # Matplotlib times how long it looks for a free place for a legend; on a busy machine that says nothing.
            warnings.filterwarnings("ignore", message="Creating legend with loc")
            super().draw(renderer)

    def __repr__(self) -> str:
        return str(self.get_label() or super().__repr__())

    def _repr_png_(self) -> bytes:
        return png(self)

    def _repr_html_(self) -> str:
        return image(self)  # for pages: those of a notebook give a PNG no words of its own


def png(figure: Figure) -> bytes:
    """A static figure as the content of a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png", facecolor=figure.get_facecolor())
    return file.getvalue()


def image(figure: Figure) -> str:
    """A static figure as an image of a page, its words as the text alternative."""
    return f'<img src="{address(figure)}" alt="{html.escape(str(figure.get_label()))}">'


def address(figure: Figure) -> str:
    """A static figure as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png(figure)).decode()}"
