"""Calibration: does 80 % mean 80 %, and what mends it?"""

from __future__ import annotations

import html
from typing import NamedTuple

import pandas as pd
import streamlit as st

import workbench as wb
from controls import knobs
from drawing.figures import drawn
from session import messages, reading
from session.address import bound, in_address, one_of
from views.samples import open_rows
from workbench.calibration import RECALIBRATORS, at_temperature, of_one_class
from workbench.figures import Code
from workbench.figures.of_probabilities.reliability import Reliability
from workbench.figures.of_probabilities.temperature import TEMPERATURES, Temperatures
from workbench.figures.of_runs.comparisons import in_words, is_share
from workbench.knobs import from_text
from workbench.metrics import Metric
from workbench.metrics.of_probabilities import BINS

TEMPERATURE = wb.TemperatureScaling.title
ALL = "all classes"
TALL = 480  # pixels of a reliability diagram
FAMILY = (
    wb.metrics.expected_calibration_error,
    wb.metrics.maximum_calibration_error,
    wb.metrics.top_label_calibration_error,
    wb.metrics.classwise_calibration_error,
    wb.metrics.brier_score,
    wb.metrics.negative_log_likelihood,
)
# Of one class these two are its expected calibration error once more.
OF_SEVERAL_CLASSES = (wb.metrics.top_label_calibration_error, wb.metrics.classwise_calibration_error)


class Mended(NamedTuple):
    """How the scores were changed: by a recalibrator as it was fitted, or by a temperature that was chosen."""

    by: str  # the recalibrator as Python prints it: a text can be cached
    temperature: float | None = None

    def code(self, which: int | None) -> Code:
        """The code that makes the table which is shown, of all classes or of one."""
        if self.temperature is None:
            name, fitted = self.by.partition("(")[0], f"{self.by}.fit(val)(test)"
            if hasattr(wb, name):
                return code_of_table(f"wb.{fitted}", which)
            return code_of_table(fitted, which).after(Code(imports=[f"from workbench.calibration import {name}"]))
        scaled = code_of_table(f"at_temperature(test, {self.temperature!r})", which)
        return scaled.after(Code(imports=["from workbench.calibration import at_temperature"]))


def code_of_table(made: str, which: int | None) -> Code:
    """The line `table = …`, or what makes of it a table of one class."""
    if which is None:
        return Code(setup=[f"table = {made}"])
    imports = ["from workbench.calibration import of_one_class"]
    return Code(setup=[f"table = of_one_class({made}, {which})"], imports=imports)


def page() -> None:
    """The view."""
    st.title("Calibration", anchor=False)
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    st.markdown(
        "A confidence is right when, of all rows that get 80 %, 80 % are correct. Sets of a fixed threshold, and every "
        "number a person reads, depend on it. A recalibration is learnt on the validation rows; all pictures are of the "
        "test rows."
    )
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the controls."""
    in_address(key)
    test = reading.run(key).tables["test"]
    if test.labels is None:
        st.info(
            "These rows have no labels: whether a confidence is right cannot be known without the truth.",
            icon=":material/label_off:",
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        which = one_class(test)
        K = 1 if which is not None else counted_classes(test)
        scalable = why_not(key) is None
        mended = recalibration(key) if scalable else None
    if not scalable:
        st.info(messages.plain(f"There is no before and after: {why_not(key)}."), icon=":material/info:")
    of = "" if which is None else f" of {test.named_classes()[which]}"
    with st.container(key="figures"):
        title, code = f"Before: is the confidence{of} right?", code_of_table("test", which)
        before = diagram(key, None, which, K)
        after = None if mended is None else diagram(key, mended, which, K).beside(before)
        before = before if after is None else before.beside(after)
        opens = which is None and before.opens_rows  # the rows of one class stand in other bins
        clicked = drawn("before", key, lambda: before, dark, title=title, height=TALL, table=code, clickable=opens)
        if clicked is not None and (rows := before.rows_behind(clicked)) is not None:
            open_rows(key, rows, test)
        if mended is not None and after is not None:
            title, code = f"After: is the confidence{of} right?", mended.code(which)
            drawn("after", key, lambda: after, dark, title=title, height=TALL, table=code, clickable=False)
            drawn("temperatures", key, lambda: temperatures(key).marked(mended.temperature), dark)
        family(key, mended, which, K)


def why_not(key: str) -> str | None:
    """Why the scores of a run cannot be scaled, in the words of the library; None if they can."""
    try:
        best_temperature(key)
    except ValueError as error:
        return str(error)
    return None


def recalibration(key: str) -> Mended:
    """What is done to the scores, in the address as `mend` and `T`."""
    best = round(best_temperature(key), 3)
    kinds = {kind.title: kind for kind in RECALIBRATORS}
    chosen_kind = kinds[
        st.segmented_control(
            "Recalibrated by", [*kinds], default=TEMPERATURE, required=True, **bound("mend", one_of(kinds))
        )
    ]
    settings = {
        name: knobs.widget(name, knob, knob.default, key=f"mend_{name}") for name, knob in chosen_kind.knobs().items()
    }
    by = repr(chosen_kind(**settings))
    if chosen_kind is not wb.TemperatureScaling:
        return Mended(by)
    options = sorted({*TEMPERATURES, best})
    chosen = st.select_slider(
        f"Temperature T (best on the validation rows: {best:g})",
        options,
        best,
        format_func="{:g}".format,
        **bound("T", one_of(map("{:g}".format, options))),
        width=420,
        help="All scores are divided by T: above 1 the network is less sure of itself, below 1 surer.",
    )
    return Mended(by, float(chosen))


def one_class(test: wb.LogitTable) -> int | None:
    """The class whose own probability is judged, in the address as `of`; None: the most probable class of each row."""
    names = test.named_classes()
    chosen = st.selectbox("Of", [ALL, *names], width=240, **bound("of", one_of([ALL, *names])))
    return None if chosen == ALL else names.index(chosen)


def counted_classes(test: wb.LogitTable) -> int:
    """How many of the most probable classes of a row count, in the address as `top`."""
    numbers = [K for K in (1, 2, 3, 5, 10) if K <= test.n_classes]
    return st.segmented_control(
        "Most probable classes", numbers, default=1, required=True, **bound("top", one_of(numbers))
    )


@st.cache_resource(show_spinner="Finding the best temperature…", max_entries=32)
def best_temperature(key: str) -> float:
    """The best temperature on the validation rows."""
    return wb.TemperatureScaling().fit(reading.run(key).tables["val"]).temperature


@st.cache_resource(show_spinner="Recalibrating…", max_entries=8)
def shown_table(key: str, mended: tuple[str, float | None] | None, which: int | None) -> wb.LogitTable:
    """The test rows, recalibrated or not, of all classes or of one."""
    if which is not None:
        return of_one_class(shown_table(key, mended, None), which)
    table = reading.run(key).tables["test"]
    if mended is not None:
        by, temperature = mended
        if temperature is None:
            recalibrator = from_text(by, RECALIBRATORS, "recalibrator")
            table = recalibrator.fit(reading.run(key).tables["val"])(table)
        else:
            table = at_temperature(table, temperature)
    return table


@st.cache_resource(show_spinner="Drawing…", max_entries=64)
def diagram(key: str, mended: tuple[str, float | None] | None, which: int | None, K: int) -> Reliability:
    """The reliability diagram of `shown_table`."""
    return wb.figures.reliability(shown_table(key, mended, which), K=K)


@st.cache_resource(show_spinner="Trying every temperature…", max_entries=8)
def temperatures(key: str) -> Temperatures:
    """Loss against temperature."""
    tables = reading.run(key).tables
    return wb.figures.temperatures(tables["val"], tables["test"])


@messages.friendly
def family(key: str, mended: Mended | None, which: int | None, K: int) -> None:
    """Every calibration error of what the diagrams judge, before and after."""
    found = {"before": errors(key, None, which, K)}
    if mended is not None:
        found["after"] = errors(key, mended, which, K)
    frame = pd.DataFrame(found).rename_axis("metric").reset_index()
    of = "" if which is None else f" of {html.escape(reading.run(key).tables['test'].named_classes()[which])}"
    with st.container(key="family"):
        st.html(f'<div class="wb-live"><h2 class="wb-title">Calibration errors{of} on the test rows</h2></div>')
        st.dataframe(
            frame,
            column_config={
                "metric": st.column_config.TextColumn("Error"),
                "before": st.column_config.NumberColumn("Before", format="%.3f"),
                "after": st.column_config.NumberColumn("After", format="%.3f"),
            },
            hide_index=True,
        )
        with st.expander("What these errors are", icon=":material/menu_book:"):
            st.markdown(
                "\n\n".join(f"**{in_words(metric.name)}.** {metric.definition}" for metric in judged_by(which, K))
            )
        st.download_button(
            "Table (CSV)", lambda: frame.to_csv(index=False), "calibration.csv", "text/csv", type="tertiary"
        )


def judged_by(which: int | None, K: int) -> list[Metric]:
    """The errors of all classes or of one; of the K most probable classes of a row too, if more than one count."""
    of_top = [wb.metrics.top_k_calibration_error.at(K=K, bins=BINS)] if K > 1 else []
    rest = [metric for metric in FAMILY if which is None or metric not in OF_SEVERAL_CLASSES]
    return [*of_top, *rest]


@st.cache_data(show_spinner="Measuring the errors…", max_entries=64)
def errors(key: str, mended: tuple[str, float | None] | None, which: int | None, K: int) -> dict[str, float]:
    """The calibration errors of the test rows, recalibrated or not, by their titles; shares are in per cent."""
    table, found = shown_table(key, mended, which), {}
    for metric in judged_by(which, K):
        if metric.applies(table):
            name, share = in_words(metric.name), is_share(metric.name)
            found[f"{name} (%)" if share else name] = metric(table) * (100 if share else 1)
    return found
