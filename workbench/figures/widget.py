"""A panel as a widget of Jupyter: pictures that move in the browser and tell Python where their sliders stand.

Needs `anywidget` (the extra `notebooks`), so import it where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import anywidget
import traitlets

from workbench.figures.browser import PANEL, PANEL_STYLE, PLOTLY, WIDGET, colours, joined
from workbench.figures.style import DARK, LIGHT

if TYPE_CHECKING:
    from workbench.figures.panel import Panel

STYLE = f"{colours(LIGHT, '.wb-panel')}\n{colours(DARK, '.wb-panel.wb-night')}\n{joined([PANEL_STYLE])}"


class PanelWidget(anywidget.AnyWidget):
    """A panel in a notebook.

    `place` is the position of its sliders, `values` what they say there, and `chosen` the part of a picture that was clicked
    last; they follow the browser and can be observed. plotly.js is sent when a page asks for it, so that it is in no notebook.
    """

    _esm = joined((*PANEL, WIDGET))
    _css = STYLE
    panel = traitlets.Dict().tag(sync=True)
    place = traitlets.Int().tag(sync=True)
    chosen = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)  # below the pictures
    still = traitlets.Unicode().tag(sync=True)  # the address of a picture to show until plotly.js is there
    text = traitlets.Unicode().tag(sync=True)  # what that picture shows
    values = traitlets.Dict(read_only=True)  # label of each slider → what it says

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.on_msg(self._answer)
        self.observe(self._follow, "place")
        self._follow()

    @classmethod
    def of(cls, panel: Panel, **traits: Any) -> Self:
        """The widget of a panel, at its first position."""
        return cls(panel=panel.spec(), place=panel.start, **traits)

    def _follow(self, _: Any = None) -> None:
        self.set_trait("values", {each["label"]: each["texts"][self.place] for each in self.panel["sliders"]})

    def _answer(self, _: Any, content: dict[str, Any], __: Any) -> None:
        if content.get("ask") == "plotly":
            self.send({"answer": "plotly"}, [PLOTLY.read_bytes()])
