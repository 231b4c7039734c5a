"""Weight space: the landscape around the weights of the chosen run, computed by another process while one watches."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

import live
import workbench as wb
from controls.bar import tools
from drawing.figures import browser_content
from drawing.handout import handout
from session import cached_data, messages
from session.address import bound, one_of
from workbench.figures import Code, Figure
from workbench.store.planes import Plane
from workbench.workers.client import FAILED, Worker, check_repeatable

SIDES = (5, 9, 17)  # points a side
SEEDS = (0, 1, 2, 3)
ROWS = 500  # of each split: enough to see the valley, few enough to wait for
POLL = 1.0  # seconds between two looks at a plane that grows
STRIP, HEIGHT = 64, 440  # pixels


def weight_space(dark: bool) -> None:
    """The plane of the chosen run: the finest picture there is, and a way to a finer one."""
    key = st.session_state.get("run")
    if key is None:
        messages.no_runs()
        return
    with tools():
        steps = st.segmented_control(
            "Points a side", SIDES, default=9, required=True, **bound("plane_steps", one_of(SIDES))
        )
        seed = st.segmented_control(
            "Pair of random directions", SEEDS, default=0, required=True, **bound("plane_seed", one_of(SEEDS))
        )
    try:
        plane = Plane.through(cached_data.run(key), rows=ROWS, seed=seed)
        check_repeatable(cached_data.run(key))
    except ValueError as error:  # uploaded scores, or data that only a session had: no fault of the user
        st.info(messages.plain(messages.without_places(str(error))), icon=":material/info:")
        return
    worker = workers().get((plane, steps))
    if worker is not None and worker.progress.working:
        st.fragment(watch, run_every=POLL)(plane, steps, dark)
        return
    with st.container(height=STRIP, border=False):
        offer(plane, steps, worker)
    show(plane, steps, dark)


@st.cache_resource(show_spinner=False)
def workers() -> dict[tuple[Plane, int], Worker]:
    """The worker of each plane that was started, for all sessions."""
    return {}


def offer(plane: Plane, steps: int, worker: Worker | None) -> None:
    """A button that computes the missing points, and the error of the last attempt."""
    missing = round((1 - plane.so_far(steps)[1]) * steps**2)
    if not missing:
        st.caption(f"All {steps**2} points are known; they are kept.")
        return
    if messages.torch_is_missing():
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        name = f"Compute {missing} points"
        st.button(name, icon=":material/play_arrow:", type="primary", on_click=compute, args=(plane, steps))
        if worker is not None and worker.progress.state == FAILED:
            st.error(messages.plain(messages.without_places(worker.progress.message)), icon=":material/error:")
        else:
            st.caption("Each point is a network of its own that scores the rows anew: seconds to minutes, on one core.")


def compute(plane: Plane, steps: int) -> None:
    """Start a worker that computes the missing points."""
    workers()[plane, steps] = Worker(once=True)
    workers()[plane, steps].compute_plane(plane, steps)


@messages.friendly
def watch(plane: Plane, steps: int, dark: bool) -> None:
    """A plane that grows; when it is complete, the page is drawn again and polls no more."""
    if not workers()[plane, steps].progress.working:
        st.rerun()
    share = plane.so_far(steps)[1]
    with st.container(height=STRIP, border=False):  # as high as what stands here otherwise: the picture does not jump
        progress = f"{round(share * steps**2)} of {steps**2} points, coarse to fine. It goes on if you leave this page."
        st.progress(share, progress if share else "Reading the run and its data…")
    show(plane, steps, dark)


def show(plane: Plane, steps: int, dark: bool) -> None:
    """The finest picture that is known."""
    frame, _ = plane.so_far(steps)
    if not len(frame):
        return
    figure = with_code(wb.figures.weight_plane(frame), plane, steps)
    with st.container(key="figure-plane"):
        live.prepared_drawing(browser_content(figure, dark, height=HEIGHT), key="drawing plane")
        handout("plane", None, lambda: figure, dark)


def with_code(figure: Figure, plane: Plane, steps: int) -> Figure:
    """The figure with the code that makes it from the run on."""
    run = f"TrainedRun.open({plane.run[: cached_data.SHORT]!r})"
    computed = Code(
        setup=[f"plane = weight_plane({run}, steps={steps}, rows={plane.rows}, seed={plane.seed})"],
        imports=["from workbench.training import TrainedRun, weight_plane"],
    )
    return replace(figure, code=figure.code.after(computed))
