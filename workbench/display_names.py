"""Display names: titles and symbols in place of the names in the code.

Every loss, rule, recalibrator and backbone says its title where it is declared, every knob its symbol; what is stored and
typed keeps its name. Nothing here loads torch. Code that lives outside the workbench is never imported for its title: it is
called by the words of its name.

>>> of_spec({"loss": "NoisedTopK", "knobs": {"K": 3, "epsilon": 0.9, "n_samples": 5}})
'Noised top-K, K = 3, ε = 0.9'
>>> of_name("ClassConditionalLAC"), of_name("RandAugment"), of_name("learning_rate")
('class conditional LAC', 'rand augment', 'learning rate')
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workbench import schedules
from workbench.knobs import Knob, Knobbed, format_value
from workbench.losses import by_name
from workbench.networks import BACKBONES


def of_name(name: str) -> str:
    """The words that a name in the code is made of; an abbreviation stays one."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name.rpartition(":")[2]).replace("_", " ")
    return " ".join(word if word.isupper() or len(word) < 2 else word.lower() for word in apart.split())


def of_thing(thing: Knobbed) -> str:
    """A rule, a loss or a transform with the knobs that `Knobbed.short` tells.

    >>> from workbench.sets import LAC, AverageK
    >>> of_thing(AverageK(K=2)), of_thing(LAC(confidence=0.8))
    ('Average-K, K = 2', 'Least ambiguous sets (LAC), 1 − α = 0.8')
    """
    return _with_knobs(title_of(type(thing)), thing.knobs(), thing.settings())


def title_of(kind: type[Knobbed]) -> str:
    """The title that a kind of thing declares; else the words of its name."""
    title = getattr(kind, "title", None)
    return title if isinstance(title, str) else _begun(of_name(kind.__name__))


def of_spec(spec: Mapping[str, Any]) -> str:
    """A loss or a transform as `run.json` has it: `{"loss": name, "knobs": {…}}`."""
    name = str(spec.get("loss", spec.get("transform", spec.get("name", ""))))
    loss = by_name().get(name)
    return _with_knobs(of_loss(name), {} if loss is None else loss.knobs(), spec.get("knobs", {}))


def of_loss(name: str) -> str:
    """The title of a loss by its name."""
    loss = by_name().get(name)
    return _begun(of_name(name)) if loss is None else loss.title


def of_model(name: str) -> str:
    """The title of a backbone by its name; others by the end of theirs, with their weights if they are named.

    >>> of_model("cnn"), of_model("torchvision:vit_b_16:IMAGENET1K_V1"), of_model("my_module:wide_net")
    ('CNN', 'vit b 16 (IMAGENET1K V1)', 'wide net')
    """
    _, _, rest = name.replace("_", " ").partition(":")
    model, _, weights = rest.partition(":")
    if name in BACKBONES:
        return BACKBONES[name].title
    return f"{model} ({weights})" if weights else model or name


def of_knob(name: str, knob: Knob | None = None) -> str:
    """The symbol of a knob; without one, the words of its name."""
    return knob.symbol if knob is not None and knob.symbol else name if len(name) == 1 else of_name(name)


def of_varied(name: str) -> str:
    """Return the display name of a varied setting; a knob has the same symbol in every loss.

    >>> of_varied("loss.epsilon"), of_varied("learning_rate"), of_varied("data.rho")
    ('ε', 'learning rate', "the data's rho")
    """
    of, _, last = name.rpartition(".")
    knobs = [loss.knobs()[last] for loss in by_name().values() if of == "loss" and last in loss.knobs()]
    return f"the data's {of_knob(last)}" if of == "data" else of_knob(last, next(iter(knobs), None))


def of_value(value: Any) -> str:
    """The value of a knob as a person writes it: a schedule as `3 → 0.2`, a list without its brackets.

    >>> of_value("anneal(3.0, 0.2)"), of_value([0.5, 0.5]), of_value(True), of_value(None)
    ('3 → 0.2', '0.5, 0.5', 'yes', 'none')
    """
    if isinstance(value, str) and value.startswith("anneal("):
        value = schedules.from_text(value)
    if isinstance(value, schedules.Schedule):
        return f"{format_value(value.start)} → {format_value(value.end)}"
    if isinstance(value, Mapping):
        return of_spec(value)
    if isinstance(value, Knobbed):
        return of_thing(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(of_value, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return format_value(value)


def _with_knobs(title: str, knobs: Mapping[str, Knob], values: Mapping[str, Any]) -> str:
    """The title, its first knob, which tells most, and those that do not stand at their default."""
    first = next(iter(values), None)
    changed = {
        name: value
        for name, value in values.items()
        if name == first or name not in knobs or of_value(value) != of_value(knobs[name].initial)
    }
    return ", ".join(
        [title, *(f"{of_knob(name, knobs.get(name))} = {of_value(value)}" for name, value in changed.items())]
    )


def _begun(words: str) -> str:
    return words[:1].upper() + words[1:]
