"""A command of the command line: name, help, options and function."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Options = argparse.Namespace
Parser = argparse.ArgumentParser


def _no_options(_: Parser) -> None:
    """For a command that has none."""


def deliver(text: str, output: Path | None) -> int:
    """Write a result to a file, or print it where no file is named; returns the exit code."""
    if output is None:
        print(text, end="")
    else:
        output.write_text(text, encoding="utf-8")
        print(f"written to {output}")
    return 0


@dataclass(frozen=True)
class Command:
    """One command: `run(options)` does it and returns the exit code; `options(parser)` adds what it takes.

    A command whose options depend on other options, as those of `train` do on the loss, is given `reads`: the arguments
    as they were typed, `--help` included. What a command needs is imported when it runs, so that `--help` is quick.
    """

    name: str
    summary: str  # beside its name in `workbench --help`
    text: str = ""  # above its options
    options: Callable[[Parser], None] = _no_options
    run: Callable[[Options], int] | None = None
    reads: Callable[[list[str]], int] | None = None
    aliases: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()  # (what to type, what it does)

    def add_to(self, commands: Any) -> None:
        """Adds the command to the parser of all commands."""
        parser = commands.add_parser(
            self.name,
            help=self.summary,
            description=" ".join(self.text.split()) or None,
            aliases=list(self.aliases),
            add_help=self.reads is None,
        )
        parser.set_defaults(run=self.run, reads=self.reads)
        self.options(parser)
