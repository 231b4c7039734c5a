"""What a run gave: `TrainedRun`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from torch import Tensor, nn

from workbench.cards import run_card
from workbench.lookup import allowed_modules
from workbench.losses import Loss, from_spec
from workbench.networks.network import Network, backbone_named, build_network
from workbench.store import Store, StoredRun, chosen_store
from workbench.store.runs import Kept
from workbench.tables import LogitTable
from workbench.training.features import check_trained, stored_weights, take_weights
from workbench.training.monitors import monitor_named
from workbench.training.run import Run

if TYPE_CHECKING:
    from workbench.sets import FittedRule, Rule
    from workbench.training.predicting import Predictor


@dataclass(frozen=True)
class TrainedRun:
    """A run and what it gave: tables, history and network, read from its directory when asked for.

    New rows: `predict(inputs)` gives their scores, `predictor(rule)` their sets; `export(path)` leaves the workbench.
    """

    given: Run | None  # None: what was trained is read from run.json, when somebody asks
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
        """The stored run of this key, or of the only key that starts so; its data need not be there any more.

        Where its `model` was a Module, whose code is not stored, give one that is made like it: it gets the stored weights.
        A loss or a model of somebody else is imported if its module is among those you `allow`.
        """
        stored, allowed = chosen_store(store).open(key), allowed_modules(allow)
        check_trained(stored)
        if model is None and isinstance(stored.record.model, str):
            backbone_named(stored.record.model, allowed=allowed)
        from_spec(dict(stored.record.loss or {}), allowed=allowed)  # code of somebody else is refused now
        return cls(None, stored, model, allowed)

    @cached_property
    def run(self) -> Run:
        """What was trained; an error if `run.json` alone cannot tell, for arrays and Modules are not in it."""
        if self.given is not None:
            return self.given
        return Run.from_json(self.stored.record.to_json(), allow=self.allowed)

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

        train_loss, val_loss, val_accuracy, val_average_K_accuracy and val_mean_size (of these sets); "val_" + name for each
        monitor with a K; val_same_set, the largest share of rows with the same K classes in front, and val_over_constant,
        how much more often a label is among them than among the commonest K (0 for a constant answer);
        val_log_normaliser, the mean log Σ exp(scores) of a row, for softmax and quasibinary, and log_C for the latter;
        normaliser_mean and normaliser_variance, of the Σ exp(scores) of validation rows for softmax, of the constant C of
        the epoch's batches for quasibinary (Liao et al., Fig. 2: `figures.normalisers`);
        nonzero_gradients, the mean number of scores of a training row, in all heads, that the loss pulls at (by more
        than rounding: `counts.scores_pulled`; Garcin et al. 2022, Fig. 2); seconds. A knob that follows a schedule has a
        column, such as loss.epsilon: its value in the last step of the epoch. val_loss takes it at its end in all epochs.
        """
        return self.stored.history

    @property
    def kept(self) -> dict[str, float]:
        """The row of the history of the epoch whose weights were kept."""
        row = self.history.iloc[self.stored.record.kept_epoch or 0]
        return {str(name): value for name, value in row.items()}

    def kept_by(self, monitor: str) -> Kept:
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
            head=record.head or "new",  # as it was when run.json did not tell
        )
        take_weights(network, network_weights(stored_weights(self.stored)), self.stored)
        return network.eval()

    def _architecture(self) -> str | nn.Module:
        """What the network is built from: its weights are stored, and its code if it has a name."""
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
        """What the network says of new rows, read and prepared as those of training were; the table has no labels.

        - `inputs`: rows as the dataset holds them (an array, a DataFrame, a sparse matrix, `ImageFiles`), or a path: a
          CSV with the columns of training, a `.npy` file, an image or a folder of images; or a list of paths of images.
        - `device`: auto, cpu or cuda. What takes longer than two seconds shows its `progress`.

        Columns are found by name where training knew names; a column `id`, or the paths of images, become the ids.
        """
        from workbench.training.predicting import predict

        return predict(self, inputs, device=device, progress=progress)

    def predictor(self, rule: Rule | FittedRule, *, device: str = "auto", progress: bool = True) -> Predictor:
        """What gives the sets of new rows: `predictor(inputs)`, for all that `predict` takes, are `PredictionSets`.

        - `rule`: such as `AverageK(K=5)`. It is fitted on val; one that is fitted already stays as it is, for those who
          fit on rows that chose nothing: `LAC(0.9).fit(fitting)` with `fitting, judging = tables["test"].split()`.

        `.to_frame()` of the sets has one line per row, with the names of its classes.
        """
        from workbench.training.predicting import Predictor, fitted_rule

        return Predictor(self, fitted_rule(rule, self.tables["val"]), device, progress)

    def export(self, path: str | os.PathLike[str], rule: Rule | FittedRule | None = None) -> Path:
        """Writes the network for use without the workbench: `model.onnx`, or a folder with all that sets need.

        - `path`: ends in `.onnx` for the network alone: `inputs` as the dataset holds them, with any number of rows, in;
          `scores` and `probabilities` out. Any other path is a folder: `model.onnx`, `weights.safetensors`, and
          `bundle.json` with the link, the names of the classes, the fitted `rule` and its threshold, and what inputs look
          like. There is no pickle in it.
        - `rule`: for a folder; fitted on val as by `predictor`. Without one, average-K at the K of the run.
        """
        from workbench.training.exporting import export

        return export(self, Path(path), rule)

    def _repr_html_(self) -> str:
        return run_card(self.stored)


def network_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights without the state of the loss."""
    return {name: value for name, value in weights.items() if not name.startswith("loss_state.")}
