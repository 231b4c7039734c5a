"""`workbench import`: a file of logits becomes a run."""

from __future__ import annotations

import json
from pathlib import Path

from workbench.cli.base import Command, Options, Parser
from workbench.cli.files import add_cluster, add_what_a_file_holds, on_the_cluster_of, table_at
from workbench.tables.formats import SUFFIXES


def _options(parser: Parser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="the table to fit rules on (or the only one): a file, or a folder or address of shards",
    )
    parser.add_argument("test", nargs="?", metavar="TEST_FILE", help="the table to evaluate on")
    add_what_a_file_holds(parser)
    add_cluster(parser)
    parser.add_argument("--votes", metavar="FILE", help="votes of annotators on these rows (answers.json, or a .csv)")
    parser.add_argument("--title", help="title of the run (default: the name of the file)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _run(options: Options) -> int:
    with on_the_cluster_of(options):
        return _import(options)


def _import(options: Options) -> int:
    from workbench.sets import SetIndex
    from workbench.store import Store
    from workbench.store.imported_tables import keep_tables
    from workbench.store.tags import pin
    from workbench.tables.checks import lies_in_shards
    from workbench.tables.vote_files import import_votes, with_votes

    table = table_at(options.file, options)
    test = None if options.test is None else table_at(options.test, options)
    if options.votes is not None:
        votes = import_votes(options.votes)
        table, test = with_votes(table, votes), None if test is None else with_votes(test, votes)
    understood = [each.note for each in (table, test) if each is not None]
    named = " and ".join(Path(path).stem for path in (options.file, options.test) if path is not None)
    run = keep_tables(table, test=test, title=options.title or named)
    pin(Store(), run.key)  # the app opens on the run that was pinned last
    if any(lies_in_shards(each.scores) for each in (table, test) if each is not None):
        for split in ("val", "test"):
            SetIndex.open(run.path / split)  # computed now: the app then opens the table without reading a score
    if options.json:
        about = {"key": run.key, "path": str(run.path), "understood": understood, **run.record.to_json()}
        print(json.dumps(about, indent=2, ensure_ascii=False))
    else:
        print(*understood, sep="\n")
        print(f"{run.title}: stored as {run.short} in {run.path.parent}")
        if test is not None:
            print("Rules are fitted on the first file and evaluated on the second.")
        if run.record.note:
            print(run.record.note)
        print(f"next: workbench evaluate {run.short}, or workbench app")
    return 0


IMPORT = Command(
    "import",
    "import a file of scores and labels",
    f"""
    Import a file of scores and, if it has them, labels. The app then lists it like any run.
    Formats: {" ".join(SUFFIXES)}. Pickle is never loaded. One file is split by its column or array
    `split` (val, test) if there is one, else into random halves: one fits rules, the other evaluates them. Rows of one
    object (a column such as `plant_id`, or ids that repeat) stay in one half. Two files are the validation and the test
    rows. Sharded tables are not copied: the run refers to them.
    """,
    _options,
    _run,
    examples=(("workbench import my_logits.npz", "import your own scores and labels"),),
)
