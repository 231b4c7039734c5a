"""The widget of `explore`: where its sliders stand, as traits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from workbench.figures.base import Click, counted
from workbench.figures.static import address
from workbench.figures.widget import PanelWidget
from workbench.metrics.rows import RowFilter

if TYPE_CHECKING:
    from workbench.figures.sets.explorer import Explorer

HEIGHT = 300  # pixels of a picture: two lines of them are on one screen


class ExplorerWidget(PanelWidget):
    """The dashboard. `K`, `threshold`, `confidence`, `tau` and `selected_rows` follow sliders and clicks, and can be observed."""

    K = traitlets.Float(read_only=True)
    threshold = traitlets.Float(read_only=True)
    confidence = traitlets.Float(float("nan"), read_only=True)  # where val has no labels
    tau = traitlets.Float(read_only=True)
    selected_rows = traitlets.Instance(np.ndarray, read_only=True)

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._selection: RowFilter | None = None
        panel = explorer.panel(height=HEIGHT, night=True)
        still = address(explorer.static())
        super().__init__(panel=panel.spec(), place=panel.start, still=still, text=explorer.text)
        self.observe(self._choose, "chosen")

    def _choose(self, _: Any) -> None:
        """Select the rows behind a click; the selection stays when the sliders move."""
        picture, *click = (self.chosen[name] for name in ("picture", "trace", "point", "data"))
        self._selection = self._explorer.rows_behind_click(picture, Click(*click))
        self._select()

    def _follow(self, _: Any = None) -> None:
        super()._follow()
        for name, values in self._explorer.linked.along.items():
            self.set_trait(name, float(values[self.place]))
        self.set_trait("tau", self._explorer.taus[self.place // self._explorer.linked.block])
        self._select()

    def _select(self) -> None:
        rows, self.note = np.array([], int), ""
        if self._selection is not None:
            rows = self._selection.rows(self._explorer.sets_at(self.place))
            self.note = f"{counted(len(rows), 'row')} selected; their numbers are in selected_rows."
        self.set_trait("selected_rows", rows)
