"""`Recipe`, and short forms for the settings of papers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.datasets import Dataset, Transform
from workbench.losses import CrossEntropy, Loss
from workbench.runs.grid import monitors_at
from workbench.runs.run import Run

Settings = tuple[Mapping[str, Any], ...]  # of a sweep: fields of a run, one mapping per run


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Fields of a run as a paper gives them, what it compares and what it searched, and what differs here.

    `sweep(recipe.run(dataset), over=recipe.compared)` is the paper's comparison, each loss with the knobs the paper
    settled on; `over=recipe.grid` is the search before it, as far as the paper tells. `K` are the set sizes that the paper
    trains for; losses and monitors stand here at one of them, and `over=recipe.at_each_K()` is the comparison at all.
    `unstated` names the settings that the paper leaves open and we chose.
    """

    settings: Mapping[str, Any]
    compared: Settings = ()
    grid: Settings = ()
    K: tuple[int, ...] = ()
    paper: str = ""
    place: str = ""  # in the paper
    note: str = ""
    unstated: tuple[str, ...] = ()

    def run(self, dataset: str | os.PathLike[str] | Dataset, *, K: float | None = None, **changes: Any) -> Run:
        """The run of this recipe on a dataset; `changes` replace some of its fields, `K` is that of loss and monitors.

        >>> from workbench.runs.recipes import RECIPES
        >>> RECIPES["plantnet300k-resnet18"].run("garden", K=3).monitor
        'average_k_accuracy@K=3'
        """
        fields = {"loss": CrossEntropy(), "monitor": None, **self.settings, **changes}
        if "model" not in fields:
            raise ValueError(f"this recipe leaves the model to you; give model={self._models()}")
        if K is not None:
            at_K: dict[str, Any] = {"K": K} if "K" in fields["loss"].knobs() else {}
            fields["loss"] = dataclasses.replace(fields["loss"], **at_K)
            fields["monitor"] = changes.get("monitor", monitors_at(fields["monitor"], K))
        return Run(dataset, **fields)

    def with_loss(self, kind: type[Loss]) -> dict[str, Any]:
        """The settings with which the paper trains a loss of this kind; those of the recipe where it has none, or several.

        >>> from workbench.losses import SmoothTopKHinge
        >>> from workbench.runs.recipes import RECIPES
        >>> RECIPES["imagenet-resnet18"].with_loss(SmoothTopKHinge)["learning_rate"]
        1.0
        """
        of_kind = [setting for setting in self.compared if type(setting.get("loss")) is kind]
        own = self.settings.get("loss")
        if type(own) is kind or len(of_kind) != 1:
            return {**self.settings, "loss": own if type(own) is kind else kind()}
        return {**self.settings, **of_kind[0]}

    def at_each_K(self) -> Settings:
        """The settings that the paper compares, at each of its K: that of the loss, the rule and the monitor.

        >>> from workbench.runs.recipes import RECIPES
        >>> [setting["K"] for setting in RECIPES["imagenet-resnet18"].at_each_K()]
        [1, 5, 1, 5, 1, 5]
        """
        return tuple({**setting, "K": K} for setting in self.compared for K in self.K) or self.compared

    @property
    def trains(self) -> str:
        """The model, the epochs and the losses, in a few words."""
        learns = "a head" if "features" in self.settings else self.settings.get("model", "a model of your choice")
        losses = dict.fromkeys(type(setting["loss"]).__name__ for setting in self.compared if "loss" in setting)
        own = self.settings.get("loss")
        names = [*losses] or ([type(own).__name__] if own is not None else [])
        epochs = f"{self.settings['epochs']} epochs"
        return f"{learns}, {epochs}: {', '.join(names)}" if names else f"{learns}, {epochs}"

    @property
    def source(self) -> str:
        """Paper and place, what differs here and what the paper does not tell, in one sentence."""
        unstated = f"not stated: {', '.join(self.unstated)}" if self.unstated else ""
        return "; ".join(filter(None, (self.paper, self.place, self.note, unstated)))

    def described(self) -> dict[str, Any]:
        """The recipe as JSON: settings as in `run.json`."""
        return {
            "trains": self.trains,
            "settings": described_setting(self.settings),
            "compared": [described_setting(setting) for setting in self.compared],
            "grid": [described_setting(setting) for setting in self.grid],
            "K": list(self.K),
            "paper": self.paper,
            "place": self.place,
            "note": self.note,
            "unstated": list(self.unstated),
        }

    def _models(self) -> str:
        named = [repr(setting["model"]) for setting in self.grid if "model" in setting]
        if "features" in self.settings:
            return "…, a backbone that was trained before, or features=, a run"
        return ", ".join(named[:3]) + " or the like" if named else "…"

    def __repr__(self) -> str:
        of = f", {self.paper}, {self.place}" if self.paper else ""
        return f"Recipe({self.trains}{of})"


def described_setting(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a run as `run.json` has them."""
    return {name: _described(value) for name, value in setting.items()}


def _described(value: Any) -> Any:
    if isinstance(value, (Loss, Transform)):
        return value.spec()
    return [_described(each) for each in value] if isinstance(value, tuple) else value


def of(losses: Iterable[Loss]) -> Settings:
    """One setting for each loss."""
    return tuple({"loss": loss} for loss in losses)


def models(*names: str) -> Settings:
    """One setting for each network of torchvision, with its first weights for ImageNet."""
    return tuple({"model": f"torchvision:{name}:IMAGENET1K_V1"} for name in names)


def sgd(
    learning_rate: float, *, epochs: int, divide_after: tuple[int, ...], batch_size: int, **rest: Any
) -> dict[str, Any]:
    """SGD with Nesterov's momentum of 0.9 and a learning rate that is divided by ten after some of the epochs."""
    return {
        "optimizer": "sgd",
        "learning_rate": learning_rate,
        "epochs": epochs,
        "schedule": "steps",
        "milestones": tuple(epoch / epochs for epoch in divide_after),
        "batch_size": batch_size,
        "weight_decay": 1e-4,
        **rest,
    }
