"""`workbench predict`: the sets that a trained run gives new rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.base import Command, Options, Parser

if TYPE_CHECKING:
    from workbench.sets import PredictionSets, Rule

BETWEEN = ";"  # the classes of a set in a line of a CSV file


def _options(parser: Parser) -> None:
    parser.add_argument("what", metavar="RUN", help="a run's key, or the beginning of it (see workbench runs)")
    parser.add_argument(
        "path", help="new rows as the run was trained on: a folder of images, an image, a .csv or a .npy file"
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
        "--out", type=Path, metavar="FILE", help="write to a .csv or .json file instead of printing CSV"
    )
    parser.add_argument(
        "--model", metavar="module:factory", help="what makes the model, for a run that was given a Module"
    )
    parser.add_argument(
        "--allow", nargs="+", default=(), metavar="MODULE", help="modules of yours that the stored run may import"
    )
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"), help="where to compute")


def _run(options: Options) -> int:
    write = _writer(options.out)
    from workbench.store.atomic import whole_file
    from workbench.training import TrainedRun

    trained = TrainedRun.open(options.what, model=options.model, allow=options.allow)
    rule = _rule(options.rule, options.K, trained.stored.record.K)
    sets = trained.predictor(rule, device=options.device)(options.path)
    text = write(sets, {"run": trained.stored.key, "title": trained.stored.title})
    if options.out is None:
        print(text, end="")
        return 0
    with whole_file(options.out, len(text.encode())) as aside:
        aside.write_text(text, encoding="utf-8")
    print(f"{len(sets)} sets of {sets.sizes.mean():.3g} classes on average written to {options.out}", file=sys.stderr)
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


def _csv(sets: PredictionSets, _: dict[str, str]) -> str:
    if with_mark := [name for name in sets.table.named_classes() if BETWEEN in name]:
        raise ValueError(
            f"the class {with_mark[0]!r} has a {BETWEEN!r} in its name, which stands between the classes of a set; write "
            "--out FILE.json"
        )
    frame = sets.to_frame()
    for column in ("classes", "probabilities"):
        frame[column] = [
            BETWEEN.join(f"{each:.6g}" if isinstance(each, float) else each for each in row) for row in frame[column]
        ]
    return frame.to_csv(index=False)


def _json(sets: PredictionSets, facts: dict[str, str]) -> str:
    rows = json.loads(sets.to_frame().to_json(orient="records", double_precision=15))
    return json.dumps({**facts, "rule": repr(sets.rule), "rows": rows}, indent=1, ensure_ascii=False) + "\n"


WRITERS = {".csv": _csv, ".json": _json}


def _writer(out: Path | None) -> Any:
    """How the sets are written: as the name of the file ends. What cannot be written is said before anything is computed."""
    if out is None:
        return _csv
    if out.suffix.lower() not in WRITERS:
        raise ValueError(f"--out {out}: sets are written as {' or '.join(WRITERS)}")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"--out {out}: there is no folder {out.parent}")
    return WRITERS[out.suffix.lower()]


PREDICT = Command(
    "predict",
    "the sets that a trained run gives new rows",
    """
    Score new rows with the network of a run and give each its set of classes. Rows are prepared as in training; the rule
    is fitted on the validation rows of the run.
    """,
    _options,
    _run,
    examples=(("workbench predict a1b2c3 photos/ --rule AverageK --K 5 --out sets.csv", "sets of new photographs"),),
)
