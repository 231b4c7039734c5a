"""`workbench train`: train one run."""

from __future__ import annotations

import argparse
import json

from workbench.cli.base import Command


def _train(arguments: list[str]) -> int:
    from workbench.cli.run_options import described_run

    parser = argparse.ArgumentParser(
        prog="workbench train",
        description="Train a model with a loss and store its scores. A run that is stored is not trained again, and an "
        "interrupted run resumes from its last checkpoint.",
        epilog="--loss NAME --help lists the knobs of that loss; workbench losses lists the losses. Numeric knobs can "
        "follow a schedule: --epsilon 'anneal(3, 0.2)', or 'anneal(3, 0.2, over=0.5, course=\"linear\")'. On several nodes, "
        "give the same command on each, with MASTER_ADDR, MASTER_PORT and NODE_RANK in its environment; or leave the ranks to a "
        "launcher: torchrun --nproc-per-node 2 -m workbench train …, or srun --ntasks-per-node 2 workbench train …",
    )
    parser.add_argument("--force", action="store_true", help="train again even if this run is stored")
    parser.add_argument(
        "--logger",
        metavar="NAME",
        help="report every epoch to a logger such as tensorboard or csv, which write to logs/ beside the runs",
    )
    run, options = described_run(parser, arguments)

    from workbench.training import train  # loads torch, which --help does without
    from workbench.training.ranks.collectives import rank
    from workbench.training.ranks.launch import node_number

    done = train(run, progress=not options.json, force=options.force, logger=options.logger)
    if rank() > 0 or node_number(run.nodes) > 0:  # the first of all tells of the run
        return 0
    if options.json:
        found = {"key": run.key, "path": str(done.path), "title": run.title, **done.metrics}
        if done.stored.record.best_epochs is not None:
            found["best_epochs"] = dict(done.stored.record.best_epochs)
        if done.stored.record.warned:
            found["warned"] = done.stored.record.warned
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        print(f"{run.title}: stored as {run.key[:12]} in {done.path.parent}")
        measured = {
            name: value
            for name, value in done.metrics.items()
            if name != "epoch" and not name.startswith("normaliser_")
        }
        print(f"epoch {done.metrics['epoch'] + 1:.0f} of {len(done.history)}, whose weights were kept: ", end="")
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
        ('workbench train --loss NoisedTopK --epsilon "anneal(3, 0.2)"', "a parameter that follows a schedule"),
        ("workbench train --features a1b2c3 --loss AverageKTwoHead --K 3", "train only a new last layer"),
    ),
)
