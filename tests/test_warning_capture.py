"""Warnings of the library are captured by the thread that causes them, and by no other."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.warning_capture import captured_warnings, warn

PACKAGE = Path(wb.__file__).parent
# What silences warnings of torch, Lightning or matplotlib, by their words or while nothing of ours runs.
OF_OTHERS = {"training/loggers.py", "training/loop.py", "training/batches.py", "training/exporting.py"}
OF_OTHERS |= {"figures/static.py"}


def test_threads_hear_their_own_warnings_at_the_same_time():
    both, heard = threading.Barrier(2, timeout=60), {}

    def listen(name):
        with captured_warnings() as messages:
            both.wait()  # both are inside
            warn(name)
            both.wait()
        heard[name] = messages

    threads = [threading.Thread(target=listen, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {"one": ["one"], "two": ["two"]}


def test_a_thread_that_silences_its_warnings_silences_no_other():
    silent, done = threading.Event(), threading.Event()

    def silences():
        with captured_warnings():
            silent.set()
            done.wait(60)

    thread = threading.Thread(target=silences)
    thread.start()
    silent.wait(60)
    few = wb.LogitTable(-np.eye(4), np.arange(4))
    with pytest.warns(UserWarning, match="every set holds every class"):
        wb.LAC(0.99).fit(few)
    done.set()
    thread.join()


def test_an_inner_capture_gives_the_outer_one_back():
    with captured_warnings() as outer:
        with captured_warnings() as inner:
            warn("inner")
        warn("outer")
    assert (outer, inner) == (["outer"], ["inner"])


def test_nothing_that_a_session_of_the_app_runs_changes_the_filters_of_the_process():
    changing = {
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if "warnings.catch" in path.read_text()
    }
    assert changing - {"warning_capture.py"} == OF_OTHERS
