"""Trains what notebook 5 compares until nothing improves any more, and writes the few numbers it shows: `make plateau`.

Sixty heads on the garden's features and as many linear models of the letters, several seeds each. Learning rate and α are
chosen on validation rows, the chosen settings are judged on test rows, and intervals are of seeds and rows together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import workbench as wb
from workbench.losses import AverageKTwoHead, CrossEntropy, Loss, NoisedTopK, SmoothTopKHinge
from workbench.store import DEMO, Store
from workbench.training import TrainedRun

RESULTS = Path(__file__).parents[1] / "workbench" / "teaching" / "results"
SEEDS = range(5)
NAMES = {
    CrossEntropy: "cross-entropy",
    NoisedTopK: "noised top-K",
    AverageKTwoHead: "two heads",
    SmoothTopKHinge: "smooth top-K",
}
# Each loss with what is tried for it.
OF_GARDEN = [
    *({"loss": CrossEntropy(), "learning_rate": rate} for rate in (0.003, 0.01, 0.03)),
    *({"loss": NoisedTopK(K=3, epsilon=0.9), "learning_rate": rate} for rate in (0.003, 0.01, 0.03)),
    *(
        {"loss": AverageKTwoHead(K=3, alpha=alpha), "learning_rate": rate}
        for alpha in (0.3, 3.0)
        for rate in (0.003, 0.01, 0.03)
    ),
]
OF_LETTERS = [
    {"loss": loss, "learning_rate": rate}
    for loss in (CrossEntropy(), NoisedTopK(K=5, epsilon=1.0), SmoothTopKHinge(K=5, temperature=0.1))
    for rate in (0.03, 0.1, 0.3)
]


def garden() -> wb.Run:
    """A head on what the demo's network sees of the garden, watched by the accuracy of its average-3 sets."""
    demo = {run.title: run for run in Store(DEMO).runs()}
    trained = TrainedRun.open(demo["garden · cnn · CrossEntropy()"].key)
    features = wb.cache_features(trained.run.data, trained)
    return wb.Run(features, model="linear", epochs=40, batch_size=1024, monitor="average_k_accuracy@K=3")


def letters() -> wb.Run:
    """A linear model of the letters, watched by its top-5 accuracy."""
    return wb.Run("letters", model="linear", epochs=20, batch_size=512, monitor="top_k_accuracy@K=5")


def compared(
    data: str, run: wb.Run, settings: Sequence[Mapping[str, Any]], rule: wb.TopK | wb.AverageK, groups: tuple[str, ...]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """How the chosen settings learnt, what was tried, and by how much those chosen differ from cross-entropy."""
    grid = [{**setting, "seed": seed} for setting in settings for seed in SEEDS]
    metrics = [wb.metrics.accuracy, wb.metrics.shot_accuracy, wb.metrics.top_k_accuracy.at(K=1)]
    found = wb.sweep(run, grid, rule=rule, metrics=metrics)
    kind = {str(loss): NAMES[type(loss)] for setting in settings if isinstance(loss := setting["loss"], Loss)}
    tried = found.summary().query("metric == 'accuracy' and group == ''").assign(data=data)
    tried["kind"] = tried["loss"].map(kind)
    on_val = tried[tried["split"] == "val"]
    chosen = on_val.loc[on_val.groupby("kind", sort=False)["mean"].idxmax()]
    keep = set(zip(chosen["loss"], chosen["learning_rate"], strict=True))
    kept = [done for done in found.runs if (str(done.run.loss), done.run.learning_rate) in keep]
    curves = pd.concat(
        [
            pd.DataFrame(
                {
                    "data": data,
                    "loss": NAMES[type(done.run.loss)],
                    "seed": done.run.seed,
                    "epoch": done.history["epoch"] + 1,
                    "val": done.history[f"val_{run.monitor}"].round(4),
                }
            )
            for done in kept
        ]
    )
    again = [setting for setting in grid if (str(setting["loss"]), setting["learning_rate"]) in keep]
    finalists = wb.sweep(
        run, again, rule=rule, metrics=metrics, progress=False
    )  # one setting of each loss, from the store
    parts = []
    for name, group in [("accuracy", group) for group in groups] + [("top_k_accuracy@K=1", "")]:
        best = finalists.best_of_each("loss", "shot_accuracy" if group else name, group=group)
        part = best.differences().assign(data=data, metric=name, group=group)
        values = {loss: one.test["mean"] for loss, one in best.items()}
        part["value"], part["against"] = part["second"].map(values), part["first"].map(values)
        parts.append(part[part["first"] == str(CrossEntropy())])
    difference = pd.concat(parts)
    difference = difference.assign(
        loss=difference["second"].map(kind),
        difference=-difference["difference"],
        low=-difference["high"],
        high=-difference["low"],
    )
    columns = ["data", "loss", "metric", "group", "value", "against", "difference", "low", "high", "seeds", "n"]
    shown = ["data", "kind", "loss", "learning_rate", "split", "mean", "low", "high", "seeds"]
    return curves, tried[shown], difference[columns]


def main() -> None:
    """Train, choose, judge, write."""
    RESULTS.mkdir(exist_ok=True)
    of_garden = compared("garden", garden(), OF_GARDEN, wb.AverageK(3), ("", "few", "medium", "many"))
    of_letters = compared("letters", letters(), OF_LETTERS, wb.TopK(5), ("",))
    for name, parts in zip(("curves", "tried", "differences"), zip(of_garden, of_letters, strict=True), strict=True):
        pd.concat(parts).to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
