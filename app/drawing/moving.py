"""How the library's figures follow a slider: which property of which trace is read from which array of `compact`.

A figure is drawn once by `workbench.figures`; here it loses its title (the page writes it, so that it can move too) and
gets its moves. After a move the picture shows the numbers the library draws at that place; a browser test holds the two
together. Ranges change in few, large steps, so that a picture stands still under a moving slider.
"""

from __future__ import annotations

import html
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from controls.places import Places
from live import Move
from workbench.figures import Figure
from workbench.figures.base import counted, round_count, round_limit
from workbench.figures.of_sets.classes import BINS, PerClass
from workbench.figures.of_sets.curves import AccuracyAgainstSize
from workbench.figures.of_sets.rarity import AccuracyAgainstCount
from workbench.figures.of_sets.sizes import SHOWN, SetSizes
from workbench.figures.of_sets.thresholds import LEFT, POINT, SizeAgainstThreshold
from workbench.figures.style import theme
from workbench.metrics.intervals import wilson_interval

LAST_BARS = np.array([10, 20, 30, 40, 50])  # `compact` counts sizes up to 50
HEIGHT, PANEL = 320, 80  # pixels of a figure, and of each further panel in it
BELOW_THE_MEAN = 16  # pixels: there the name of a group does not meet the mean, wherever that moves


class Moving(NamedTuple):
    """A Plotly figure, its title, its subtitle (one, or one for every row), what moves in it, and its height.

    `text` says in words what a picture shows that does not move; of one that moves the subtitle does.
    """

    figure: go.Figure
    title: str
    subtitles: list[str]
    moves: list[Move]
    text: str = ""
    height: int = HEIGHT


def still(figure: Figure, dark: bool) -> Moving:
    """A figure that does not depend on the sliders."""
    return Moving(untitled(figure.plot(dark)), figure.title, [figure.subtitle], [], figure.text)


def curve(figure: AccuracyAgainstSize, compact: dict[str, Any], dark: bool) -> Moving:
    """Accuracy against size, with a point where the sliders stand."""
    drawn = untitled(figure.plot(dark))
    # A shape and not a trace: Plotly moves it without drawing the curves again.
    drawn.add_shape(
        type="circle",
        **{
            "xsizemode": "pixel",
            "x0": -7,
            "x1": 7,
            "xanchor": 0,
            "ysizemode": "pixel",
            "y0": -7,
            "y1": 7,
            "yanchor": 0,
        },
        fillcolor=theme(dark).threshold,
        line={"color": theme(dark).paper, "width": 2},
    )
    moves = [
        Move("shapes[0].xanchor", compact["mean_size"].tolist()),
        Move("shapes[0].yanchor", compact["accuracy"].tolist()),
    ]
    return Moving(drawn, figure.title, [figure.subtitle], moves, figure.text)


def thresholds(figure: SizeAgainstThreshold, places: Places, dark: bool) -> Moving:
    """G, with the path from K to its threshold where the sliders stand."""
    drawn = untitled(figure.plot(dark))
    if not drawn.layout.shapes:  # every class is in every set
        return Moving(drawn, figure.title, [figure.subtitle], [], figure.text)
    at, sizes = np.maximum(places.thresholds, LEFT).tolist(), places.mean_size.tolist()
    moves = [
        Move("shapes[0].x1", at),
        *(Move(f"shapes[0].{end}", sizes) for end in ("y0", "y1")),
        *(Move(f"shapes[1].{end}", at) for end in ("x0", "x1")),
        Move("shapes[1].y1", sizes),
        Move("x", np.array(at)[:, None], POINT),
        Move("y", np.array(sizes)[:, None], POINT),
    ]
    return Moving(drawn, figure.title, [figure.subtitle], moves, figure.unmarked)


def sizes(figure: SetSizes, compact: dict[str, Any], other: dict[str, Any] | None, grouped: bool, dark: bool) -> Moving:
    """The histogram of set sizes, or one for each group; those of another run, if there is one, as outlines."""
    layers = [compact] if other is None else [compact, other]
    histograms = [layer["histogram_by"] if grouped else {"": layer["size_histogram"]} for layer in layers]
    present = [name for name, counts in histograms[0].items() if counts[0].sum() > 0]  # the others have no panel
    by_group = compact["mean_size_by"] if grouped else {"": compact["mean_size"]}
    means = np.stack([by_group[name] for name in present], axis=1)  # (rows, panels)
    counts = np.stack(
        [layer[name] for name in present for layer in histograms], axis=1
    )  # (rows, panels · layers, sizes)
    shares = counts / counts.sum(axis=2, keepdims=True)
    last = _last_bars(shares)
    more = (counts * _beyond(counts, last)).sum(axis=(1, 2)) > 0
    counts, shares = _pooled(counts, last), _pooled(shares, last)

    drawn = untitled(figure.plot(dark)).update_traces(x=np.arange(shares.shape[2]))
    # The mean is written as the label of its line: Plotly moves that alone, but draws all anew for a moving annotation.
    drawn.layout.annotations = [note for note in drawn.layout.annotations if not note.text.startswith(" mean")]
    drawn.update_annotations(yshift=-BELOW_THE_MEAN)
    moves: list[Move] = []
    for trace in range(shares.shape[1]):
        moves += [Move("y", shares[:, trace], trace), Move("customdata", counts[:, trace], trace)]
    for panel in range(len(present)):
        here = means[:, panel]
        axis = "" if panel == 0 else str(panel + 1)
        sides = np.where(here < last / 2, "left", "right")
        moves += [Move(f"shapes[{panel}].{end}", here.tolist()) for end in ("x0", "x1")]
        moves += [
            Move(f"shapes[{panel}].label", [_mean_label(*both) for both in zip(here, sides.tolist(), strict=True)]),
            Move(f"xaxis{axis}.range", [[-0.5, bar + 0.5] for bar in last.tolist()]),
            Move(f"xaxis{axis}.tickvals", [_ticks(bar) for bar in last.tolist()]),
            Move(f"xaxis{axis}.ticktext", [_tick_names(*both) for both in zip(last.tolist(), more, strict=True)]),
            Move(f"yaxis{axis}.range", [[0, round_limit(share)] for share in shares.max(axis=(1, 2))]),
        ]
    n = counted(compact["n"], "set")
    subtitles = [f"n = {n}, {mean:.2f} classes on average" for mean in compact["mean_size"]]
    if other is not None:
        outlined = other["mean_size"]
        subtitles = [f"{words}; outlined: {mean:.2f}" for words, mean in zip(subtitles, outlined, strict=True)]
    return Moving(drawn, figure.title, subtitles, moves, height=HEIGHT + PANEL * (len(present) - 1))


def classes(figure: PerClass, compact: dict[str, Any], dark: bool) -> Moving:
    """The accuracy of each class, or of many classes the histogram of their accuracies."""
    parts = [part["class"].to_numpy() for _, _, part in figure.parts(theme(dark))]
    hits, n = compact["class_hits"], compact["class_rows"]
    accuracy = hits / np.maximum(n, 1)
    macro = compact["macro_accuracy"].tolist()
    drawn = untitled(figure.plot(dark))
    if figure.histogram:
        edges = np.linspace(0, 1, BINS + 1)
        bars = [np.array([np.histogram(row[part], edges)[0] for row in accuracy]) for part in parts]
        moves = [Move("y", counts, trace) for trace, counts in enumerate(bars)]
        moves += [Move(f"shapes[0].{end}", macro) for end in ("x0", "x1")]
        moves.append(Move("yaxis.range", [[0, round_count(most)] for most in np.sum(bars, axis=0).max(axis=1)]))
    else:
        low, high = wilson_interval(hits, n)
        if "count" not in figure.frame:  # nobody changes places while a slider moves
            drawn.update_xaxes(title="classes, most accurate at the smallest K first")
        moves = [Move(f"shapes[0].{end}", macro) for end in ("y0", "y1")]
        for trace, part in enumerate(parts):
            moves.append(Move("y", accuracy[:, part], trace))
            if drawn.data[trace].error_y.array is not None:
                moves.append(Move("error_y.array", (high - accuracy)[:, part], trace))
                moves.append(Move("error_y.arrayminus", (accuracy - low)[:, part], trace))
            names = figure.frame["name"].map(html.escape).to_numpy()[part]
            drawn.data[trace].update(
                customdata=list(zip(names, n[part].tolist(), strict=True)),
                hovertemplate="<b>%{customdata[0]}</b><br>accuracy %{y:.1%} on %{customdata[1]} rows<extra></extra>",
            )
    n_classes = counted(int(np.count_nonzero(n)), "class", "classes")
    subtitles = [f"n = {counted(compact['n'], 'row')} of {n_classes}, {mean:.1%} on average" for mean in macro]
    return Moving(drawn, figure.title, subtitles, moves)


def rarity(figure: AccuracyAgainstCount, compact: dict[str, Any], dark: bool) -> Moving:
    """Accuracy against training images: dots, and a line at the mean, of each shot group."""
    accuracy = compact["class_hits"] / np.maximum(compact["class_rows"], 1)
    drawn, moves, means = untitled(figure.plot(dark)), [], {}
    for place, (shot, part) in enumerate(figure.parts()):
        its = accuracy[:, part["class"].to_numpy()]
        means[shot] = its.mean(axis=1)
        names = part[["name", "count", "n"]].assign(name=part["name"].map(html.escape)).to_numpy()
        drawn.data[2 * place].update(
            customdata=names,
            hovertemplate="<b>%{customdata[0]}</b><br>accuracy %{y:.1%} on %{customdata[2]} rows"
            "<br>%{customdata[1]} training images<extra></extra>",
        )
        drawn.data[2 * place + 1].hovertemplate = shot + ": %{y:.1%} on average<extra></extra>"
        moves += [Move("y", its, 2 * place), Move("y", np.repeat(means[shot][:, None], 2, axis=1), 2 * place + 1)]
    n_classes = counted(int(np.count_nonzero(compact["class_rows"])), "class", "classes")
    lines = [
        ", ".join(f"{shot} {mean:.1%}" for shot, mean in zip(means, row, strict=True))
        for row in zip(*means.values(), strict=True)
    ]
    subtitles = [f"n = {counted(compact['n'], 'row')} of {n_classes}; {said}" for said in lines]
    return Moving(drawn, figure.title, subtitles, moves)


def untitled(drawn: go.Figure) -> go.Figure:
    top = 34 if drawn.layout.showlegend is not False and len(drawn.data) > 1 else 12
    drawn.update_layout(title=None, height=None, margin={"l": 64, "r": 20, "t": top, "b": 52})
    return drawn.update_layout(legend={"font": {"size": 13}, "itemwidth": 30})


def _last_bars(shares: np.ndarray) -> np.ndarray:
    """(rows,) the size from which on sets share a bar, in steps: nearly all sets have a bar of their own."""
    covered = np.cumsum(shares, axis=2).min(axis=1) >= SHOWN  # (rows, sizes)
    needed = np.argmax(covered, axis=1)
    return LAST_BARS[np.minimum(np.searchsorted(LAST_BARS, needed), len(LAST_BARS) - 1)]


def _beyond(bars: np.ndarray, last: np.ndarray) -> np.ndarray:
    return np.arange(bars.shape[2]) > last[:, None, None]


def _pooled(bars: np.ndarray, last: np.ndarray) -> np.ndarray:
    """(rows, panels, sizes): the bars beyond the last one are added to it."""
    beyond = _beyond(bars, last)
    pooled = np.where(beyond, 0, bars)
    pooled[np.arange(len(bars)), :, last] += (bars * beyond).sum(axis=2)
    return pooled


def _mean_label(mean: float, side: str) -> dict[str, Any]:
    return {"text": f" mean {mean:.2f} ", "textangle": 0, "textposition": "end", "xanchor": side, "yanchor": "top"}


def _ticks(last: int) -> list[int]:
    return list(range(0, last + 1, max(1, last // 10)))


def _tick_names(last: int, more: bool) -> list[str]:
    names = [str(tick) for tick in _ticks(last)]
    return [*names[:-1], f"{last}+"] if more else names
