"""Calibration: does 80 % mean 80 %, and what mends it?"""

from __future__ import annotations

import html
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

import live
import workbench as wb
from controls import knobs, slices
from controls.bar import bar, introduce, tools
from drawing.figures import at_each_place, draw, pictures
from drawing.handout import handout
from session import cached_data, messages
from session.address import bound, in_address, one_of
from session.films import if_ready
from session.serving import AHEAD
from views.samples import open_rows
from workbench.calibration import (
    RECALIBRATORS,
    FittedRecalibrator,
    FittedScaling,
    Recalibrator,
    at_temperature,
    of_one_class,
)
from workbench.figures import Code, Figure
from workbench.figures.film import Film, affordable
from workbench.figures.probabilities.reliability import Reliability
from workbench.figures.probabilities.temperature import TEMPERATURES, Temperatures
from workbench.figures.runs.comparisons import in_words, is_share
from workbench.knobs import from_text
from workbench.metrics import Metric
from workbench.metrics.probability_metrics import BINS

ABOUT = (
    "A confidence is right when, of all rows that get 80 %, 80 % are correct. A recalibration is learnt on the validation rows; "
    "all pictures are of the test rows."
)
TEMPERATURE = wb.TemperatureScaling.title
IN_PER_CENT = " (%)"  # ends the name of an error that is a share
ALL = "all classes"
BINS_OR_CURVE: dict[str, Callable[..., Any]] = {"bins": wb.figures.reliability, "curve": wb.figures.reliability_curve}
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
    """Transformation of the scores: a fitted recalibrator, or a chosen temperature."""

    by: str  # the recalibrator as Python writes it: a text can be cached
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
    introduce("Calibration", ABOUT, "calibrated probabilities", "expected calibration error", "temperature")
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the controls."""
    in_address(key)
    line = tools()
    with line:
        key = slices.choose(key)
    test = cached_data.run(key).tables["test"]
    if test.labels is None:
        st.info(
            "These rows have no labels: whether a confidence is right cannot be known without the truth.",
            icon=":material/label_off:",
        )
        return
    with line:
        which = one_class(test)
        K = 1 if which is not None else counted_classes(test)
        way = bins_or_curve()
    with bar():
        scalable = why_not(key) is None
        kind = recalibrator(test) if scalable else None
        mended = None if kind is None else recalibration(key, kind)
    if not scalable:
        st.info(messages.plain(f"There is no before and after: {why_not(key)}."), icon=":material/info:")
    of = "" if which is None else f" of {test.named_classes()[which]}"
    follows = mended is not None and mended.temperature is not None and way == "bins"
    film = at_every_temperature(key, which, K, dark) if follows else None
    if film is not None:
        leader = live.Followed("T", [f"{T:g}" for T in every_temperature(key)])
        live.sliders(channel(key), [], [], held="", place=0, key=f"temperature {key}", follows=leader)
    with pictures():
        title, code = f"Before: is the confidence{of} right?", code_of_table("test", which)
        before = diagram(key, None, which, K, way)
        after = None if mended is None else diagram(key, mended, which, K, way)
        if after is not None:
            after = after.over(before) if way == "bins" else after
            widest = film.widest if film else after
            before, after = before.beside(widest), after.beside(widest)
        opens = which is None and before.opens_rows  # the rows of one class stand in other bins
        clicked = draw("before", key, lambda: before, dark, title=title, height=TALL, table=code, clickable=opens)
        if clicked is not None and (rows := before.rows_behind(clicked)) is not None:
            open_rows(key, rows, test)
        if mended is not None and after is not None:
            title, code = f"After: is the confidence{of} right?", mended.code(which)
            marked = temperatures(key).marked(mended.temperature or fitted_temperature(key, mended.by))
            if film is not None:
                follow(
                    key,
                    film,
                    {"after": titled(after, title, key, code), "temperatures": titled(marked, None, key)},
                    dark,
                )
            else:
                draw("after", key, lambda: after, dark, title=title, height=TALL, table=code, clickable=False)
                draw("temperatures", key, lambda: marked, dark)
        family(key, mended, which, K, film)


def why_not(key: str) -> str | None:
    """Why the scores of a run cannot be scaled, in the words of the library; None if they can."""
    try:
        best_temperature(key)
    except ValueError as error:
        return str(error)
    return None


def bins_or_curve() -> str:
    """How reliability is drawn, in the address as `drawn`: in bins, or as a curve without them."""
    ways = list(BINS_OR_CURVE)
    return st.segmented_control("Drawn as", ways, default=ways[0], required=True, **bound("drawn", one_of(ways)))


def recalibrator(test: wb.LogitTable) -> type[Recalibrator]:
    """By what the scores are changed, in the address as `mend`."""
    kinds = {kind.title: kind for kind in RECALIBRATORS if test.link in kind.links}
    names = [TEMPERATURE, *(name for name in kinds if name != TEMPERATURE)]
    return kinds[st.selectbox("Method", names, width=210, **bound("mend", one_of(kinds)))]


def recalibration(key: str, kind: type[Recalibrator]) -> Mended:
    """The recalibration, in the address as `T` or by the names of knobs; in the bar."""
    settings = {name: knobs.widget(name, knob, knob.default, key=f"mend_{name}") for name, knob in kind.knobs().items()}
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
        f"Best: {best:g}",
        help="The temperature that is best on the validation rows.",
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
    chosen = st.selectbox("Class", [ALL, *names], width=170, **bound("of", one_of([ALL, *names])))
    return None if chosen == ALL else names.index(chosen)


def counted_classes(test: wb.LogitTable) -> int:
    """How many of the most probable classes of a row count, in the address as `top`."""
    numbers = [K for K in (1, 2, 3, 5, 10) if K <= test.n_classes]
    return st.segmented_control(
        "Top classes counted", numbers, default=1, required=True, **bound("top", one_of(numbers))
    )


@st.cache_resource(show_spinner="Finding the best temperature…", max_entries=32)
def best_temperature(key: str) -> float:
    """The best temperature on the validation rows."""
    return wb.TemperatureScaling().fit(cached_data.run(key).tables["val"]).temperature


@st.cache_resource(show_spinner="Recalibrating…", max_entries=8)
def fitted(key: str, by: str) -> FittedRecalibrator:
    """A recalibrator, as Python writes it, fitted on the validation rows."""
    return from_text(by, RECALIBRATORS, "recalibrator").fit(cached_data.run(key).tables["val"])


def fitted_temperature(key: str, by: str) -> float | None:
    """The temperature that a recalibrator found; None where it is not one number."""
    found = fitted(key, by)
    return found.temperature if isinstance(found, FittedScaling) and found.scale.ndim == 0 else None


@st.cache_resource(show_spinner="Recalibrating…", max_entries=8)
def shown_table(key: str, mended: tuple[str, float | None] | None, which: int | None) -> wb.LogitTable:
    """The test rows, recalibrated or not, of all classes or of one."""
    if which is not None:
        return of_one_class(shown_table(key, mended, None), which)
    table = cached_data.run(key).tables["test"]
    if mended is not None:
        by, temperature = mended
        table = fitted(key, by)(table) if temperature is None else at_temperature(table, temperature)
    return table


@st.cache_resource(show_spinner="Drawing…", max_entries=64)
def diagram(key: str, mended: tuple[str, float | None] | None, which: int | None, K: int, way: str = "bins") -> Any:
    """The reliability diagram of `shown_table`, in bins or as a curve."""
    return BINS_OR_CURVE[way](shown_table(key, mended, which), K=K)


@st.cache_resource(show_spinner="Trying every temperature…", max_entries=8)
def temperatures(key: str) -> Temperatures:
    """Loss against temperature."""
    tables = cached_data.run(key).tables
    return wb.figures.temperatures(tables["val"], tables["test"])


def every_temperature(key: str) -> list[float]:
    """The temperatures to choose from: those of the curve, and the best one."""
    return sorted({*TEMPERATURES, round(best_temperature(key), 3)})


class TemperatureFilm(NamedTuple):
    """Pictures that follow the temperature while it moves, and the errors at every temperature.

    `widest` is the diagram whose axes hold them all: nothing jumps.
    """

    pictures: dict[str, Film]
    errors: list[dict[str, float]]
    widest: Reliability


def at_every_temperature(key: str, which: int | None, K: int, dark: bool) -> TemperatureFilm | None:
    """The film, once it is there. It takes seconds and is made in the background; until then Python draws each move."""
    return if_ready(_begun(key, which, K, dark)) if affordable(cached_data.run(key).tables["test"]) else None


@st.cache_resource(show_spinner=False, max_entries=8)
def _begun(key: str, which: int | None, K: int, dark: bool) -> Future[TemperatureFilm]:
    return AHEAD.submit(_film, key, which, K, dark)


def _film(key: str, which: int | None, K: int, dark: bool) -> TemperatureFilm:
    test, judged = cached_data.run(key).tables["test"], judged_by(which, K)
    before, curve, figures, found = diagram(key, None, which, K), temperatures(key), [], []
    for T in every_temperature(key):
        table = at_temperature(test, T)
        table = table if which is None else of_one_class(table, which)
        figures.append(wb.figures.reliability(table, K=K))
        found.append(measured(table, judged))
    widest = max([before, *figures], key=lambda figure: figure.most)
    marked = [curve.marked(T) for T in every_temperature(key)]
    pictures = {
        "after": at_each_place([figure.over(before).beside(widest) for figure in figures], dark, height=TALL),
        "temperatures": at_each_place(marked, dark),
    }
    return TemperatureFilm(pictures, found, widest)


def titled(figure: Figure, title: str | None, key: str, table: Code = cached_data.TEST_TABLE) -> Figure:
    """A figure as one takes it away: under the title of the page, with all of its code."""
    return replace(figure, title=title or figure.title, code=cached_data.code(key, figure, table=table))


@messages.friendly
def follow(key: str, film: TemperatureFilm, figures: dict[str, Figure], dark: bool) -> None:
    """The pictures that follow the slider of the temperature in the browser."""
    for name, figure in figures.items():
        with st.container(key=f"figure-{name}"):
            live.figure(channel(key), film.pictures[name], title=figure.title, key=f"{name} of T {key}")
            handout(name, None, lambda figure=figure: figure, dark)  # type: ignore[misc]


def channel(key: str) -> str:
    """Where the pictures that follow the temperature listen."""
    return f"temperature of {key}"


@messages.friendly
def family(key: str, mended: Mended | None, which: int | None, K: int, film: TemperatureFilm | None) -> None:
    """Every calibration error of what the diagrams judge, before and after."""
    found = {"before": errors(key, None, which, K)}
    if mended is not None:
        found["after"] = errors(key, mended, which, K)
    frame = pd.DataFrame(found).rename_axis("metric").reset_index()
    of = "" if which is None else f" of {cached_data.run(key).tables['test'].named_classes()[which]}"
    title = f"Calibration errors{of} on the test rows"
    with st.container(key="family"):
        if film is not None:
            lines = [
                (name, [written(name, before)], [written(name, after[name]) for after in film.errors])
                for name, before in found["before"].items()
            ]
            live.table(channel(key), title, ("Error", "Before", "After"), lines, key=f"errors of T {key}")
        else:
            st.html(f'<div class="wb-live"><h2 class="wb-title">{html.escape(title)}</h2></div>')
            table_of(found)
        if mended is not None and all(found["after"][name] >= error for name, error in found["before"].items()):
            st.warning("On the test rows this recalibration makes every error larger.", icon=":material/warning:")
        with st.expander("What these errors are", icon=":material/menu_book:"):
            st.markdown(
                "\n\n".join(f"**{in_words(metric.name)}.** {metric.definition}" for metric in judged_by(which, K))
            )
        st.download_button(
            "Table (CSV)", lambda: frame.to_csv(index=False), "calibration.csv", "text/csv", type="tertiary"
        )


def table_of(found: dict[str, dict[str, float]]) -> None:
    """The errors as a table of Streamlit's."""
    columns = {when.capitalize(): [written(*each) for each in its.items()] for when, its in found.items()}
    st.dataframe(pd.DataFrame({"Error": list(found["before"]), **columns}), hide_index=True)


def written(name: str, error: float) -> str:
    """An error as everywhere: shares in per cent with one digit after the point, all else with three."""
    return f"{error:.1f}" if name.endswith(IN_PER_CENT) else f"{error:.3f}"


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
            found[f"{name}{IN_PER_CENT}" if share else name] = metric(table) * (100 if share else 1)
    return found
