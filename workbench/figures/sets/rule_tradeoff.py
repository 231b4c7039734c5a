"""All rules on one picture: size, macro-coverage and the classes that are left behind."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics import accuracy, classes_left_behind, macro_accuracy, mean_size
from workbench.sets import RULES, Rule
from workbench.tables import LogitTable, checked_table
from workbench.warning_capture import captured_warnings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

FRONT = "best trades"
BEHIND = "classes left behind"


def rule_tradeoff(
    val: LogitTable, test: LogitTable, confidence: float = 0.9, K: float = 5.0, rules: Sequence[Rule] | None = None
) -> RuleTradeoff:
    """Mean size, macro-coverage and the share of classes left behind of every rule, with the best trades joined by a line.

    A class is left behind if its coverage is below half the confidence. A rule is among the best trades if no other has sets
    that are no larger on average and a macro-coverage that is no smaller.

    Args:
        val: Rows on which the rules are fitted.
        test: Rows that are shown, with labels.
        confidence: Confidence of the rules that promise one.
        K: Size of the sets of the rules that promise one.
        rules: Rules to compare; by default all of `RULES` for which `val` has what they need.

    Returns:
        The figure; its frame has `rule`, `title`, `mean_size`, `coverage`, `macro_coverage`, `left_behind` and `best`.

    Example:
        >>> import workbench as wb
        >>> table = wb.LogitTable.from_probabilities([[0.8, 0.2], [0.4, 0.6]], labels=[0, 1])
        >>> rule_tradeoff(table, table, rules=[wb.TopK(1), wb.TopK(2)]).frame[["mean_size", "best"]].to_numpy().tolist()
        [[1.0, True], [2.0, False]]

    Ding, Fermanian & Salmon 2025 (arXiv 2507.06867), Figure 1.
    """
    checked_table(val)
    checked_table(test).checked_labels()
    chosen = comparable_rules(val, confidence, K) if rules is None else list(rules)
    frame = pd.DataFrame([_line(rule, val, test, confidence) for rule in chosen])
    frame = frame.assign(best=_undominated(frame)).sort_values("mean_size", kind="stable", ignore_index=True)
    best = frame[frame["best"]]
    summary = "; ".join(
        f"{row.title} {row.macro_coverage:.1%} with {row.mean_size:.2f} classes" for row in best.head(5).itertuples()
    )
    arguments = f"confidence={confidence!r}, K={K!r}" + ("" if rules is None else ", rules=rules")
    return RuleTradeoff(
        frame=frame,
        title="All rules: what size buys, and who is left behind",
        subtitle=f"n = {counted(test.n, 'row')}, {counted(len(frame), 'rule')} at 1 − α = {confidence:g} or K = {K:.3g}",
        text=(
            f"Macro-coverage against mean size of {len(frame)} rules on n = {test.n} rows. Best trades: {summary}. The share of "
            f"classes left behind goes from {frame['left_behind'].min():.0%} to {frame['left_behind'].max():.0%}."
        ),
        code=Code(
            f"wb.figures.rule_tradeoff(val, test, {arguments})",
            [f"# val, test: {test.n} rows of {test.n_classes} classes, with labels"]
            + ([] if rules is None else [f"rules = [{', '.join(f'wb.{rule!r}' for rule in chosen)}]"]),
        ),
    )


def comparable_rules(val: LogitTable, confidence: float, K: float) -> list[Rule]:
    """Every rule for which a table has what it needs, at one confidence or one size."""
    options = {"confidence": confidence, "level": 1 - confidence, "K": K}
    found = []
    for kind in RULES:
        knobs = {name: value for name, value in options.items() if name in kind.knobs()}
        if knobs.get("K") is not None and isinstance(kind().K, int):  # type: ignore[attr-defined]
            knobs["K"] = max(1, round(K))
        rule = kind(**knobs)
        if kind.guarantee != "nothing" and not rule.missing(val):
            found.append(rule)
    return found


def _line(rule: Rule, val: LogitTable, test: LogitTable, confidence: float) -> dict[str, Any]:
    with captured_warnings():  # that a promise is void where too few rows can keep it is seen by its size
        sets = rule.fit(val)(test)
        return {
            "rule": type(rule).__name__,
            "title": rule.title,
            "mean_size": mean_size(sets),
            "coverage": accuracy(sets),
            "macro_coverage": macro_accuracy(sets),
            "left_behind": classes_left_behind(sets, confidence=confidence),
        }


def _undominated(frame: pd.DataFrame) -> np.ndarray:
    """(rules,) bool: no other rule is at least as good in both, and better in one."""
    size, macro = frame["mean_size"].to_numpy(), frame["macro_coverage"].to_numpy()
    no_larger, no_smaller = size[None] <= size[:, None], macro[None] >= macro[:, None]
    better = (size[None] < size[:, None]) | (macro[None] > macro[:, None])
    dominated = np.asarray((no_larger & no_smaller & better).any(axis=1))
    return np.logical_not(dominated)


def _short(title: str) -> str:
    """The abbreviation at the end of a title, or the title: `Adaptive sets (APS)` is APS."""
    found = re.search(r"\(([A-Z]\S*)\)$", title)
    return title if found is None else found[1]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RuleTradeoff(Figure):
    """One dot a rule, its colour the share of classes left behind; a line through the best trades."""

    marked: str = ""  # the rule that is ringed

    def marking(self, rule: str) -> RuleTradeoff:
        """The same picture with a ring around a rule, by its name."""
        return replace(self, marked=rule)

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Of the logarithm of the size and of macro-coverage."""
        sizes = np.log10(np.maximum(self.frame["mean_size"], 0.1))
        lowest = float(np.floor(10 * self.frame["macro_coverage"].min()) / 10)
        return (float(sizes.min()) - 0.08, float(sizes.max()) + 0.25), (min(lowest, 0.9), 1.03)

    def labels(self) -> list[str]:
        """The name written beside each dot: of the ring and of the best trades, as far as there is room."""
        (left, right), (low, high) = self.ranges()
        x = (np.log10(np.maximum(self.frame["mean_size"], 0.1)) - left) / (right - left)
        y = (self.frame["macro_coverage"] - low) / (high - low)
        at, shown = np.column_stack([x, y]), np.zeros(len(self.frame), bool)
        labelled = np.flatnonzero((self.frame["rule"] == self.marked) | self.frame["best"])
        for row in sorted(labelled, key=lambda row: self.frame["rule"][row] != self.marked):
            near = np.abs(at[shown] - at[row]) < (0.3, 0.045)
            shown[row] = not near.all(axis=1).any()
        return [_short(title) if there else "" for title, there in zip(self.frame["title"], shown, strict=True)]

    def sides(self) -> list[str]:
        """At which side of its dot a name stands: inside the picture."""
        left, right = self.ranges()[0]
        across = (np.log10(np.maximum(self.frame["mean_size"], 0.1)) - left) / (right - left)
        return ["middle left" if each > 0.6 else "middle right" for each in across]

    def _plotly(self, theme: Theme) -> go.Figure:
        sizes, shares = self.ranges()
        best = self.frame[self.frame["best"]]
        scale = [(0, theme.hit), (0.5, theme.model_b), (1, theme.miss)]
        behind = {
            "color": self.frame["left_behind"],
            "colorscale": scale,
            "cmin": 0,
            "cmax": 1,
            "size": 14,
            "line": {
                "color": [theme.ink if name == self.marked else theme.paper for name in self.frame["rule"]],
                "width": 2,
            },
            "colorbar": {
                "title": {"text": BEHIND, "side": "right", "font": {"size": 12}},
                "tickformat": ".0%",
                "thickness": 10,
                "outlinewidth": 0,
            },
        }
        hover = (
            "<b>%{customdata[1]}</b><br>%{x:.2f} classes on average<br>mean over classes %{y:.1%}<br>"
            "mean over rows %{customdata[2]:.1%}<br>left behind %{marker.color:.0%} of the classes<extra></extra>"
        )
        hover_rows = self.frame[["rule", "title", "coverage"]].assign(title=self.frame["title"].map(html.escape))
        figure = go.Figure()
        figure.add_scatter(
            x=best["mean_size"],
            y=best["macro_coverage"],
            mode="lines",
            name=FRONT,
            hoverinfo="skip",
            line={"color": theme.muted, "width": 1.5, "dash": "dot"},
        )
        figure.add_scatter(
            x=self.frame["mean_size"],
            y=self.frame["macro_coverage"],
            mode="markers+text",
            name="rules",
            marker=behind,
            text=[html.escape(text) for text in self.labels()],
            textposition=self.sides(),
            textfont={"size": 11},
            customdata=hover_rows.to_numpy().tolist(),
            hovertemplate=hover,
            cliponaxis=False,
        )
        ticks = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000]
        across = {"type": "log", "range": sizes, "tickvals": ticks, "title": {"text": "classes in a set on average"}}
        up = {"range": shares, "tickformat": ".0%", "title": {"text": "mean over classes (macro-coverage)"}}
        return figure.update_layout(height=460, showlegend=False, xaxis=across, yaxis=up)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.ticker import PercentFormatter, ScalarFormatter

        figure = paper(7.2, 4.8)
        axes = figure.subplots()
        best = self.frame[self.frame["best"]]
        axes.plot(best["mean_size"], best["macro_coverage"], ":", color=theme.muted, zorder=1)
        colours = LinearSegmentedColormap.from_list(BEHIND, [theme.hit, theme.model_b, theme.miss])
        dots = axes.scatter(
            self.frame["mean_size"],
            self.frame["macro_coverage"],
            c=self.frame["left_behind"],
            cmap=colours,
            vmin=0,
            vmax=1,
            s=60,
            edgecolor=theme.paper,
            zorder=2,
        )
        for label, side, size, macro in zip(
            self.labels(), self.sides(), self.frame["mean_size"], self.frame["macro_coverage"], strict=True
        ):
            left = side == "middle left"
            offset, anchor = ((-6, 0), "right") if left else ((6, 0), "left")
            axes.annotate(label, (size, macro), offset, textcoords="offset points", va="center", ha=anchor, size=8)
        sizes, shares = self.ranges()
        axes.set(
            xscale="log",
            xlim=(10 ** sizes[0], 10 ** sizes[1]),
            ylim=shares,
            xlabel="classes in a set on average",
            ylabel="mean over classes (macro-coverage)",
        )
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        figure.colorbar(dots, ax=axes, label=BEHIND, format=PercentFormatter(1, decimals=0))
        return figure
