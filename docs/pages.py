"""Pages of the site that are made, not written: README, glossary and changes as they stand, the catalogue of losses, rules and
metrics from their declarations, and one page of reference for every package. A hook of mkdocs (`make docs`)."""

from __future__ import annotations

import ast
import html
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs runs a hook from its file alone
from examples import fenced

import workbench as wb
from workbench.losses import LOSSES
from workbench.sets import RULES

ROOT = Path(__file__).resolve().parents[1]
# Documents of the repository → pages of the site.
DOCUMENTS = {
    "README.md": "index.md",
    "docs/glossary.md": "glossary.md",
    "docs/claims.md": "claims.md",
    "docs/epsilon.md": "epsilon.md",
    "docs/scale.md": "scale.md",
    "docs/deploy.md": "deploy.md",
    "docs/promises.md": "promises.md",
    "docs/sinkhorn.md": "sinkhorn.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Adds what is made to what is written."""
    for document, page in DOCUMENTS.items():
        text = (ROOT / document).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_linked(text, Path(document).parent)))
    for picture in (
        found for pattern in ("*.png", "*.webp", "claims/*.png") for found in (ROOT / "docs").glob(pattern)
    ):
        files.append(File.generated(config, picture.name, abs_src_path=str(picture)))
    files.append(File.generated(config, "catalogue.md", content=_catalogue()))
    packages = _packages()
    for package, doc in packages.items():
        files.append(File.generated(config, f"reference/{package}.md", content=_reference(package, doc)))
    lines = [f"- [`workbench.{package}`](reference/{package}.md): {doc}" for package, doc in packages.items()]
    files.append(File.generated(config, "reference.md", content="# Reference\n\n" + "\n".join(lines) + "\n"))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links of the guide to documents beside its folder, which are pages beside it on the site."""
    return markdown.replace("](../", "](")


def on_page_content(content: str, **_: Any) -> str:
    """Formulas become MathML, which browsers draw by themselves."""
    content = re.sub(
        r'<span class="arithmatex">\\\((.*?)\\\)</span>', lambda m: _drawn(m[1], "inline"), content, flags=re.S
    )
    return re.sub(
        r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', lambda m: _drawn(m[1], "block"), content, flags=re.S
    )


def _drawn(formula: str, display: str) -> str:
    # Few fonts have the sign of set difference.
    return convert(html.unescape(formula).strip().replace(r"\setminus", r"\backslash"), display=display)


def _linked(text: str, folder: Path) -> str:
    """Links of a document of the repository as links between pages; what is no page is named without a link."""

    def moved(match: re.Match[str]) -> str:
        before, target = match[1], match[2]
        if target.startswith(("http", "#")):
            return match[0]
        inside = (folder / target).as_posix()
        if inside in DOCUMENTS:
            return f"{before}({DOCUMENTS[inside]})"
        if inside.startswith("docs/guide/"):
            return f"{before}({inside.removeprefix('docs/guide/')})"
        return f"{before}({Path(inside).name})" if inside.endswith((".png", ".webp")) else before.lstrip("!")[1:-1]

    return re.sub(r"(!?\[[^\]]*\])\(([^)\s]+)\)", moved, text)


def _catalogue() -> str:
    """Every loss, rule and metric in the words of its declaration."""
    parts = ["# Losses, rules, metrics\n", "## Losses\n"]
    for loss in LOSSES:
        parts += [
            f"### {loss.title}\n",
            f"`{loss.__name__}` · {loss.paper}, {loss.equation}\n",
            inspect.getdoc(loss) or "",
        ]
    parts.append("\n## Rules\n")
    for rule in RULES:
        parts += [f"### {rule.title}\n", f"`{rule.__name__}` · {rule.formulation}\n", inspect.getdoc(rule) or ""]
    parts.append("\n## Metrics\n")
    for metric in wb.metrics.METRICS:
        parts += [f"### {metric.title}\n", f"`{metric.name}`\n", metric.definition]
    return "\n".join(fenced(part) for part in parts) + "\n"


def _packages() -> dict[str, str]:
    """Every package and module right below `workbench`, with the first line of its docstring."""
    found = {}
    for info in pkgutil.iter_modules(wb.__path__):
        if info.name in ("__main__", "app"):
            continue
        file = Path(wb.__path__[0]) / info.name
        source = (file / "__init__.py" if info.ispkg else file.with_suffix(".py")).read_text(encoding="utf-8")
        found[info.name] = re.sub(r'^"""|"""$', "", source.splitlines()[0])
    return found


def _reference(package: str, doc: str) -> str:
    """All modules of a package, one after the other."""
    folder = Path(wb.__path__[0]) / package
    if not folder.is_dir():
        return f"# workbench.{package}\n\n{doc}\n\n::: workbench.{package}\n"
    modules = [
        "workbench." + ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        for path in sorted(folder.rglob("*.py"))
        if not path.name.startswith("__")
    ]
    parts = [f"# workbench.{package}", doc]
    for file in sorted(folder.rglob("__init__.py")):
        if own := _defined(file):  # what it only collects is described where it lives
            name = ".".join(file.parent.relative_to(folder.parent).parts)
            parts.append(f"::: workbench.{name}\n    options: {{members: [{', '.join(own)}]}}")
    return "\n\n".join([*parts, *(f"::: {module}" for module in modules)]) + "\n"


def _defined(file: Path) -> list[str]:
    """The public functions and classes that a file itself defines."""
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"]
