"""A step of several ranks is the step of one process, and no rank outlives its run. The ranks are real processes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from torch import nn

from workbench import losses
from workbench.cli.main import main
from workbench.datasets import Dataset
from workbench.losses import LOSSES, CrossEntropy
from workbench.store import Store
from workbench.training import Cancelled, Run, TrainedRun, hardware, loop, train
from workbench.training import learner as learning
from workbench.training import trainer as training
from workbench.training.batches import generator
from workbench.training.ranks import collectives as parallel
from workbench.training.ranks import launch
from workbench.training.ranks.launch import run_on_ranks

COUPLED = [
    losses.AverageKTwoHead(K=2.0),
    losses.ConformalTraining(),
    losses.ExpectedPositive(K=2.0, beta=1.0),
    losses.Quasibinary(),
]
UNCOUPLED = [CrossEntropy(), losses.NoisedTopK(K=2)]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def no_rank_is_left():
    before = multiprocessing.active_children()  # a Dask cluster of other tests may be up in this process
    yield
    assert set(multiprocessing.active_children()) <= set(before)


def clouds() -> Dataset:
    """Rows around one centre per class; no batch size divides their number."""
    rng = np.random.default_rng(0)
    labels = np.arange(130) % 5
    return Dataset.from_arrays(2 * rng.normal(size=(5, 4))[labels] + rng.normal(size=(130, 4)), labels, name="clouds")


def photographs() -> Dataset:
    rng = np.random.default_rng(0)
    return Dataset.from_arrays(rng.integers(0, 256, (40, 28, 28, 1), dtype=np.uint8), np.arange(40) % 4, name="noise")


CLOUDS = clouds()


def small(dataset: Dataset = CLOUDS, **fields) -> Run:
    return Run(dataset, **{"model": "linear", "epochs": 3, "batch_size": 16, "device": "cpu", **fields})


def on(devices: int, run: Run) -> Run:
    return dataclasses.replace(run, devices=devices)


def trained(run: Run, store: Store, **options) -> TrainedRun:
    return train(run, store=store, progress=False, **options)


def weights(trained: TrainedRun) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(trained.path / "weights.safetensors")


def assert_nearly_the_same(first: TrainedRun, second: TrainedRun) -> None:
    for name, value in weights(first).items():
        np.testing.assert_allclose(weights(second)[name], value, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(second.tables["test"].scores, first.tables["test"].scores, atol=1e-4)
    without_time = [history.drop(columns="seconds") for history in (first.history, second.history)]
    pd.testing.assert_frame_equal(*without_time, atol=1e-4)


def files(store: Store) -> list[Path]:
    return [path for path in store.root.rglob("*") if path.is_file()]


# A step


class Recording(learning.Learner):
    """Keeps the gradients of every step."""

    def make_optimizer(self):
        self.gradients = []
        super().make_optimizer()
        self.optimizer.register_step_pre_hook(lambda *_: self.gradients.append(self._gradients()))

    def _gradients(self):
        return {name: parameter.grad.clone() for name, parameter in self.network.named_parameters()}

    def steps(self):
        return {f"step {at}: {name}": value for at, step in enumerate(self.gradients) for name, value in step.items()}


def gradients_here(runs: Sequence[Run], root: Path, report) -> None:
    """Trains an epoch of each run in this process, as one of its ranks; rank 0 writes the gradients."""
    for number, run in enumerate(runs):
        learner = Recording(run, Store(root))
        loop.fit(learner, progress=False)
        if parallel.rank() == 0:
            safetensors.torch.save_file(learner.steps(), root / f"{number}.safetensors")


def gradients(runs: Sequence[Run], devices: int, folder: Path) -> list[dict[str, np.ndarray]]:
    """The gradients of every step of each run; ranks are started once for all of them."""
    root = folder / f"{devices} ranks"
    root.mkdir()
    runs = [on(devices, run) for run in runs]
    if devices == 1:
        gradients_here(runs, root, None)
    else:
        run_on_ranks(gradients_here, runs, root, device_type="cpu", devices=devices, preload="workbench.training.loop")
    return [safetensors.numpy.load_file(root / f"{number}.safetensors") for number in range(len(runs))]


def test_these_are_all_losses_that_couple_a_batch():
    refused = {losses.ROLE}
    assert {type(loss) for loss in COUPLED} == {loss for loss in LOSSES if loss.couples_batch} - refused


def test_the_gradients_of_two_ranks_are_those_of_one_process(tmp_path):
    runs = [small(loss=loss, model="mlp", epochs=1) for loss in (*COUPLED, *UNCOUPLED)]
    for run, one, two in zip(runs, gradients(runs, 1, tmp_path), gradients(runs, 2, tmp_path), strict=True):
        assert len(one) == len(two) >= 7 * 6  # batches × tensors
        for name, gradient in one.items():
            np.testing.assert_allclose(two[name], gradient, atol=1e-5, rtol=1e-5, err_msg=f"{run.loss}: {name}")


@pytest.mark.parametrize("loss", COUPLED, ids=lambda loss: type(loss).__name__)
def test_a_coupled_loss_of_the_parts_is_another_loss(loss):
    """So the test above would notice ranks that look at their own rows only."""
    scores = torch.randn(16, 2, 5, generator=torch.manual_seed(0))[:, : loss.heads].squeeze(1).requires_grad_()
    labels = torch.arange(16) % 5
    labels = nn.functional.one_hot(labels).bool() if loss.labels == "many" else labels
    (whole,) = torch.autograd.grad(loss(scores, labels).mean(), scores)
    halves = loss(scores[:8], labels[:8]).mean() + loss(scores[8:], labels[8:]).mean()
    (of_halves,) = torch.autograd.grad(halves / 2, scores)
    assert (whole - of_halves).abs().max() > 1e-4


def test_batch_normalisation_normalises_by_the_batch_of_all_ranks(tmp_path):
    run = small(photographs(), model="cnn", epochs=1, batch_size=9)
    (one,), (two,) = (gradients([run], devices, tmp_path) for devices in (1, 2))
    for name, gradient in one.items():
        np.testing.assert_allclose(two[name], gradient, atol=1e-5 * max(1, np.abs(gradient).max()), err_msg=name)


def test_a_step_in_pieces_is_the_step(tmp_path):
    whole = small(epochs=1, batch_size=32)
    for devices in (1, 2):
        pieces = on(devices, dataclasses.replace(whole, micro_batches=3))
        one = trained(whole, Store(tmp_path / f"whole {devices}"))
        assert_nearly_the_same(one, trained(pieces, Store(tmp_path / f"pieces {devices}")))


def test_ranks_drop_different_features_and_share_no_noise(tmp_path):
    scores = torch.randn(6, 5, generator=torch.manual_seed(0)).repeat(2, 1)  # two equal halves of a batch
    draws = losses.NoisedTopK(K=2, epsilon=5.0)(
        scores, torch.zeros(12, dtype=torch.long), generator=torch.manual_seed(0)
    )
    assert not torch.equal(draws[:6], draws[6:])
    run_on_ranks(dropped, tmp_path, device_type="cpu", devices=2, preload="workbench.training.loop")
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    assert not torch.equal(first, second)


def dropped(folder: Path, report) -> None:
    learner = learning.Learner(small(model=nn.Sequential(nn.Flatten(), nn.Dropout())), Store(folder))
    learner.seed_dropout()
    torch.save(learner.network.backbone(torch.ones(64, 4)), folder / f"{parallel.rank()}.pt")


# A run


def test_a_run_on_two_ranks_is_the_run_of_one_process(store, tmp_path):
    watched = ("val_loss", "macro_top_k_accuracy@K=2", "average_k_accuracy@K=1.5")
    run = small(loss=losses.AverageKTwoHead(K=2.0), monitor=watched, epochs=4, learning_rate=0.05)
    output: list[dict] = []
    one, two = trained(run, store), trained(on(2, run), Store(tmp_path / "ranks"), on_epoch=output.append)
    assert one.run.key == two.run.key == two.path.name
    assert_nearly_the_same(one, two)
    for monitor in watched:
        kept = one.kept_by(monitor), two.kept_by(monitor)
        assert kept[0].epoch == kept[1].epoch
        np.testing.assert_allclose(kept[0].tables["test"].scores, kept[1].tables["test"].scores, atol=1e-4)
    pd.testing.assert_frame_equal(pd.DataFrame(output), two.history)
    assert two.stored.record.run["devices"] == 2
    names = [{path.relative_to(found.path).as_posix() for path in found.path.rglob("*")} for found in (one, two)]
    assert names[0] == names[1]
    assert {path.name for path in two.path.parent.iterdir()} == {".unfinished", run.key}


def test_heads_on_cached_features_are_trained_on_ranks(store, tmp_path):
    backbone = trained(small(model="mlp"), store)
    run = small(model="mlp", features=backbone, loss=losses.Quasibinary())
    two = trained(on(2, run), store)
    one = trained(run, store, force=True)
    assert_nearly_the_same(one, two)


class Idle(nn.Module):
    """A backbone with weights that it never uses."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.used(inputs)


@pytest.mark.parametrize("micro_batches", [pytest.param(1, marks=pytest.mark.long), 2])
def test_weights_that_a_module_never_uses_are_no_reason_to_fail(micro_batches, store, tmp_path):
    torch.manual_seed(0)
    run = small(model=Idle(), micro_batches=micro_batches)
    assert_nearly_the_same(trained(run, store), trained(on(2, run), Store(tmp_path / "ranks")))


class SometimesIdle(nn.Module):
    """A backbone with weights for rare rows: on most batches, or on one rank only, no row asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.rare = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, inputs):
        features, rare = self.used(inputs), inputs[:, 0] > 1.4
        return features.index_add(0, rare.nonzero()[:, 0], self.rare(inputs[rare])) if rare.any() else features


@pytest.mark.parametrize("micro_batches", [pytest.param(1, marks=pytest.mark.long), 2])
def test_weights_that_are_idle_on_some_batches_only_learn_as_in_one_process(micro_batches, store, tmp_path):
    torch.manual_seed(0)
    module = SometimesIdle()
    run = small(model=module, micro_batches=micro_batches, batch_size=6)
    one, two = trained(run, store), trained(on(2, run), Store(tmp_path / "ranks"))
    assert_nearly_the_same(one, two)
    assert not np.allclose(weights(one)["backbone.rare.weight"], module.rare.weight.detach())


@pytest.mark.parametrize(
    ("fields", "look"),
    [({"model": "mlp"}, False), ({"model": Idle()}, True), ({"model": nn.Flatten(), "features": "cached"}, False)],
)
def test_ranks_look_for_idle_weights_only_where_there_may_be_some(fields, look, store, monkeypatch):
    asked = []

    def noted(network, *, some_idle):
        asked.append(some_idle)
        return network

    monkeypatch.setattr(parallel, "averaging_gradients", noted)
    trained(small(**fields, epochs=1), store)
    assert asked == [look]


def test_the_last_validation_rows_may_be_fewer_than_the_ranks(store, tmp_path):
    val = dataclasses.replace(CLOUDS.val, inputs=CLOUDS.val.inputs[:1], labels=CLOUDS.val.labels[:1])
    run = small(dataclasses.replace(CLOUDS, val=val, key="one val row"))
    assert_nearly_the_same(trained(run, store), trained(on(2, run), Store(tmp_path / "ranks")))


def test_the_command_line_trains_on_ranks_and_prints_its_result_only(capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    options = {"dataset": "digits", "model": "linear", "epochs": "1", "device": "cpu", "devices": "2"}
    assert main(["train", *(word for name, value in options.items() for word in (f"--{name}", value)), "--json"]) == 0
    output = json.loads(capfd.readouterr().out)
    assert Store(tmp_path).open(output["key"]).record.run["devices"] == 2


def test_ranks_on_gpus_give_nearly_the_scores_of_one_cpu(store, tmp_path):
    if torch.cuda.device_count() < 2:
        pytest.skip(f"two ranks need two GPUs, and torch sees {torch.cuda.device_count()}")
    run = small(photographs(), model="cnn", loss=losses.AverageKTwoHead(K=2.0))
    gpus = trained(dataclasses.replace(run, device="cuda", devices=2), Store(tmp_path / "gpus"))
    np.testing.assert_allclose(gpus.tables["test"].scores, trained(run, store).tables["test"].scores, atol=1e-2)


def test_ranks_that_torchrun_started_train_one_run_and_the_first_tells_of_it(tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    train = ["-m", "workbench", "train", "--dataset", "digits", "--model", "linear", "--epochs", "1", "--device", "cpu"]
    done = subprocess.run(
        [*launcher, *train, "--json"],
        env=os.environ | {"WORKBENCH_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)  # once, and nothing else
    assert Store(tmp_path).open(output["key"]).record.run["devices"] == 2
    assert output["key"] == Run("digits", model="linear", epochs=1).key


LAUNCHED = {
    "RANK": "3",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "a",
    "MASTER_PORT": "1",
}


@pytest.mark.parametrize(
    ("without", "place"),
    [
        ((), (1, 2, 2, 1)),  # local, devices, nodes, node
        (("LOCAL_RANK", "LOCAL_WORLD_SIZE"), (0, 1, 4, 3)),
        (("RANK",), None),
        (("MASTER_ADDR",), None),
    ],
)
def test_the_environment_says_which_rank_a_process_is(without, place, monkeypatch):
    for name, value in LAUNCHED.items():
        monkeypatch.setenv(name, value)
    for name in without:
        monkeypatch.delenv(name)
    found = launch.launched("cpu")
    assert (found and (found.local, found.devices, found.nodes, found.node)) == place
    assert found is None or found.rank == 3


def test_a_launcher_and_a_run_that_disagree_are_refused(store, monkeypatch):
    for name, value in LAUNCHED.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="devices = 3 and nodes = 1, but the launcher has started 4 ranks"):
        trained(small(devices=3), store)
    monkeypatch.setenv("LOCAL_RANK", "0")
    with pytest.raises(ValueError, match=r"RANK = 3, LOCAL_RANK = 0, WORLD_SIZE = 4 .* do not go together"):
        trained(small(), store)


@pytest.mark.long
def test_two_nodes_train_one_run_and_the_first_tells_of_it(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORKBENCH_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "workbench", "train", "--dataset", "digits", "--model", "linear", "--epochs", "1"]
    nodes = [
        subprocess.Popen(
            [*command, "--device", "cpu", "--nodes", "2", "--json"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | meeting | {"NODE_RANK": str(node)},
        )
        for node in range(2)
    ]
    output, nothing = (node.communicate(timeout=600)[0] for node in nodes)
    assert nothing == ""
    assert [node.returncode for node in nodes] == [0, 0]
    assert Store(tmp_path).open(json.loads(output)["key"]).record.run["nodes"] == 2


# What can go wrong


def train_with_checkpoints(*arguments) -> None:
    """`train` in a rank, with a checkpoint after every epoch."""
    learning.CHECKPOINT_SECONDS = 0
    training._train_here(*arguments)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_run_interrupted_on_ranks_goes_on_from_its_checkpoint_on_any_number_of_them(devices, store, tmp_path):
    run = small(loss=losses.Quasibinary(), epochs=4, monitor="val_accuracy", learning_rate=0.05)

    def interrupt(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_on_ranks(
            train_with_checkpoints,
            *(on(2, run), store, False, False),
            device_type="cpu",
            devices=2,
            on_report=interrupt,
            preload="workbench.training.loop",
        )
    assert files(store) == [store.unfinished(run.key)]
    epochs: list[float] = []
    resumed = trained(on(devices, run), store, on_epoch=lambda row: epochs.append(row["epoch"]))
    assert epochs == [2, 3]
    assert_nearly_the_same(trained(run, Store(tmp_path / "uninterrupted")), resumed)


@pytest.mark.parametrize("error", [Cancelled, KeyboardInterrupt])
def test_a_run_on_ranks_that_is_stopped_leaves_nothing_behind(store, error):
    def stop(row):
        raise error

    with pytest.raises(error):
        trained(on(2, small()), store, on_epoch=stop)
    assert files(store) == []


class Slow(nn.Module):
    def forward(self, inputs):
        time.sleep(0.02)
        return inputs


def alive(group: int) -> bool:
    """Whether a process of this group still runs."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                return True
    return False


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="this system has no /proc to read")
def test_ranks_end_with_the_process_that_was_killed_and_the_run_goes_on(store, tmp_path):
    run = small(model=Slow(), loss=losses.ExpectedPositive(K=2.0), epochs=8)
    script = tmp_path / "script.py"
    script.write_text(
        f"""if __name__ == "__main__":
    import sys
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from test_parallel import *
    run = small(model=Slow(), loss=losses.ExpectedPositive(K=2.0), epochs=8)
    arguments = (on(2, run), Store({str(store.root)!r}), False, False)
    run_on_ranks(train_with_checkpoints, *arguments, device_type="cpu", devices=2, preload="workbench.training.loop")
"""
    )
    process = subprocess.Popen([sys.executable, script], start_new_session=True)
    while not store.unfinished(run.key).is_file():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 600
    while alive(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    epochs: list[float] = []
    resumed = trained(on(2, run), store, on_epoch=lambda row: epochs.append(row["epoch"]))
    assert 0 < len(epochs) < 8
    assert_nearly_the_same(trained(run, Store(tmp_path / "uninterrupted")), resumed)


class Fragile(nn.Module):
    """A backbone that one rank loses in its second step: by a signal, or by an error."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.steps = way, 0

    def forward(self, inputs):
        self.steps += self.training
        if self.steps == 2 and parallel.rank() == 1:
            if self.way == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise {"lost": KeyError("lost"), "memory": MemoryError()}[self.way]
        return inputs


@pytest.mark.parametrize(
    ("way", "error", "message"),
    [
        ("killed", ChildProcessError, r"rank 1 was ended from outside \(SIGKILL.*smaller batch_size"),
        ("lost", KeyError, "lost"),
        ("memory", MemoryError, "out of memory with batch_size = 16"),
    ],
)
def test_a_rank_that_dies_ends_them_all_and_its_reason_is_told(store, way, error, message):
    with pytest.raises(error, match=message):
        trained(on(2, small(model=Fragile(way))), store)
    assert files(store) == []


@dataclass(frozen=True)
class Exploding(CrossEntropy):
    """NaN when the whole batch of the second step has come together."""

    def values(self, scores, labels, *, rows=None, **_):
        second = torch.randperm(CLOUDS.train.n, generator=generator(0, 0, "order")).tensor_split(7)[1]
        broken = rows is not None and torch.equal(rows, second)
        return super().values(scores, labels) * (math.nan if broken else 1)


def test_a_nan_loss_on_ranks_names_the_batch(store):
    with pytest.raises(
        FloatingPointError, match=r"epoch 1 of 3: the loss is nan in batch 2 of 7.*learning_rate=0.0001"
    ):
        trained(on(2, small(loss=Exploding())), store)
    assert files(store) == []


def test_what_cannot_be_sent_to_a_rank_says_so(store):
    module = nn.Flatten()
    module.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match=r"cannot be sent to its ranks .* in a module that can be imported"):
        trained(on(2, small(model=module)), store)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"devices": 0}, r"devices = 0 is outside \[1, 1024\]"),
        ({"nodes": 0}, r"nodes = 0 is outside \[1, 1024\]"),
        ({"micro_batches": 0}, "micro_batches = 0"),
        (
            {"micro_batches": 2, "loss": losses.Quasibinary()},
            "Quasibinary couples the rows of a batch.*micro_batches=1",
        ),
        ({"devices": 2, "loss": losses.ROLE(K=2.0)}, "ROLE learns estimates for each training row.*devices=1"),
        ({"nodes": 2, "loss": losses.ROLE(K=2.0)}, "ROLE learns estimates"),
    ],
)
def test_a_run_that_ranks_or_pieces_cannot_do_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        small(**fields)


def test_more_pieces_than_rows_in_a_batch_are_refused(store):
    message = r"batches have 14 rows and more, which devices × nodes × micro_batches = 16 cannot share"
    with pytest.raises(ValueError, match=message):
        trained(small(devices=2, micro_batches=8), store)


def test_more_devices_than_gpus_are_refused(store, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="devices = 2, but torch sees 1 GPU; use devices=1 or device='cpu'"):
        trained(small(devices=2, device="cuda"), store)
    hardware.check_devices(torch.device("cpu"), 64)


def test_nodes_must_know_where_to_meet(store, monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        ValueError, match=r"nodes = 2, but MASTER_ADDR, MASTER_PORT, NODE_RANK is not in the environment"
    ):
        trained(small(nodes=2), store)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29500")
    monkeypatch.setenv("NODE_RANK", "2")
    with pytest.raises(ValueError, match="NODE_RANK = 2 with nodes = 2; give 0 to 1"):
        trained(small(nodes=2), store)
