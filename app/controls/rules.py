"""Choice of the rule of a page: one threshold, moved in the browser, or any other rule of the library."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import live
import workbench as wb
from controls import knobs
from controls.bar import bar
from controls.headline import channel_of, numbers_along, numbers_of, strip
from controls.positions import CONFIDENCES, along
from session import cached_data, messages
from session.address import KEPT, bound, in_address, one_of
from session.sliced_runs import whole
from workbench.figures.film import affordable
from workbench.files.cache import content_key
from workbench.knobs import Knob, format_value
from workbench.sets import RULES, Mondrian, Rule

STEPS = {"confidence": CONFIDENCES}
ASKED = "rule that was asked for"  # of a session, until the bar is drawn
ONE_THRESHOLD, HEAD_OR_TAIL = "One threshold", "Head or tail"
ABOUT_ONE_THRESHOLD = (
    "A class is in the set if its probability is at least λ. Choose λ itself, or the average size K, or the coverage 1 − α: "
    "the three sliders move together."
)
ABOUT_HEAD_OR_TAIL = (
    "One threshold of the probability divided by how common the class is, to the power τ. At τ = 0 all rows count alike, which "
    "favours common classes; at τ = 1 all classes do."
)
OF_SLIDERS = tuple(cached_data.SLIDERS.values())
# Those of the linked sliders stand last: as rules they have settings, such as that no set is empty.
OTHERS = {rule.title: rule for rule in sorted(RULES, key=lambda rule: rule in OF_SLIDERS)}
NO_EMPTY, ABOUT_NO_EMPTY = "no_empty", "An empty set gets the most probable class. In code: `min_size=1`."
ABOUT = {ONE_THRESHOLD: ABOUT_ONE_THRESHOLD, HEAD_OR_TAIL: ABOUT_HEAD_OR_TAIL} | {
    name: (inspect.getdoc(rule) or "").splitlines()[0] for name, rule in OTHERS.items()
}
# What a rule promises, in words, in the order of the list: the linked sliders, then the kinds of promises of the library.
PROMISES = {
    ONE_THRESHOLD: "Average size, or coverage",
    HEAD_OR_TAIL: "Head ↔ tail: rows or classes",
    "size": "Size of every set",
    "coverage": "Coverage of other sets",
    "macro-coverage": "Coverage, mean over classes",
    "class coverage": "Coverage of each class",
    "group coverage": "Coverage of each group",
    "risk": "Bounded risk",
    "nothing": "Nothing proven",
}
ABOUT_PROMISES = """What holds for new rows, whatever the network:
- **Average size, or coverage**: sets have K classes on average, or contain the label with probability 1 − α. One threshold.
- **Head ↔ tail**: the same, and τ chooses whether the sets serve rows or classes.
- **Size of every set**: K classes in each.
- **Coverage of other sets**: probability 1 − α too, by other scores, under shift, or from votes.
- **Coverage, mean over classes**: rare and common classes count alike.
- **Coverage of each class** or **of each group**: 1 − α inside each.
- **Bounded risk**: the expected loss is below a level.

The button beside it chooses among the rules that keep the promise, and their settings."""


@dataclass(frozen=True)
class ChosenRule:
    """How the sets of a page are made: by a rule, and where the sliders stand if they chose it (None: another rule).

    `along` is another rule, as Python writes it, at every place of the slider that leads it; None where its sets are not
    known ahead. `channel` is where the moving parts of the page listen, of all rows and of a slice. Where probabilities are
    `adjusted`, τ is a slider too.
    """

    key: str
    rule: Rule
    place: int | None
    along: tuple[str, ...] | None = None
    adjusted: bool = False

    @property
    def channel(self) -> str:
        run = whole(self.key)
        if self.place is not None:
            return channel_of(run, self.adjusted)
        return f"{run} {content_key(self.along or repr(self.rule))[:12]}"

    @property
    def moves(self) -> bool:
        """Whether pictures follow its slider in the browser."""
        return self.place is not None or self.along is not None

    @property
    def sets(self) -> wb.PredictionSets:
        """The sets of the test rows."""
        return self.of(self.key)

    def of(self, key: str) -> wb.PredictionSets:
        """The sets that the rule, fitted on the validation rows of a run, gives its test rows."""
        return cached_data.sets_by(key, repr(self.rule))


def last_rule() -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The rule that was chosen last, as state of its widgets and as it stands in the address; None: one threshold.

    None also where the address names a rule itself.
    """
    kept = st.session_state.get(KEPT)
    return None if kept is None or "rule" in st.query_params else (kept, changed(kept))


def changed(kept: dict[str, Any]) -> dict[str, Any]:
    """Of a rule that was kept, what stands in the address: its name, and the knobs that are not at their default."""
    knobs = OTHERS[kept["rule"]].knobs() if kept["rule"] in OTHERS else {}
    moved = {name: kept[f"rule_{name}"] for name, knob in knobs.items() if kept[f"rule_{name}"] != knob.default}
    return {"rule": kept["rule"], **{f"rule_{name}": _written(value) for name, value in moved.items()}}


def choose(view: str, key: str) -> ChosenRule:
    """The bar of a view of sets: the rule, its controls and the headline numbers. Below it, what the rule warns of."""
    in_address(whole(key))
    val = cached_data.run(key).tables["val"]
    adjustable = [HEAD_OR_TAIL] if val.class_counts is not None else []
    names = [ONE_THRESHOLD, *adjustable, *(name for name, rule in OTHERS.items() if not rule().missing(val))]
    if (requested := st.session_state.pop(ASKED, None)) in names:
        st.session_state["rule"] = requested
    with bar():
        # As many elements whatever the rule is: a widget below that changed its place would stop writing the address.
        promise = st.container(key="promised")
        settings = st.popover("Rule and its settings", icon=":material/tune:", type="tertiary")
        controls = st.container(key="headline", horizontal=True, vertical_alignment="center", gap="medium")
    name = settings.selectbox("How sets are made", names, help=_about_rules(names), **bound("rule", one_of(names)))
    settings.caption(ABOUT[name])
    with promise:
        _choose_promise(name, names)
    notes = st.container(key="notes")
    if name in (ONE_THRESHOLD, HEAD_OR_TAIL):
        adjusted = name == HEAD_OR_TAIL
        st.session_state[KEPT] = {"rule": HEAD_OR_TAIL} if adjusted else None
        with controls:
            position = strip(view, key, adjusted)
        if cached_data.run(key).tables["val"].chose_model:
            notes.caption("The validation rows also chose the weights that were kept, so nothing can be promised.")
        made = ChosenRule(key, position.rule, position.place, adjusted=adjusted)
        with settings:
            _no_empty_sets(made)
        return made
    with controls:
        made = _controlled(view, key, OTHERS[name], settings)
    with settings:
        _no_empty_sets(made)
    for warning in cached_data.warnings_of(key, repr(made.rule)):
        notes.warning(messages.plain(warning), icon=":material/warning:")
    return made


def _no_empty_sets(made: ChosenRule) -> None:
    """The switch that leaves no set empty, with its price; of a small table, where the sets are quickly formed twice.

    Where a row may have no label an empty set is an answer, so there is no switch.
    """
    test, rule = cached_data.run(made.key).tables["test"], made.rule
    if test.many_labels or not affordable(test) or "min_size" not in rule.knobs():
        return
    if made.adjusted and "tau" not in rule.knobs():
        return
    least = int(rule.min_size)  # type: ignore[attr-defined]
    st.session_state[NO_EMPTY] = least > 0
    st.toggle("No empty sets", key=NO_EMPTY, help=ABOUT_NO_EMPTY, on_change=_take_no_empty, args=(made,))
    filled = rule if least else dataclasses.replace(rule, min_size=1)  # type: ignore[call-arg]
    price = cached_data.sets_by(made.key, repr(filled)).min_size_price()
    st.caption(f"The switch {price.partition(' ')[2]}.")  # without the name of the knob


def _take_no_empty(made: ChosenRule) -> None:
    """Fill empty sets or not: the rule of the sliders becomes one with settings, and back."""
    with_class, rule = st.session_state[NO_EMPTY], type(made.rule)
    if made.place is None and not with_class and rule in OF_SLIDERS:
        st.session_state["rule"] = ONE_THRESHOLD
        return
    if made.place is not None:
        st.session_state["rule"] = rule.title
        for name, knob in rule.knobs().items():
            if knob.numeric and name != "min_size":
                value = getattr(made.rule, name)
                st.session_state[f"rule_{name}"] = min(options(rule, name), key=lambda option: abs(option - value))
    st.session_state["rule_min_size"] = int(with_class)


def _choose_promise(name: str, names: Sequence[str]) -> None:
    """The promise of the sets, in words; choosing another promise chooses the first rule that keeps it."""
    first: dict[str, str] = {}
    for each in names:
        first.setdefault(promise_of(each), each)
    ordered = [words for words in PROMISES.values() if words in first]
    st.session_state["promise"] = promise_of(name)
    st.selectbox(
        "What is promised", ordered, key="promise", help=ABOUT_PROMISES, on_change=_take_promise, args=(first,)
    )


def _take_promise(first: dict[str, str]) -> None:
    st.session_state["rule"] = first[st.session_state["promise"]]


def open_rule(name: str) -> None:
    """Choose a rule by the name of its class, as if it had been chosen in the bar."""
    chosen = {rule.__name__: title for title, rule in OTHERS.items()}
    linked = {rule.__name__: ONE_THRESHOLD for rule in cached_data.SLIDERS.values()}
    st.session_state[ASKED] = {**chosen, **linked}[name]
    st.rerun(scope="fragment")


def promise_of(name: str) -> str:
    """The promise of a rule, in words."""
    if name in OTHERS and OTHERS[name] not in OF_SLIDERS:
        return PROMISES[OTHERS[name].guarantee]
    return PROMISES[HEAD_OR_TAIL if name == HEAD_OR_TAIL else ONE_THRESHOLD]


def _controlled(view: str, key: str, chosen: type[Rule], settings: DeltaGenerator) -> ChosenRule:
    """The knobs of a rule, the first of them in sight and the others behind a button, and its headline numbers."""
    declared = offered(chosen, cached_data.run(key).tables["val"])
    first, *others = declared
    values = {first: _knob(first, declared[first])}
    with settings:
        values |= {name: _knob(name, declared[name]) for name in others}
    st.session_state[KEPT] = {"rule": chosen.title, **{f"rule_{knob}": value for knob, value in values.items()}}
    leader = leads(chosen, key)
    known_ahead = None if leader is None else every_place(chosen, values, leader)
    made = ChosenRule(key, chosen(**values), None, known_ahead)
    numbers_in_sight(view, made, leader)
    return made


def _knob(name: str, knob: Knob) -> Any:
    return knobs.widget(name, knob, knob.default, key=f"rule_{name}", steps=STEPS.get(name, 101))


def _about_rules(names: Sequence[str]) -> str:
    """Each rule in one line."""
    return "\n".join(f"- **{name}**: {ABOUT[name]}" for name in names)


def _written(value: Any) -> str:
    """The value of a knob as it stands in the address."""
    return format_value(value).lower() if isinstance(value, bool) else format_value(value)


def offered(rule: type[Rule], val: wb.LogitTable) -> dict[str, Knob]:
    """The knobs of a rule; rows can be grouped by every attribute that they have."""
    found = rule.knobs()
    if "by" in found and rule is Mondrian:
        known = {"label": True, "groups": val.groups is not None, "shots": val.class_counts is not None}
        groups = (*(name for name, there in known.items() if there), *(val.attributes or {}))
        found["by"] = dataclasses.replace(found["by"], choices=groups)
    return found


def leads(rule: type[Rule], key: str) -> str | None:
    """The knob of a rule that pictures follow in the browser: its first; None where that would take too long.

    On a card a set is the first of the classes, as they fall in probability; one of a threshold for every class is not.
    """
    test = cached_data.run(key).tables["test"]
    if rule.reorders or not affordable(test):
        return None
    return next((name for name, knob in rule.knobs().items() if knob.numeric), None)


def every_place(rule: type[Rule], values: dict[str, Any], leader: str) -> tuple[str, ...]:
    """The rule at every value of the knob that leads."""
    return tuple(repr(rule(**{**values, leader: value})) for value in options(rule, leader))


def options(rule: type[Rule], name: str) -> list[float]:
    """The values to choose from, of a knob of a rule."""
    knob = rule.knobs()[name]
    return knobs.options_of(knob, knob.default, key=f"rule_{name}", steps=STEPS.get(name, 101))


def numbers_in_sight(view: str, made: ChosenRule, leader: str | None) -> None:
    """The headline numbers of another rule, which follow its slider if they are known ahead."""
    if made.along is None or leader is None:
        live.sliders(made.channel, [], numbers_of(made.sets), held="", place=0, key=f"numbers of {view}")
        return
    numbers = numbers_along(made.sets.table, along(made.key, made.along, None))
    follows = live.Followed(f"rule_{leader}", [format_value(value) for value in options(type(made.rule), leader)])
    live.sliders(made.channel, [], numbers, held="", place=0, key=f"numbers of {view}", follows=follows)
