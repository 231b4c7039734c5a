"""Panels to play with after a lesson: organs to uncover, calibration draws, rare classes, scores on a ladder, a shift."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.class_counts import FEW, MANY, shot_groups
from workbench.figures.film import Film, Move
from workbench.figures.panel import Panel, PanelNumber, grid_sliders
from workbench.figures.sets.rarity import AccuracyAgainstCount, accuracy_against_count
from workbench.figures.snippet import Code
from workbench.figures.style import Theme, plotly_template
from workbench.metrics.along_slider import at_places
from workbench.sets import LAC, Weighted
from workbench.tables import LogitTable
from workbench.teaching.base import HEIGHT, axes, percent
from workbench.teaching.demo_tables import tables, truth
from workbench.teaching.photograph import photograph
from workbench.teaching.shipped_tail import SIZES, TAUS, average_k_sets, shipped_tail
from workbench.teaching.shipped_twins import GIVEN as USUAL_TWINS
from workbench.teaching.shipped_twins import NEW, frames_by_size
from workbench.teaching.shipped_twins import SIZES as TWIN_SIZES

if TYPE_CHECKING:
    from workbench.datasets.plants.flora import Flora

CONFIDENCE = 0.9
DRAWS, STEP = 60, 4  # calibration draws, and how many fall at a time
ROWS = (20, 100, 500)  # calibration rows of a draw
NEW_LABELS = 200  # photographs of bark that are labelled after the shift
WORLDS = ("all photographs", "only bark from now on", f"only bark, {NEW_LABELS} of it labelled")
HIDDEN_ORGANS = ("leaf", "fruit", "bark")
LADDER = (3.4, 3.2, 3.0, 1.6, 1.3, 1.0, 0.7)  # scores; the label is the fourth
LADDER_K, LADDER_LABEL = 3, 3
EPSILONS = (0.1, 0.3, 0.6, 1.0, 3.0)
FRAMES, RATE = 30, 0.12  # of the descent
CLOUD = 24  # dots of noise around a score


def uncover(theme: Theme) -> Panel:
    """Uncover the leaf, the fruit and the bark beside a flower: the exact posterior collapses to one species."""
    from workbench.datasets.plants.flora import HIDDEN
    from workbench.datasets.plants.garden import Garden

    garden = Garden()
    flora = garden.flora
    members = np.flatnonzero(flora.genus == _hardest_genus(flora))
    plant = int(members[np.argsort(flora.prior[members])[len(members) // 2]])
    forms = np.array([flora.laws[organ][plant].argmax() for organ in ("flower", *HIDDEN_ORGANS)])
    alone = np.where(np.eye(len(forms), dtype=bool), forms, HIDDEN)
    photos = [photograph(garden, look, seed=organ) for organ, look in enumerate(alone)]
    genus, names = flora.names[plant].split()[0], [flora.names[member].split()[1] for member in members]
    shown = list(product((False, True), repeat=len(HIDDEN_ORGANS)))
    looks = np.array([np.where([True, *each], forms, HIDDEN) for each in shown])
    posterior = garden.posterior(looks)[:, members]

    def drawn(place: int) -> go.Figure:
        bars = go.Bar(x=posterior[place], y=names, orientation="h", marker={"color": theme.accent})
        figure = axes(theme, "probability, exact", genus, traces=[bars])
        images = [
            {"source": photo, "xref": "paper", "yref": "paper", "x": 0.24 * organ, "y": 1.0, "sizex": 0.22, "sizey": 0.42,
             "yanchor": "top", "opacity": float(visible)}
            for organ, (photo, visible) in enumerate(zip(photos, (True, *shown[place]), strict=True))
        ]  # fmt: skip
        figure.update_layout(images=images, height=460, margin={"l": 100, "t": 12})
        figure.update_xaxes(range=[0, 1], tickformat=".0%")
        return figure.update_yaxes(domain=[0, 0.52])

    return Panel(
        about=(
            f"**Uncover the plant.** All {len(members)} species of this genus have the flower. Show another organ.",
        ),
        pictures=(
            Film.of_plots(
                [drawn(place) for place in range(len(shown))],
                name="uncover",
                title="How sure can anyone be?",
                text=f"Photographs of the organs that are shown, and the probability of {len(members)} species given them.",
            ),
        ),
        sliders=grid_sliders(
            {organ: ("hidden", "shown") for organ in HIDDEN_ORGANS}, **dict.fromkeys(HIDDEN_ORGANS, "toggle")
        ),
        numbers=(
            PanelNumber("Best guess is right", tuple(percent(each.max(), 0) for each in posterior)),
            PanelNumber(
                "Species for 90 %", tuple(str(int((np.cumsum(-np.sort(-each)) < 0.9).sum()) + 1) for each in posterior)
            ),
        ),
    )


def _hardest_genus(flora: Flora) -> int:
    """The genus whose flower leaves most species in doubt."""
    sharing = [np.sort(flora.prior[flora.genus == genus])[::-1] for genus in range(flora.genus.max() + 1)]
    needed = [int((np.cumsum(prior / prior.sum()) < CONFIDENCE).sum()) for prior in sharing]
    return int(np.argmax(needed))


def coverages(world: int, rows: int) -> np.ndarray:
    """(DRAWS,): the exact coverage of LAC on new rows, fitted on calibration rows that are drawn again each time."""
    pool = truth().test
    bark = (pool.attributes or {})["organs"] == "bark"
    rng = np.random.default_rng((world, rows))
    fitting, new = (
        np.flatnonzero(bark if world == 2 else np.ones(pool.n, bool)),
        bark if world else np.ones(pool.n, bool),
    )
    found = np.empty(DRAWS)
    for draw in range(DRAWS):
        chosen = rng.choice(fitting, NEW_LABELS if world == 2 else rows, replace=False)
        others = new.copy()
        others[chosen] = False
        found[draw] = _held(pool, np.flatnonzero(others), LAC(CONFIDENCE).fit(pool.rows(chosen)).threshold).mean()
    return found


def _held(table: LogitTable, rows: np.ndarray, threshold: float | np.ndarray) -> np.ndarray:
    """The probability that the set of each row contains its label."""
    probabilities = table.probabilities()[rows]
    held: np.ndarray = (probabilities * (probabilities >= threshold)).sum(axis=1)
    return held


def coverage_machine(theme: Theme) -> Panel:
    """Each calibration draw drops a dot on a heap around the promise."""
    worlds, falls = range(len(WORLDS)), range(STEP, DRAWS + 1, STEP)
    found = {(world, rows): coverages(world, rows) for world in worlds for rows in ROWS}
    positions = [(world, rows, count) for world in worlds for rows in ROWS for count in falls]

    heaps = [heap(found[world, rows][:count]) for world, rows, count in positions]
    dots = go.Scatter(mode="markers", marker={"color": theme.accent, "size": 11}, showlegend=False)
    figure = axes(theme, "coverage of one draw on new photographs", "draws", traces=[dots])
    figure.add_vline(CONFIDENCE, line={"color": theme.threshold, "width": 3, "dash": "dash"})
    figure.update_xaxes(range=[0.55, 1.0], tickformat=".0%")
    figure.update_yaxes(range=[0, 25])
    moves = [Move("x", [x for x, _ in heaps], 0), Move("y", [y for _, y in heaps], 0)]
    return Panel(
        about=(
            f"**The coverage machine.** The promise of {percent(CONFIDENCE, 0)} is an average over draws. Each dot is "
            "one draw: new calibration rows, a new threshold, and its exact coverage. Press *Play*; then change the number of "
            "calibration rows, then what new photographs show.",
        ),
        pictures=(
            Film(
                figure,
                moves,
                name="machine",
                title="Sixty calibration draws",
                text="Dots: the coverage of each calibration draw, heaped up; a dashed line at the promise.",
            ),
        ),
        sliders=grid_sliders(
            {
                "new photographs": WORLDS,
                "calibration rows": tuple(map(str, ROWS)),
                "draws": tuple(str(count) for count in falls),
            },
            draws="play",
        ),
        numbers=(
            PanelNumber("Mean", tuple(percent(found[world, rows][:count].mean()) for world, rows, count in positions)),
            PanelNumber(
                "Lowest to highest",
                tuple(
                    f"{percent(found[world, rows][:count].min())} to {percent(found[world, rows][:count].max())}"
                    for world, rows, count in positions
                ),
            ),
        ),
        start=len(falls),  # 100 rows, the first draws
    )


def heap(values: np.ndarray, width: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """Dots in columns: the middle of the column of each value, and how many stand there already.

    >>> [each.round(3).tolist() for each in heap(np.array([0.901, 0.903, 0.925]))]
    [[0.905, 0.905, 0.925], [1, 2, 1]]
    """
    column = np.floor(values / width)
    height = np.array([np.count_nonzero(column[: at + 1] == column[at]) for at in range(len(column))], dtype=int)
    return (column + 0.5) * width, height


def head_or_tail(_: Theme) -> Panel:
    """Average-K with the weight τ for rare classes, on the garden: who gains, and who pays."""
    sets = average_k_sets(*tables("garden", "CrossEntropy"))
    about = (
        "**Head or tail.** Divide the probability of each class by the τ-th power of its share of the training rows, then cut "
        "at the same mean size: τ = 0 is average-K, τ = 1 treats all classes alike. The counts are those of the garden, a drawn "
        "collection with a long tail: few classes have most photographs."
    )
    return _tail(about, accuracy_against_count(sets[0]), at_places(sets), "tail")


def tail_of_names(_: Theme) -> Panel:
    """The same on real data: names in many languages, and a linear model, whose results ship without its tables."""
    languages, counts, along = shipped_tail()
    rows, hits, shots = along["class_rows"], along["class_hits"][0], shot_groups(counts)
    frame = pd.DataFrame(
        {"class": range(len(languages)), "name": languages, "count": counts, "shots": shots, "n": rows}
    )
    frame["hits"], frame["accuracy"] = hits, hits / np.maximum(rows, 1)
    frame[["low", "high", "mean_size"]] = np.nan  # a picture that moves does not say them
    about = (
        f"**A real tail.** The same for names of countries and languages, written in {len(languages)} languages: "
        f"{(shots == 'many').sum()} have more than {MANY} training rows, {(shots == 'few').sum()} fewer than {FEW}. The model is "
        "linear. How far would you move τ?"
    )
    figure = AccuracyAgainstCount(
        frame=frame,
        title="Are rare languages missed more often?",
        subtitle="",
        training="training rows",
        text=f"Accuracy against training rows of {len(languages)} languages on n = {along['n']} test rows.",
        code=Code("wb.figures.accuracy_against_count(sets)"),
    )
    return _tail(about, figure, along, "names")


def _tail(about: str, figure: AccuracyAgainstCount, along: dict[str, Any], name: str) -> Panel:
    """Accuracy against training rows along mean size and τ."""
    present = along["class_rows"] > 0
    accuracy, shots = along["class_hits"] / np.maximum(along["class_rows"], 1), figure.frame["shots"].to_numpy()
    words = {"few": "Rare classes", "medium": "Medium", "many": "Frequent classes"}
    shares = {words[shot]: accuracy[:, present & (shots == shot)].mean(axis=1) for shot in words}
    return Panel(
        about=(about,),
        pictures=(Film.along(figure, along, name=name, title="Who gains, who pays?"),),
        sliders=grid_sliders({"mean size K": [f"{K:g}" for K in SIZES], "τ": [f"{tau:g}" for tau in TAUS]}),
        numbers=(
            *(
                PanelNumber(label, tuple(map(percent, each)))
                for label, each in (shares | {"All rows": along["accuracy"]}).items()
            ),
            PanelNumber("Mean size", tuple(f"{each:.2f}" for each in along["mean_size"])),
        ),
        start=SIZES.index(3) * len(TAUS),
    )


def descents(epsilon: float) -> np.ndarray:
    """(FRAMES, scores): gradient descent on the scores of one row under the noised top-K loss, one noise a step."""
    import torch

    from workbench.losses import NoisedTopK

    loss, generator = NoisedTopK(K=LADDER_K, epsilon=epsilon, n_samples=5), torch.Generator().manual_seed(0)
    scores, frames = torch.tensor([LADDER]), []
    for _ in range(FRAMES):
        frames.append(scores[0].numpy().copy())
        scores = scores.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss(scores, torch.tensor([LADDER_LABEL]), generator=generator).sum(), scores)
        scores = (scores - RATE * slope).detach()
    return np.array(frames)


def ladder(theme: Theme) -> Panel:
    """Scores as balls on a ladder in clouds of noise: the label climbs where the noise reaches across the gap."""
    found = {epsilon: descents(epsilon) for epsilon in EPSILONS}
    positions = list(product(EPSILONS, range(FRAMES)))
    names = ["label" if place == LADDER_LABEL else f"{place + 1}." for place in range(len(LADDER))]
    colours = [theme.threshold if place == LADDER_LABEL else theme.accent for place in range(len(LADDER))]

    rng, ladders = np.random.default_rng(0), range(len(LADDER))
    x = np.repeat(ladders, CLOUD) + rng.uniform(-0.2, 0.2, CLOUD * len(LADDER))
    noise = rng.normal(size=len(x))
    dots = {"color": np.repeat(colours, CLOUD), "size": 6, "opacity": 0.3}
    cloud = go.Scatter(x=x, mode="markers", marker=dots, showlegend=False, hoverinfo="skip")
    balls = go.Scatter(x=[*ladders], mode="markers", marker={"color": colours, "size": 20}, showlegend=False)
    figure = axes(theme, "classes", "score", traces=[cloud, balls])
    figure.update_layout(yaxis_range=[-2.2, 6.5], height=440)
    figure.update_xaxes(tickvals=[*ladders], ticktext=names, range=[-0.5, len(LADDER) - 0.5])
    clouds = np.array([np.repeat(found[epsilon][frame], CLOUD) + epsilon * noise for epsilon, frame in positions])
    moves = [Move("y", clouds, 0), Move("y", [found[epsilon][frame] for epsilon, frame in positions], 1)]
    ranks = [
        int((found[epsilon][frame] > found[epsilon][frame][LADDER_LABEL]).sum()) + 1 for epsilon, frame in positions
    ]
    return Panel(
        about=(
            f"**The gap, alive.** Gradient descent on the scores of one row, top-{LADDER_K} loss; the cloud around a score is "
            "its noise ε. Three lead; the label is fourth. Press *Play*, then turn ε.",
        ),
        pictures=(
            Film(
                figure,
                moves,
                name="ladder",
                title="Does the label cross the gap?",
                text="Seven scores as balls in clouds of noise; the label starts below three high scores.",
            ),
        ),
        sliders=grid_sliders(
            {"ε": [f"{each:g}" for each in EPSILONS], "step": [str(at) for at in range(FRAMES)]}, step="play"
        ),
        numbers=(
            PanelNumber("Rank of the label", tuple(map(str, ranks))),
            PanelNumber(
                "Score of the label",
                tuple(f"{found[epsilon][frame][LADDER_LABEL]:.2f}" for epsilon, frame in positions),
            ),
        ),
        start=FRAMES,
    )


def twins_apart(theme: Theme) -> Panel:
    """Two twins on new photographs, step by step, for few and for many training photographs, under three losses."""
    frame = frames_by_size()
    frame = frame[frame["photographs"] == NEW]
    losses, steps = list(dict.fromkeys(frame["loss"])), sorted(set(frame["step"]))
    values = frame.set_index(["size", "loss", "line", "step"])["value"].to_dict()
    positions = list(product(TWIN_SIZES, range(len(steps))))

    names = [name.replace("Average-K two-head", "Two heads") for name in losses]
    titles = [name.replace("-e", "-<br>e").replace(" ", "<br>") for name in names]  # narrow, also on a telephone
    figure = make_subplots(1, len(losses), shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.04)
    moves = []
    lines = {"favoured": ("the favoured twin", theme.hit), "other": ("the other twin", theme.model_b)}
    for column, loss in enumerate(losses, start=1):
        for line, (words, colour) in lines.items():
            drawn = np.array([[values[size, loss, line, step] for step in steps] for size, _ in positions])
            drawn[[at < np.arange(len(steps)) for _, at in positions]] = np.nan  # later steps are not there yet
            moves.append(Move("y", drawn, len(figure.data)))
            look = {"color": colour, "width": 4}
            figure.add_scatter(x=steps, mode="lines", name=words, line=look, showlegend=column == 1, row=1, col=column)
    figure.add_hline(0.5, line={"color": theme.muted, "dash": "dash"})
    figure.update_xaxes(type="log", range=(0, np.log10(steps[-1])), tickvals=[1, 10, 100])
    figure.update_xaxes(title_text="step of the training", col=2)
    figure.update_yaxes(range=(0, 1), tickformat=".0%")
    figure.update_yaxes(title_text="probability, new photographs", col=1)
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top"}
    figure.update_layout(template=plotly_template(theme), height=HEIGHT, legend=legend, margin={"t": 52, "b": 84})
    return Panel(
        about=(
            "**Twins, alive.** Dashed: the truth, one half each. Press *Play*: the curves part. Then give the networks more "
            "photographs: they meet again.",
        ),
        pictures=(
            Film(
                figure,
                moves,
                name="twins",
                title="How sure of one twin?",
                text="Probability of two species that look the same over the steps of training, one panel a loss.",
            ),
        ),
        sliders=grid_sliders(
            {"photographs of each species": [str(size) for size in TWIN_SIZES], "step": [str(step) for step in steps]},
            step="play",
        ),
        numbers=tuple(
            PanelNumber(
                f"{name}: correct sets",
                tuple(percent(values[size, loss, "sets", steps[at]], 0) for size, at in positions),
            )
            for name, loss in zip(names, losses, strict=True)
        ),
        start=(TWIN_SIZES.index(USUAL_TWINS["photographs"]) + 1) * len(steps) - 1,
    )


def shifted_world(theme: Theme) -> Panel:
    """The share of bark rises: LAC loses its promise, weighted conformal sets keep it with larger sets."""
    val, test = truth()
    of_val, of_test = (((table.attributes or {})["organs"] == "bark") for table in (val, test))
    usual = float(of_val.mean())
    shares = (usual, *(round(0.1 * step, 1) for step in range(2, 10)))
    lines: dict[str, list[tuple[float, float]]] = {"LAC": [], "Weighted": []}
    for share in shares:
        weights = {True: share / usual, False: (1 - share) / (1 - usual)}
        weighed = [_with_weight(table, bark, weights) for table, bark in ((val, of_val), (test, of_test))]
        new = np.where(of_test, share / of_test.mean(), (1 - share) / (1 - of_test.mean()))
        for name, rule in (("LAC", LAC(CONFIDENCE)), ("Weighted", Weighted(CONFIDENCE))):
            sets = rule.fit(weighed[0])(weighed[1])
            held = (test.probabilities() * sets.matrix()).sum(axis=1)
            lines[name].append((float(np.average(held, weights=new)), float(np.average(sets.sizes, weights=new))))

    def drawn(place: int) -> go.Figure:
        traces = [
            go.Scatter(x=shares, y=[each[0] for each in lines[name]], name=name, line={"color": colour, "width": 3})
            for name, colour in (("LAC", theme.model_a), ("Weighted", theme.model_b))
        ]
        figure = axes(theme, "share of bark among new photographs", "coverage", traces=traces)
        figure.add_hline(CONFIDENCE, line={"color": theme.threshold, "dash": "dash"})
        figure.add_vline(shares[place], line={"color": theme.muted})
        figure.update_xaxes(tickformat=".0%")
        return figure.update_layout(yaxis_range=[0.6, 1], yaxis_tickformat=".0%")

    return Panel(
        about=(
            "**When the world shifts.** More and more photographs show bark alone. If the shift is known, each calibration row "
            "can be weighted by how much commoner its kind has become (`wb.Weighted`): the promise holds again, with larger "
            "sets.",
        ),
        pictures=(
            Film.of_plots(
                [drawn(place) for place in range(len(shares))],
                name="shift",
                title="The promise, broken and bought back",
                text="Coverage of LAC and of weighted conformal sets against the share of bark; a dashed line at the promise.",
            ),
        ),
        sliders=grid_sliders({"share of bark": [percent(share, 0) for share in shares]}),
        numbers=tuple(
            PanelNumber(f"{name}: {what}", tuple(written(each[column]) for each in lines[name]))
            for name in lines
            for column, (what, written) in enumerate((("coverage", percent), ("mean size", "{:.1f}".format)))
        ),
    )


def _with_weight(table: LogitTable, bark: np.ndarray, weights: dict[bool, float]) -> LogitTable:
    """The table with the density ratio of each row as its attribute `weight`."""
    weight = np.where(bark, weights[True], weights[False])
    return replace(table, attributes={**(table.attributes or {}), "weight": weight})
