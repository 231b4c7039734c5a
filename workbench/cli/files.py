"""What commands that read tables share: options that say what a file holds, and the tables of a file or of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.base import Options, Parser

if TYPE_CHECKING:
    from workbench.tables import LogitTable


def add_what_a_file_holds(parser: Parser) -> None:
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


def add_cluster(parser: Parser) -> None:
    """Options that say who computes."""
    who = parser.add_argument_group("who computes (needs the extra cluster)")
    who.add_argument(
        "--cluster",
        metavar="WHERE",
        help="threads or processes of this machine, or the address of a Dask scheduler, tcp://host:port; the result is the "
        "same to the last bit",
    )
    who.add_argument(
        "--workers", type=int, metavar="N", help="how many threads or processes (default: one a processor)"
    )


@contextlib.contextmanager
def on_the_cluster_of(options: Options) -> Iterator[None]:
    """While the block lasts, passes over tables are computed where the options say: here, unless they say something."""
    if options.cluster is None:
        if options.workers is not None:
            raise ValueError("--workers is for --cluster threads or --cluster processes; give one of them")
        yield
        return
    from workbench import cluster

    with cluster.connected(options.cluster, options.workers) as client, cluster.on(client):
        yield


def table_at(path: str, options: Options) -> LogitTable:
    """The table of a file, read as the options say."""
    from workbench.tables.files import import_table

    names = options.scores[0] if options.scores and len(options.scores) == 1 else options.scores
    return import_table(
        path, scores=names, labels=options.labels, link=options.link, link_constant=options.link_constant
    )


def val_and_test_of(what: str, options: Options) -> tuple[LogitTable, LogitTable, str]:
    """The table to fit on and the table to judge on, of a stored run or of a file, and how a file was split."""
    from workbench.store import Store
    from workbench.store.imported import val_and_test
    from workbench.tables.shards import is_url

    if is_url(what) or Path(what).exists():
        return val_and_test(table_at(what, options))
    if Path(what).suffix:
        raise FileNotFoundError(f"there is no file {what}; give a file of scores and labels, or the key of a run")
    run = Store().open(what)
    if any(said is not None for said in (options.scores, options.labels, options.link, options.link_constant)):
        raise ValueError("--scores, --labels and --link are for files; a run knows what it holds")
    return run.tables["val"], run.tables["test"], ""
