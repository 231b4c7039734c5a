"""`workbench predict`: the sets that a trained run gives new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.base import Command, Options, Parser
from workbench.cli.set_files import write_sets, writer_for

if TYPE_CHECKING:
    from workbench.sets import Rule


def _options(parser: Parser) -> None:
    parser.add_argument("what", metavar="RUN", help="key of a run, or its first characters (see workbench runs)")
    parser.add_argument(
        "path",
        metavar="ROWS",
        help="new rows as the run was trained on: a folder of images, an image, a .csv or a .npy file",
    )
    parser.add_argument(
        "--rule",
        metavar="RULE",
        default="AverageK",
        help="the rule that makes sets, fitted on the validation rows of the run, such as 'RAPS(confidence=0.9)', or "
        "module:Rule for one of yours (default: AverageK)",
    )
    parser.add_argument("--K", metavar="K", help="K of the rule (default: that of the loss of the run, else 5)")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to a .csv, .json or .parquet file instead of printing CSV"
    )
    parser.add_argument(
        "--model", metavar="module:factory", help="factory of the model, for a run that was given a Module"
    )
    parser.add_argument(
        "--allow", nargs="+", default=(), metavar="MODULE", help="modules of yours that the stored run may import"
    )
    parser.add_argument("--device", default="auto", help="device of the network: auto, cpu, cuda, cuda:1, mps")


def _run(options: Options) -> int:
    write = writer_for(options.output)
    from workbench.training import TrainedRun

    trained = TrainedRun.open(options.what, model=options.model, allow=options.allow)
    rule = _rule(options.rule, options.K, trained.stored.record.K)
    sets = trained.predictor(rule, device=options.device)(options.path)
    write_sets(sets, {"run": trained.stored.key, "title": trained.stored.title}, write, options.output)
    return 0


def _rule(text: str, K: str | None, usual: float) -> Rule:
    """The rule as it was written; `--K` sets its K, and without either it is that of the run."""
    from workbench.sets import rule_from_text

    rule = rule_from_text(text, foreign=True)
    knobs: dict[str, Any] = type(rule).knobs()
    if K is None:
        if "K" not in knobs or "(" in text:
            return rule
        return type(rule)(**rule.settings() | {"K": type(knobs["K"].default)(usual)})
    if "K" not in knobs:
        raise ValueError(
            f"--K {K}: {type(rule).__name__} has no K; it has {', '.join(knobs)}, in brackets behind its name"
        )
    return type(rule)(**rule.settings() | {"K": knobs["K"].parsed("K", K)})


PREDICT = Command(
    "predict",
    "predict sets for new rows with a trained run",
    """
    Score new rows with the network of a run and give each its set of classes. Rows are prepared as in training; the rule
    is fitted on the validation rows of the run.
    """,
    _options,
    _run,
    examples=(("workbench predict a1b2c3 photos/ --rule AverageK --K 5 --output sets.csv", "sets for new images"),),
)
