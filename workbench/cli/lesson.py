"""`workbench lesson`: the lessons, to read in a terminal or to hand out as pages that need no network."""

from __future__ import annotations

from pathlib import Path

from workbench.cli.base import Command, Options, Parser, deliver


def _options(parser: Parser) -> None:
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="number of the lesson (default: list all)")
    parser.add_argument("--html", action="store_true", help="write it as one page with its slider")
    parser.add_argument("--output", type=Path, metavar="FILE", help="file to write (default: lesson_N_….html)")


def _run(options: Options) -> int:
    from workbench.teaching import page
    from workbench.teaching.lessons import LESSONS

    if options.number is None:
        for number, lesson in enumerate(LESSONS, start=1):
            print(f"{number:>2}  {lesson.title}: {lesson.sight}")
        return 0
    if not 1 <= options.number <= len(LESSONS):
        raise ValueError(f"there is no lesson {options.number}; give a number from 1 to {len(LESSONS)}")
    lesson = LESSONS[options.number - 1]
    if not options.html:
        print(page.text(lesson), end="")
        return 0
    output = options.output or Path(f"lesson_{options.number}_{lesson.name}.html")
    written = page.page(
        f"{options.number} · {lesson.title}", page.lesson_content(lesson), drawing_pad=lesson.drawing_pad
    )
    return deliver(written, output)


LESSON = Command(
    "lesson",
    "print a lesson, or write it as a web page",
    "Print one of ten short lessons, or write it as a web page with its question and its slider. The page needs no server and "
    "no network.",
    _options,
    _run,
    examples=(("workbench lesson 3 --html", "a lesson as one web page"),),
)
