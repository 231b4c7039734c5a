"""`workbench quiz`: the questions of the quiz, for paper, for Moodle, or as a page that keeps the score."""

from __future__ import annotations

from pathlib import Path

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--markdown", action="store_true", help="questions and answers for paper (unless said otherwise)")
    kind.add_argument("--moodle", action="store_true", help="XML that Moodle imports into its question bank")
    kind.add_argument("--html", action="store_true", help="one page that keeps the score and needs no network")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to; printed without it")


def _run(options: Options) -> int:
    from workbench.figures.style import LIGHT
    from workbench.teaching import page, quiz, quiz_formats

    questions = quiz.questions(LIGHT)
    if options.html:
        written = page.page("Quiz", page.quizzed(questions))
    else:
        written = quiz_formats.moodle(questions) if options.moodle else quiz_formats.markdown(questions)
    if options.out is None:
        print(written, end="")
    else:
        options.out.write_text(written, encoding="utf-8")
        print(f"written: {options.out}")
    return 0


QUIZ = Command(
    "quiz",
    "the quiz for paper, for Moodle or as a page",
    "Twenty questions, half of them answered by moving something, with every wrong answer explained.",
    _options,
    _run,
    examples=(("workbench quiz --moodle --out quiz.xml", "the questions for a Moodle course"),),
)
