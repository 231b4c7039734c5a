"""`workbench runs`, `workbench runs rm`, `workbench runs rename`: what is in the store."""

from __future__ import annotations

import json
import sys
import warnings

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print as JSON")
    others = parser.add_subparsers(title="what else can be done", metavar="rm | rename")
    about = "Remove runs from the store. Those that ship with the package stay."
    removing = others.add_parser("rm", help="remove runs", description=about)
    removing.add_argument("keys", nargs="+", metavar="KEY", help="a run's key, or the beginning of it")
    removing.add_argument("--yes", action="store_true", help="do not ask")
    removing.set_defaults(run=_remove)
    about = "Give a run another title; its key and all it holds stay as they are."
    renaming = others.add_parser("rename", help="give a run another title", description=about)
    renaming.add_argument("key", metavar="KEY", help="a run's key, or the beginning of it")
    renaming.add_argument("title", metavar="NAME", help="what to call it")
    renaming.set_defaults(run=_rename)


def _list(options: Options) -> int:
    from workbench.store import Store

    store = Store()
    broken = store.unreadable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be read stands in the list
        runs = store.runs()
    if options.json:
        found = [{"key": run.key, "path": str(run.path), **run.record.to_json()} for run in runs]
        found += [{"key": key, "unreadable": why} for key, why in broken.items()]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    if not runs:
        print(f"no runs in {store.root}; make one with: workbench train --dataset garden")
    for run in runs:
        print(f"{run.short}  {run.title}  ({', '.join(f'{name} {n}' for name, n in run.sizes().items())})")
    for key, why in broken.items():
        print(f"{key[:12]}  cannot be read: {why}")
    return 0


def _remove(options: Options) -> int:
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


def _rename(options: Options) -> int:
    from workbench.store import Store

    run = Store().rename(options.key, options.title)
    print(f"{run.short}  {run.title}")
    return 0


RUNS = Command(
    "runs",
    "list, rename or remove the trained and imported runs",
    "List the runs in the store, newest first, then the demo runs, then those that cannot be read.",
    _options,
    _list,
)
