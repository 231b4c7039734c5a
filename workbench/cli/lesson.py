"""`workbench lesson`: the lessons, to read in a terminal or to hand out as pages that need no network."""

from __future__ import annotations

from pathlib import Path

from workbench.cli.base import Command, Options, Parser


def _options(parser: Parser) -> None:
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="which lesson; all are listed without it")
    parser.add_argument("--html", action="store_true", help="write it as one page with its slider")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to; lesson_N_….html in this folder without it")


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
    out = options.out or Path(f"lesson_{options.number}_{lesson.name}.html")
    out.write_text(page.page(f"{options.number} · {lesson.title}", page.told(lesson)), encoding="utf-8")
    print(f"written: {out}")
    return 0


LESSON = Command(
    "lesson",
    "read a lesson, or hand it out as a page",
    "Ten lessons of two minutes. As a page a lesson asks first, has its slider, and needs no server and no network.",
    _options,
    _run,
    examples=(("workbench lesson 3 --html", "a lesson as one page to hand out"),),
)
