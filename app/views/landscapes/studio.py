"""The studio of level sets: knobs at the left, one or two triangles, and at the right a probe of one point."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from controls import knobs
from drawing.loss_figures import Along, Setting, draw_recipe, figure, prepare, recipe
from session.address import bound, one_of, some_of, switch
from views.landscapes.loss_controls import (
    NONE,
    Ends,
    about,
    class_of,
    ends_seen,
    keep_ends,
    knobs_of,
    knobs_on_triangle,
    linkable,
    loss_choice,
    titles,
    wide_enough,
    with_formulas,
)
from workbench.figures.base import Click
from workbench.figures.losses.landscapes import TOTAL
from workbench.knobs import format_value

REGIONS = (NONE, "1", "2")  # sizes of the sets that are outlined
# Two fixed rows that share the batch of every point, for losses in which rows see each other.
BACKGROUND = ([[2.0, 1.0, 0.0], [0.0, 0.5, 1.5]], [0, 2])
BOTH, DIFFERENCE = "Both", "A − B"  # what is drawn of two losses
PATHS = (NONE, "probe", "grid")  # where gradient descent begins
N_STEPS, RATES = list(range(0, 101, 2)), [0.02, 0.05, 0.1, 0.2, 0.5]
SCORE_STEPS = [round(step * TOTAL / 50, 2) for step in range(51)]  # the points that answer a click
Point = tuple[float, float, float]


def levels(choices: DeltaGenerator, label: int, dark: bool) -> None:
    """One loss, or two with linked sliders, and the numbers of one point."""
    with choices:
        chosen = loss_choice("Loss", "loss")
        beside = loss_choice("Compare with", "beside", (NONE, *titles()))
    chosen, beside = with_formulas(loss=chosen, beside=beside)
    two = beside.loss != NONE
    losses = [chosen, beside] if two else [chosen]
    studio = st.container(key="studio")
    with studio, st.container(key="side"):
        difference = two and show_choice() == DIFFERENCE
        knobs_place = st.container()
        drawing = {"label": label, **drawing_options(two=two, difference=difference)}
        descent = {} if difference else descent_options()
        shared = evaluation_options(losses)
        film = not two and st.toggle(
            "Filmstrip",
            help="triangles at five values of the knob moved last, for a slide or a paper",
            **bound("film", switch),
        )
        apart = own_knobs(chosen, beside) if two else []
    with knobs_place:
        settings = [knobs_of(chosen, shared, apart=apart)]
        settings += [knobs_of(beside, shared, apart=apart, linked=settings[0])] if two else []
    with studio:
        pictures_place = st.container(key="pair" if two and not difference else "single")
        with st.container(key="probe"):
            point = point_choice()
            probe_place = st.container()
    if "start" in descent:
        descent["start"] = point
    drawn = "descent_paths" if descent else "level_sets"
    drawing |= descent

    def recipes(settings: list[Setting], seen: Ends | None) -> tuple[list[str], Ends | None]:
        if difference:
            return [recipe("loss_difference", *settings, **drawing, **shared)], seen
        made = [partial(recipe, drawn, each, **drawing, **fitting(each, shared)) for each in settings]
        if drawing["rescale"]:
            return [each() for each in made], seen
        ends = wide_enough([each() for each in made], seen)
        return [each(value_range=ends) for each in made], ends

    pictures, ends = recipes(settings, ends_seen("levels", settings))
    keep_ends("levels", settings, ends)
    before = st.session_state.get("levels seen", [])
    st.session_state["levels seen"] = settings
    same = [setting.loss for setting in before] == [setting.loss for setting in settings]
    alone = not two and not descent and drawing["rescale"]  # one picture, whose colours mean the same at every position
    last = None if two else moved_last(before[0] if same else None, settings[0], shared)
    moved = f"{settings[0].loss} moved"
    st.session_state[moved] = st.session_state.get(moved, False) or (same and before != settings)
    # Pictures of all positions take seconds of the processor: none for those who only look.
    leader = last if alone and st.session_state[moved] else None
    of_probe = {"scores": point, "label": label, **shared}
    with pictures_place:
        of_levels = along(leader, settings[0], "level_sets", drawing | fitting(chosen, shared))
        clicks = [
            draw_recipe(f"levels-{place}", each, dark, along=of_levels, clickable=True, point=point)
            for place, each in enumerate(pictures)
        ]
    with probe_place:
        draw_recipe(
            "probe", recipe("probe", *settings, **of_probe), dark, along=along(leader, settings[0], "probe", of_probe)
        )
    move_point(clicks, pictures)
    if last is not None and film:
        options = {
            "label": label,
            "rescale": drawing["rescale"],
            **({"sampled": True} if shared.get("sampled") else {}),
        }
        draw_recipe("filmstrip", recipe("filmstrip", settings[0], knob=last, **options), dark)
    for loss in {each.loss: each for each in losses}.values():
        about(loss)
    if same and leader is None:
        further = [one_step_further(*moved) for moved in zip(before, settings, strict=True)]
        prepare(lambda: recipes(further, ends)[0], dark)


def show_choice() -> str:
    """Two losses side by side, or their difference."""
    options = (BOTH, DIFFERENCE)
    return st.segmented_control("Show", options, default=BOTH, required=True, **bound("show", one_of(options)))


def point_choice() -> Point:
    """The point of the probe: two scores, and the third is what they leave."""
    with st.container(key="point"):
        first = st.select_slider("Score of class 0", SCORE_STEPS, 1.0, **bound("s0", one_of(SCORE_STEPS)))
        second = st.select_slider("Score of class 1", SCORE_STEPS, 0.6, **bound("s1", one_of(SCORE_STEPS)))
    if second > (left := round(TOTAL - first, 2)):
        st.caption(f"The three scores sum to {TOTAL:g}: class 1 gets {left:g}.")
        second = left
    return first, second, round(TOTAL - first - second, 2) + 0.0  # never −0


def move_point(clicks: Sequence[Click | None], pictures: Sequence[str]) -> None:
    """Move the probe to the point that was clicked just now, if any."""
    for clicked, picture in zip(clicks, pictures, strict=True):
        if clicked is not None and clicked.data is not None:
            scores = figure(picture).hovered().iloc[clicked.point, :2]  # type: ignore[attr-defined]
            snapped = [min(SCORE_STEPS, key=lambda step: abs(step - score)) for score in scores]
            st.session_state["landscapes next"] = {"s0": snapped[0], "s1": snapped[1]}
            st.rerun(scope="fragment")


def moved_last(before: Setting | None, now: Setting, options: dict[str, Any]) -> str | None:
    """The knob that was moved last, at first one of real numbers; None for a loss without a slider."""
    numeric = {name: knob for name, (knob, _) in knobs_on_triangle(now).items() if knob.numeric}
    if not options.get("sampled"):
        numeric.pop("n_samples", None)
    moved = [name for name in numeric if before is not None and before.knobs.get(name) != now.knobs[name]]
    last = st.session_state.get(f"{now.loss} leads")
    at_first = sorted(numeric, key=lambda name: numeric[name].kind != "real")
    leader = next(iter([*moved, *(name for name in numeric if name == last), *at_first]), None)
    st.session_state[f"{now.loss} leads"] = leader
    return leader


def along(leader: str | None, now: Setting, figure: str, options: dict[str, Any]) -> Along | None:
    """The pictures at every position of the slider of a knob."""
    if leader is None:
        return None
    key, (knob, value) = f"{now.loss}_{leader}", knobs_on_triangle(now)[leader]
    values = knobs.options_of(knob, value, key=key)
    settings = [Setting(now.loss, {**now.knobs, leader: each}) for each in values]
    return Along(key, tuple(map(format_value, values)), tuple(recipe(figure, each, **options) for each in settings))


def own_knobs(left: Setting, right: Setting) -> list[str]:
    """Knobs of both losses that are moved apart."""
    both = [name for name in knobs_on_triangle(left) if linkable(left, right, name) and name != "n_samples"]
    if not both:
        return []
    default = [both[min(1, len(both) - 1)]] if left == right else []
    readable = bound(f"apart_{left.loss}_{right.loss}", some_of(both))
    return st.pills("Moved apart", both, selection_mode="multi", default=default, **readable)


def drawing_options(*, two: bool, difference: bool) -> dict[str, Any]:
    """Options of every triangle. Two of them have one colour scale unless each is rescaled."""
    with st.container():
        gradients = not difference and st.toggle("Gradients", **bound("gradients", switch))
        regions = st.segmented_control(
            "Outline sets of size", REGIONS, default=NONE, required=True, **bound("regions", one_of(REGIONS))
        )
        if two:
            rescale = st.toggle(
                "Rescale each", help="otherwise both have one colour scale", **bound("rescale_each", switch)
            )
        else:
            rescale = not st.toggle(
                "Values as they are", help="otherwise rescaled to run from 0 to 1", **bound("absolute", switch)
            )
        options: dict[str, Any] = {"rescale": rescale}
        options |= {"gradients": True} if gradients else {}
        return options | ({"regions": int(regions)} if regions != NONE else {})


def descent_options() -> dict[str, Any]:
    """Options of paths of gradient descent; none without paths."""
    begin = st.segmented_control("Descent from", PATHS, default=NONE, required=True, **bound("paths", one_of(PATHS)))
    if begin == NONE:
        return {}
    n_steps = st.select_slider("Steps", N_STEPS, 30, **bound("path_steps", one_of(N_STEPS)))
    rate = st.select_slider("Step size η", RATES, 0.1, **bound("path_rate", one_of(RATES)))
    return {"n_steps": n_steps, "learning_rate": rate} | ({"start": None} if begin == "probe" else {})


def evaluation_options(chosen: Sequence[Setting]) -> dict[str, Any]:
    """How the chosen losses are evaluated: with drawn noise, which head moves, which rows share the batch."""
    losses = [class_of(each)() for each in chosen]
    options: dict[str, Any] = {}
    noised = [each.loss for each, loss in zip(chosen, losses, strict=True) if loss.random]
    coupled = [each.loss for each, loss in zip(chosen, losses, strict=True) if loss.couples_batch]
    if noised and st.toggle(
        "Draw the noise", help="as in training; otherwise smoothed exactly", **bound(f"{noised[0]}_sampled", switch)
    ):
        options["sampled"] = True
    if any(loss.heads == 2 for loss in losses):
        heads = ["both", "predicting", "candidate"]
        options["head"] = st.segmented_control(
            "Head that moves", heads, default="both", required=True, **bound("head", one_of(heads))
        )
    if coupled and st.toggle(
        "Beside two fixed rows", help=f"scores and labels {BACKGROUND}", **bound(f"{coupled[0]}_background", switch)
    ):
        options["background"] = BACKGROUND
    return options


def fitting(chosen: Setting, options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that concern a loss."""
    loss = class_of(chosen)()
    concerns = {"sampled": loss.random, "head": loss.heads == 2, "background": loss.couples_batch}
    return {option: value for option, value in options.items() if concerns[option]}


def one_step_further(before: Setting, now: Setting) -> Setting:
    """The next position of a slider that has just moved; the setting itself if none has."""
    further = dict(now.knobs)
    for name, (knob, _) in knobs_on_triangle(now).items():
        if knob.numeric and before.knobs.get(name, now.knobs[name]) != now.knobs[name]:
            upwards, values = now.knobs[name] > before.knobs[name], knob.values()
            rest = values[values > now.knobs[name]] if upwards else values[values < now.knobs[name]][::-1]
            further[name] = next(iter(rest.tolist()), now.knobs[name])
    return Setting(now.loss, further)
