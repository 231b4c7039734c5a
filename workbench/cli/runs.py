"""`workbench runs`, `workbench runs rm`, `rename`, `tag`, `pin`: list and change the stored runs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from workbench.cli.base import Command, Options, Parser
from workbench.warning_capture import captured_warnings

if TYPE_CHECKING:
    from workbench.store import Store


def _options(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print as JSON")
    upkeep = parser.add_mutually_exclusive_group()
    upkeep.add_argument("--verify", action="store_true", help="read every file and compare it with its checksum")
    upkeep.add_argument("--repair", action="store_true", help="verify, then move damaged runs into the trash")
    upkeep.add_argument(
        "--prune", action="store_true", help="delete the trash and leftovers of killed writers for good"
    )
    others = parser.add_subparsers(title="change the store", metavar="rm | restore | rename | tag | pin")
    about = "Move runs into the trash (workbench runs restore). Those that ship with the package stay."
    removing = others.add_parser("rm", help="remove runs", description=about)
    removing.add_argument("keys", nargs="+", metavar="KEY", help="key of a run, or its first characters")
    removing.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    removing.set_defaults(run=_remove)
    about = "Bring runs back that the app removed; without a key, list them."
    restoring = others.add_parser("restore", help="restore removed runs", description=about)
    restoring.add_argument("keys", nargs="*", metavar="KEY", help="key of a run, or its first characters")
    restoring.set_defaults(run=_restore)
    about = "Give a run another title; its key and all it holds stay as they are."
    renaming = others.add_parser("rename", help="give a run another title", description=about)
    renaming.add_argument("key", metavar="KEY", help="key of a run, or its first characters")
    renaming.add_argument("title", metavar="NAME", help="the new title")
    renaming.set_defaults(run=_rename)
    about = "Give a run tags, by which the app finds it."
    tagging = others.add_parser("tag", help="give a run tags", description=about)
    tagging.add_argument("key", metavar="KEY", help="key of a run, or its first characters")
    tagging.add_argument("tags", nargs="+", metavar="TAG", help="tags to add")
    tagging.add_argument("--remove", action="store_true", help="remove these tags")
    tagging.set_defaults(run=_tag)
    about = "Put a run first: the one that was pinned last is what the app opens with."
    pinning = others.add_parser("pin", help="list a run first", description=about)
    pinning.add_argument("key", metavar="KEY", help="key of a run, or its first characters")
    pinning.add_argument("--off", action="store_true", help="unpin it")
    pinning.set_defaults(run=_pin)


def _list(options: Options) -> int:
    from workbench.store import Store
    from workbench.store.tags import Tags, all_tags, pinned_first

    store = Store()
    if options.verify or options.repair or options.prune:
        return _maintain(store, options)
    broken, tags = store.unreadable(), all_tags(store)
    with captured_warnings():  # what cannot be read stands in the list
        runs = pinned_first(store, store.runs())
    if options.json:
        found = [
            {"key": run.key, "path": str(run.path), **run.record.to_json(), **vars(tags.get(run.key, Tags()))}
            for run in runs
        ]
        found += [{"key": key, "unreadable": why} for key, why in broken.items()]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    if not runs:
        print(f"no runs in {store.root}; make one with: workbench train --dataset garden")
    for run in runs:
        marks = tags.get(run.key, Tags())
        suffix = "".join([", pinned" if marks.pinned else "", *(f", #{tag}" for tag in marks.tags)])
        sizes = ", ".join(f"{name} {n}" for name, n in run.sizes().items())
        print(f"{run.short}  {run.name}  ({sizes}){suffix}")
    for key, why in broken.items():
        print(f"{key[:12]}  cannot be read: {why}")
    return 0


def _maintain(store: Store, options: Options) -> int:
    from workbench.store import maintenance

    if options.prune:
        print(f"{maintenance.prune(store):,} bytes deleted for good".replace(",", " "))
        return 0
    damaged = maintenance.repair(store) if options.repair else maintenance.verify(store)
    for key, why in damaged.items():
        print(f"{key[:12]}  {why}")
    done = "moved into the trash (workbench runs restore)" if options.repair else "damaged (workbench runs --repair)"
    print(f"{len(damaged)} runs {done}" if damaged else "every file of every run matches its checksum")
    return 1 if damaged and not options.repair else 0


def _restore(options: Options) -> int:
    from workbench.store import Store

    store = Store()
    runs = [store.restore(key) for key in options.keys] if options.keys else store.trashed()
    for run in runs:
        print(f"{run.short}  {run.display_name}")
    if not runs:
        print("the trash is empty")
    return 0


def _remove(options: Options) -> int:
    from workbench.store import Store

    store = Store()
    titles = {
        store.own(key).key: store.own(key).display_name for key in options.keys
    }  # all of them, before one is removed
    for key, title in titles.items():
        if not options.yes:
            if not sys.stdin.isatty():
                raise ValueError(
                    f"{title} ({key[:12]}) was not removed: standard input is not a terminal to confirm on; give --yes"
                )
            if input(f"remove {title} ({key[:12]})? [y/N] ").strip().lower() not in ("y", "yes"):
                continue
        store.trash(key)
        print(f"removed {key[:12]}  {title}")
    return 0


def _rename(options: Options) -> int:
    from workbench.store import Store

    run = Store().rename(options.key, options.title)
    print(f"{run.short}  {run.title}")
    return 0


def _tag(options: Options) -> int:
    from workbench.store import Store
    from workbench.store.tags import tag, untag

    marks = (untag if options.remove else tag)(Store(), options.key, *options.tags)
    print(f"{Store().open(options.key).short}  {', '.join(marks.tags) or 'no tags'}")
    return 0


def _pin(options: Options) -> int:
    from workbench.store import Store
    from workbench.store.tags import pin, unpin

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
