"""The user guide and the reference: built without a warning, whole, and read without a network."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the documentation is built where its extra is installed: pip install '.[docs]'")

import workbench as wb
from workbench.sets import RULES

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    build = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT / "docs", env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def test_every_loss_rule_and_metric_is_in_the_catalogue(pages):
    for declared in (*wb.losses.LOSSES, *RULES):
        assert f"<code>{declared.__name__}</code>" in pages["catalogue.html"]
    for metric in wb.metrics.METRICS:
        assert f"<code>{metric.name}</code>" in pages["catalogue.html"]


def test_every_public_name_is_in_the_reference(pages):
    anchors = set(re.findall(r'id="(workbench[\w.]*)"', "".join(pages.values())))
    for name in wb.__all__:
        thing = getattr(wb, name)
        if inspect.ismodule(thing):
            assert thing.__name__ in anchors or f"reference/{name}.html" in pages, name
        else:
            assert f"{thing.__module__}.{thing.__name__}" in anchors, name


def test_nothing_is_described_twice(pages):
    for name, page in pages.items():
        anchors = re.findall(r'id="(workbench[\w.]*)"', page)
        assert len(anchors) == len(set(anchors)), name


def test_no_page_fetches_anything_from_another_host(site, pages):
    for name, page in pages.items():
        for element in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page):
            assert not re.search(r'(?:src|href)="?(?:https?:)?//', element), f"{name}: {element}"
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_every_formula_is_drawn(pages):
    for name, page in pages.items():
        text = re.sub(r"<(pre|code|annotation)\b.*?</\1>", "", page, flags=re.DOTALL)
        assert "arithmatex" not in text, name
        assert not re.search(r"\$\$|\\(?:frac|sum|mathrm|mathbb|ell|begin)\b", text), name
    assert pages["catalogue.html"].count("<math") > len(wb.losses.LOSSES)
