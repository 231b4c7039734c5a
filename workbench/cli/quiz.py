"""`workbench quiz`: the questions of the quiz, for paper, for Moodle, or as a page that keeps the score."""

from __future__ import annotations

from pathlib import Path

from workbench.cli.base import Command, Options, Parser, deliver


def _options(parser: Parser) -> None:
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--markdown", action="store_true", help="questions and answers for paper (default)")
    kind.add_argument("--moodle", action="store_true", help="XML that Moodle imports into its question bank")
    kind.add_argument("--html", action="store_true", help="one page that keeps the score and needs no network")
    parser.add_argument("--output", type=Path, metavar="FILE", help="file to write (default: print)")


def _run(options: Options) -> int:
    from workbench.figures.style import LIGHT
    from workbench.teaching import page, quiz, quiz_formats

    questions = quiz.questions(LIGHT)
    if options.html:
        written = page.page("Quiz", page.quizzed(questions))
    else:
        written = quiz_formats.moodle(questions) if options.moodle else quiz_formats.markdown(questions)
    return deliver(written, options.output)


QUIZ = Command(
    "quiz",
    "write the quiz for paper, Moodle or as a web page",
    "Write the twenty questions of the quiz with their answers. Every wrong answer is explained, and half of the questions are "
    "answered by moving a slider.",
    _options,
    _run,
    examples=(("workbench quiz --moodle --output quiz.xml", "the questions for a Moodle course"),),
)
