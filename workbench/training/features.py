"""Cached features: the output of a backbone for a dataset, computed once, on which heads train in seconds.

The features of one backbone on one dataset lie in the store under a key made of the data's content and the backbone's
weights: `.features/<key>/train.npy`, `val.npy`, `test.npy`, written as a whole or not at all, and memory-mapped when read.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from workbench.datasets import Dataset, ImageFiles, load_dataset
from workbench.files.atomic import room_for
from workbench.files.cache import FEATURES, content_key
from workbench.losses import CrossEntropy
from workbench.networks.by_name import foreign
from workbench.networks.network import ROWS_OF_A_BLOCK, Network, build_network, weights_digest
from workbench.networks.pretrained import Prepared
from workbench.progress import slow
from workbench.runs.checks import check_weights
from workbench.store import Store, StoredRun, chosen_store
from workbench.store.runs import WEIGHTS
from workbench.training.batches import in_turn, readable
from workbench.training.hardware import device_named
from workbench.training.scoring import rows_at_once

if TYPE_CHECKING:
    from workbench.training.trainer import Run, TrainedRun

SPLITS = ("train", "val", "test")
FORMAT = 1  # of the files and of the key


def cache_features(
    dataset: str | Path | Dataset,
    backbone: str | nn.Module | TrainedRun,
    *,
    store: Store | None = None,
    device: torch.device | str = "cpu",
    progress: bool = True,
) -> Dataset:
    """The dataset with the features of a backbone as its inputs: float32 (n, d), computed once and memory-mapped.

    Args:
        dataset: Its name, its path, or the dataset itself.

    `backbone` is a trained run, a Module (what it returns are the features), or the name of one that comes with weights:
    `efficientnet-lite0`, `torchvision:resnet50:DEFAULT` or `module:factory`. It is only read: no dropout, batch
    statistics as they were learnt. Labels, names, posterior and attributes stay; heads are trained on the result as on
    any rows of numbers. `store` is where they are kept, as in `train`, and `device` where they are computed: cpu, cuda or
    auto. What takes longer than two seconds shows its `progress`.

    >>> import tempfile
    >>> half = nn.Sequential(nn.Flatten(), nn.AvgPool1d(2))
    >>> cache_features("digits", half, store=Store(tempfile.mkdtemp()))
    Dataset('digits · features of Sequential': 1 427 / 185 / 185 rows of 32, 10 classes)
    """
    data, place = dataset if isinstance(dataset, Dataset) else load_dataset(dataset), device_named(device)
    if isinstance(backbone, (str, nn.Module)):
        check_weights(backbone)
        name = backbone if isinstance(backbone, str) else type(backbone).__name__
        shape, n_classes = data.input_shape, data.n_classes
        network = build_network(backbone, CrossEntropy(), input_shape=shape, n_classes=n_classes, head="new")
        standardise(network, data)
    elif not hasattr(backbone, "stored"):
        raise ValueError(f"backbone = {backbone!r}; give a trained run, a Module, or the name of one that has weights")
    else:
        name, network = backbone.stored.title, backbone.model
        _check_shape(backbone.stored, data)
    return features_of(network, data, name, chosen_store(store), place, progress=progress)


def features_of(
    network: Network,
    data: Dataset,
    name: str,
    store: Store,
    device: torch.device | str,
    *,
    progress: bool,
) -> Dataset:
    """The dataset with the features of this network as its inputs, from the store or computed now."""
    key = _key(network, data)
    kept = FEATURES.arrays(store, key, SPLITS)
    if kept is None:
        network = network.to(device).eval()
        inputs = {split: getattr(data, split).inputs for split in SPLITS}
        bar = slow(f"features of {name}", "row", total=sum(map(len, inputs.values())), hidden=not progress)
        with FEATURES.writing(store, key) as folder, bar:
            (folder / "features.json").write_text(json.dumps({"dataset": data.name, "backbone": name}), "utf-8")
            for split in SPLITS:
                for n_rows in _write(folder / f"{split}.npy", network, inputs[split], device):
                    bar.update(n_rows)
        kept = FEATURES.arrays(store, key, SPLITS)
        assert kept is not None
    splits = {split: dataclasses.replace(getattr(data, split), inputs=kept[split]) for split in SPLITS}
    return dataclasses.replace(
        data, name=f"{data.name} · features of {name}", key=key, spec=None, columns=None, standardise=True, **splits
    )


def network_of(run: Run) -> Network:
    """The network of a run, with its initial weights."""
    shape, n_classes = run.data.input_shape, run.data.n_classes
    network = build_network(run.model, run.loss, input_shape=shape, n_classes=n_classes, seed=run.seed, head=run.head)
    if (normalisation := run.normalisation) is not None:
        if isinstance(network.backbone, Prepared) and network.backbone.normalises:
            raise ValueError(
                f"{run.model_name} brings the mean and deviation of the colours that its weights were trained on; leave "
                f"{normalisation!r} out of the transforms"
            )
        network.normalise(torch.tensor(normalisation.mean), torch.tensor(normalisation.std))
    return network


def whole_network(run: Run, store: Store) -> Network:
    """The network of a run on cached features: a new head behind the backbone that `run.features` speaks of."""
    data, network = run.data, network_of(run)
    if run.features == "cached":
        standardise(network, data)
        return network
    source = store.open(str(run.features))
    source.check_network()
    _check_shape(source, data)
    if source.record.model != run.to_json()["model"]:
        raise ValueError(
            f"features are those of {source.title}, whose model is {source.record.model!r}, and the run has "
            f"model = {run.model!r}; give the run the same model"
        )
    if foreign(run.model) and (trained := source.record.run.get("head", "auto")) != run.head:
        raise ValueError(f"features are those of {source.title}, which has head = {trained!r}; give the run the same")
    head = {f"head.{name}": value for name, value in network.head.state_dict().items()}
    before = {name: value for name, value in stored_weights(source).items() if _before_the_head(name)}
    take_weights(network, before | head, source)
    return network


def stored_weights(source: StoredRun) -> dict[str, Tensor]:
    """All weights of a stored run, those of the loss's state as `loss_state.…`."""
    try:
        return safetensors.torch.load_file(source.verified(WEIGHTS))
    except SafetensorError as error:
        raise ValueError(f"{source.title}: {WEIGHTS} is damaged ({error}); train the run again") from None


def take_weights(network: Network, weights: Mapping[str, Tensor], source: StoredRun) -> None:
    """Gives a network the weights of a stored run."""
    if network.images and "mean" in weights and "deviation" in weights:
        network.normalise(weights["mean"], weights["deviation"])  # of the shape that they have here
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        why = " ".join(str(error).split())
        raise ValueError(
            f"the weights of {source.title} are not those of a {source.record.model}: {why:.200}"
        ) from None


def standardise(network: Network, data: Dataset) -> None:
    """Takes mean and deviation of rows of numbers from the training split; images in files need none.

    Raises:
        ValueError: If an embedding of the network cannot look up standardised rows.
    """
    if not data.standardise or not isinstance(inputs := readable(data.train.inputs), Tensor):
        return
    network.standardise(inputs)
    if any(isinstance(layer, (nn.Embedding, nn.EmbeddingBag)) for layer in network.modules()):
        _check_lookup(network, inputs)


def _check_lookup(network: Network, inputs: Tensor) -> None:
    """Refuse standardised rows where an embedding finds no entry for them."""
    try:
        with torch.no_grad():
            copy.deepcopy(network).eval()(inputs[:ROWS_OF_A_BLOCK])
    except IndexError as error:
        raise ValueError(
            f"an embedding of the network finds no entry for standardised rows ({error}); rows of codes go in as they are "
            "with Dataset.from_arrays(..., standardise=False)"
        ) from None


def _before_the_head(name: str) -> bool:
    return not name.startswith(("head.", "loss_state."))


def _key(network: Network, data: Dataset) -> str:
    """sha256 of what decides the features: the data, and the backbone with its weights."""
    preparation = [network.mean.tolist(), network.deviation.tolist()]
    facts = [FORMAT, data.key, repr(network.backbone), weights_digest(network.backbone), preparation]
    return content_key(facts)


def _write(path: Path, network: Network, inputs: np.ndarray | ImageFiles, device: torch.device | str) -> Iterator[int]:
    """Writes the features of all inputs, block by block, so that they need not fit in memory; tells the rows of each."""
    batches = torch.arange(len(inputs)).split(rows_at_once(inputs.shape[1:]))
    file: np.memmap | None = None
    with torch.inference_mode():
        for rows, block in zip(batches, in_turn(readable(inputs), batches), strict=True):
            features = network.features(block.to(device)).float().cpu().numpy()
            if file is None:
                shape = (len(inputs), features.shape[1])
                with room_for(len(inputs) * features[0].nbytes, path):
                    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
                    _take_room(path)
            file[rows.numpy()] = features
            yield len(rows)
    if file is not None:
        file.flush()


def _take_room(path: Path) -> None:
    """Takes the room of a file that is written through memory: there a disk that becomes full would end the process."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def _check_shape(source: StoredRun, data: Dataset) -> None:
    trained_on = tuple(source.record.input_shape or ())
    if trained_on != data.input_shape:
        raise ValueError(
            f"the backbone was trained on inputs of shape {trained_on}, those of {data.name} have {data.input_shape}"
        )
