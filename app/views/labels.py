"""Labels: rows that show none of the classes, and rows that show several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

import live
import workbench as wb
from controls.bar import bar, introduce, tools
from controls.headline import strip
from controls.positions import places
from controls.runs import chosen_runs, code_opening, looks_by_key, titles
from drawing.figures import draw, following, pictures
from drawing.handout import handout
from session import cached_data, messages
from session.address import in_address
from session.navigation import choose_run
from views.samples import open_rows
from workbench.figures.film import Film
from workbench.figures.sets.agreement import F1AgainstThreshold
from workbench.metrics.comparison import zero_and_many

ABOUT = (
    "A row may show none of the classes, or several at once. Where no class reaches the threshold the set is empty: the answer "
    "is “none of these”. Softmax must hand out a total of 1, whatever is there; sigmoids judge each class alone; quasibinary "
    "shares one constant between all rows."
)
WORDS = (
    *("none of these", "threshold", "mean maximum confidence"),
    *("area under the curve", "agreement with many labels", "link"),
)
TALL = 420  # pixels of a picture
TOP, BINS = 4, 10  # of the reliability of many labels (Liao et al., Fig. 3)


def in_per_cent(title: str, about: str) -> Any:
    """A column of shares, as they are written everywhere."""
    return st.column_config.NumberColumn(title, format="%.1f%%", help=about)


SHARES = {
    "in_accuracy": in_per_cent("Right with label", "how often the most probable class of a row with a label is one"),
    "mmc_with": in_per_cent("MMC with label", "mean of the largest probability of rows with a label"),
    "mmc_without": in_per_cent("MMC without", "the same of rows without a label: low is good"),
    "auroc": in_per_cent("AU-ROC", wb.metrics.auroc.definition),
    "fpr_at_95": in_per_cent("FPR at 95 %", wb.metrics.fpr_at_95.definition),
    "micro_f1": in_per_cent("Micro F1", wb.metrics.micro_f1.definition),
    "macro_f1": in_per_cent("Macro F1", wb.metrics.macro_f1.definition),
    "exact_match": in_per_cent("Exact match", wb.metrics.exact_match.definition),
    "calibration_error": in_per_cent("Calibration error", wb.metrics.top_k_calibration_error.definition),
}
COLUMNS = {"table": st.column_config.TextColumn("Run"), **SHARES}


def page() -> None:
    """The view."""
    introduce("Labels", ABOUT, *WORDS)
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the sliders; the table follows when a slider is released."""
    in_address(key)
    with bar(), st.container(key="headline"):
        position = strip("labels", key)
    threshold = float(places(key).thresholds[position.place])
    test = cached_data.run(key).tables["test"]
    if not test.many_labels:
        say_what_is_missing(test)
        offer_one_that_fits()
        with pictures():
            moving_picture(key, key, threshold, "How sure is the network?", dark)
        return
    others = cached_data.comparable(key)
    with tools():
        chosen = chosen_runs("Compare with", key, others) if others else []
    names = titles((key, *chosen))
    with pictures():
        f1_picture(key, names, threshold, dark)  # all of them at once come first
        for each, name in names.items():
            moving_picture(key, each, threshold, headed(names, name, "which rows are told “none of these”?"), dark)
        for each, name in names.items():
            table = cached_data.run(each).tables["test"]
            draw(
                f"reliability-{each}",
                each,
                lambda table=table: wb.figures.reliability(table, bins=BINS, K=min(TOP, table.n_classes)),
                dark,
                title=headed(names, name, f"are the {min(TOP, table.n_classes)} largest probabilities right?"),
                height=TALL,
            )
    numbers(names, threshold)


def say_what_is_missing(test: wb.LogitTable) -> None:
    """Why a table shows less here than one with many labels does, and what it still shows."""
    if test.labels is None:
        st.info(
            "These rows have no labels that are known: it can be seen how sure the network is, not whether it should be.",
            icon=":material/label_off:",
        )
    elif not test.labelled.all():
        st.info(
            f"{int((~test.labelled).sum())} rows here have no label and the others exactly one: there is no F1, but it can "
            "be seen whether the network is less sure of those without.",
            icon=":material/looks_one:",
        )
    else:
        st.info(
            "Every row here has exactly one label, so no row belongs to none of the classes and none to several: there "
            "is no AU-ROC and no F1. What can be seen is how sure the network is, and how many rows a threshold leaves "
            "without an answer. A run whose rows have several labels, or none, shows the rest.",
            icon=":material/looks_one:",
        )


def offer_one_that_fits() -> None:
    """A button that shows a run whose rows have none or several labels, if there is one."""
    fitting = [run for run in cached_data.runs() if run.many_labels]
    for run in fitting[:1]:
        name = cached_data.named(cached_data.runs())[run.short]
        if st.button(f"Show {messages.plain(name)}", icon=":material/label:", on_click=choose_run, args=(run.key,)):
            st.rerun()  # all of the page: this fragment alone would run again with the run it was called with


def headed(names: dict[str, str], name: str, question: str) -> str:
    """The question above a picture, with the name of its run if there are several."""
    return f"{name}: {question}" if len(names) > 1 else question[:1].upper() + question[1:]


@messages.friendly
def numbers(names: dict[str, str], threshold: float) -> None:
    """The runs side by side."""
    frame = side_by_side(names, threshold)
    title = "Side by side on the same rows" if len(names) > 1 else "In numbers"
    with st.container(key="side-by-side"):
        st.html(
            f'<div class="wb-live"><h2 class="wb-title">{title}</h2>'
            f'<p class="wb-subtitle">Sets at the threshold {threshold:.3g}; the other columns need none</p></div>'
        )
        shown = frame.assign(**{name: 100 * frame[name] for name in SHARES})
        st.dataframe(shown, column_config=COLUMNS, column_order=list(COLUMNS), hide_index=True, placeholder="")
        st.download_button("Table (CSV)", lambda: frame.to_csv(index=False), "labels.csv", "text/csv", type="tertiary")


@st.cache_data(show_spinner="Judging the sets…", max_entries=64)
def side_by_side(names: dict[str, str], threshold: float) -> pd.DataFrame:
    """`wb.comparison.zero_and_many` of the runs."""
    return zero_and_many({name: cached_data.run(key).tables["test"] for key, name in names.items()}, threshold)


@messages.friendly
def moving_picture(channel: str, key: str, threshold: float, title: str, dark: bool) -> None:
    """Confidence of the rows of a run; the line follows the sliders of the page, and a bar opens its rows."""
    with st.container(key=f"figure-confidence-{key}"):
        made = at_every_place(channel, key, title, dark)
        clicked = live.figure(channel, made, key=f"confidence {channel} {key}")
        test = cached_data.run(key).tables["test"]
        handout(f"confidence-{key}", key, lambda: wb.figures.none_of_these(test, threshold), dark)
    if clicked is not None and (rows := wb.figures.none_of_these(test).rows_behind(clicked)) is not None:
        open_rows(key, rows, test, of_sliders=True)


@st.cache_resource(show_spinner="Drawing…", max_entries=32)
def at_every_place(channel: str, key: str, title: str, dark: bool) -> Film:
    """The confidences of a run, with the line at every threshold of the page."""
    figure = wb.figures.none_of_these(cached_data.run(key).tables["test"])
    return following(figure, {"thresholds": places(channel).thresholds}, dark, title=title, height=TALL)


@messages.friendly
def f1_picture(channel: str, names: dict[str, str], threshold: float, dark: bool) -> None:
    """F1 of all runs against the threshold; the line follows the sliders."""
    code = code_opening(names, 'tables = {name: run.tables["test"] for name, run in runs.items()}')

    def marked() -> F1AgainstThreshold:
        made = f1_curves(names).marked(threshold)
        return replace(made, code=made.code.after(code))

    with st.container(key="figure-f1"):
        live.figure(channel, f1_at_every_place(channel, names, dark), key=f"f1 {channel} {len(names)}")
        handout("f1", None, marked, dark)


@st.cache_resource(show_spinner="Measuring F1 at every threshold…", max_entries=16)
def f1_curves(names: dict[str, str]) -> F1AgainstThreshold:
    """The curves of the runs."""
    known = looks_by_key(next(iter(names)))
    tables = {name: cached_data.run(key).tables["test"] for key, name in names.items()}
    return wb.figures.f1_against_threshold(tables, looks={name: known[key] for key, name in names.items()})


@st.cache_resource(show_spinner="Drawing…", max_entries=16)
def f1_at_every_place(channel: str, names: dict[str, str], dark: bool) -> Film:
    """The curves, with the line at every threshold of the page."""
    figure = f1_curves(names).marked(0.5)
    return following(figure, {"thresholds": places(channel).thresholds}, dark, height=TALL)
