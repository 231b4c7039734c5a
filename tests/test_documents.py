"""What the documents say is true: README code runs, generated tables are current, every docstring example works."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import runpy
import sys
import tomllib
import types
from pathlib import Path

import pytest

import workbench
from workbench.knobs import Knobbed
from workbench.losses import LOSSES, CrossEntropy

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))


def test_the_python_in_the_readme_runs(tmp_path, monkeypatch):
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
    (tmp_path / "code_of_the_readme.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    ran = importlib.import_module("code_of_the_readme")
    assert abs(workbench.metrics.mean_size(ran.sets) - 2) < 0.2
    assert workbench.metrics.accuracy(ran.sets) > 0.8


def names_of(page: str) -> dict[str, object]:
    """The names that the Python of a page of the guide defines."""
    text = (ROOT / "docs" / "guide" / page).read_text(encoding="utf-8")
    module = types.ModuleType("code_of_the_guide")
    sys.modules[module.__name__] = module  # dataclasses look there for annotations
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)), vars(module))
    return vars(module)


def test_the_python_in_the_guide_about_new_rows_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(names_of("using.md")["sets"].to_frame()) == 5
    assert (tmp_path / "digits.onnx").is_file()
    assert (tmp_path / "digits_bundle" / "bundle.json").is_file()


def test_the_loss_and_the_rule_that_the_guide_defines_work():
    assert issubclass(names_of("losses.md")["Tempered"], CrossEntropy)
    sets = names_of("rules.md")["sets"]
    assert abs(workbench.metrics.coverage(sets) - 0.9) < 0.1


@pytest.mark.parametrize("page", ["losses.md", "rules.md"])
def test_the_tables_of_losses_and_rules_in_the_guide_are_current(page):
    tables = runpy.run_path(str(ROOT / "docs" / "guide_tables.py"))
    text = (ROOT / "docs" / "guide" / page).read_text(encoding="utf-8")
    assert tables["with_current_tables"](page) == text, "run: python docs/guide_tables.py"


def test_every_loss_has_a_docstring_with_a_formula_and_says_where_it_comes_from():
    for loss in LOSSES:
        assert "$$" in loss.__doc__, loss.__name__
        assert loss.paper in loss.__doc__, loss.__name__


def test_changelog_citation_and_package_name_the_same_version():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == workbench.__version__
    assert f"\nversion: {workbench.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version", "readme"]
    assert project["tool"]["hatch"]["version"] == {"path": "workbench/__init__.py"}


def test_every_picture_and_file_the_readme_links_to_is_there():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target


modules = [info.name for info in pkgutil.walk_packages(workbench.__path__, "workbench.") if "__main__" not in info.name]


@pytest.mark.parametrize("module", [name for name in modules if not name.startswith("workbench.app")])
def test_the_examples_in_the_docstrings_run(module):
    assert doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def public_things() -> dict[str, object]:
    """Every class and function that `wb.` offers, by its public name."""
    things = {f"wb.{name}": getattr(workbench, name) for name in workbench.__all__}
    for part in ("metrics", "figures", "operators", "losses", "comparison", "bayes", "crowd_labels"):
        module = getattr(workbench, part)
        own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
        names = getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]
        things |= {f"wb.{part}.{name}": getattr(module, name) for name in names}
    return {name: thing for name, thing in things.items() if callable(thing)}


@pytest.mark.parametrize("name", public_things())
def test_every_parameter_of_a_public_name_is_explained(name):
    thing = public_things()[name]
    text = inspect.getdoc(thing) or ""
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    words |= set(re.findall(r"^ {4}(\w+): ", text, flags=re.MULTILINE))  # Args in Google style
    # A knob says what it means itself: `help` and the reference show that.
    knobs = thing.knobs() if isinstance(thing, type) and issubclass(thing, Knobbed) else ()
    for parameter in inspect.signature(thing).parameters:
        if parameter not in knobs and not parameter.startswith("_"):
            assert parameter in words, f"{name} does not say what `{parameter}` is"


def test_every_public_name_is_known_to_type_checkers():
    """They read the stub, whose imports are also the names at run time, and `__all__` where it is written out."""
    assert {metric.name for metric in workbench.metrics.METRICS} <= set(workbench.metrics.__all__)
    assert {figure.__name__ for figure in workbench.figures.FIGURES} <= set(workbench.figures.__all__)
    assert (Path(workbench.__file__).parent / "py.typed").is_file()
