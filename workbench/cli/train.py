"""`workbench train`: a run, each option from its knob."""

from __future__ import annotations

import argparse
import json

from workbench.cli.base import Command


def _train(arguments: list[str]) -> int:
    from workbench.cli.described import described_run
    from workbench.training import train
    from workbench.training.loggers import LOGGERS
    from workbench.training.ranks.processes import node_number
    from workbench.training.ranks.together import rank

    parser = argparse.ArgumentParser(
        prog="workbench train",
        description="Train a model with a loss and keep its scores. The same run is never trained twice, and a run that "
        "was interrupted goes on from its last checkpoint.",
        epilog="--loss NAME --help lists the knobs of that loss; workbench losses lists the losses. A number of a loss may "
        "change while it learns: --epsilon 'anneal(3, 0.2)', or 'anneal(3, 0.2, over=0.5, course=\"linear\")'. On several nodes, "
        "give the same command on each, with MASTER_ADDR, MASTER_PORT and NODE_RANK in its environment; or leave the ranks to a "
        "launcher: torchrun --nproc-per-node 2 -m workbench train …, or srun --ntasks-per-node 2 workbench train …",
    )
    parser.add_argument("--again", action="store_true", help="train anew even if this run is stored already")
    parser.add_argument(
        "--logger",
        metavar="NAME",
        help=f"tell {', '.join(LOGGERS)} of every epoch; csv and tensorboard write to logs/ beside the runs",
    )
    run, options = described_run(parser, arguments)
    done = train(run, progress=not options.json, again=options.again, logger=options.logger)
    if rank() > 0 or node_number(run.nodes) > 0:  # the first of all tells of the run
        return 0
    if options.json:
        found = {"key": run.key, "path": str(done.path), "title": run.title, **done.kept}
        if done.stored.record.best_epochs is not None:
            found["best_epochs"] = dict(done.stored.record.best_epochs)
        if done.stored.record.warned:
            found["warned"] = done.stored.record.warned
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        print(f"{run.title}: kept as {run.key[:12]} in {done.path.parent}")
        measured = {
            name: value for name, value in done.kept.items() if name != "epoch" and not name.startswith("normaliser_")
        }
        print(f"epoch {done.kept['epoch'] + 1:.0f} of {len(done.history)}, whose weights were kept: ", end="")
        print(", ".join(f"{name} {value:.4g}" for name, value in measured.items()))
        for monitor in run.monitors[1:]:
            epoch = done.kept_by(monitor.name).epoch
            value = done.history[monitor.column][epoch]
            print(f"best in {monitor.name}: epoch {epoch + 1} of {len(done.history)}, {monitor.column} {value:.4g}")
        if done.stored.record.warned:
            print(f"note: {done.stored.record.warned}")
        print(f"next: workbench evaluate {run.key[:12]}, or workbench app")
    return 0


TRAIN = Command(
    "train",
    "train a model with a loss",
    reads=_train,
    examples=(
        ("workbench train --dataset garden --loss NoisedTopK --K 3 --epsilon 0.2", ""),
        ('workbench train --loss NoisedTopK --epsilon "anneal(3, 0.2)"', "a knob that changes while it learns"),
        ("workbench train --features a1b2c3 --loss AverageKTwoHead --K 3", "a new head on the backbone of a run"),
    ),
)
