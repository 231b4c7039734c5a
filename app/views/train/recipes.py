"""A recipe as the start of a run: where controls stand at first, what has no control, and what was changed since."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from session import messages, training_requests
from session.address import bound, one_of
from views.train.live_heads import FIXED
from workbench import words
from workbench.catalogue import RECIPES

ALONE = "its settings alone"
CONTROLLED = ("model", "loss", "transforms", *training_requests.SETTINGS)  # what the page has controls for
OF_HEADS = [name for name, recipe in RECIPES.items() if "features" in recipe.settings]
OF_NETWORKS = [name for name in RECIPES if name not in OF_HEADS]


@dataclass(frozen=True)
class Start:
    """Fields of a run that a recipe sets, as `run.json` has them. `key` tells its widgets from those of another."""

    name: str
    fields: Mapping[str, Any]
    key: str

    @property
    def uncontrolled(self) -> dict[str, Any]:
        """What it sets and the page has no control for: a run gets it as it stands."""
        return {field: value for field, value in self.fields.items() if field not in (*CONTROLLED, "features")}

    def of_data(self) -> list[Mapping[str, Any]]:
        """The transforms it sets that change the data themselves."""
        specs = self.fields.get("transforms", [])
        of_images = [each.spec() for each in training_requests.of_images(specs)]
        return [spec for spec in specs if spec not in of_images]


def chosen(names: Iterable[str], key: str) -> Start:
    """One of these recipes, and one of the settings that its paper compares, or none of them."""
    names = list(names)
    name = st.selectbox("Settings as in", names, **bound(key, one_of(names)))
    fields, compared = dict(RECIPES[name].settings), RECIPES[name].compared
    if not compared:
        return Start(name, fields, name)
    told = [ALONE, *(_in_words(setting) for setting in compared)]
    which = st.selectbox("One of those compared there", told, **bound(f"compared_{name}", one_of(told)))
    at = told.index(which)
    return Start(name, fields | dict(compared[at - 1]), f"{name}_{at}") if at else Start(name, fields, name)


def tell(start: Start, described: Mapping[str, Any]) -> None:
    """Where a recipe comes from, what it sets besides the controls, and where the run differs from it by now."""
    recipe = RECIPES[start.name]
    for_K = f"for K = {', '.join(map(str, recipe.K))}" if recipe.K else ""
    st.caption(messages.plain("; ".join(filter(None, (recipe.told(), for_K)))))
    besides = {
        **start.uncontrolled,
        **({"transforms": start.of_data()} if start.of_data() else {}),
        **_hidden(described),
    }
    if besides:
        st.caption(messages.plain(f"Without a control, and part of this run: {_in_words(besides)}"))
    if changed := differences(start, described):
        told = "; ".join(f"{words.of_name(field)} is {now} and not {then}" for field, (now, then) in changed.items())
        st.info(messages.plain(f"This run differs from {start.name}: {told}."), icon=":material/difference:")


def differences(start: Start, described: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Field → what a run has now and what its recipe sets, in words, where that is not the same."""
    then = {field: value for field, value in start.fields.items() if field in CONTROLLED}
    if "transforms" in then:
        then["transforms"] = [spec for spec in then["transforms"] if spec not in start.of_data()]
    elif described.get("transforms"):
        then["transforms"] = []
    now = json.loads(json.dumps({field: described.get(field) for field in then}))  # tuples as JSON has them
    then = json.loads(json.dumps(then))
    return {
        field: (words.of_value(now[field]), words.of_value(then[field])) for field in then if now[field] != then[field]
    }


def _hidden(described: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs of the loss that the page does not show."""
    return {name: value for name, value in described["loss"]["knobs"].items() if name in FIXED}


def _in_words(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{words.of_name(field)}: {words.of_value(value)}" for field, value in setting.items())
