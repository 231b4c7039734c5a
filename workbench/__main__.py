"""The command line: `workbench app | train | sweep | import | evaluate | report | compare | runs | losses | worker`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.store import StoredRun
    from workbench.tables import LogitTable

EXAMPLES = """
examples:
  workbench app                                      move K over the built-in demo
  workbench train --dataset garden --loss NoisedTopK --K 3 --epsilon 0.2
  workbench train --features a1b2c3 --loss AverageKTwoHead --K 3   a new head on the backbone of a run
  workbench sweep --loss NoisedTopK --over loss.epsilon 0.1 0.5 1 --over seed 0 1 2
  workbench import my_logits.npz                     bring your own scores and labels
  workbench evaluate my_logits.npz --K 5             top-5 and average-5 sets, judged
  workbench evaluate my_logits.npz --rule 'RAPS(confidence=0.9)' --rule my_module:MyRule
  workbench compare a1b2c3 d4e5f6 --K 5              paired differences, pair by pair
  workbench losses                                   what there is to train with
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 when it worked and 2 when the input was wrong."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "" not in sys.path:  # modules of one's own, such as --loss my_module:Mine, are found in the folder one works in
        sys.path.append("")
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    # `train` and `sweep` learn their options from the loss that was named, so they read the rest themselves.
    if rest and options.command not in (_train, _sweep):
        parser.error(f"{rest[0]} is not understood here; workbench {options.name} --help lists the options")
    try:
        with _warnings_in_words():
            code = options.command(options, rest)
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # whoever reads what is printed, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        print(f"workbench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        if str(interrupt):
            print(f"workbench: {interrupt}", file=sys.stderr)
        return 130


@contextlib.contextmanager
def _warnings_in_words() -> Iterator[None]:
    """A warning is one line for people, without the place in the source that gave it."""
    formatted = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"workbench: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = formatted


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench",
        description="A workbench for set-valued classification: classifiers that answer with a set of classes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="name")

    def command(
        run: Callable[[argparse.Namespace, list[str]], int], name: str, summary: str, text: str, **facts: Any
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=summary,
            description=textwrap.dedent(text).strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **facts,
        )
        added.set_defaults(command=run)
        return added

    app = command(
        _app, "app", "open the workbench in a browser", "Open the workbench in a browser. It listens on 127.0.0.1 only."
    )
    app.add_argument(
        "--port", type=int, metavar="N", help="the port to serve on (default: the first free one from 8501)"
    )
    app.add_argument("--headless", action="store_true", help="serve, but open no browser")
    app.add_argument(
        "--allow",
        nargs="+",
        default=(),
        metavar="MODULE",
        help="modules of yours that stored runs and addresses may import: those that their losses and models live in",
    )

    # --help belongs to the second parser, which knows the knobs of the loss.
    command(_train, "train", "train a model with a loss", "", add_help=False)
    command(_sweep, "sweep", "train a model in many settings", "", add_help=False)

    bring = command(
        _import,
        "import",
        "bring a file of logits",
        """
        Bring a file of scores (and labels) that some other program wrote; the app then lists it like any run.
        Formats: .npz .npy .csv .parquet .safetensors. Pickle is never loaded. One file is split as its column or array
        `split` says (val, test), or in halves, the first to fit rules on and the second to judge them; two files are taken
        as validation and test.
        """,
    )
    bring.add_argument("file", type=Path, help="the table to fit rules on (or the only one)")
    bring.add_argument("test", type=Path, nargs="?", help="the table to judge on")
    _add_what_a_file_holds(bring)
    bring.add_argument("--title", help="what to call it (default: the name of the file)")
    bring.add_argument("--json", action="store_true", help="print what was understood as JSON")

    evaluate = command(
        _evaluate,
        "evaluate",
        "judge sets made from a run or a file of logits",
        """
        Fit rules on validation rows and judge their sets on test rows. Takes a run (its key, or the beginning of it; see
        `workbench runs`) or a file of logits, which is split as its column or array `split` says, or in halves.
        """,
        aliases=["report"],
    )
    evaluate.add_argument("what", help="a run's key, or a file of logits")
    _add_what_a_file_holds(evaluate)
    evaluate.add_argument("--K", nargs="+", action="extend", metavar="K", help="target sizes for top-K and average-K")
    evaluate.add_argument(
        "--rule",
        action="append",
        metavar="RULE",
        help="a rule with its knobs, such as 'RAPS(confidence=0.9)', or module:Rule for one of yours; may be given several "
        "times",
    )
    evaluate.add_argument("--interval", type=float, metavar="P", help="add intervals of this probability, such as 0.95")
    evaluate.add_argument(
        "--format",
        choices=("text", "json", "csv", "markdown", "latex"),
        help="how to write the table (default: as --output ends, .csv, .json, .md, .tex or .txt; else text)",
    )
    evaluate.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    evaluate.add_argument(
        "--output", type=Path, metavar="FILE", help="write the table to a file instead of printing it"
    )

    compare = command(
        _compare,
        "compare",
        "compare runs or files of logits on the same rows, pair by pair",
        """
        Every pair of runs (keys, or the beginnings of them) or of files of logits: the difference of each metric on the
        same test rows with its paired interval, and a p-value that is corrected for the number of pairs by Holm's method.
        The rule is fitted for each on its own validation rows; files are split in the same halves.
        """,
    )
    compare.add_argument("what", nargs="+", help="two or more: keys of runs, or files of logits")
    _add_what_a_file_holds(compare)
    compare.add_argument(
        "--rule", default="AverageK", metavar="RULE", help="how sets are made, as Python prints it (default: AverageK)"
    )
    compare.add_argument("--K", metavar="K", help="the same as --rule 'AverageK(K=…)'")
    compare.add_argument(
        "--metric", action="append", metavar="NAME", help="accuracy unless given; may be given several times"
    )
    compare.add_argument("--interval", type=float, default=0.95, metavar="P", help="probability of an interval (0.95)")
    compare.add_argument("--json", action="store_true", help="print the pairs as JSON")

    runs = command(
        _runs,
        "runs",
        "list, rename or remove the trained and imported runs",
        "List the runs in the store, newest first, then the demo runs, then those that cannot be read.",
    )
    runs.add_argument("--json", action="store_true", help="print as JSON")
    of_runs = runs.add_subparsers(title="what else can be done", metavar="rm | rename")
    about = "Remove runs from the store. Those that ship with the package stay."
    removing = of_runs.add_parser("rm", help="remove runs", description=about)
    removing.add_argument("keys", nargs="+", metavar="KEY", help="a run's key, or the beginning of it")
    removing.add_argument("--yes", action="store_true", help="do not ask")
    removing.set_defaults(command=_remove_runs)
    about = "Give a run another title; its key and all it holds stay as they are."
    renaming = of_runs.add_parser("rename", help="give a run another title", description=about)
    renaming.add_argument("key", metavar="KEY", help="a run's key, or the beginning of it")
    renaming.add_argument("title", metavar="NAME", help="what to call it")
    renaming.set_defaults(command=_rename_run)

    losses = command(
        _losses, "losses", "list the losses with their facts and knobs", "List the losses one can train with."
    )
    losses.add_argument("--json", action="store_true", help="print everything the losses say about themselves as JSON")
    losses.add_argument("--markdown", action="store_true", help="print the table of the README")

    command(
        _worker,
        "worker",
        "train on request, for the app",
        """
        A warm process that trains what it is asked for, one run at a time; the app starts one for itself. Requests and
        progress are JSON, one object a line; it ends when its input closes.
        """,
    )
    return parser


def _add_what_a_file_holds(parser: argparse.ArgumentParser) -> None:
    """Options that say what a file leaves open."""
    holds = parser.add_argument_group("what the file holds, where it does not say so itself")
    holds.add_argument(
        "--scores",
        action="append",
        metavar="NAME",
        help="the array of scores (of a stacked one: 'logits[0]'), or a column of a class; may be given several times, and "
        "'p_*' is every column that begins so",
    )
    holds.add_argument("--labels", metavar="NAME", help="the array or column of labels")
    holds.add_argument(
        "--link",
        metavar="LINK",
        help="how scores become probabilities: softmax, sigmoid, quasibinary, sparsemax or identity",
    )
    holds.add_argument("--link-constant", type=float, metavar="C", help="log C of the quasibinary link")


def _imported(path: str | Path, options: argparse.Namespace) -> LogitTable:
    from workbench.tables.files import import_table

    names = options.scores[0] if options.scores and len(options.scores) == 1 else options.scores
    return import_table(
        path, scores=names, labels=options.labels, link=options.link, link_constant=options.link_constant
    )


def _app(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.launching import run_app

    return run_app(options.port, headless=options.headless, allow=options.allow)


def _train(_: argparse.Namespace, arguments: list[str]) -> int:
    from workbench.training_commands import train_command

    return train_command(arguments)


def _sweep(_: argparse.Namespace, arguments: list[str]) -> int:
    from workbench.training_commands import sweep_command

    return sweep_command(arguments)


def _losses(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.losses import catalogue

    rows = catalogue.entries()
    if options.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif options.markdown:
        print(catalogue.markdown(), end="")
    else:
        for row in rows:
            print(f"{row['name']}: {row['title']} ({row['paper']}, {row['equation']}); {catalogue.traits(row)}")
            for name, facts in row["knobs"].items():
                print(f"    --{name} {facts['default']}: {facts['meaning']}; {facts['accepts']}")
    return 0


def _runs(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.store import Store

    store = Store()
    broken = store.unreadable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be read stands in the list
        runs = store.runs()
    if options.json:
        found = [{"key": run.key, "path": str(run.path), **run.info} for run in runs]
        found += [{"key": key, "unreadable": why} for key, why in broken.items()]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    if not runs:
        print(f"no runs in {store.root}; make one with: workbench train --dataset garden")
    for run in runs:
        print(f"{run.key[:12]}  {run.title}  ({', '.join(f'{name} {n}' for name, n in run.sizes().items())})")
    for key, why in broken.items():
        print(f"{key[:12]}  cannot be read: {why}")
    return 0


def _remove_runs(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.store import Store

    store = Store()
    titles = {store.own(key).key: store.own(key).called for key in options.keys}  # all of them, before one is removed
    for key, title in titles.items():
        if not options.yes:
            if not sys.stdin.isatty():
                raise ValueError(f"{title} ({key[:12]}) was not removed, for nobody can be asked; give --yes")
            if input(f"remove {title} ({key[:12]})? [y/N] ").strip().lower() not in ("y", "yes"):
                continue
        store.remove(key)
        print(f"removed {key[:12]}  {title}")
    return 0


def _rename_run(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.store import Store

    run = Store().rename(options.key, options.title)
    print(f"{run.key[:12]}  {run.title}")
    return 0


def _worker(_: argparse.Namespace, __: list[str]) -> int:
    from workbench.workers.heads_process import main

    main()
    return 0


def _import(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.store.imported import keep_tables

    table = _imported(options.file, options)
    test = None if options.test is None else _imported(options.test, options)
    understood = [each.note for each in (table, test) if each is not None]
    named = " and ".join(path.stem for path in (options.file, options.test) if path is not None)
    run = keep_tables(table, test=test, title=options.title or named)
    if options.json:
        about = {"key": run.key, "path": str(run.path), "understood": understood, **run.info}
        print(json.dumps(about, indent=2, ensure_ascii=False))
    else:
        print(*understood, sep="\n")
        print(f"{run.title}: kept as {run.key[:12]} in {run.path.parent}")
        if test is not None:
            print("Rules are fitted on the first file and judged on the second.")
        if run.info["note"]:
            print(run.info["note"])
        print(f"next: workbench evaluate {run.key[:12]}, or workbench app")
    return 0


def _evaluate(options: argparse.Namespace, _: list[str]) -> int:
    import workbench as wb
    from workbench.metrics.reporting import FORMATS
    from workbench.sets import rule_from_text
    from workbench.store.imported import SPLIT_NOTE

    written_as = options.format or _format_of(options.output)
    val, test, note = _tables(options.what, options)
    rules: list[Any] = [rule_from_text(text, foreign=True) for text in options.rule or ()]
    sizes = [wb.AverageK.knobs()["K"].parsed("K", text) for text in options.K or ()]
    if not rules and not sizes:
        sizes = sorted({min(K, max(1, val.n_classes - 1)) for K in (1, 3, 5)})
    for K in sizes:
        rules += [wb.TopK(int(K))] * (K == int(K)) + [wb.AverageK(K)]  # top-K is for whole numbers only
    frame = wb.report(test, rules=rules, val=val, interval=options.interval)
    text = FORMATS[written_as](frame)
    if note:
        halves = f"one table: rules are fitted on {val.n} of its rows and judged on the other {test.n}"
        print(halves if note == SPLIT_NOTE else note, file=sys.stderr)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
        print(f"written to {options.output}")
    else:
        print(text, end="")
    return 0


def _compare(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.metrics import METRICS
    from workbench.metrics.comparison import matrices, pairwise
    from workbench.sets import rule_from_text

    if len(set(options.what)) < max(2, len(options.what)):
        raise ValueError(f"compare {' '.join(options.what)}: give two or more different runs or files")
    known = {metric.name: metric for metric in METRICS if metric.subject in ("sets", "table")}
    asked = options.metric or ["accuracy"]
    if unknown := [name for name in asked if name not in known]:
        raise ValueError(f"--metric {unknown[0]} is unknown; give one of {', '.join(known)}")
    rule = rule_from_text(options.rule if options.K is None else f"AverageK(K={options.K})", foreign=True)
    tables = {what: _tables(what, options)[:2] for what in options.what}
    pairs = pairwise(
        {what: test for what, (_, test) in tables.items()},
        rule,
        [known[name] for name in asked],
        val={what: val for what, (val, _) in tables.items()},
        interval=options.interval,
    )
    if options.json:
        result = {"rule": repr(rule), "correction": "Holm", "pairs": json.loads(pairs.to_json(orient="records"))}
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        print(f"sets by {rule.short()}\n\n{matrices(pairs)}", end="")
    return 0


def _format_of(output: Path | None) -> str:
    """The format that the name of a file asks for."""
    known = {"": "text", ".txt": "text", ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}
    ending = "" if output is None else output.suffix.lower()
    if ending not in known:
        raise ValueError(f"--output {output}: a table is written as {', '.join(filter(None, known))}; or give --format")
    return known[ending]


def _tables(what: str, options: argparse.Namespace) -> tuple[LogitTable, LogitTable, str]:
    """The table to fit on and the table to judge on, of a stored run or of a file, and how a file was split."""
    from workbench.store import Store
    from workbench.store.imported import val_and_test

    if Path(what).exists():
        return val_and_test(_imported(what, options))
    if Path(what).suffix:
        raise FileNotFoundError(f"there is no file {what}; give a file of scores and labels, or the key of a run")
    run: StoredRun = Store().open(what)
    if any(said is not None for said in (options.scores, options.labels, options.link, options.link_constant)):
        raise ValueError("--scores, --labels and --link are for files; a run knows what it holds")
    return run.tables["val"], run.tables["test"], ""


if __name__ == "__main__":
    sys.exit(main())
