"""Calibration: does 80 % mean 80 %, and what mends it?"""

from __future__ import annotations

import html
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

import live
import workbench as wb
from controls import knobs
from controls.words import explained
from drawing.figures import at_each_place, drawn
from drawing.handout import handout
from session import messages, reading
from session.address import bound, in_address, one_of
from session.serving import AHEAD
from views.samples import open_rows
from workbench.calibration import RECALIBRATORS, Recalibrator, at_temperature, of_one_class
from workbench.figures import Code, Figure
from workbench.figures.of_probabilities.reliability import Reliability
from workbench.figures.of_probabilities.temperature import TEMPERATURES, Temperatures
from workbench.figures.of_runs.comparisons import in_words, is_share
from workbench.knobs import from_text
from workbench.metrics import Metric
from workbench.metrics.of_probabilities import BINS

TEMPERATURE = wb.TemperatureScaling.title
ALL = "all classes"
TALL = 480  # pixels of a reliability diagram
SMALL = 3_000_000  # scores of a table that is judged at every temperature ahead
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
    explained("calibrated probabilities", "expected calibration error", "temperature")
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
        kind = recalibrator() if scalable else None
    mended = None if kind is None else recalibration(key, kind)
    if not scalable:
        st.info(messages.plain(f"There is no before and after: {why_not(key)}."), icon=":material/info:")
    of = "" if which is None else f" of {test.named_classes()[which]}"
    film = None if mended is None or mended.temperature is None else at_every_temperature(key, which, K, dark)
    if film is not None:
        leader = live.Followed("T", [f"{T:g}" for T in every_temperature(key)])
        live.sliders(channel(key), [], [], held="", place=0, key=f"temperature {key}", follows=leader)
    with st.container(key="figures"):
        title, code = f"Before: is the confidence{of} right?", code_of_table("test", which)
        before = diagram(key, None, which, K)
        after = None if mended is None else diagram(key, mended, which, K).beside(film.widest if film else before)
        before = before if after is None else before.beside(after)
        opens = which is None and before.opens_rows  # the rows of one class stand in other bins
        clicked = drawn("before", key, lambda: before, dark, title=title, height=TALL, table=code, clickable=opens)
        if clicked is not None and (rows := before.rows_behind(clicked)) is not None:
            open_rows(key, rows, test)
        if mended is not None and after is not None:
            title, code = f"After: is the confidence{of} right?", mended.code(which)
            marked = temperatures(key).marked(mended.temperature)
            if film is not None:
                follow(
                    key,
                    film,
                    {"after": titled(after, title, key, code), "temperatures": titled(marked, None, key)},
                    dark,
                )
            else:
                drawn("after", key, lambda: after, dark, title=title, height=TALL, table=code, clickable=False)
                drawn("temperatures", key, lambda: marked, dark)
        family(key, mended, which, K, film)


def why_not(key: str) -> str | None:
    """Why the scores of a run cannot be scaled, in the words of the library; None if they can."""
    try:
        best_temperature(key)
    except ValueError as error:
        return str(error)
    return None


def recalibrator() -> type[Recalibrator]:
    """By what the scores are changed, in the address as `mend`."""
    kinds = {kind.title: kind for kind in RECALIBRATORS}
    chosen = st.segmented_control(
        "Recalibrated by", [*kinds], default=TEMPERATURE, required=True, **bound("mend", one_of(kinds))
    )
    return kinds[chosen]


def recalibration(key: str, kind: type[Recalibrator]) -> Mended:
    """What is done to the scores, in the address as `T` or by the names of knobs; its controls stay in sight."""
    with st.container(key="stays"):
        settings = {
            name: knobs.widget(name, knob, knob.default, key=f"mend_{name}") for name, knob in kind.knobs().items()
        }
        by = repr(kind(**settings))
        if kind is not wb.TemperatureScaling:
            return Mended(by)
        best = round(best_temperature(key), 3)
        options = every_temperature(key)
        chosen = st.select_slider(
            "Temperature T",
            options,
            best,
            format_func="{:g}".format,
            **bound("T", one_of(map("{:g}".format, options))),
            help="All scores are divided by T: above 1 the network is less sure of itself, below 1 surer.",
        )
        st.button(
            f"Best T on the validation rows: {best:g}",
            icon=":material/my_location:",
            type="tertiary",
            disabled=chosen == best,
            on_click=go_to_temperature,
            args=(best,),
        )
    return Mended(by, float(chosen))


def go_to_temperature(best: float) -> None:
    """Move the slider to the best temperature."""
    st.session_state["T"] = best


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


def every_temperature(key: str) -> list[float]:
    """What can be chosen: the temperatures of the curve, and the best one."""
    return sorted({*TEMPERATURES, round(best_temperature(key), 3)})


class Film(NamedTuple):
    """What follows the temperature while it moves: pictures as they are sent, and the errors at every temperature.

    `widest` is the diagram whose axes hold them all: nothing jumps.
    """

    pictures: dict[str, dict[str, Any]]
    errors: list[dict[str, float]]
    widest: Reliability


def at_every_temperature(key: str, which: int | None, K: int, dark: bool) -> Film | None:
    """The film, once it is there. It takes seconds: it is made while nobody waits, and until then Python draws each move."""
    test = reading.run(key).tables["test"]
    if test.n * test.n_classes > SMALL:
        return None
    film = _begun(key, which, K, dark)
    return film.result() if film.done() else None


@st.cache_resource(show_spinner=False, max_entries=8)
def _begun(key: str, which: int | None, K: int, dark: bool) -> Future[Film]:
    return AHEAD.submit(_film, key, which, K, dark)


def _film(key: str, which: int | None, K: int, dark: bool) -> Film:
    test, judged = reading.run(key).tables["test"], judged_by(which, K)
    before, curve, figures, found = diagram(key, None, which, K), temperatures(key), [], []
    for T in every_temperature(key):
        table = at_temperature(test, T)
        table = table if which is None else of_one_class(table, which)
        figures.append(wb.figures.reliability(table, K=K))
        found.append(measured(table, judged))
    widest = max([before, *figures], key=lambda figure: figure.most)
    marked = [curve.marked(T) for T in every_temperature(key)]
    pictures = {
        "after": at_each_place([figure.beside(widest) for figure in figures], dark, height=TALL),
        "temperatures": at_each_place(marked, dark),
    }
    return Film(pictures, found, widest)


def titled(figure: Figure, title: str | None, key: str, table: Code = reading.TEST_TABLE) -> Figure:
    """A figure as one takes it away: under the title of the page, with all of its code."""
    return replace(figure, title=title or figure.title, code=reading.code(key, figure, table=table))


@messages.friendly
def follow(key: str, film: Film, figures: dict[str, Figure], dark: bool) -> None:
    """The pictures that follow the slider of the temperature in the browser."""
    for name, figure in figures.items():
        with st.container(key=f"figure-{name}"):
            live.figure(channel(key), **{**film.pictures[name], "title": figure.title}, key=f"{name} of T {key}")
            handout(name, None, lambda figure=figure: figure, dark)  # type: ignore[misc]


def channel(key: str) -> str:
    """Where the pictures that follow the temperature listen."""
    return f"temperature of {key}"


@messages.friendly
def family(key: str, mended: Mended | None, which: int | None, K: int, film: Film | None) -> None:
    """Every calibration error of what the diagrams judge, before and after."""
    found = {"before": errors(key, None, which, K)}
    if mended is not None:
        found["after"] = errors(key, mended, which, K)
    frame = pd.DataFrame(found).rename_axis("metric").reset_index()
    of = "" if which is None else f" of {reading.run(key).tables['test'].named_classes()[which]}"
    title = f"Calibration errors{of} on the test rows"
    with st.container(key="family"):
        if film is not None:
            lines = [
                (name, [f"{before:.3f}"], [f"{after[name]:.3f}" for after in film.errors])
                for name, before in found["before"].items()
            ]
            live.table(channel(key), title, ("Error", "Before", "After"), lines, key=f"errors of T {key}")
        else:
            st.html(f'<div class="wb-live"><h2 class="wb-title">{html.escape(title)}</h2></div>')
            table_of(frame)
        with st.expander("What these errors are", icon=":material/menu_book:"):
            st.markdown(
                "\n\n".join(f"**{in_words(metric.name)}.** {metric.definition}" for metric in judged_by(which, K))
            )
        st.download_button(
            "Table (CSV)", lambda: frame.to_csv(index=False), "calibration.csv", "text/csv", type="tertiary"
        )


def table_of(frame: pd.DataFrame) -> None:
    """The errors as a table of Streamlit's."""
    columns = {
        "metric": st.column_config.TextColumn("Error"),
        "before": st.column_config.NumberColumn("Before", format="%.3f"),
        "after": st.column_config.NumberColumn("After", format="%.3f"),
    }
    st.dataframe(frame, column_config=columns, hide_index=True)


def judged_by(which: int | None, K: int) -> list[Metric]:
    """The errors of all classes or of one; of the K most probable classes of a row too, if more than one count."""
    of_top = [wb.metrics.top_k_calibration_error.at(K=K, bins=BINS)] if K > 1 else []
    rest = [metric for metric in FAMILY if which is None or metric not in OF_SEVERAL_CLASSES]
    return [*of_top, *rest]


@st.cache_data(show_spinner="Measuring the errors…", max_entries=64)
def errors(key: str, mended: tuple[str, float | None] | None, which: int | None, K: int) -> dict[str, float]:
    """The calibration errors of the test rows, recalibrated or not, by their titles; shares are in per cent."""
    return measured(shown_table(key, mended, which), judged_by(which, K))


def measured(table: wb.LogitTable, metrics: list[Metric]) -> dict[str, float]:
    """The metrics of a table by their titles; shares are in per cent."""
    found = {}
    for metric in metrics:
        if metric.applies(table):
            name, share = in_words(metric.name), is_share(metric.name)
            found[f"{name} (%)" if share else name] = metric(table) * (100 if share else 1)
    return found
