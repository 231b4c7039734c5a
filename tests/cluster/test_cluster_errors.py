"""A cluster that cannot be used says why, and names the worker."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.cluster import connected, on
from workbench.store import Store
from workbench.tables.map_reduce import over_parts


def made(n: int = 300) -> wb.LogitTable:
    rng = np.random.default_rng(0)
    return wb.LogitTable(rng.normal(size=(n, 6)).astype(np.float32), rng.integers(0, 6, n))


def test_a_cluster_that_does_not_answer_is_told_after_a_moment():
    with socket.socket() as silent:  # a listener that never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(ConnectionError, match=rf"no cluster answered at {address} within 0.5 seconds"),
            connected(address, timeout=0.5),
        ):
            pass


def test_what_is_no_cluster_is_refused():
    with (
        pytest.raises(ValueError, match="there is no cluster 'thread'; give threads, processes or an address"),
        connected("thread"),
    ):
        pass
    with pytest.raises(ValueError, match="has the workers it has"), connected("tcp://127.0.0.1:1", 3):
        pass
    with pytest.raises(ValueError, match="workers = 0; give at least 1"), connected("threads", 0):
        pass


class Pretended:
    """A client whose workers say this of their workbench."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.said = said

    def run(self, *_: Any, **__: Any) -> dict[str, Any]:
        return self.said


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"tcp://a:1": wb.__version__, "tcp://b:2": "0.0.1"}, "worker tcp://b:2 has workbench 0.0.1, and this is"),
        ({"tcp://c:3": ModuleNotFoundError("workbench")}, "worker tcp://c:3 has no workbench: install version"),
        ({"tcp://d:4": OSError("no such library")}, "worker tcp://d:4 cannot load the workbench: no such library"),
    ],
)
def test_a_worker_without_this_workbench_is_named(said, words):
    with pytest.raises(ValueError, match=words):
        wb.AverageK(2).fit(made(), client=Pretended(said))


def test_a_cluster_without_workers_says_so():
    with pytest.raises(ConnectionError, match="has no workers; start some"):
        wb.AverageK(2).fit(made(), client=Pretended({}))


def test_a_worker_really_is_asked_for_its_version(threads):
    assert set(threads.run(eval, "__import__('workbench').__version__").values()) == {wb.__version__}
    said = threads.run(eval, "__import__('workbanch').__version__", on_error="return")
    assert all(isinstance(error, ModuleNotFoundError) for error in said.values())


def full_disk(part: wb.LogitTable, first_row: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_on_a_worker_and_a_shard_it_lacks_are_told_with_its_name(threads, tmp_path):
    table = made()
    with on(threads), pytest.raises(OSError, match=r"worker \w+://.*: \[Errno 28\] No space left on device"):
        list(over_parts(table, full_disk))
    table.save_shards(tmp_path / "table", 100)
    opened = wb.LogitTable.load(tmp_path / "table")
    missing = next(path for path in (tmp_path / "table").iterdir() if path.name.startswith("000001"))
    for path in (tmp_path / "table").glob("000001*scores*"):
        missing = path
        path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"worker .*: .*shard {missing.name} is missing"):
        wb.AverageK(2).fit(opened, client=threads)


def test_the_command_line_computes_where_it_is_told_and_prints_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    made().save_shards(tmp_path / "logits", 100)
    url = f"file://{tmp_path}/logits"
    assert main(["evaluate", url, "--K", "2"]) == 0
    alone = capsys.readouterr().out
    assert main(["evaluate", url, "--K", "2", "--cluster", "threads", "--workers", "2"]) == 0
    assert capsys.readouterr().out == alone
    assert main(["evaluate", url, "--workers", "2"]) != 0
    assert "--workers is for --cluster threads or --cluster processes" in capsys.readouterr().err
    assert main(["import", url, "--cluster", "threads", "--workers", "1"]) == 0
    (run,) = [run for run in Store().runs() if run.record.imported]
    for path in (tmp_path / "logits").iterdir():
        path.unlink()  # what was computed is there without a single score
    index = wb.SetIndex.open(run.path / "test")
    assert index.mean_size(index.threshold(2)) == pytest.approx(2, abs=0.01)
    assert index.curve()["accuracy"].between(0, 1).all()
