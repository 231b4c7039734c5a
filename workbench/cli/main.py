"""`workbench COMMAND …`: find and run the command; print errors as one line and return an exit code."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence

from workbench import __version__
from workbench.cli import COMMANDS
from workbench.optional_dependencies import with_install_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 when it worked and 2 when the input was wrong."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "" not in sys.path:  # a module such as that of --loss my_module:Mine is found in the current folder
        sys.path.append("")
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.reads is None:
        parser.error(f"{rest[0]} is not understood here; workbench {options.name} --help lists the options")
    try:
        with _warnings_in_words():
            code: int = options.run(options) if options.reads is None else options.reads(rest)
            sys.stdout.flush()
            return code
    except ModuleNotFoundError as error:
        if (message := with_install_command(error)) is error:
            raise
        print(f"workbench: {message}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the pipe, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        print(f"workbench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        if str(interrupt):
            print(f"workbench: {interrupt}", file=sys.stderr)
        return 130


@contextlib.contextmanager
def _warnings_in_words() -> Iterator[None]:
    """Print a warning as one line, without its place in the source."""
    formatted = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"workbench: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = formatted


def build_parser() -> argparse.ArgumentParser:
    examples = [example for command in COMMANDS for example in command.examples]
    parser = argparse.ArgumentParser(
        prog="workbench",
        description="A workbench for set-valued classification: classifiers that answer with a set of classes.",
        epilog="\n".join(["examples:", *(f"  {typed:<50} {does}".rstrip() for typed, does in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"workbench {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="name")
    for command in COMMANDS:
        command.add_to(commands)
    return parser
