"""`Run`, the description of a training run."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from workbench.datasets import (
    Augmentation,
    Dataset,
    DatasetSpec,
    ImageTransform,
    Normalise,
    Transform,
    load_dataset,
    transforms,
)
from workbench.html_repr import card
from workbench.knobs import Knobbed, format_value, knob
from workbench.losses import CrossEntropy, Loss, from_spec
from workbench.networks.base import TORCHVISION
from workbench.networks.by_name import backbone_named, foreign
from workbench.runs.checks import check_course, check_device, check_features, check_parts, check_ranks, check_untrained
from workbench.runs.keys import key_of
from workbench.runs.monitors import Monitor, monitors_named
from workbench.trusted_imports import allowed_modules

if TYPE_CHECKING:
    from torch import nn

    from workbench.training.trained_run import TrainedRun


@dataclass(frozen=True)
class Run(Knobbed):
    """Everything that decides what a training run gives: the data, the model, the loss, and how long and how fast.

    Args:
        dataset: A name, a path, a `Dataset`, or a `DatasetSpec`, which is loaded on first use.
        model: A name, `"module:factory"` or a torch Module. One of your own returns features, to which the loss adds its head;
            or, if it ends in a linear layer with one score for each class, it is the whole classifier: that layer is the head
            (a loss that asks for two heads or for cosines replaces it).
        loss: One of `wb.losses`, or one of your own. A numeric knob of it may follow a schedule over the training:
            `NoisedTopK(K=5, epsilon=wb.schedules.anneal(3, 0.2))`. Validation, tables and figures take it at its end.
        epochs: Passes over the training rows. With `epochs=0` nothing is trained: a model that has scores of its own is stored
            and evaluated as it is.
        batch_size: Rows in a step.
        optimizer: "adamw", "adam", or "sgd" with Nesterov's momentum of 0.9.
        learning_rate: Learning rate at the start of `schedule`.
        schedule: The learning-rate schedule: "cosine" to zero, "constant", or "steps", which divides it by ten at each of
            the `milestones`.
        weight_decay: Weight decay of the optimizer.
        seed: Seed of the first weights, the order of the rows and the noise of the loss.
        features: Train the head only, on features that are computed once (`cache_features`): those of a trained run (given as
            such or by its key, and with the same `model`), or with "cached" those of the weights that `model` comes with, a
            Module or `module:factory`. The whole network is stored, with the backbone as it was.
        monitor: Keep the weights of the epoch that is best in it instead of the last: "val_loss", "val_accuracy",
            "val_average_K_accuracy" (at the K of the loss, or 5), or a metric with its K, such as "average_k_accuracy@K=3" or
            "top_k_accuracy@K=5"; with "macro_" before it, of classes, with "few_", "medium_" or "many_", of the classes with
            so many training images. Where rows have many labels, all of a row must be in its set; of classes, each counts. Of
            several, as a tuple, the first decides; each of the others keeps the tables of its own best epoch
            (`TrainedRun.kept_by`).
        patience: Stop after that many epochs without a better value of the (first) monitor.
        transforms: Changes of the data before anything is learnt, such as `(LabelNoise(0.2),)`; a dataset that was
            `transformed` with the same ones gives the same run. Others change training images:
            `HorizontalFlip()`, `PaddedCrop(4)` and `Torchvision("RandAugment")` those of training, anew in every epoch, and
            `Normalise(mean, std)` all.
        precision: "32", or "bf16" or "fp16" for the network while it trains (losses are computed in float32). With "fp16" the
            loss is scaled so that small gradients are not rounded to zero, and a step whose gradients overflow is left out.
        compile: Compile the network with torch.compile, and also a loss that draws nothing and has no gradient
            written by hand (`loss.compiles`); others are computed as they are. It differs by rounding, which training
            magnifies, so it is part of the key.
        channels_last: Use the channels-last memory format for convolutions, which is faster in half precision on GPUs. It
            is part of the key for the same reason.
        device: "auto" uses a CUDA GPU if there is one; "cpu", "cuda", "cuda:1" for the second GPU, "mps" for that of a Mac.
        devices: Ranks on a node. Each batch is shared by devices × nodes ranks, and a step is that of one process: the loss
            sees the whole batch of `batch_size` rows, batch normalisation too, and noise is drawn for the whole batch. The
            result is the same but for dropout, which each rank draws for its rows, and rounding, which Adam magnifies where a
            gradient cancels to nearly nothing; so the number of ranks is not part of the key.
        nodes: Number of machines.
        micro_batches: Number of parts that a batch is computed in, one after the other, to save memory. `batch_size` stays the
            number of rows in a step. Losses that couple the rows of a batch refuse it.
        milestones: Shares of the training, between 0 and 1, at which "steps" lowers the learning rate.
        head: "new" if a model of your own returns features, "own" if it returns scores, "auto" to look at its last layer.

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

    dataset: str | os.PathLike[str] | Dataset | DatasetSpec
    model: str | nn.Module = "cnn"
    loss: Loss = dataclasses.field(default=CrossEntropy())
    epochs: int = knob(10, low=1, high=100, minimum=0, maximum=10**6, scale="log", meaning="number of epochs")
    batch_size: int = knob(128, low=8, high=1024, minimum=1, maximum=10**6, scale="log", meaning="batch size")
    optimizer: str = knob("adamw", choices=("adamw", "adam", "sgd"), meaning="optimizer")
    learning_rate: float = knob(
        1e-3, low=1e-5, high=1.0, minimum=1e-12, maximum=1e3, scale="log", meaning="learning rate"
    )
    schedule: str = knob("cosine", choices=("cosine", "constant", "steps"), meaning="schedule of the learning rate")
    weight_decay: float = knob(1e-4, low=0.0, high=0.1, maximum=1e3, meaning="weight decay")
    seed: int = knob(
        0, low=0, high=20, maximum=2**31 - 1, meaning="seed of the initial weights, the order of rows and the noise"
    )
    features: str | TrainedRun | None = None
    monitor: str | tuple[str, ...] | None = None
    patience: int | None = None
    transforms: tuple[Transform, ...] = ()
    precision: str = knob("32", choices=("32", "bf16", "fp16"), meaning="floating-point precision of training")
    compile: bool = knob(False, meaning="compile the network and the loss with torch.compile")
    channels_last: bool = knob(False, meaning="use the channels-last memory format for convolutions")
    device: str = knob(
        "auto",
        kind="suggestion",
        choices=("auto", "cpu", "cuda", "cuda:1", "mps"),
        meaning="device to train on; auto uses a CUDA GPU if there is one",
    )
    devices: int = knob(1, low=1, high=8, maximum=1024, meaning="number of ranks on a node, one for each GPU")
    nodes: int = knob(1, low=1, high=8, maximum=1024, meaning="number of machines")
    micro_batches: int = knob(
        1, low=1, high=16, maximum=10**6, meaning="number of pieces a step is computed in, to save memory"
    )
    milestones: tuple[float, ...] = (0.5, 0.75)
    head: str = knob(
        "auto",
        choices=("auto", "new", "own"),
        meaning="head of a custom model: new on its features, its own scores, or auto, by its last layer",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (stored := getattr(self.features, "stored", None)) is not None:  # a trained run: its key
            object.__setattr__(self, "features", stored.key)
        for check in (check_parts, check_untrained, check_course, check_features, check_device, check_ranks):
            check(self)
        for name in ("transforms", "milestones"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not foreign(self.model):  # a built-in model returns features: there is nothing to say
            object.__setattr__(self, "head", "auto")

    @cached_property
    def data(self) -> Dataset:
        """The dataset itself with its transforms, loaded when it is first needed."""
        match self.dataset:
            case Dataset() as data:
                return data.transformed(*self._of_data)
            case DatasetSpec() as spec:
                return spec.load().transformed(*self._of_data)
            case name:
                return load_dataset(str(name)).transformed(*self._of_data)

    @property
    def _of_data(self) -> tuple[Transform, ...]:
        """The transforms that change the dataset itself."""
        return tuple(each for each in self.transforms if not isinstance(each, ImageTransform))

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
        """Number of processes that share each batch."""
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

    def to_json(self) -> dict[str, Any]:
        """The run as JSON types, as `run.json` holds it and `Run.from_json` reads it."""
        return self._fields() | {"dataset": self.data.spec, "dataset_key": self.data.key}

    def description(self) -> dict[str, Any]:
        """The run as JSON has it, as `to_json`, without loading a `DatasetSpec`; `dataset_key` only if it is known."""
        if not isinstance(self.dataset, DatasetSpec):
            return dict(json.loads(json.dumps(self.to_json())))
        changed = dataclasses.replace(self.dataset, transforms=(*self.dataset.transforms, *self._of_data))
        known = {} if self.dataset.key is None or self._of_data else {"dataset_key": self.dataset.key}
        described: dict[str, Any] = json.loads(json.dumps(self._fields() | {"dataset": changed.to_json()} | known))
        return described

    def _fields(self) -> dict[str, Any]:
        """The fields as JSON types; the dataset as it was given."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        given = self.model if isinstance(self.model, str) else _described_module(self.model)
        changes = [transform.spec() for transform in self.transforms]
        return fields | {"model": given, "loss": self.loss.spec(), "transforms": changes}

    @classmethod
    def from_json(cls, described: Mapping[str, Any] | str, *, allow: Iterable[str] = ()) -> Self:
        """The run that `to_json` described, or that a `run.json` holds. Its data are loaded when they are used.

        Args:
            described: The text of a `run.json`, what was read from it, or its `run`. Only `dataset` is needed.
            allow: Modules that may be imported. A file is only data: code it names is imported if its module is listed.

        Raises:
            ValueError: If it describes no run, or if the data or the model have no name. `run.data` raises it if the data
                have changed since.
        """
        content = json.loads(described) if isinstance(described, str) else described
        content = content["run"] if isinstance(content, Mapping) and "facts" in content else content
        if not isinstance(content, Mapping) or "dataset" not in content:
            raise ValueError("this describes no run: it lacks dataset; give what a run.json holds")
        _check_repeatable(content)
        from workbench.runs.description import check_description

        check_description(content)
        allowed = allowed_modules(allow)
        fields = {field.name: content[field.name] for field in dataclasses.fields(cls) if field.name in content}
        if "loss" in fields:
            fields["loss"] = from_spec(fields["loss"], allowed=allowed)
        if "model" in fields and not fields["model"].startswith(TORCHVISION):
            backbone_named(fields["model"], allowed=allowed)
        changes = tuple(transforms.from_spec(each, allowed=allowed) for each in content.get("transforms", ()))
        # The spec of the data lists all transforms that change them; those of the run come last, and the run applies them.
        before = content["dataset"].get("transforms", [])
        of_run = [each.spec() for each in changes if not isinstance(each, ImageTransform)]
        own = before[: len(before) - len(of_run)] if of_run and before[-len(of_run) :] == of_run else before
        key = content.get("dataset_key")  # after all of them
        data = DatasetSpec.from_json(
            {**content["dataset"], "transforms": own}, key=None if of_run else key, allowed=allowed
        )
        run = cls(**fields | {"dataset": data, "transforms": changes})
        if of_run and key not in (None, run.data.key):
            raise ValueError(f"{run.data.name} is not the data this run was trained on: its content has changed since")
        return run

    def _repr_html_(self) -> str:
        facts = {name: str(getattr(self, name)) for name in ("dataset", "transforms", "model", "loss")}
        rest = [f"{name} {format_value(value)}" for name, value in self.settings().items()]
        return card("Run, not trained yet: train(run)", facts | {"settings": ", ".join(rest)})

    @property
    def monitors(self) -> tuple[Monitor, ...]:
        """The monitors; the first decides which weights are kept and when patience ends."""
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
        return len(history) >= max(self.epochs, 1) or (self.patience is not None and waited >= self.patience)


def _described_module(module: nn.Module) -> dict[str, str]:
    """A model that has no name: how it prints, and the digest of its weights."""
    from workbench.networks.network import weights_digest

    return {"module": repr(module), "weights": weights_digest(module)}


def _check_repeatable(described: Mapping[str, Any]) -> None:
    """Refuses a run whose data or model have no name."""
    if described["dataset"] is None or not isinstance(described.get("model", ""), str):
        missing = "dataset was given as arrays" if described["dataset"] is None else "model was given as a Module"
        raise ValueError(f"the run cannot be repeated from its file alone: its {missing}; make the Run again")
