"""The static site: lessons, quiz, drawing pad, losses and the demo's views, as files that need no server and no network."""

from __future__ import annotations

import base64
import html
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import glossary
from workbench.figures.browser import PLOTLY
from workbench.figures.style import LIGHT
from workbench.teaching import choosing, drawing_page, page
from workbench.teaching.lessons import LESSONS

if TYPE_CHECKING:
    from workbench.losses import Loss
    from workbench.teaching.panels import Panel

HERE = Path(__file__).parent
DOCS = Path(__file__).resolve().parents[2] / "docs"  # of a clone; a wheel has none
GUIDE = "guide"
NO_GUIDE = "The user guide and the reference need a clone of the repository with `pip install '.[docs]'`."
PAD = '<iframe src="draw.html#alone" title="Draw a symbol" loading="lazy" class="pad"></iframe>'
KEYS = "one idea a screen; Page Down turns the page, R answers, Escape leaves"
PRESENT = f'<p class="present"><a href="?present">Present</a> {KEYS}</p>'
TITLE = "Set-valued classification"
PARTS = {
    "index": "Start",
    "quiz": "Quiz",
    "draw": "Draw",
    "losses": "Losses",
    "sets": "Sets",
    "classes": "Classes",
    "calibration": "Calibration",
    "choosing": "Which one?",
    "words": "Words",
}
ABOUT = {
    "quiz": "Twenty questions; the page keeps the score.",
    "draw": "Draw a symbol and see which of 378 it may be.",
    "losses": "What each loss rewards, on the triangle of three scores, with its knobs.",
    "sets": "The demo: 3 000 photographs, K, threshold and promised coverage.",
    "classes": "The demo: which classes are missed, and which share their sets.",
    "calibration": "The demo: is the confidence right, before and after a temperature?",
    "choosing": "Which rule, which loss, when: two small decision trees with the numbers behind them.",
    "words": "Symbols, words and names in the code.",
}


@dataclass(frozen=True)
class SitePage:
    """A page of the site: its file is `NAME.html`; `write` computes its HTML."""

    name: str
    write: Callable[[], str]


def pages() -> Iterator[SitePage]:
    """Every page of the site, in the order of its contents."""
    from workbench.losses import LOSSES
    from workbench.teaching import panels

    yield SitePage("index", _index)
    for number, _ in enumerate(LESSONS, start=1):
        yield SitePage(f"lesson_{number}", partial(_lesson, number))
    yield SitePage("quiz", _quiz)
    yield SitePage("draw", lambda: _document("Draw", drawing_page.pad_section(LIGHT), "draw"))
    yield SitePage("losses", _losses)
    for kind in LOSSES:
        yield SitePage(f"loss_{kind.__name__}", partial(_panel, kind.title, partial(panels.loss, kind), "losses"))
    for name, make in {"sets": panels.sets, "classes": panels.classes, "calibration": panels.calibration}.items():
        yield SitePage(name, partial(_panel, PARTS[name], make, name))
    yield SitePage("choosing", lambda: _document(choosing.TITLE, choosing.page(), "choosing"))
    yield SitePage("words", _words)


def write(folder: Path, *, only: Collection[str] | None = None, guide: bool = True) -> list[Path]:
    """Write the site into a folder.

    Args:
        folder: The folder, made if it is not there.
        only: Names of pages; all without it.
        guide: Whether to build the user guide and the reference, where their sources are.

    Returns:
        The files of the pages.

    Raises:
        ValueError: A name in `only` is no page.
    """
    wanted = {each.name: each for each in pages()}
    if unknown := set(only or ()) - set(wanted):
        raise ValueError(f"no page {sorted(unknown)}; give some of {list(wanted)}")
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    for name, text in _assets().items():
        (folder / "assets" / name).write_text(text, encoding="utf-8")
    written = []
    for name in wanted if only is None else only:
        written.append(folder / f"{name}.html")
        written[-1].write_text(wanted[name].write(), encoding="utf-8")
    if guide and has_guide():
        _build_guide(folder / GUIDE)
    return written


def _build_guide(folder: Path) -> None:
    """Build guide and reference, without what no page of them reads: source maps, languages of the search, pictures."""
    build = [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(folder.resolve())]
    subprocess.run(build, cwd=DOCS, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    for file in [*folder.rglob("*.map"), *folder.rglob("lunr/**/*.js")]:
        file.unlink()
    for bundle in folder.glob("assets/javascripts/bundle.*.js"):
        # The search index is there twice: as a script for pages opened from a file, as JSON for a server. The script does both.
        text = bundle.read_text(encoding="utf-8")
        script_only, found = re.subn(r'location\.protocol==="file:"\?(?=\w+\(`\$\{new URL\("search/)', "true?", text)
        if found:
            bundle.write_text(script_only, encoding="utf-8")
            (folder / "search" / "search_index.json").unlink()
    for file in folder.rglob("*.html"):
        file.write_text(unindented(file.read_text(encoding="utf-8")), encoding="utf-8")
    read = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.html"))
    for picture in [*folder.glob("*.png"), *folder.glob("*.webp")]:
        if picture.name not in read:
            picture.unlink()


def unindented(page: str) -> str:
    """A page without the white space at both ends of its lines; code and scripts stay as they are.

    >>> unindented("<p>\\n   a  \\n</p><pre>  b\\n</pre>")
    '<p>\\na\\n</p><pre>  b\\n</pre>'
    """
    parts = re.split(r"(<pre\b.*?</pre>|<script\b.*?</script>)", page, flags=re.DOTALL)
    parts[::2] = [re.sub(r"\s*\n\s*", "\n", part) for part in parts[::2]]
    return "".join(parts)


def has_guide() -> bool:
    """Whether the user guide and the reference can be built: their sources and mkdocs are there."""
    return (DOCS / "mkdocs.yml").exists() and find_spec("mkdocs") is not None


def _assets() -> dict[str, str]:
    """The files that all pages share. Scripts are no modules: a browser loads none from a file."""
    script = page.script().replace("export default function", "function show", 1)
    style = f"{page.style(selector=':root')}\n{(HERE / 'site.css').read_text(encoding='utf-8')}"
    return {"plotly.js": PLOTLY.read_text(encoding="utf-8"), "page.js": script, "page.css": style}


def _index() -> str:
    lessons = "".join(
        f'<li><a href="lesson_{number}.html">{html.escape(lesson.title)}</a><p>{html.escape(lesson.sight)}</p></li>'
        for number, lesson in enumerate(LESSONS, start=1)
    )
    others = "".join(
        f'<li><a href="{name}.html">{PARTS[name]}</a><p>{html.escape(about)}</p></li>' for name, about in ABOUT.items()
    )
    body = f"""<p class="lead">A classifier that may answer with a <em>set</em> of classes: one where the input is clear, several
where it is ambiguous. Each lesson asks, you guess, then you move a slider and see.</p>
<h2>Ten lessons of two minutes</h2><ol class="cards">{lessons}</ol>
<h2>Look for yourself</h2><ul class="cards">{others}</ul>
<p class="note">Every page is a file: it opens without a server and fetches nothing. Below each picture stands the line
that embeds it elsewhere.</p>"""
    return _document(TITLE, body, "index")


def _lesson(number: int) -> str:
    lesson = LESSONS[number - 1]
    before = f'<a href="lesson_{number - 1}.html">← {html.escape(LESSONS[number - 2].title)}</a>' if number > 1 else ""
    after = '<a href="quiz.html">Quiz →</a>'
    if number < len(LESSONS):
        after = f'<a href="lesson_{number + 1}.html">{html.escape(LESSONS[number].title)} →</a>'
    turn = (
        f'{PAD if lesson.drawing_pad else ""}<nav class="turn" aria-label="Lessons">{before}<span></span>{after}</nav>'
    )
    return _document(f"{number} · {lesson.title}", PRESENT + _shown(page.lesson_content(lesson)) + turn, "index")


def _quiz() -> str:
    from workbench.teaching import quiz

    return _document("Quiz", _shown(page.quizzed(quiz.questions(LIGHT))), "quiz")


def _panel(title: str, make: Callable[[], Panel], part: str) -> str:
    return _document(title, _shown({"panel": make().spec(), "id": title}), part)


def _losses() -> str:
    from workbench.losses import LOSSES

    cards = "".join(
        f'<li><a href="loss_{kind.__name__}.html"><img src="{_thumbnail(kind)}" alt="" width="150" height="140">'
        f"{html.escape(kind.title)}</a></li>"
        for kind in LOSSES
    )
    lead = (
        "Three scores add up to 2; the label is the class at the top. Pale is a low loss, dark a high one. Open a loss to move "
        "its knobs."
    )
    return _document("What each loss rewards", f'<p class="lead">{lead}</p><ul class="gallery">{cards}</ul>', "losses")


def _thumbnail(kind: type[Loss]) -> str:
    """The level sets of a loss as a small picture in an address."""
    import workbench as wb
    from workbench.figures.base import paper
    from workbench.figures.losses.evaluation import on_three_classes
    from workbench.figures.losses.ternary import draw_on

    figure = paper(1.5, 1.4)
    draw_on(figure.subplots(), wb.figures.level_sets(on_three_classes(kind), steps=41), LIGHT, named=False)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, transparent=True)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"


def _words() -> str:
    lines = "".join(
        f"<tr><th scope='row'>{html.escape(term.word)}</th><td>{html.escape(term.symbol)}</td>"
        f"<td>{f'<code>{html.escape(term.name)}</code>' if term.name else ''}</td><td>{html.escape(term.meaning)}</td></tr>"
        for term in glossary.TERMS
    )
    head = "<tr><th>word</th><th>on paper</th><th>in the code</th><th>meaning</th></tr>"
    return _document("Words and symbols", f"<table><thead>{head}</thead><tbody>{lines}</tbody></table>", "words")


def _shown(parts: dict[str, Any]) -> str:
    """The script that shows a lesson, a quiz or a panel; a `#name` in the address shows one picture of it alone."""
    data = json.dumps(parts, ensure_ascii=False).replace("</", "<\\/")
    script = (HERE / "site.js").read_text(encoding="utf-8")
    return f"""<main id="page"></main>
<script src="assets/page.js"></script>
<script>
const data = {data};
{script}</script>
"""


def _header(part: str) -> str:
    """The links between the parts of the site."""
    links = [
        f'<a href="{name}.html"{" aria-current=page" if name == part else ""}>{title}</a>'
        for name, title in PARTS.items()
    ]
    links += [f'<a href="{GUIDE}/index.html">Guide</a>'] if has_guide() else []
    return f'<header class="site"><nav aria-label="Site">{"".join(links)}</nav></header>'


def _document(title: str, body: str, part: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title>
<link rel="stylesheet" href="assets/page.css">
</head>
<body class="wb-site">
{_header(part)}
<h1>{html.escape(title)}</h1>
<script>document.body.classList.toggle("wb-only", location.hash.length > 1)</script>
{body}
</body>
</html>
"""
