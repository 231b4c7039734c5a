"""`TrainedRun`, the result of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from torch import Tensor, nn

from workbench.html_repr import run_card
from workbench.losses import Loss, from_spec
from workbench.networks.by_name import backbone_named
from workbench.networks.network import Network, build_network
from workbench.runs.monitors import monitor_named
from workbench.runs.run import Run
from workbench.store import Store, StoredRun, chosen_store
from workbench.store.runs import MonitoredTables
from workbench.tables import LogitTable
from workbench.training.features import stored_weights, take_weights
from workbench.trusted_imports import allowed_modules

if TYPE_CHECKING:
    from workbench.sets import FittedRule, Rule
    from workbench.training.predicting import Predictor


@dataclass(frozen=True)
class TrainedRun:
    """The result of a run: tables, history and network, read from its folder on first use.

    `train` and `TrainedRun.open(key)` return one. `predict(inputs)` scores new rows, `predictor(rule)` returns their sets,
    `export(path)` writes an ONNX file or a bundle.

    Args:
        given: The run; None if it is read from `run.json`.
        stored: The folder of the run.
        own_model: The model, where the run was trained with a Module, whose code is not stored.
        allowed: Modules of yours that may be imported for its loss and model.
    """

    given: Run | None  # None: read from run.json on first use
    stored: StoredRun
    own_model: str | nn.Module | None = None
    allowed: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        key: str,
        store: Store | None = None,
        *,
        model: str | nn.Module | None = None,
        allow: Iterable[str] = (),
    ) -> Self:
        """Open a stored run. Its dataset need not exist any more.

        Args:
            key: Key of the run, or the beginning of it if that is unique.
            store: Store to look in; the default store if None.
            model: A Module of the same architecture, if the run was trained with one; it receives the stored weights.
            allow: Modules of yours that may be imported for the loss or the model of the run.
        """
        stored, allowed = chosen_store(store).open(key), allowed_modules(allow)
        stored.check_network()
        if model is None and isinstance(stored.record.model, str):
            backbone_named(stored.record.model, allowed=allowed)
        from_spec(dict(stored.record.loss or {}), allowed=allowed)  # foreign code is refused here
        return cls(None, stored, model, allowed)

    @cached_property
    def run(self) -> Run:
        """The run; raises if `run.json` alone does not describe it, because arrays and Modules are not stored."""
        if self.given is not None:
            return self.given
        return Run.from_json(self.stored.record.run, allow=self.allowed)

    @cached_property
    def loss(self) -> Loss:
        """The loss of the run."""
        if self.given is not None:
            return self.given.loss
        return from_spec(dict(self.stored.record.loss or {}), allowed=self.allowed)

    @property
    def path(self) -> Path:
        return self.stored.path

    @property
    def tables(self) -> Mapping[str, LogitTable]:
        """ "val" and "test"; two heads also give "val/candidates" and "test/candidates"."""
        return self.stored.tables

    @property
    def history(self) -> pd.DataFrame:
        """One row per epoch.

        train_loss, train_accuracy (of the training rows as they pass, before each step: how far the network memorises them),
        val_loss, val_accuracy, val_average_K_accuracy and val_mean_size (of these sets); "val_" + name for each
        monitor with a K; val_same_set, the largest share of rows with the same K classes in front, and val_over_constant,
        how much more often a label is among them than among the commonest K (0 for a constant answer);
        val_log_normaliser, the mean log Σ exp(scores) of a row, for softmax and quasibinary, and log_C for the latter;
        normaliser_mean and normaliser_variance, of the Σ exp(scores) of validation rows for softmax, of the constant C of
        the epoch's batches for quasibinary (Liao et al., Fig. 2: `figures.normalisers`);
        nonzero_gradients, the mean number of scores of a training row, in all heads, that the loss pulls at (by more
        than rounding: `gradient_sparsity`; Garcin et al. 2022, Fig. 2); seconds. A knob that follows a schedule has a
        column, such as loss.epsilon: its value in the last step of the epoch. val_loss takes it at its end in all epochs.
        """
        return self.stored.history

    @property
    def metrics(self) -> dict[str, float]:
        """The row of the history for the epoch whose weights are kept."""
        row = self.history.iloc[self.stored.record.kept_epoch or 0]
        return {str(name): value for name, value in row.items()}

    def kept_by(self, monitor: str) -> MonitoredTables:
        """The epoch that was best in one of the run's monitors, and its tables: `.epoch` (counted from 0), `.tables["test"]`."""
        return self.stored.kept_by(monitor_named(monitor).name)

    @cached_property
    def model(self) -> Network:
        """The trained network: it takes inputs as the dataset holds them and returns scores."""
        record = self.stored.record
        network = build_network(
            self._architecture(),
            self.loss,
            input_shape=tuple(record.input_shape or ()),
            n_classes=record.n_classes or 0,
            head=record.run.get("head", "auto"),
        )
        take_weights(network, network_weights(stored_weights(self.stored)), self.stored)
        return network.eval()

    def _architecture(self) -> str | nn.Module:
        """Return the architecture: a name, or the Module that was given."""
        if self.own_model is not None:
            return self.own_model
        if self.given is not None:
            return self.given.model
        if not isinstance(named := self.stored.record.model, str):
            kind = str((named or {}).get("module", "Module")).partition("(")[0]
            raise ValueError(
                f"the model of {self.stored.title} was a Module ({kind}), whose weights are stored and whose code is not; "
                f"give one that is made like it: TrainedRun.open({self.stored.short!r}, model=…), or "
                "--model module:factory in a shell"
            )
        return named

    def predict(self, inputs: Any, *, device: str = "auto", progress: bool = True) -> LogitTable:
        """Score new rows, read and prepared as in training; the table has no labels.

        Args:
            inputs: Rows as the dataset holds them (an array, a DataFrame, a sparse matrix, `ImageFiles`), or a path: a
                CSV with the columns of training, a `.npy` file, an image or a folder of images; or a list of paths of images.
            device: Auto, cpu, cuda, cuda:1, mps. What takes longer than two seconds shows its `progress`.

        Columns are found by name where training knew names; a column `id`, or the paths of images, become the ids.
        """
        from workbench.training.predicting import predict

        return predict(self, inputs, device=device, progress=progress)

    def predictor(self, rule: Rule | FittedRule, *, device: str = "auto", progress: bool = True) -> Predictor:
        """Return a function from new rows, in any form `predict` takes, to `PredictionSets`.

        Args:
            rule: Such as `AverageK(K=5)`. It is fitted on val; one that is fitted already stays as it is, for those who
                fit on rows that chose nothing: `LAC(0.9).fit(fitting)` with `fitting, judging = tables["test"].split()`.

        `.to_frame()` of the sets has one line per row, with the names of its classes.
        """
        from workbench.training.predicting import Predictor, fitted_rule

        return Predictor(self, fitted_rule(rule, self.tables["val"]), device, progress)

    def export(self, path: str | os.PathLike[str], rule: Rule | FittedRule | None = None) -> Path:
        """Writes the network for use without the workbench: `model.onnx`, or a folder with all that sets need.

        Args:
            path: Ends in `.onnx` for the network alone: `inputs` as the dataset holds them, with any number of rows, in;
                `scores` and `probabilities` out. Any other path is a folder: `model.onnx`, `weights.safetensors`, and
                `bundle.json` with the link, the names of the classes, the fitted `rule` and its threshold, and what inputs look
                like. There is no pickle in it.
            rule: For a folder; fitted on val as by `predictor`. Without one, average-K at the K of the run.
        """
        from workbench.training.exporting import export

        return export(self, Path(path), rule)

    def _repr_html_(self) -> str:
        return run_card(self.stored)


def network_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights without the state of the loss."""
    return {name: value for name, value in weights.items() if not name.startswith("loss_state.")}
