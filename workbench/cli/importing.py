"""`workbench import`: a file of logits becomes a run."""

from __future__ import annotations

import json
from pathlib import Path

from workbench.cli.base import Command, Options, Parser
from workbench.cli.files import add_cluster, add_what_a_file_holds, on_the_cluster_of, table_at
from workbench.tables.formats import SUFFIXES


def _options(parser: Parser) -> None:
    parser.add_argument(
        "file", help="the table to fit rules on (or the only one): a file, or a folder or address of shards"
    )
    parser.add_argument("test", nargs="?", help="the table to judge on")
    add_what_a_file_holds(parser)
    add_cluster(parser)
    parser.add_argument("--title", help="what to call it (default: the name of the file)")
    parser.add_argument("--json", action="store_true", help="print what was understood as JSON")


def _run(options: Options) -> int:
    with on_the_cluster_of(options):
        return _import(options)


def _import(options: Options) -> int:
    from workbench.sets import SetIndex
    from workbench.store.imported import keep_tables
    from workbench.tables.checks import lies_in_shards

    table = table_at(options.file, options)
    test = None if options.test is None else table_at(options.test, options)
    understood = [each.note for each in (table, test) if each is not None]
    named = " and ".join(Path(path).stem for path in (options.file, options.test) if path is not None)
    run = keep_tables(table, test=test, title=options.title or named)
    if any(lies_in_shards(each.scores) for each in (table, test) if each is not None):
        for split in ("val", "test"):
            SetIndex.open(
                run.path / split
            )  # made now, by whoever computes: the app then opens it without reading a score
    if options.json:
        about = {"key": run.key, "path": str(run.path), "understood": understood, **run.record.to_json()}
        print(json.dumps(about, indent=2, ensure_ascii=False))
    else:
        print(*understood, sep="\n")
        print(f"{run.title}: kept as {run.short} in {run.path.parent}")
        if test is not None:
            print("Rules are fitted on the first file and judged on the second.")
        if run.record.note:
            print(run.record.note)
        print(f"next: workbench evaluate {run.short}, or workbench app")
    return 0


IMPORT = Command(
    "import",
    "bring a file of logits",
    f"""
    Bring a file of scores (and labels) that some other program wrote; the app then lists it like any run.
    Formats: {" ".join(SUFFIXES)}. Pickle is never loaded. One file is split as its column or array
    `split` says (val, test), or in halves, the first to fit rules on and the second to judge them; two files are taken
    as validation and test. Shards stay where they are: the run says which, and keeps what its sliders need.
    """,
    _options,
    _run,
    examples=(("workbench import my_logits.npz", "bring your own scores and labels"),),
)
