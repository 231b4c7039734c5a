"""A recipe as the start of a run: where controls stand at first, what has no control, and what was changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from session import messages, training_requests
from session.address import bound, one_of
from views.train.live_heads import FIXED
from workbench import display_names
from workbench.datasets import ImageTransform, Transform
from workbench.runs.recipes import RECIPES

ALONE = "its settings alone"
CONTROLLED = ("model", "loss", "transforms", *training_requests.SETTINGS)  # what the page has controls for
OF_HEADS = [name for name, recipe in RECIPES.items() if "features" in recipe.settings]
OF_NETWORKS = [name for name in RECIPES if name not in OF_HEADS]


@dataclass(frozen=True)
class Start:
    """Fields of a run that a recipe sets. `key` tells its widgets from those of another recipe."""

    name: str
    fields: Mapping[str, Any]
    key: str

    @property
    def uncontrolled(self) -> dict[str, Any]:
        """Fields that the page has no control for: a run gets them as they are."""
        return {field: value for field, value in self.fields.items() if field not in (*CONTROLLED, "features")}

    @property
    def of_images(self) -> tuple[ImageTransform, ...]:
        """The transforms of training images."""
        return tuple(each for each in self.fields.get("transforms", ()) if isinstance(each, ImageTransform))

    @property
    def of_data(self) -> tuple[Transform, ...]:
        """The transforms of the data themselves."""
        return tuple(each for each in self.fields.get("transforms", ()) if not isinstance(each, ImageTransform))


def chosen(names: Iterable[str], key: str) -> Start:
    """One of these recipes, and one of the settings that its paper compares, or none of them."""
    names = list(names)
    name = st.selectbox("Settings as in", names, **bound(key, one_of(names)))
    fields, compared = dict(RECIPES[name].settings), RECIPES[name].compared
    if not compared:
        return Start(name, fields, name)
    labels = [ALONE, *map(_in_words, compared)]
    which = st.selectbox("One of those compared there", labels, **bound(f"compared_{name}", one_of(labels)))
    at = labels.index(which)
    return Start(name, fields | dict(compared[at - 1]), f"{name}_{at}") if at else Start(name, fields, name)


def describe(start: Start, fields: Mapping[str, Any]) -> None:
    """Source of a recipe, its settings without a control, and where the fields of a run differ from it."""
    recipe = RECIPES[start.name]
    for_K = f"for K = {', '.join(map(str, recipe.K))}" if recipe.K else ""
    st.caption(messages.plain("; ".join(filter(None, (recipe.source, for_K)))))
    of_data = {"transforms": start.of_data} if start.of_data else {}
    besides = {**start.uncontrolled, **of_data, **_hidden(fields)}
    if besides:
        st.caption(messages.plain(f"Without a control, and part of this run: {_in_words(besides)}"))
    if changed := differences(start, fields):
        listed = "; ".join(
            f"{display_names.of_name(field)} is {now} and not {then}" for field, (now, then) in changed.items()
        )
        st.info(messages.plain(f"This run differs from {start.name}: {listed}."), icon=":material/difference:")


def differences(start: Start, fields: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Field → its value in a run and in the recipe, in words, where they differ."""
    then = {field: value for field, value in start.fields.items() if field in CONTROLLED}
    if "transforms" in then or fields.get("transforms"):
        then["transforms"] = start.of_images
    return {
        field: (display_names.of_value(fields[field]), display_names.of_value(value))
        for field, value in then.items()
        if field in fields and fields[field] != value
    }


def _hidden(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs of the loss that the page does not show."""
    return {name: value for name, value in fields["loss"].settings().items() if name in FIXED}


def _in_words(setting: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{display_names.of_name(field)}: {display_names.of_value(value)}" for field, value in setting.items()
    )
