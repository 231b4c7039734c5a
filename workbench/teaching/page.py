"""A lesson or the quiz as a page: what the app shows, and what is handed out as one file that needs no network."""

from __future__ import annotations

import hashlib
import html
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.figures.browser import PANEL, PANEL_STYLE, PLOTLY, colours, joined
from workbench.figures.film import Film
from workbench.figures.style import LIGHT, Theme
from workbench.teaching.base import Lesson, Question
from workbench.teaching.drawing_page import pad_section

HERE = Path(__file__).parent
STYLE = HERE / "page.css"
PRESENTING = "Large type"


def lesson_content(lesson: Lesson, theme: Theme = LIGHT) -> dict[str, Any]:
    """Everything that a page needs of a lesson, as JSON has it."""
    story = lesson.tell(theme)
    words = {"sight": lesson.sight, "words": story.words, "answer": story.answer, "notebook": deeper(lesson)}
    panels = [panel.spec() for panel in story.panels]
    return _with_id({"lesson": {**words, "question": question_content(story.question), "panels": panels}})


def deeper(lesson: Lesson) -> str:
    """Where to read on."""
    return f"Deeper: `notebooks/{lesson.notebook}.ipynb`, which `make lab` opens."


def quizzed(questions: tuple[Question, ...]) -> dict[str, Any]:
    """Everything that a page needs of a quiz."""
    return _with_id({"quiz": [question_content(question) for question in questions]})


def question_content(question: Question) -> dict[str, Any]:
    """A question as JSON has it."""
    picture = question.picture
    return {
        "text": question.text,
        "choices": [asdict(choice) for choice in question.choices],
        "target": asdict(question.target) if question.target else None,
        "picture": picture
        and {
            **Film(picture.figures[0], picture.moves, text=picture.text).spec(),
            "slider": asdict(picture.slider) if picture.slider else None,
            "captions": picture.captions,
            "secret": picture.secret,
        },
    }


def style(theme: Theme = LIGHT, selector: str = ".wb-lesson") -> str:
    """The style sheet in the colours of a theme, declared for what `selector` names."""
    return f"{colours(theme, selector)}\n{joined((PANEL_STYLE, STYLE))}"


def script() -> str:
    """The script that shows a lesson or a quiz, as a module."""
    return joined((*PANEL, HERE / "tokens.js", HERE / "page.js"))


def page(title: str, parts: dict[str, Any], theme: Theme = LIGHT, *, drawing_pad: bool = False) -> str:
    """One HTML file that holds a lesson or a quiz with all it needs: script, style, numbers and plotly.js, once.

    With `drawing_pad`, the pad to draw symbols on stands below.
    """
    shown = script().replace("export default function", "function show", 1)
    data = json.dumps(parts, ensure_ascii=False).replace("</", "<\\/")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title>
<style>
body {{ margin: 0 auto; padding: 1.5rem; max-width: 76rem; font-family: system-ui, sans-serif; }}
body {{ background: {theme.paper}; color: {theme.ink}; }}
#large {{ float: right; font: inherit; }}
{style(theme)}
</style>
<script>{PLOTLY.read_text(encoding="utf-8")}</script>
</head>
<body>
<button id="large" aria-pressed="false">{PRESENTING}</button>
<h1>{html.escape(title)}</h1>
<main id="page"></main>
<script type="module">
{shown}
show({{ data: {data}, parentElement: document.getElementById("page") }});
const large = document.getElementById("large");
large.addEventListener("click", () => {{
  const on = document.querySelector(".wb-lesson").classList.toggle("wb-present");
  large.setAttribute("aria-pressed", on);
  dispatchEvent(new Event("resize"));
}});
</script>
{pad_section(theme) if drawing_pad else ""}
</body>
</html>
"""


def text(lesson: Lesson) -> str:
    """A lesson as plain text: everything that a person reads who answers it and moves its slider to both ends."""
    story = lesson.tell(LIGHT)
    question = story.question
    lines = [lesson.title, "", lesson.sight, *story.words, f"Predict first: {question.text}"]
    for choice in question.choices:
        lines.append(f"  ({'right' if choice.right else 'wrong'}) {choice.text}: {choice.why}")
    if question.target:
        lines.append(f"  {question.target.within}")
        lines += [f"  Too low: {question.target.below}", f"  Too high: {question.target.above}"]
    if question.picture:
        lines += [f"Picture: {question.picture.text}", *_some(question.picture.captions)]
    to_play = [words for panel in story.panels for words in panel.about]
    return "\n".join([*lines, *story.answer, *to_play, deeper(lesson)]).replace("*", "") + "\n"


def _some(captions: tuple[str, ...]) -> list[str]:
    """The captions at both ends of a slider and in the middle."""
    last = len(captions) - 1
    return [f"  {captions[place]}" for place in sorted({0, last // 2, last})] if captions else []


def _with_id(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts and a name for their content."""
    return {**parts, "id": hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}
