"""`docs/claims.md`: every claim with what was run, what was found, the verdict, a figure and a link that opens the runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from workbench.claims.claim import FAILS, HOLDS, IN_PART, NOT_REACHED, REGIMES, UNDECIDED, Bench, Claim, Found, Regime
from workbench.figures.runs.intervals import WithIntervals, with_intervals
from workbench.files.atomic import whole_file
from workbench.warning_capture import captured_warnings

NOT_RUN = "not run"
MEANS = {
    HOLDS: "every expectation is met: its whole 95 % interval lies where the claim says",
    IN_PART: "some expectations are met and others are not",
    FAILS: "none is met and at least one is refuted: its whole interval lies elsewhere",
    UNDECIDED: "no interval decides",
    NOT_REACHED: "cross-entropy does not fit its training rows as well as the regime asks, so nothing is judged",
}
MOST_RUNS = 5  # in a link
IN_ADDRESSES = 12  # digits of a key by which the app's addresses name a run


def run_claims(
    claims: Iterable[Claim], bench: Bench, folder: Path, *, again: Sequence[int] = (), told: bool = True
) -> list[tuple[Claim, str]]:
    """Runs what has no result in the folder yet, and those asked for `again`; tells which could not be run, and why."""
    failed = []
    for claim, data in [(each, data) for each in claims for data in each.data(bench)]:
        if result_file(folder, claim, data).is_file() and claim.number not in again:
            continue
        title = f"{claim.title}, {data}" if data else claim.title
        if told:
            print(f"{title} ({claim.regime.title}): {claim.says}", flush=True)
        try:
            found = run_claim(claim, bench, data)
        except FileNotFoundError as error:
            failed.append((claim, str(error)))
            continue
        write_found(folder, claim, found, data)
        if told:
            print(f"{title}: {found.verdict}, {found.minutes:.1f} minutes", flush=True)
            if found.reached is not None:
                print(_training_accuracy(found), flush=True)
    return failed


def run_claim(claim: Claim, bench: Bench, data: str = "") -> Found:
    """Run a claim, on one of its data sets if it has several; `minutes` counts the training of stored runs too."""
    for name in claim.needs:
        bench.file(name)
    bench.seconds.clear()
    start = time.monotonic()
    with captured_warnings():  # sets may be empty, and rules are fitted on val here: it is meant
        found = claim.check(bench, data) if data else claim.check(bench)
    seconds = max(time.monotonic() - start, sum(bench.seconds.values()))
    reached = claim.regime.reached(found.training_accuracy)
    return replace(found, minutes=round(seconds / 60, 2), reached=reached)


def result_file(folder: Path, claim: Claim, data: str = "") -> Path:
    """Where the result of a claim is kept, of each of its data sets apart."""
    return folder / f"{claim.name}{'-' if data else ''}{data}.json"


def write_found(folder: Path, claim: Claim, found: Found, data: str = "") -> None:
    """Writes the result of a claim, and the picture of all its data sets."""
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(result_file(folder, claim, data)) as aside:
        aside.write_text(found.to_json(), "utf-8")
    whole = read_found(folder, claim)
    if whole is not None and whole.lines:
        figure_of(claim, whole).static().savefig(folder / f"{claim.name}.png", dpi=110)


def read_found(folder: Path, claim: Claim) -> Found | None:
    """The result of a claim that was run before, if it was; those of several data sets as one."""
    if claim.data_to_try is None:
        path = result_file(folder, claim)
        return Found.from_json(path.read_text("utf-8")) if path.is_file() else None
    paths = {path.stem.removeprefix(f"{claim.name}-"): path for path in sorted(folder.glob(f"{claim.name}-*.json"))}
    parts = {data: Found.from_json(path.read_text("utf-8")) for data, path in paths.items()}
    return Found.joined(parts) if parts else None


def figure_of(claim: Claim, found: Found) -> WithIntervals:
    """The picture of a claim."""
    frame = pd.DataFrame([asdict(line) for line in found.lines])
    frame = frame if frame["panel"].any() else frame.drop(columns="panel")
    title = f"{claim.title}: {found.verdict}"
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
        "the scale of its paper. Where several values of a knob are tried, more are added while the best one is an end of its "
        "grid; *edge of the grid* marks a choice beyond which nothing was tried.\n",
        *[f"- **{word}** ({counts[word]}): {meaning}." for word, meaning in MEANS.items()],
        "",
        f"The claims took {minutes:.0f} minutes; runs that several of them share count for each. `workbench claims` writes "
        "this page; `workbench claims 5` runs claim 5 again. After that, `workbench app` opens the runs behind the links.\n",
        "A claim is tried in one regime or in several; each has its own verdict:\n",
        *[f"- *{regime.name}*: {regime.title}{_least(regime)}." for regime in REGIMES],
        "",
        "| | claim | source | regime | verdict |",
        "|---|---|---|---|---|",
        *[
            f"| [{claim.number}](#{anchor(claim)}) | {claim.says} | {claim.source} | {claim.regime.name} | "
            f"{NOT_RUN if found is None else f'**{found.verdict}**'} |"
            for claim, found in known
        ],
        "",
        *[_section(claim, found, pictures) for claim, found in known],
    ]
    return "\n".join(parts)


def _least(regime: Regime) -> str:
    """The training accuracy that a regime asks for, in words."""
    if regime.training_accuracy is None:
        return ""
    return (
        f" (top-1 accuracy of cross-entropy on training rows at least {regime.training_accuracy:.0%} in the last epoch)"
    )


def anchor(claim: Claim) -> str:
    """The anchor of its section on the page."""
    return claim.title.lower().replace(",", "").replace(" ", "-")


def _training_accuracy(found: Found) -> str:
    """The top-1 accuracy of every arm on its training rows, in words."""
    arms = "; ".join(f"{name}: {share:.1%}" for name, share in found.training_accuracy.items())
    return f"Top-1 accuracy on training rows in the last epoch: {arms}."


def _section(claim: Claim, found: Found | None, pictures: str) -> str:
    lines = [
        f"## {claim.title}\n",
        f"{claim.says}\n",
        f"- *Source*: {claim.source}.",
        f"- *Regime*: {claim.regime.title}.",
        f"- *Run*: {claim.ran}.",
        f"- *Expected*: {claim.expects}.",
        *([f"- *Changed after a first look*: {claim.changed}."] if claim.changed else []),
    ]
    if found is None:
        needs = f" It reads {' and '.join(f'`{name}`' for name in claim.needs)}." if claim.needs else ""
        return "\n".join([*lines, f"- *Verdict*: {NOT_RUN}.{needs}\n"])
    lines += [f"- *Verdict*: **{found.verdict}** ({found.minutes:.1f} minutes)."]
    lines += [*([f"- *What decides*: {claim.decides}."] if claim.decides else []), ""]
    lines += ["| number | found | 95 % interval | the claim says | |", "|---|---|---|---|---|"]
    words = {True: "met", False: "refuted", None: "open"}
    lines += [
        f"| {each.what} | {each.value:.3g} | [{each.low:.3g}, {each.high:.3g}] | {each.bounds_text} | {words[each.met]} |"
        for each in found.expectations
    ]
    if found.remark:
        lines += ["", found.remark]
    if found.reached is not None:
        lines += ["", _training_accuracy(found)]
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
