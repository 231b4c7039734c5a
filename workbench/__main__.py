"""The command line: `workbench app | train | sweep | import | evaluate | runs | losses | worker`."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.knobs import Knob
    from workbench.store import StoredRun
    from workbench.tables import LogitTable
    from workbench.training import Run

EXAMPLES = """
examples:
  workbench app                                      move K over the built-in demo
  workbench train --dataset garden --loss NoisedTopK --K 3 --epsilon 0.2
  workbench sweep --loss NoisedTopK --over loss.epsilon 0.1 0.5 1 --over seed 0 1 2
  workbench import my_logits.npz                     bring your own scores and labels
  workbench evaluate my_logits.npz --K 5             top-5 and average-5 sets, judged
  workbench losses                                   what there is to train with
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 when it worked and 2 when the input was wrong."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    # `train` and `sweep` learn their options from the loss that was named, so they read the rest themselves.
    if rest and options.command not in (_train, _sweep):
        parser.error(f"{rest[0]} is not understood here; workbench {options.name} --help lists the options")
    try:
        return options.command(options, rest)
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        print(f"workbench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench",
        description="A workbench for set-valued classification: classifiers that answer with a set of classes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="", required=True, dest="name")

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

    # --help belongs to the second parser, which knows the knobs of the loss.
    command(_train, "train", "train a model with a loss", "", add_help=False)
    command(_sweep, "sweep", "train a model in many settings", "", add_help=False)

    bring = command(
        _import,
        "import",
        "bring a file of logits",
        """
        Bring a file of scores (and labels) that some other program wrote; the app then lists it like any run.
        Formats: .npz .npy .csv .parquet .safetensors. Pickle is never loaded. One file is split in halves, the first to
        fit rules on and the second to judge them; two files are taken as validation and test.
        """,
    )
    bring.add_argument("file", type=Path, help="the table to fit rules on (or the only one)")
    bring.add_argument("test", type=Path, nargs="?", help="the table to judge on")
    bring.add_argument("--title", help="what to call it (default: the name of the file)")
    bring.add_argument("--json", action="store_true", help="print what was understood as JSON")

    evaluate = command(
        _evaluate,
        "evaluate",
        "judge sets made from a run or a file of logits",
        """
        Fit rules on validation rows and judge their sets on test rows. Takes a run (its key, or the beginning of it; see
        `workbench runs`) or a file of logits, which is split in halves.
        """,
    )
    evaluate.add_argument("what", help="a run's key, or a file of logits")
    evaluate.add_argument(
        "--K", type=float, nargs="+", default=None, metavar="K", help="target sizes for top-K and average-K"
    )
    evaluate.add_argument(
        "--rule",
        action="append",
        metavar="RULE",
        help="a rule as Python prints it, such as 'LAC(confidence=0.9)'; may be given several times",
    )
    evaluate.add_argument(
        "--interval", type=float, metavar="P", help="add bootstrap intervals of this probability, such as 0.95"
    )
    evaluate.add_argument(
        "--format", choices=("text", "json", "csv", "markdown"), default="text", help="how to print the table"
    )
    evaluate.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    evaluate.add_argument(
        "--output", type=Path, metavar="FILE", help="write the table to a file instead of printing it"
    )

    runs = command(
        _runs,
        "runs",
        "list the trained and imported runs",
        "List the runs in the store, newest first, then the demo runs.",
    )
    runs.add_argument("--json", action="store_true", help="print as JSON")

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


def _app(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.launching import run_app

    return run_app(options.port, headless=options.headless)


def _train(_: argparse.Namespace, arguments: list[str]) -> int:
    from workbench.training import train

    parser = argparse.ArgumentParser(
        prog="workbench train",
        description="Train a model with a loss and keep its scores. The same run is never trained twice, and a run that "
        "was interrupted goes on where it stopped.",
        epilog="--loss NAME --help lists the knobs of that loss; workbench losses lists the losses.",
    )
    parser.add_argument("--again", action="store_true", help="train anew even if this run is stored already")
    run, options = _described_run(parser, arguments)
    done = train(run, progress=not options.json, again=options.again)
    last = done.history.iloc[-1].to_dict()
    if options.json:
        print(
            json.dumps(
                {"key": run.key, "path": str(done.path), "title": run.title, **last}, indent=2, ensure_ascii=False
            )
        )
    else:
        print(f"{run.title}: kept as {run.key[:12]} in {done.path.parent}")
        print(", ".join(f"{name} {value:.4g}" for name, value in last.items()))
        print(f"next: workbench evaluate {run.key[:12]}, or workbench app")
    return 0


def _sweep(_: argparse.Namespace, arguments: list[str]) -> int:
    from workbench.conformal import rule_from_text
    from workbench.sweeps import sweep

    parser = argparse.ArgumentParser(
        prog="workbench sweep",
        description="Train a model in every combination of some settings, choose the best one on validation rows and "
        "report it on test rows. Runs that are stored are not trained again, so an interrupted sweep goes on.",
        epilog="--loss NAME --help lists the knobs of that loss, which --over loss.KNOB varies.",
    )
    parser.add_argument(
        "--over",
        action="append",
        nargs="+",
        required=True,
        metavar=("NAME", "VALUE"),
        help="a training option, or loss.KNOB, and the values to try; may be given several times",
    )
    parser.add_argument("--rule", metavar="RULE", help="the rule that makes sets (default: average-5)")
    parser.add_argument("--metric", default="accuracy", help="what to choose by on validation rows (default: accuracy)")
    run, options = _described_run(parser, arguments)
    knobs = {**run.knobs(), **{f"loss.{name}": declared for name, declared in run.loss.knobs().items()}}
    over: dict[str, list[Any]] = {}
    for name, *values in options.over:
        if name not in ("model", *knobs):
            raise ValueError(f"--over {name} is not known; give one of model, {', '.join(knobs)}")
        over[name] = values if name == "model" else [knobs[name].parsed(name, value) for value in values]
    rule = rule_from_text(options.rule) if options.rule else None
    found = sweep(run, over, rule=rule, progress=not options.json)
    best = found.best(options.metric)
    if options.json:
        result = {"settings": best.settings, "test": best.test, "runs": [done.stored.key for done in best.runs]}
        lines = json.loads(found.frame.to_json(orient="records"))
        print(json.dumps({"best": result, "frame": lines}, indent=2, ensure_ascii=False))
    else:
        print(found.summary().to_string(index=False, float_format="{:.4g}".format))
        chosen = ", ".join(f"{name} = {value}" for name, value in best.settings.items()) or "the only setting"
        print(f"best {options.metric} on val: {chosen}")
        print("on test: {mean:.4g} [{low:.4g}, {high:.4g}], 95 % t-interval over {seeds} seeds".format(**best.test))
        for setting, message in found.failed:
            print(f"diverged: {setting}: {message}")
    return 0


def _described_run(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[Run, argparse.Namespace]:
    """The run that the arguments describe, and what else they say to the parser."""
    from workbench.datasets import DATASETS, load_dataset, recipe_class
    from workbench.losses import class_named
    from workbench.training import MONITORS, Run

    # First the names, because the loss and the dataset bring options of their own.
    names = argparse.ArgumentParser(add_help=False)
    for reader in (names, parser):
        reader.add_argument(
            "--loss", default="CrossEntropy", metavar="NAME", help="a loss, or module:Class (default: CrossEntropy)"
        )
        reader.add_argument(
            "--dataset", default="garden", metavar="NAME", help=f"{', '.join(DATASETS)}, or a path (default: garden)"
        )
    chosen, _rest = names.parse_known_args(arguments)
    loss_class = class_named(chosen.loss)
    data_knobs = recipe_class(chosen.dataset).knobs()

    parser.add_argument(
        "--model",
        default=None,
        metavar="NAME",
        help="linear, mlp, cnn, resnet18-small, densenet40-40 or module:factory (default: cnn for images, mlp otherwise)",
    )
    parser.add_argument("--monitor", choices=MONITORS, help="keep the weights of the epoch that was best in this")
    parser.add_argument("--patience", type=int, metavar="N", help="stop after N epochs without a better one")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, and no progress")
    _add_knobs(parser, "training", "", Run.knobs())
    _add_knobs(parser, f"knobs of {loss_class.__name__}", "", loss_class.knobs())
    _add_knobs(parser, f"knobs of {chosen.dataset}", "data.", data_knobs)
    options = parser.parse_args(arguments)

    data = load_dataset(chosen.dataset, **_turned(options, "data.", data_knobs))
    run = Run(
        dataset=data,
        model=options.model or ("cnn" if len(data.input_shape) == 3 else "mlp"),
        loss=loss_class(**_turned(options, "", loss_class.knobs())),
        monitor=options.monitor,
        patience=options.patience,
        **_turned(options, "", Run.knobs()),
    )
    return run, options


def _add_knobs(parser: argparse.ArgumentParser, title: str, prefix: str, knobs: Mapping[str, Knob]) -> None:
    """One option per knob, with its meaning, range and default."""
    group = parser.add_argument_group(title)
    for name, declared in knobs.items():
        default = str(declared.default).strip("()")
        group.add_argument(
            f"--{prefix}{name}",
            metavar="VALUE",
            help=f"{declared.meaning}; {declared.accepts()} (default: {default})".replace("%", "%%"),
        )


def _turned(options: argparse.Namespace, prefix: str, knobs: Mapping[str, Knob]) -> dict[str, Any]:
    """The knobs that were given on the command line, read and checked."""
    given = {name: getattr(options, prefix + name) for name in knobs}
    return {name: knobs[name].parsed(prefix + name, text) for name, text in given.items() if text is not None}


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
    runs = store.runs()
    if options.json:
        print(
            json.dumps(
                [{"key": run.key, "path": str(run.path), **run.info} for run in runs], indent=2, ensure_ascii=False
            )
        )
    elif not runs:
        print(f"no runs in {store.root}; make one with: workbench train --dataset garden")
    for run in runs if not options.json else ():
        print(f"{run.key[:12]}  {run.title}  ({', '.join(f'{name} {table.n}' for name, table in run.tables.items())})")
    return 0


def _worker(_: argparse.Namespace, __: list[str]) -> int:
    from workbench.worker import main

    main()
    return 0


def _import(options: argparse.Namespace, _: list[str]) -> int:
    from workbench.files import import_table
    from workbench.imports import keep_tables

    table = import_table(options.file)
    test = None if options.test is None else import_table(options.test)
    run = keep_tables(table, test=test, title=options.title or options.file.stem)
    if options.json:
        print(json.dumps({"key": run.key, "path": str(run.path), **run.info}, indent=2, ensure_ascii=False))
    else:
        print(f"{run.title}: kept as {run.key[:12]} in {run.path.parent}")
        print(run.info["note"] or "Rules are fitted on the first file and judged on the second.")
        print(f"next: workbench evaluate {run.key[:12]}, or workbench app")
    return 0


def _evaluate(options: argparse.Namespace, _: list[str]) -> int:
    import workbench as wb
    from workbench.conformal import rule_from_text
    from workbench.reporting import FORMATS

    val, test = _tables(options.what)
    rules: list[Any] = [rule_from_text(text) for text in options.rule or ()]
    sizes = options.K or ([] if rules else sorted({1, min(3, val.n_classes - 1), min(5, val.n_classes - 1)}))
    for K in sizes:
        rules += [wb.TopK(int(K))] * (K == int(K)) + [wb.AverageK(K)]  # top-K is for whole numbers only
    frame = wb.report(test, rules=rules, val=val, interval=options.interval)
    text = FORMATS[options.format](frame)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
        print(f"written to {options.output}")
    else:
        print(text, end="")
    return 0


def _tables(what: str) -> tuple[LogitTable, LogitTable]:
    """The table to fit on and the table to judge on, of a stored run or of a file."""
    from workbench.files import import_table
    from workbench.store import Store

    if Path(what).exists():
        return import_table(what).split()
    run: StoredRun = Store().open(what)
    return run.tables["val"], run.tables["test"]


if __name__ == "__main__":
    sys.exit(main())
