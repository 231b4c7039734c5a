"""Files that others read or run: workflows, container, Binder, citation, the paper. Checked as far as no engine is needed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from workbench.cli.main import build_parser

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
DOCKERFILE = [line.split(maxsplit=1) for line in (ROOT / "Dockerfile").read_text().splitlines() if line[:1].isupper()]


def arguments(instruction: str) -> list[str]:
    """The arguments of every such instruction of the Dockerfile."""
    return [rest for name, rest in DOCKERFILE if name == instruction]


def test_the_workflow_tests_the_pythons_that_the_package_declares():
    declared = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    matrix = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == declared
    assert matrix["versions"] == ["constraints", "lowest"]
    assert PROJECT["requires-python"] == f">={declared[0]}"


def test_every_make_target_and_extra_that_a_release_file_names_exists():
    commands = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
    commands += [*arguments("RUN"), (ROOT / ".binder" / "postBuild").read_text()]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for command in commands:
        assert set(re.findall(r"\bmake ([a-z-]+)", command)) <= targets, command
        for extras in re.findall(r"\[([a-z]+(?:,[a-z]+)*)\]", command):
            assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"]), command


def test_the_container_copies_files_that_exist_and_that_the_build_context_holds():
    context = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for copied in arguments("COPY"):
        if "--from" not in copied:
            for source in copied.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source in context, source


def test_the_container_runs_as_a_user_and_serves_the_port_it_exposes():
    assert arguments("USER")[-1] == "user"
    program, *rest = json.loads(arguments("CMD")[-1])
    options = build_parser().parse_args(rest)
    assert program in PROJECT["scripts"]
    assert [str(options.port)] == arguments("EXPOSE")
    assert (options.host, options.headless) == ("0.0.0.0", True)
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert yaml.safe_load(re.search(r"---\n(.*?)---", page, flags=re.DOTALL)[1])["app_port"] == options.port


def test_only_the_full_container_installs_torch():
    stages = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)[1:]
    installs = {stage.split()[2]: re.findall(r"\[([\w,]+)\]\"", stage) for stage in stages}
    assert installs == {"build": [], "reader": ["app"], "full": ["app,train,export"]}


def test_the_script_for_binder_is_executable_and_parses():
    script = ROOT / ".binder" / "postBuild"
    assert os.access(script, os.X_OK)
    subprocess.run(shlex.split(f"bash -n {script}"), check=True)


def test_the_citation_names_each_paper_with_where_and_when_it_was_published():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(citation)
    for paper in citation["references"]:
        assert {"title", "authors", "year"} <= set(paper)
        assert "collection-title" in paper or "institution" in paper


def test_the_paper_has_the_sections_that_joss_asks_for_and_cites_only_what_it_lists():
    text = (ROOT / "paper.md").read_text(encoding="utf-8")
    _, header, body = text.split("---\n", 2)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(yaml.safe_load(header))
    for section in ("Summary", "Statement of need", "State of the field", "Software design", "References"):
        assert f"# {section}\n" in body
    entries = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(re.findall(r"@(\w+)", body)) == set(entries)
    assert len(body.split()) < 1000
