"""`docs/claims.md`: every claim with what was run, what was found, the verdict, a figure and a link that opens the runs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from workbench.claims.claim import FAILS, HOLDS, IN_PART, UNDECIDED, Bench, Claim, Found
from workbench.figures.of_runs.intervals import WithIntervals, with_intervals
from workbench.store.atomic import whole_file

NOT_RUN = "not run"
MEANS = {
    HOLDS: "every expectation is met: its whole 95 % interval lies where the claim says",
    IN_PART: "some expectations are met and others are not",
    FAILS: "none is met and at least one is refuted: its whole interval lies elsewhere",
    UNDECIDED: "no interval decides",
}
MOST_RUNS = 5  # in a link
IN_ADDRESSES = 12  # digits of a key by which the app's addresses name a run


def run_claims(
    claims: Iterable[Claim], bench: Bench, folder: Path, *, again: Sequence[int] = (), told: bool = True
) -> list[tuple[Claim, str]]:
    """Runs what has no result in the folder yet, and those asked for `again`; tells which could not be run, and why."""
    failed = []
    for claim in claims:
        if result_file(folder, claim).is_file() and claim.number not in again:
            continue
        if told:
            print(f"claim {claim.number}: {claim.says}", flush=True)
        try:
            found = run_claim(claim, bench)
        except FileNotFoundError as error:
            failed.append((claim, str(error)))
            continue
        write_found(folder, claim, found)
        if told:
            print(f"claim {claim.number}: {found.verdict}, {found.minutes:.1f} minutes", flush=True)
    return failed


def run_claim(claim: Claim, bench: Bench) -> Found:
    """What a claim gives, and how many minutes it took; the training of runs that were stored before counts too."""
    for name in claim.needs:
        bench.file(name)
    bench.seconds.clear()
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # sets may be empty, and rules are fitted on val here: it is meant
        found = claim.check(bench)
    seconds = max(time.monotonic() - start, sum(bench.seconds.values()))
    return replace(found, minutes=round(seconds / 60, 2))


def result_file(folder: Path, claim: Claim) -> Path:
    """Where the result of a claim is kept."""
    return folder / f"{claim.name}.json"


def write_found(folder: Path, claim: Claim, found: Found) -> None:
    """Writes the result of a claim and its picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(result_file(folder, claim)) as aside:
        aside.write_text(found.to_json(), "utf-8")
    if found.lines:
        figure_of(claim, found).static().savefig(folder / f"{claim.name}.png", dpi=110)


def read_found(folder: Path, claim: Claim) -> Found | None:
    """The result of a claim that was run before, if it was."""
    path = result_file(folder, claim)
    return Found.from_json(path.read_text("utf-8")) if path.is_file() else None


def figure_of(claim: Claim, found: Found) -> WithIntervals:
    """The picture of a claim."""
    frame = pd.DataFrame([asdict(line) for line in found.lines])
    title = f"Claim {claim.number}: {found.verdict}"
    return with_intervals(frame, claim.x, claim.y, title=title, logarithmic=claim.logarithmic)


def page_of(claims: Iterable[Claim], folder: Path, pictures: str) -> str:
    """The page, from the results in a folder; `pictures` is the way from the page to it."""
    known = [(claim, read_found(folder, claim)) for claim in claims]
    counts = {word: sum(found is not None and found.verdict == word for _, found in known) for word in MEANS}
    minutes = sum(found.minutes for _, found in known if found is not None)
    parts = [
        "# Claims with a verdict\n",
        "What the papers (and we) say, tried on small data, each with a verdict that follows from intervals by one rule. "
        "Settings, expectations and what chooses stand in `workbench/claims/checks`; they were written before test rows were "
        "looked at, and what was changed after a look is told with its claim. A claim that does not hold *here* may hold at "
        "the scale of its paper.\n",
        *[f"- **{word}** ({counts[word]}): {meaning}." for word, meaning in MEANS.items()],
        "",
        f"The claims took {minutes:.0f} minutes; runs that several of them share count for each. `workbench claims` writes "
        "this page; `workbench claims 5` runs claim 5 again. After that, `workbench app` opens the runs behind the links.\n",
        "| | claim | source | verdict |",
        "|---|---|---|---|",
        *[
            f"| [{claim.number}](#claim-{claim.number}) | {claim.says} | {claim.source} | "
            f"{NOT_RUN if found is None else f'**{found.verdict}**'} |"
            for claim, found in known
        ],
        "",
        *[_section(claim, found, pictures) for claim, found in known],
    ]
    return "\n".join(parts)


def _section(claim: Claim, found: Found | None, pictures: str) -> str:
    lines = [
        f"## Claim {claim.number}\n",
        f"{claim.says}\n",
        f"- *Source*: {claim.source}.",
        f"- *Run*: {claim.ran}.",
        f"- *Expected*: {claim.expects}.",
        *([f"- *Changed after a first look*: {claim.changed}."] if claim.changed else []),
    ]
    if found is None:
        needs = f" It reads {' and '.join(f'`{name}`' for name in claim.needs)}." if claim.needs else ""
        return "\n".join([*lines, f"- *Verdict*: {NOT_RUN}.{needs}\n"])
    lines += [f"- *Verdict*: **{found.verdict}** ({found.minutes:.1f} minutes).\n"]
    lines += ["| number | found | 95 % interval | the claim says | |", "|---|---|---|---|---|"]
    words = {True: "met", False: "refuted", None: "open"}
    lines += [
        f"| {each.what} | {each.value:.3g} | [{each.low:.3g}, {each.high:.3g}] | {each.wanted} | {words[each.met]} |"
        for each in found.expectations
    ]
    if found.remark:
        lines += ["", found.remark]
    if found.settled:
        chosen = "; ".join(f"{name}: {words}" for name, words in found.settled.items())
        lines += ["", f"Chosen on validation rows: {chosen}."]
    if found.lines:
        lines += ["", f"![{figure_of(claim, found).text}]({pictures}/{claim.name}.png)"]
    if found.runs:
        lines += ["", f"[Open the runs]({_link(found.runs)})"]
    return "\n".join([*lines, ""])


def _link(runs: Sequence[str]) -> str:
    """Opens some of the runs in the app, one of each arm first."""
    apart = list(dict.fromkeys(runs))
    step = max(1, len(apart) // MOST_RUNS)
    first, *others = [key[:IN_ADDRESSES] for key in apart[::step][:MOST_RUNS]]
    return f"http://127.0.0.1:8501/compare?run={first}" + (f"&with={','.join(others)}" if others else "")
