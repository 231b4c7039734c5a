"""A room of people in one app, beside an empty Streamlit page under the same load: seconds from a move to a finished page.

Every session is a real one: it connects as a browser does and asks for another view, run, number of classes or confidence of
RAPS as soon as the page before has been sent, after a pause to look at it. `make hall` takes N = 1, 15 and 50 for ten minutes
each.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from workbench.app_server import free_port, start_server
from workbench.sets import RAPS
from workbench.store import DEMO, Store

HERE = Path(__file__).parent
VIEWS = ("sets", "classes", "samples", "calibration", "labels")
PAUSE = 2.0  # seconds in which a person looks


async def session(
    url: str, moves: list[tuple[str, str]], seconds: float, waited: list[float], errors: list[str]
) -> None:
    """One person who moves until the time is over; the time begins when the first page is there."""
    chance = random.Random(len(waited))
    deadline = None
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    try:
        async with websockets.connect(address, subprotocols=["streamlit"], max_size=None, origin=url) as socket:
            while deadline is None or time.monotonic() < deadline:
                page, query = chance.choice(moves)
                asked = BackMsg()
                asked.rerun_script.query_string, asked.rerun_script.page_name = query, page
                began = time.monotonic()
                await socket.send(asked.SerializeToString())
                await asyncio.wait_for(finished(socket), 240)
                if deadline is None:
                    deadline = time.monotonic() + seconds
                else:
                    waited.append(time.monotonic() - began)
                await asyncio.sleep(PAUSE * chance.uniform(0.5, 1.5))
    except (OSError, TimeoutError, RuntimeError, websockets.WebSocketException) as error:
        errors.append(repr(error)[:120])


async def watched(process: int, seconds: float, memory: list[float]) -> None:
    """The memory of a server after the first minute, or a quarter of the time, and every ten seconds from then on."""
    await asyncio.sleep(min(60, seconds / 4))
    while True:
        memory.append(megabytes(process))
        await asyncio.sleep(10)


async def finished(socket: websockets.ClientConnection) -> None:
    """Wait for the end of a page; a run of it that only begins anew is not the end."""
    while True:
        message = ForwardMsg()
        message.ParseFromString(await socket.recv())
        if message.delta.new_element.HasField("exception"):
            raise RuntimeError(message.delta.new_element.exception.message)
        if message.HasField("script_finished") and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
            return


def crowd(command: list[str], port: int, moves: list[tuple[str, str]], n: int, seconds: float) -> dict[str, float]:
    """p50 and p95 of `n` sessions, their moves and errors, and the memory of the server in MB: early, and at the end."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"WORKBENCH_HOME": home, "MALLOC_ARENA_MAX": "2"}
        with start_server(command, port, environment, log=subprocess.DEVNULL) as server:
            waited, errors, memory = list[float](), list[str](), list[float]()

            async def everybody() -> None:
                watching = asyncio.create_task(watched(server.server.pid, seconds, memory))
                await asyncio.gather(*(session(server.url, moves, seconds, waited, errors) for _ in range(n)))
                watching.cancel()

            asyncio.run(everybody())
    p50, p95 = np.quantile(waited, (0.5, 0.95)) if waited else (np.nan, np.nan)
    early, late = (memory[0], memory[-1]) if memory else (np.nan, np.nan)
    return {"p50": p50, "p95": p95, "moves": len(waited), "errors": len(errors), "early": early, "MB": late}


def megabytes(process: int) -> float:
    """The memory of a process and of those it started, where the system tells it."""
    if sys.platform != "linux":
        return float("nan")
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20 + sum(megabytes(int(child)) for child in children)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, nargs="+", default=(1, 15, 50))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--workers", type=int, default=1, help="server processes behind the one address")
    options = parser.parse_args()
    runs = [run.short for run in Store(DEMO).runs()[:3]]
    sliders = [{"K": K} for K in (2, 3, 4)]
    moving = [{"rule": RAPS.title, "rule_confidence": confidence} for confidence in (0.8, 0.85, 0.95)]  # on the server
    moves = [(view, urlencode({"run": run} | asked)) for view in VIEWS for run in runs for asked in (*sliders, *moving)]
    load = os.getloadavg()[0]
    for n in options.people:
        port = free_port()
        flags = ["--server.headless=true", f"--server.port={port}", "--browser.gatherUsageStats=false"]
        flags += ["--server.fileWatcherType=none"]  # it holds up all sessions after the first page of each
        empty = [
            sys.executable,
            "-m",
            "streamlit",
            "run",
            str(HERE / "empty_page.py"),
            "--server.address=127.0.0.1",
            *flags,
        ]
        floor = crowd(empty, port, [("", "")], n, max(30, options.seconds / 4))
        port = free_port()
        app = [sys.executable, "-m", "workbench", "app", "--headless", f"--port={port}", f"--workers={options.workers}"]
        ours = crowd(app, port, moves, n, options.seconds)
        print(
            f"{n:3d} people: p50 {ours['p50']:.2f} s, p95 {ours['p95']:.2f} s, {ours['moves']} moves, {ours['errors']} errors, "
            f"{ours['early']:.0f} MB early and {ours['MB']:.0f} at the end; "
            f"empty page {floor['p50']:.2f} and {floor['p95']:.2f} s: "
            f"{ours['p50'] / floor['p50']:.1f} × and {ours['p95'] / floor['p95']:.1f} × (load {load:.0f} before)",
            flush=True,
        )


if __name__ == "__main__":
    main()
