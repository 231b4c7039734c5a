"""Any launcher: torchrun, srun, or the workbench itself on each node. Whoever started the ranks, rank 0 alone writes."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from small_runs import clouds, small
from torch import nn

from workbench.store import Store
from workbench.training import learner as learning
from workbench.training import loop, train
from workbench.training.ranks import collectives as parallel
from workbench.training.ranks import launch

# The same for every test of a task on two nodes with two ranks each; srun of SLURM 23 sets these.
TASK = {
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NTASKS": "4",
    "SLURM_NNODES": "2",
    "SLURM_JOB_ID": "1234",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
}


@pytest.fixture
def task(monkeypatch):
    """`task(NAME=value)`: the environment of one task of srun, with these changes; None takes one away."""
    for name in [*launch.LAUNCHED, *(name for name in os.environ if name.startswith("SLURM_")), "ENVIRONMENT"]:
        monkeypatch.delenv(name, raising=False)

    def told(**changes: str | None) -> None:
        for name, value in (TASK | changes).items():
            monkeypatch.setenv(name, value) if value is not None else monkeypatch.delenv(name, raising=False)

    return told


def test_a_task_of_srun_is_the_rank_that_its_environment_says(task):
    task()
    found = launch.launched("cpu")
    assert (found.rank, found.local, found.devices, found.nodes, found.node) == (3, 1, 2, 2, 1)
    assert found.meeting.startswith("tcp://gpu07:")
    task(SLURM_PROCID="1", SLURM_NTASKS="2", SLURM_NNODES="1")
    found = launch.launched("cpu")
    assert (found.rank, found.devices, found.nodes) == (1, 2, 1)
    assert found.meeting.startswith("tcp://127.0.0.1:")
    task(MASTER_ADDR="head", MASTER_PORT="999")
    assert launch.launched("cpu").meeting == "tcp://head:999"


def test_steps_of_a_job_meet_at_different_ports(task):
    task()
    first = launch.launched("cpu").meeting
    task(SLURM_STEP_ID="1")
    assert launch.launched("cpu").meeting != first


@pytest.mark.parametrize("changes", [{"SLURM_NTASKS": "1"}, {"ENVIRONMENT": "BATCH", "SLURM_STEP_ID": None}])
def test_a_single_task_and_the_script_of_a_batch_job_are_no_ranks(task, changes):
    task(SLURM_PROCID="0", SLURM_LOCALID="0", **changes)
    assert launch.launched("cpu") is None


def test_a_step_of_a_batch_job_is_one(task):
    task(ENVIRONMENT="BATCH", SLURM_STEP_NUM_TASKS="4")
    assert launch.launched("cpu").rank == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"SLURM_LOCALID": "0"}, "SLURM_PROCID = 3, SLURM_LOCALID = 0, 4 tasks and 2 nodes do not go together"),
        ({"SLURM_NTASKS": "5"}, "5 tasks and 2 nodes do not go together"),
        ({"SLURM_PROCID": "x"}, "SLURM_PROCID = 'x' in the environment; a launcher gives a whole number"),
    ],
)
def test_an_environment_that_contradicts_itself_is_refused(task, changes, message):
    task(**changes)
    with pytest.raises(ValueError, match=message):
        launch.launched("cpu")


# Who writes


def train_and_tell_of_writing(run, root: Path, folder: Path, report) -> None:
    """Trains as one of the ranks and notes every file that this process opens for writing or renames in the store."""
    touched: list[str] = []

    def note(event: str, arguments: tuple) -> None:
        names = [each for each in arguments if isinstance(each, (str, os.PathLike))]
        writing = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.move")
        writing |= event == "open" and any(letter in str(arguments[1] or "") for letter in "wax+")
        touched.extend(str(name) for name in names if writing and str(root) in str(name))

    sys.addaudithook(note)
    learning.CHECKPOINT_SECONDS = 0
    from workbench.training import trainer

    trainer._train_here(run, Store(root), False, False, None)
    (folder / f"{parallel.rank()}.json").write_text(json.dumps(touched))


@pytest.mark.parametrize("devices", [3])
def test_three_ranks_learn_what_one_process_learns_and_the_first_alone_writes(devices, tmp_path):
    data = clouds(n=150)
    run = small(data, epochs=2, monitor="val_loss", devices=devices)
    root = tmp_path / "store"
    Store(root).unfinished(run.key).parent.mkdir(parents=True)
    launch.run_on_ranks(
        train_and_tell_of_writing,
        *(run, root, tmp_path),
        device_type="cpu",
        devices=devices,
        preload="workbench.training.loop",
    )
    written = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(devices)]
    assert written[0]
    assert written[1:] == [[]] * (devices - 1)
    alone = train(small(data, epochs=2, monitor="val_loss"), store=Store(tmp_path / "alone"), progress=False)
    found = Store(root).open(run.key).tables["test"].scores
    np.testing.assert_allclose(found, alone.tables["test"].scores, atol=1e-4)


def test_a_rank_that_lost_another_says_so_and_other_errors_stay_what_they_are(monkeypatch, tmp_path):
    learner = learning.Learner(small(), Store(tmp_path))
    learner.epoch = 1
    monkeypatch.setattr(parallel, "n_ranks", lambda: 2)
    lost = r"rank 0 of 2 lost another rank in epoch 2 of 3 \(gloo: Connection closed by peer\).*goes on from the last"
    with pytest.raises(ConnectionError, match=lost), loop._lost_ranks_explained(learner):
        raise RuntimeError("gloo: Connection closed by peer\nand more")
    with pytest.raises(RuntimeError, match="shape"), loop._lost_ranks_explained(learner):
        raise RuntimeError("shape mismatch")


# A rank that is killed


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class KilledOnce(nn.Module):
    """A backbone that takes the last rank with it in the third epoch, unless a file says that this has happened."""

    def __init__(self, flag: str) -> None:
        super().__init__()
        self.flag, self.steps = flag, 0

    def forward(self, inputs):
        self.steps += self.training
        if parallel.n_ranks() > 1:
            learning.CHECKPOINT_SECONDS = 0  # of this rank
        last = parallel.n_ranks() > 1 and parallel.rank() == parallel.n_ranks() - 1
        if last and self.steps == 2 * 5 + 2 and not Path(self.flag).exists():
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return inputs


def fragile(flag: Path):
    return small(clouds(n=150), model=KilledOnce(str(flag)), head="new", batch_size=24, epochs=4, learning_rate=0.05)


def test_a_rank_killed_on_another_node_ends_both_and_the_next_call_goes_on_from_the_checkpoint(tmp_path, monkeypatch):
    here, flag, root = threading.local(), tmp_path / "killed", tmp_path / "store"
    monkeypatch.setattr(launch, "node_number", lambda nodes: here.node)  # two threads stand for two nodes
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    run, here.node = dataclasses.replace(fragile(flag), nodes=2), 0

    def on_node(node: int) -> Exception | None:
        here.node = node
        try:
            train(run, store=Store(root), progress=False)
        except Exception as error:
            return error
        return None

    def job() -> list[Exception | None]:
        monkeypatch.setenv("MASTER_PORT", str(free_port()))
        with ThreadPoolExecutor(2) as nodes:
            return list(nodes.map(on_node, range(2)))

    left, lost = job()
    assert "rank 0 of 2 lost another rank in epoch 3 of 4" in str(left)
    assert "rank 1 was ended from outside (SIGKILL" in str(lost)
    assert job() == [None, None]
    alone = train(fragile(flag), store=Store(tmp_path / "alone"), progress=False)
    resumed = Store(root).open(run.key).tables["test"].scores
    np.testing.assert_allclose(resumed, alone.tables["test"].scores, atol=1e-4)


# Whole jobs, from the command line


TRAIN = ["workbench", "train", "--dataset", "digits", "--model", "linear", "--epochs", "1", "--device", "cpu", "--json"]


@pytest.mark.long
def test_tasks_of_srun_train_one_run_and_the_first_tells_of_it(tmp_path):
    job = TASK | {
        "SLURM_NTASKS": "2",
        "SLURM_NNODES": "1",
        "WORKBENCH_HOME": str(tmp_path),
        "MASTER_PORT": str(free_port()),
    }
    tasks = [
        subprocess.Popen(
            [sys.executable, "-m", *TRAIN],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | job | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
        )
        for rank in range(2)
    ]
    told, nothing = (task.communicate(timeout=600)[0] for task in tasks)
    assert nothing == ""
    assert [task.returncode for task in tasks] == [0, 0]
    assert Store(tmp_path).open(json.loads(told)["key"]).record.run["devices"] == 2


@pytest.mark.long
def test_three_ranks_of_torchrun_train_one_run(tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", "--standalone", "-m"]
    environment = os.environ | {"WORKBENCH_HOME": str(tmp_path)}
    done = subprocess.run([*launcher, *TRAIN], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Store(tmp_path).open(json.loads(done.stdout)["key"]).record.run["devices"] == 3


# What stands above the guard is run in the ranks that the workbench starts, too.
SCRIPT = """import dataclasses, sys
sys.path[:0] = [{here!r}, {tests!r}]
from test_launchers import *
if __name__ == "__main__":
    train(dataclasses.replace(fragile({flag!r}), nodes={nodes}), store=Store({root!r}), progress=False)
"""


@pytest.mark.long
@pytest.mark.parametrize("launcher", ["torchrun", "one process on each node"])
def test_a_rank_killed_on_another_node_ends_the_job_with_a_clear_word_and_the_job_goes_on(launcher, tmp_path):
    flag, root, script = tmp_path / "killed", tmp_path / "store", tmp_path / "script.py"
    here, by_torchrun = Path(__file__).parent, launcher == "torchrun"
    paths = {"here": str(here), "tests": str(here.parent), "flag": str(flag), "root": str(root)}
    script.write_text(SCRIPT.format(**paths, nodes=1 if by_torchrun else 2))

    def job() -> list[tuple[int, str]]:
        port = str(free_port())
        meeting = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        nodes = []
        for node in range(2):
            command = [str(script)]
            if by_torchrun:
                where = ["--master-addr", "127.0.0.1", "--master-port", port, "--nnodes", "2", "--node-rank", str(node)]
                command = ["-m", "torch.distributed.run", "--nproc-per-node", "1", *where, str(script)]
            environment = meeting | {"NODE_RANK": str(node)}
            nodes.append(
                subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True, env=environment)
            )
        said = [node.communicate(timeout=500)[1] for node in nodes]
        return [(node.returncode, words) for node, words in zip(nodes, said, strict=True)]

    (first, of_first), (second, of_second) = job()
    assert first != 0
    assert second != 0
    assert "lost another rank in epoch 3 of 4" in of_first
    assert "SIGKILL" in of_second
    run = fragile(flag)
    assert [code for code, _ in job()] == [0, 0]
    alone = train(run, store=Store(tmp_path / "alone"), progress=False)
    resumed = safetensors.numpy.load_file(Store(root).open(run.key).path / "weights.safetensors")
    for name, value in safetensors.numpy.load_file(alone.path / "weights.safetensors").items():
        np.testing.assert_allclose(resumed[name], value, atol=1e-5, err_msg=name)
