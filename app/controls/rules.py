"""Which rule makes the sets of a page: one threshold, moved in the browser, or any other rule of the library."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import streamlit as st

import live
import workbench as wb
from controls import knobs
from controls.headline import numbers_of, strip
from controls.places import CONFIDENCES
from session import messages, reading
from session.address import bound, in_address, one_of
from workbench.knobs import shown
from workbench.sets import RULES, ConformalRule, Rule

STEPS = {"confidence": CONFIDENCES}
ONE_THRESHOLD = "one threshold"
KEPT = "kept rule"  # of a session: the rule that was chosen last with its knobs, as the widgets are named; None: one threshold
OTHERS = {rule.__name__: rule for rule in RULES if rule not in reading.SLIDERS.values()}


@dataclass(frozen=True)
class ChosenRule:
    """How the sets of a page are made: by a rule, and where the sliders stand if they chose it (None: another rule).

    `channel` is where the moving parts of the page listen.
    """

    key: str
    rule: Rule
    place: int | None

    @property
    def channel(self) -> str:
        return self.key if self.place is not None else f"{self.key} {self.rule!r}"

    @property
    def sets(self) -> wb.PredictionSets:
        """The sets of the test rows."""
        return self.of(self.key)

    def of(self, key: str) -> wb.PredictionSets:
        """The sets that the rule, fitted on the validation rows of a run, gives its test rows."""
        return reading.sets_by(key, repr(self.rule))


def kept() -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The rule that was chosen last, as state of its widgets and as it stands in the address; None: one threshold.

    None also where the address names a rule itself.
    """
    kept = st.session_state.get(KEPT)
    return None if kept is None or "rule" in st.query_params else (kept, changed(kept))


def changed(kept: dict[str, Any]) -> dict[str, Any]:
    """Of a rule that was kept, what stands in the address: its name, and the knobs that are not at their default."""
    knobs = OTHERS[kept["rule"]].knobs()
    moved = {name: kept[f"rule_{name}"] for name, knob in knobs.items() if kept[f"rule_{name}"] != knob.default}
    return {"rule": kept["rule"], **{f"rule_{name}": shown(value).lower() for name, value in moved.items()}}


def choose(view: str, key: str) -> ChosenRule:
    """The chooser of rules, the controls of the chosen one, and the headline numbers, which stay in sight."""
    in_address(key)
    labelled = reading.run(key).tables["val"].labels is not None
    names = [name for name, rule in OTHERS.items() if labelled or not issubclass(rule, ConformalRule)]
    names = [ONE_THRESHOLD, *names]
    name = st.segmented_control("Rule", names, default=ONE_THRESHOLD, required=True, **bound("rule", one_of(names)))
    if name == ONE_THRESHOLD:
        st.session_state[KEPT] = None
        with st.container(key="headline"):
            position = strip(view, key)
        if reading.run(key).tables["val"].chose_model:
            st.caption("The validation rows also chose the weights that were kept, so nothing can be promised.")
        return ChosenRule(key, position.rule, position.place)
    chosen = OTHERS[name]
    st.caption(f"**{chosen.title}.** {inspect.getdoc(chosen).splitlines()[0]}")  # type: ignore[union-attr]
    with st.container(key="knobs"):
        values = {
            name: knobs.widget(name, knob, knob.default, key=f"rule_{name}", steps=STEPS.get(name, 101))
            for name, knob in chosen.knobs().items()
        }
    st.session_state[KEPT] = {"rule": name, **{f"rule_{knob}": value for knob, value in values.items()}}
    made = ChosenRule(key, chosen(**values), None)
    for warning in reading.warnings_of(key, repr(made.rule)):
        st.warning(messages.plain(warning), icon=":material/warning:")
    with st.container(key="headline"):
        live.sliders(made.channel, [], numbers_of(made.sets), held="", place=0, key=f"numbers of {view}")
    return made
