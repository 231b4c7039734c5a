"""`workbench runs`, `workbench runs rm`, `rename`, `tag`, `pin`: what is in the store."""

from __future__ import annotations

import json
import sys
import warnings

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print as JSON")
    others = parser.add_subparsers(title="what else can be done", metavar="rm | rename | tag | pin")
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
    about = "Give a run tags, by which the app finds it."
    tagging = others.add_parser("tag", help="give a run tags", description=about)
    tagging.add_argument("key", metavar="KEY", help="a run's key, or the beginning of it")
    tagging.add_argument("tags", nargs="+", metavar="TAG", help="a word or a few")
    tagging.add_argument("--remove", action="store_true", help="take these tags from it")
    tagging.set_defaults(run=_tag)
    about = "Put a run first: the one that was pinned last is what the app opens with."
    pinning = others.add_parser("pin", help="put a run first", description=about)
    pinning.add_argument("key", metavar="KEY", help="a run's key, or the beginning of it")
    pinning.add_argument("--off", action="store_true", help="let it stand where it stood")
    pinning.set_defaults(run=_pin)


def _list(options: Options) -> int:
    from workbench.store import Store
    from workbench.store.marks import marks_of, pinned_first

    store = Store()
    broken = store.unreadable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be read stands in the list
        runs = pinned_first(store, store.runs())
    if options.json:
        found = [
            {"key": run.key, "path": str(run.path), **run.record.to_json(), **vars(marks_of(store, run.key))}
            for run in runs
        ]
        found += [{"key": key, "unreadable": why} for key, why in broken.items()]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    if not runs:
        print(f"no runs in {store.root}; make one with: workbench train --dataset garden")
    for run in runs:
        marks = marks_of(store, run.key)
        told = "".join([", pinned" if marks.pinned else "", *(f", #{tag}" for tag in marks.tags)])
        print(f"{run.short}  {run.title}  ({', '.join(f'{name} {n}' for name, n in run.sizes().items())}){told}")
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


def _tag(options: Options) -> int:
    from workbench.store import Store
    from workbench.store.marks import tag, untag

    marks = (untag if options.remove else tag)(Store(), options.key, *options.tags)
    print(f"{Store().open(options.key).short}  {', '.join(marks.tags) or 'no tags'}")
    return 0


def _pin(options: Options) -> int:
    from workbench.store import Store
    from workbench.store.marks import pin, unpin

    (unpin if options.off else pin)(Store(), options.key)
    print(f"{Store().open(options.key).short}  {'not pinned' if options.off else 'pinned'}")
    return 0


RUNS = Command(
    "runs",
    "list, rename, tag, pin or remove the trained and imported runs",
    "List the runs in the store, pinned ones first, then the newest, the demo runs, and those that cannot be read.",
    _options,
    _list,
)
