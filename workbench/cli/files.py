"""Options and readers shared by commands that read tables of a file or a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.base import Options, Parser

if TYPE_CHECKING:
    from workbench.metrics import Metric
    from workbench.tables import LogitTable


def add_what_a_file_holds(parser: Parser) -> None:
    """Options that name the contents of a file."""
    holds = parser.add_argument_group("contents of the file, if it does not say so itself")
    holds.add_argument(
        "--scores",
        action="append",
        metavar="NAME",
        help="the array of scores (of a stacked one: 'logits[0]'), or a column of a class; may be given several times, and "
        "'p_*' stands for every column with that prefix",
    )
    holds.add_argument("--labels", metavar="NAME", help="the array or column of labels")
    holds.add_argument(
        "--link",
        metavar="LINK",
        help="how scores become probabilities: softmax, sigmoid, quasibinary, sparsemax or identity",
    )
    holds.add_argument("--link-constant", type=float, metavar="C", help="log C of the quasibinary link")


def add_partial(parser: Parser) -> None:
    """Options about rows that list some of their classes."""
    some = parser.add_argument_group("a file that lists some classes of each row")
    some.add_argument("--classes", type=int, metavar="L", help="number of classes, if the file does not say so")
    some.add_argument(
        "--cut", type=float, metavar="P", help="probabilities below this were left out, or count as unknown"
    )


def file_arguments(options: Options) -> dict[str, Any]:
    """The arguments of `import_any` that the options give."""
    names = options.scores[0] if options.scores and len(options.scores) == 1 else options.scores
    arguments = {
        "scores": names,
        "labels": options.labels,
        "link": options.link,
        "link_constant": options.link_constant,
    }
    return {**arguments, "n_classes": options.classes, "cut": options.cut}


def add_cluster(parser: Parser) -> None:
    """Options for parallel computation."""
    who = parser.add_argument_group("parallel computation (needs the extra cluster)")
    who.add_argument(
        "--cluster",
        metavar="WHERE",
        help="threads or processes of this machine, or the address of a Dask scheduler, tcp://host:port; the result is the "
        "same to the last bit",
    )
    who.add_argument(
        "--workers", type=int, metavar="N", help="number of threads or processes (default: one per processor)"
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


def add_metrics(parser: Parser, usual: str) -> None:
    """The option that names metrics."""
    parser.add_argument(
        "--metric",
        action="append",
        metavar="NAME",
        help=f"a metric, or module:name for one of yours; may be given several times (default: {usual})",
    )


def metrics_named(names: Sequence[str]) -> list[Metric]:
    """The metrics of these names; a foreign one is what `@workbench.metrics.metric` made of a function."""
    from workbench.metrics import METRICS, Metric, coverage
    from workbench.trusted_imports import resolve

    known = {metric.name: metric for metric in METRICS if metric.subject in ("sets", "table")} | {"coverage": coverage}
    found = [resolve(name, known, "metric") for name in names]
    for name, each in zip(names, found, strict=True):
        if not isinstance(each, Metric):
            raise ValueError(
                f"{name} is not a metric; put @workbench.metrics.metric(title=…, direction=…) above the function"
            )
    return found


def table_at(path: str, options: Options) -> LogitTable:
    """The table of a file, read as the options say."""
    from workbench.tables.files import import_table

    names = options.scores[0] if options.scores and len(options.scores) == 1 else options.scores
    return import_table(
        path, scores=names, labels=options.labels, link=options.link, link_constant=options.link_constant
    )


def is_file(what: str) -> bool:
    """Whether an argument names a file, a folder or an address, and not a stored run."""
    from workbench.tables.shards import is_url

    return is_url(what) or Path(what).exists()


def val_and_test_of(what: str, options: Options) -> tuple[LogitTable, LogitTable, str]:
    """The table to fit on and the table to judge on, of a stored run or of a file, and how a file was split."""
    from workbench.store import Store
    from workbench.store.imported_tables import val_and_test

    if is_file(what):
        return val_and_test(table_at(what, options))
    if Path(what).suffix:
        raise FileNotFoundError(f"there is no file {what}; give a file of scores and labels, or the key of a run")
    run = Store().open(what)
    if any(value is not None for value in (options.scores, options.labels, options.link, options.link_constant)):
        raise ValueError("--scores, --labels and --link are for files; a run knows what it holds")
    return run.tables["val"], run.tables["test"], ""
