"""`workbench card`: a model card of a stored run."""

from __future__ import annotations

from pathlib import Path

from workbench.cli.base import Command, Options, Parser, deliver


def _options(parser: Parser) -> None:
    parser.add_argument("key", metavar="RUN", help="key of a run, or its first characters")
    parser.add_argument("--confidence", type=float, default=0.9, metavar="P", help="promised coverage (0.9)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the card to a file instead of printing it")


def _run(options: Options) -> int:
    from workbench.metrics.model_card import model_card
    from workbench.store import Store

    return deliver(model_card(Store().open(options.key), options.confidence), options.output)


CARD = Command(
    "card",
    "write the model card of a run",
    "Write the model card of a run in Markdown: data, training, sets, promised coverage with its band, and the classes that are "
    "missed most.",
    _options,
    _run,
    examples=(("workbench card RUN --output card.md", "the model card of a run"),),
)
