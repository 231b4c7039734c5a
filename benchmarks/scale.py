"""What a table in shards costs on one process and on two, what each operation reads a second, and what more would take.

    python benchmarks/scale.py            prints everything
    python benchmarks/scale.py --write    also puts the tables into docs/scale.md
    python benchmarks/scale.py --rows 50000    a larger table (2 bytes a score are written to a temporary folder, twice)

Ratios are of one run, rounds of each kind in turn. Processor seconds are told beside those of the clock, because others may use
the machine: the speed-up of two workers in processor time is the work of one against that of the busier of two.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import platform
import re
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench.calibration.temperature import summed_derivatives
from workbench.metrics.probability_metrics import sums_by_class
from workbench.metrics.row_facts import facts_of_part
from workbench.tables.map_reduce import over_parts
from workbench.tables.shards.reader import compare

ROWS, CLASSES, SHARDS = 12_000, 10_450, 6
NARROW = 500  # classes of a second table with as many scores, which tells what rows cost besides
POINTS = ((3_000, 10_450), (20_000, 2_000), (8_000, 4_000))  # where the model is compared with what is measured
LARGEST = 10**9, 10**5  # rows and classes of a table that nobody has here
PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
NETWORK = 1.25e9  # bytes a second between a worker and its shards: ten gigabits
BYTES = 2  # of a score in float16


def table_of(n: int, n_classes: int, seed: int = 0) -> wb.LogitTable:
    """Scores of a network that is right three times in four, in half precision."""
    rng = np.random.default_rng(seed)
    scores = np.empty((n, n_classes), np.float16)
    labels = rng.integers(0, n_classes, n)
    for start in range(0, n, 1000):
        block = rng.standard_normal((len(labels[start : start + 1000]), n_classes), dtype=np.float32) * 2
        block[np.arange(len(block)), labels[start : start + 1000]] += rng.normal(10, 4, len(block)).astype(np.float32)
        scores[start : start + 1000] = block
    return wb.LogitTable.trusted(scores=scores, labels=labels)


# Operation → what it does with a table; each reads all scores once.
OPERATIONS: dict[str, Callable[[wb.LogitTable], Any]] = {
    "reading and softmax": lambda table: list(over_parts(table, _nothing)),
    "exact average-K threshold": lambda table: wb.AverageK(5).fit(table),
    "index of every K up to 20": lambda table: wb.SetIndex(table),
    "sizes and hits of sets": lambda table: wb.Threshold(0.01).fit(table).sets(table).sizes,
    "LAC quantile": lambda table: wb.LAC(0.9).fit(table),
    "APS quantile": lambda table: wb.APS(0.9).fit(table),
    "top-5 accuracy": lambda table: wb.metrics.top_k_accuracy(table, K=5),
    "calibration bins": lambda table: wb.metrics.reliability_bins(table),
    "class-wise calibration": lambda table: list(over_parts(table, facts_of_part, (sums_by_class(15),), ())),
    "negative log-likelihood": lambda table: wb.metrics.negative_log_likelihood(table),
    "a step of the temperature": lambda table: list(over_parts(table, summed_derivatives, (0.9,))),
    "checksums": lambda table: _checksums(table),
}


def _nothing(part: wb.LogitTable, first_row: int) -> None:
    for rows in part.spans():
        part.probabilities(rows)


def _checksums(table: wb.LogitTable) -> None:
    scores: Any = table.scores
    for shard in scores.shards:
        compare((scores.url, table.n_classes, scores.dtype.name), shard)


def processor(action: Callable[[], Any], times: int = 2) -> float:
    """Processor seconds of the quickest of a few calls."""
    found = []
    for _ in range(times):
        start = time.process_time()
        action()
        found.append(time.process_time() - start)
    return min(found)


def peak_megabytes() -> float:
    """The most memory that this process has had since `forget_peak`."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1e3


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def threshold_on_processes(shards: wb.LogitTable, one_file: wb.LogitTable, rounds: int) -> str:
    """The exact threshold by one process and by two, beside the path of one machine on one file."""
    kinds = ("one file, one machine", "shards, one machine", "shards, 1 worker", "shards, 2 workers")
    wall: dict[str, list[float]] = {kind: [] for kind in kinds}
    work: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
    memory: dict[str, float] = {}
    answers = set()
    with wb.cluster.connected("processes", 1) as one, wb.cluster.connected("processes", 2) as two:
        for client in (one, two):
            wb.AverageK(5).fit(shards, client=client)  # workers load what they need
            client.run(forget_peak)
        for _ in range(rounds):
            for kind, table, client in zip(
                kinds, (one_file, shards, shards, shards), (None, None, one, two), strict=True
            ):
                before = _work(client)
                start = time.perf_counter()
                answers.add(wb.AverageK(5).fit(table, client=client).threshold)
                wall[kind].append(time.perf_counter() - start)
                work[kind].append([after - was for after, was in zip(_work(client), before, strict=True)])
        for kind, client in zip(kinds[2:], (one, two), strict=True):
            memory[kind] = max(client.run(peak_megabytes).values())
    for kind, table in zip(kinds[:2], (one_file, shards), strict=True):
        forget_peak()
        wb.AverageK(5).fit(table)
        memory[kind] = peak_megabytes()
    assert len(answers) == 1, "not a bit may differ"
    seconds = {kind: min(wall[kind]) for kind in kinds}
    busiest = {kind: min(max(each) for each in work[kind]) for kind in kinds}
    lines = [
        "| exact average-5 threshold | seconds | processor seconds of the busiest | peak memory |",
        "|---|---:|---:|---:|",
    ]
    lines += [f"| {kind} | {seconds[kind]:.2f} | {busiest[kind]:.2f} | {memory[kind]:.0f} MB |" for kind in kinds]
    file, alone, one_worker, two_workers = kinds
    lines += [
        "",
        f"Two workers against one: {seconds[one_worker] / seconds[two_workers]:.2f} × by the clock, "
        f"{busiest[one_worker] / busiest[two_workers]:.2f} × in processor time (goal 1.6). Shards against one file on one "
        f"machine: {seconds[alone] / seconds[file]:.2f} × by the clock, {busiest[alone] / busiest[file]:.2f} × in processor time "
        f"(goal at most 1.3). Shards on two workers against one file on one machine: "
        f"{seconds[two_workers] / seconds[file]:.2f} × by the clock; one worker: "
        f"{busiest[one_worker] / busiest[file]:.2f} × in processor time. All four thresholds are the same number.",
    ]
    return "\n".join(lines)


def _work(client: Any) -> list[float]:
    """Processor seconds so far, of each worker, or of this process."""
    return [time.process_time()] if client is None else list(client.run(time.process_time).values())


Cost = tuple[float, float]  # processor seconds of a score, and of a row besides


def measured_costs(wide: wb.LogitTable, narrow: wb.LogitTable) -> dict[str, Cost]:
    """Operation → its cost, from a table of many classes and one of few."""
    costs = {}
    for name, action in OPERATIONS.items():
        took = [processor(lambda table=table, action=action: action(table)) for table in (wide, narrow)]
        sizes = np.array([[table.n * table.n_classes, table.n] for table in (wide, narrow)], float)
        a_score, a_row = np.linalg.solve(sizes, took)
        costs[name] = (a_score, a_row) if a_row > 0 else (took[0] / sizes[0, 0], 0.0)
    return costs


def throughput_table(costs: dict[str, Cost]) -> str:
    lines = ["| operation | scores a second and worker | float16 from shards | a row besides |", "|---|---:|---:|---:|"]
    for name, (a_score, a_row) in costs.items():
        lines.append(
            f"| {name} | {1e-6 / a_score:.0f} million | {BYTES / a_score / 1e6:.0f} MB/s | {1e6 * a_row:.1f} µs |"
        )
    return "\n".join(lines)


def checked_model(costs: dict[str, Cost], folder: Path) -> str:
    """What the model says of three other tables, beside what they took."""
    names = ("exact average-K threshold", "LAC quantile", "negative log-likelihood")
    lines = ["| rows × classes | operation | predicted | measured | ratio |", "|---|---|---:|---:|---:|"]
    for place, (n, n_classes) in enumerate(POINTS):
        table = in_shards(table_of(n, n_classes, seed=1 + place), folder / f"point-{place}")
        for name in names:
            predicted = n * (costs[name][0] * n_classes + costs[name][1])
            measured = processor(lambda table=table, name=name: OPERATIONS[name](table), 3)
            lines.append(
                f"| {n:,} × {n_classes:,} | {name} | {predicted:.2f} s | {measured:.2f} s | {measured / predicted:.2f} |"
            )
    return "\n".join(lines).replace(",", " ")


def extrapolated(costs: dict[str, Cost]) -> str:
    """A table of 10⁹ × 10⁵ scores on 100 and on 1 000 workers, by the model."""
    n, n_classes = LARGEST
    scores = n * n_classes
    lines = ["| operation | passes | on 100 workers | on 1 000 workers |", "|---|---:|---:|---:|"]
    asked = {
        "exact average-K threshold": 2,
        "LAC quantile": 1,
        "negative log-likelihood": 1,
        "a step of the temperature": 1,
    }
    for name, passes in asked.items():
        a_score = max(costs[name][0] + costs[name][1] / n_classes, BYTES / NETWORK)
        minutes = [passes * scores * a_score / workers / 60 for workers in (100, 1000)]
        lines.append(f"| {name} | {passes} | {minutes[0]:,.0f} min | {minutes[1]:,.0f} min |")
    lines += ["", f"The table itself: {scores * BYTES / 1e12:,.0f} TB in float16."]
    return "\n".join(lines)


def in_shards(table: wb.LogitTable, folder: Path) -> wb.LogitTable:
    table.save_shards(folder, rows=-(-table.n // SHARDS))
    return wb.LogitTable.load(folder, verify=False)


def write(parts: dict[str, str]) -> None:
    """Puts what was measured between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in parts.items():
        marks = rf"(<!-- {name}: made by benchmarks/scale.py -->\n).*?(<!-- /{name} -->)"
        page, n_found = re.subn(marks, lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page, flags=re.DOTALL)
        assert n_found == 1, name
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=ROWS)
    arguments.add_argument("--classes", type=int, default=CLASSES)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = table_of(options.rows, options.classes)
        table.save(folder / "file")
        shards = in_shards(table, folder / "shards")
        del table
        about = (
            f"{options.rows:,} × {options.classes:,} scores in float16, {SHARDS} shards, "
            f"{os.cpu_count()} processors ({platform.machine()}), load {os.getloadavg()[0]:.1f} when it began."
        ).replace(",", " ", 2)
        print(about, flush=True)
        parts = {"threshold": threshold_on_processes(shards, wb.LogitTable.load(folder / "file"), options.rounds)}
        parts["threshold"] = f"{about}\n\n{parts['threshold']}"
        print(parts["threshold"], flush=True)
        narrow = in_shards(table_of(options.rows * options.classes // NARROW, NARROW), folder / "narrow")
        costs = measured_costs(shards, narrow)
        parts |= {"throughput": throughput_table(costs), "model": checked_model(costs, folder)}
        parts["largest"] = extrapolated(costs)
        for text in list(parts.values())[1:]:
            print(f"\n{text}")
    if options.write:
        write(parts)


if __name__ == "__main__":
    main()
