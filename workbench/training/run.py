"""What to train: `Run`."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from torch import nn

from workbench.cards import card
from workbench.datasets import (
    Augmentation,
    Dataset,
    ImageTransform,
    Normalise,
    Transform,
    load_dataset,
    load_spec,
    transforms,
)
from workbench.knobs import Knobbed, knob, shown
from workbench.lookup import allowed_modules
from workbench.losses import CrossEntropy, Loss, from_spec
from workbench.networks.network import backbone_named, foreign, weights_digest
from workbench.store import StoredRun
from workbench.training.checks import check_course, check_features, check_parts, check_ranks
from workbench.training.keys import former_key_of, key_of
from workbench.training.monitors import Monitor, monitors_named

if TYPE_CHECKING:
    from workbench.training.trained import TrainedRun


@dataclass(frozen=True)
class Run(Knobbed):
    """Everything that decides what a training run gives: the data, the model, the loss, and how long and how fast.

    - `dataset`: a name, a path or a `Dataset`; `transforms` change it before anything is learnt, such as
      `transforms=(LabelNoise(0.2),)`. A dataset that was `transformed` with the same ones gives the same run. Others change
      images on their way into the network: `HorizontalFlip()`, `PaddedCrop(4)` and `Torchvision("RandAugment")` those of
      training, anew in every epoch, and `Normalise(mean, std)` all.
    - `model`: a name, `"module:factory"` or a torch Module. One of your own returns features, to which the loss adds its
      head; or, if it ends in a linear layer with one score for each class, it is the whole classifier: that layer is the
      head (a loss that asks for two heads or for cosines replaces it). `head` says so where it cannot be seen: "new" for
      features, "own" for scores that are taken as they are.
    - `loss`: one of `wb.losses`, or one of your own. A numeric knob of it may follow a schedule over the training:
      `NoisedTopK(K=5, epsilon=wb.schedules.anneal(3, 0.2))`. Validation, tables and figures take it at its end.
    - `epochs`, `batch_size`: passes over the training rows, and rows in a step.
    - `optimizer` (adamw, adam, or sgd with Nesterov's momentum of 0.9), `learning_rate`, `weight_decay`.
    - `schedule`: the course of the learning rate: "cosine" to zero, "constant", or "steps", which divides it by ten after
      each of the shares of the training in `drops`, numbers between 0 and 1.
    - `seed`: of the first weights, the order of the rows and the noise of the loss.
    - `monitor`: the weights of the epoch that is best in it are kept instead of the last: "val_loss", "val_accuracy",
      "val_average_K_accuracy" (at the K of the loss, or 5), or a metric with its K, such as "average_k_accuracy@K=3" or
      "top_k_accuracy@K=5"; with "macro_" before it, of classes, with "few_", "medium_" or "many_", of the classes with so
      many training images. Where rows have many labels, all of a row must be in its set; of classes, each counts. With
      `patience` training stops after that many epochs without a better one. Of several, as a tuple, the first decides
      all this; each of the others keeps the tables of its own best epoch (`TrainedRun.kept_by`).
    - `features`: only the head learns, on features that are computed once (`cache_features`): those of a trained run
      (given as such or by its key, and with the same `model`), or with "cached" those of the weights that `model` comes
      with, a Module or `module:factory`. What is kept is the whole network, with the backbone as it was.
    - `precision`: "32", or "bf16" for the network while it trains (losses are computed in float32).
    - `compile`: torch.compile makes kernels of the network, and of a loss that draws nothing and has no gradient written by
      hand (`loss.compiles`); others are computed as they are. `channels_last`: weights of convolutions lie in memory as
      images do, pixel by pixel, which is how GPUs multiply in half precision. Both differ by rounding from the plain way,
      which training magnifies, so that they are part of the key.
    - `device`: "auto" takes a GPU if there is one, "cpu", "cuda".
    - `devices`, `nodes`: each batch is shared by devices × nodes ranks, and a step is that of one process: the loss sees
      the whole batch of `batch_size` rows, batch normalisation too, and noise is drawn for the whole batch. The result is
      the same but for dropout, which each rank draws for its rows, and rounding, which Adam magnifies where a gradient
      cancels to nearly nothing; so the key does not tell how many ranks there were.
    - `accumulate`: a step is computed in so many pieces, one after the other, to save memory; what looks at the whole
      batch then sees a piece, so that batch-coupled losses refuse it.

    Trained again on a CPU with the same instructions (`torch.backends.cpu.get_cpu_capability()`) and the same versions of
    torch and NumPy, a run gives the same bits. For a small network, of fewer than 20 million multiplications a batch
    (`linear` and `mlp` on the rows and digits that come along), the number of threads does not matter: it trains on one.
    The threads of a larger one share its sums, so that there `torch.get_num_threads()` must be the same too, also where
    the features of its backbone are computed. Elsewhere, and on a GPU, a run differs by rounding, which training magnifies.

    >>> run = Run("letters", model="mlp", epochs=2)
    >>> run.title
    'letters · mlp · CrossEntropy()'
    >>> run.key == Run("letters", model="mlp", epochs=2, device="cpu").key
    True
    >>> Run("letters", model="mpl")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: there is no model named 'mpl'; known: linear, mlp, cnn, ...; or give module:factory or a torch Module
    """

    dataset: str | os.PathLike[str] | Dataset
    model: str | nn.Module = "cnn"
    loss: Loss = dataclasses.field(default=CrossEntropy())
    epochs: int = knob(10, low=1, high=100, maximum=10**6, meaning="number of passes over the training rows")
    batch_size: int = knob(128, low=8, high=1024, minimum=1, maximum=10**6, meaning="number of rows in a step")
    optimizer: str = knob("adamw", choices=("adamw", "adam", "sgd"), meaning="rule that turns gradients into steps")
    learning_rate: float = knob(1e-3, low=1e-5, high=1.0, minimum=1e-12, maximum=1e3, scale="log", meaning="step size")
    schedule: str = knob("cosine", choices=("cosine", "constant", "steps"), meaning="course of the learning rate")
    weight_decay: float = knob(1e-4, low=0.0, high=0.1, maximum=1e3, meaning="pull of the weights towards zero")
    seed: int = knob(0, low=0, high=20, maximum=2**31 - 1, meaning="seed of weights, order and noise")
    features: str | TrainedRun | None = None
    monitor: str | tuple[str, ...] | None = None
    patience: int | None = None
    transforms: tuple[Transform, ...] = ()
    precision: str = knob("32", choices=("32", "bf16"), meaning="arithmetic of the network while it trains")
    compile: bool = knob(False, meaning="whether torch.compile makes kernels of the network and of the loss")
    channels_last: bool = knob(
        False, meaning="whether weights of convolutions lie in memory as images do, pixel by pixel"
    )
    device: str = knob(
        "auto", choices=("auto", "cpu", "cuda"), meaning="place to train; auto takes a GPU if there is one"
    )
    devices: int = knob(1, low=1, high=8, maximum=1024, meaning="number of ranks on a node, one for each GPU")
    nodes: int = knob(1, low=1, high=8, maximum=1024, meaning="number of machines")
    accumulate: int = knob(
        1, low=1, high=16, maximum=10**6, meaning="number of pieces a step is computed in, to save memory"
    )
    drops: tuple[float, ...] = (0.5, 0.75)
    head: str = knob(
        "auto",
        choices=("auto", "new", "own"),
        meaning="head of a model of one's own: new on its features, its own scores, or auto, by its last layer",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(source := getattr(self.features, "stored", None), StoredRun):  # of a run that was trained
            object.__setattr__(self, "features", source.key)
        for check in (check_parts, check_course, check_features, check_ranks):
            check(self)
        for name in ("transforms", "drops"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @cached_property
    def data(self) -> Dataset:
        """The dataset itself with its transforms, loaded when it is first needed."""
        data = self.dataset if isinstance(self.dataset, Dataset) else load_dataset(str(self.dataset))
        return data.transformed(*(each for each in self.transforms if not isinstance(each, ImageTransform)))

    @property
    def augmentations(self) -> tuple[Augmentation, ...]:
        """The transforms that change the training images anew in every epoch."""
        return tuple(each for each in self.transforms if isinstance(each, Augmentation))

    @property
    def normalisation(self) -> Normalise | None:
        """The transform that says which mean and deviation the colours of all images get."""
        return next((each for each in self.transforms if isinstance(each, Normalise)), None)

    @property
    def n_ranks(self) -> int:
        """How many processes share each batch."""
        return self.devices * self.nodes

    @property
    def model_name(self) -> str:
        """The model as people call it: its name, or the class of a Module."""
        return self.model if isinstance(self.model, str) else type(self.model).__name__

    @property
    def title(self) -> str:
        """A short name for people."""
        model = self.model_name if self.features is None else f"head of {self.model_name}"
        of_images = "".join(f" · {each!r}" for each in self.transforms if isinstance(each, ImageTransform))
        seed = f" · seed {self.seed}" if self.seed else ""
        return f"{self.data.name} · {model} · {self.loss!r}{of_images}{seed}"

    @cached_property
    def key(self) -> str:
        """sha256 of all that decides the result: the dataset's content, the model, the loss and every setting.

        A loss or a model that lives outside the workbench enters with its source, so that an edited one is a new run.
        """
        return key_of(self)

    @cached_property
    def former_key(self) -> str:
        """The key that an earlier version gave this run."""
        return former_key_of(self)

    def described(self) -> dict[str, Any]:
        """The run as JSON: what `Run.from_json` reads."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        given = (
            self.model
            if isinstance(self.model, str)
            else {"module": repr(self.model), "weights": weights_digest(self.model)}
        )
        if not foreign(self.model):  # which have no head of their own
            del fields["head"]
        return fields | {
            "dataset": self.data.spec,
            "dataset_key": self.data.key,
            "model": given,
            "loss": self.loss.spec(),
            "transforms": [transform.spec() for transform in self.transforms],
        }

    @classmethod
    def from_json(cls, described: Mapping[str, Any] | str, *, allow: Iterable[str] = ()) -> Self:
        """The run that a `run.json` describes (its text, or what was read from it).

        A file is only data: modules of other people that it names are imported if they are among those you `allow`.
        """
        facts = json.loads(described) if isinstance(described, str) else described
        needed = ("dataset", "dataset_key", "model", "loss", "transforms")
        if lacking := [name for name in needed if not isinstance(facts, Mapping) or name not in facts]:
            raise ValueError(f"this describes no run, for it lacks {', '.join(lacking)}; give what a run.json holds")
        if facts["dataset"] is None or not isinstance(facts["model"], str):
            missing = "dataset was given as arrays" if facts["dataset"] is None else "model was given as a Module"
            raise ValueError(
                f"{facts.get('title', 'the run')} cannot be repeated from its file alone: its {missing}; make the Run again"
            )
        allowed = allowed_modules(allow)
        backbone_named(facts["model"], allowed=allowed)
        loss = from_spec(facts["loss"], allowed=allowed)
        changes = tuple(transforms.from_spec(transform, allowed=allowed) for transform in facts["transforms"])
        # The spec tells of all transforms of the data; those of the run are its last ones, and the run applies them itself.
        before = facts["dataset"].get("transforms", [])
        of_run = sum(not isinstance(each, ImageTransform) for each in changes)
        data = load_spec({**facts["dataset"], "transforms": before[: len(before) - of_run]}, allowed=allowed)
        fields: dict[str, Any] = {"head": "new"}  # as it was when run.json did not tell
        fields |= {field.name: facts[field.name] for field in dataclasses.fields(cls) if field.name in facts}
        run = cls(**fields | {"dataset": data, "loss": loss, "transforms": changes})
        if run.data.key != facts["dataset_key"]:
            raise ValueError(f"{run.data.name} is not the data this run was trained on: its content has changed since")
        return run

    def _repr_html_(self) -> str:
        facts = {name: str(getattr(self, name)) for name in ("dataset", "transforms", "model", "loss")}
        rest = [f"{name} {shown(value)}" for name, value in self.settings().items()]
        return card("Run, not trained yet: train(run)", facts | {"settings": ", ".join(rest)})

    @property
    def monitors(self) -> tuple[Monitor, ...]:
        """What is watched; the first decides whose weights are kept and when patience ends."""
        return monitors_named(self.monitor)

    def best_epoch(self, history: Sequence[Mapping[Any, float]]) -> int:
        """The epoch whose weights are kept: the first best one of the (first) monitor, or the last."""
        return next(iter(self.best_epochs(history).values()), len(history) - 1)

    def best_epochs(self, history: Sequence[Mapping[Any, float]]) -> dict[str, int]:
        """Monitor → its first best epoch."""
        columns = {monitor: [row[monitor.column] for row in history] for monitor in self.monitors}
        return {
            monitor.name: values.index(max(values) if monitor.more_is_better else min(values))
            for monitor, values in columns.items()
        }

    def finished(self, history: Sequence[Mapping[Any, float]]) -> bool:
        """Whether all epochs are done, or the patience of the (first) monitor has run out."""
        waited = len(history) - 1 - self.best_epoch(history) if history else 0
        return len(history) >= self.epochs or (self.patience is not None and waited >= self.patience)
