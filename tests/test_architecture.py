"""The house as a table: which folder may use which, held against what is really loaded, and what `import workbench` costs."""

from __future__ import annotations

import ast
import functools
import graphlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import workbench

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workbench"

SHARED = {
    "knobs",
    "knob_kinds",
    "metric_spec",
    "glossary",
    "citations",
    "class_counts",
    "exact_arithmetic",
    "gradient_sparsity",
    "posterior_mass",
    "row_sampling",
    "validation",
    "warning_capture",
    "progress",
    "optional_dependencies",
    "trusted_imports",
    "html_repr",
    "schedules",
    "display_names",
    "untrusted_files",
}  # words that every stage uses
READING = {"tables", "store", "sets", "calibration", "metrics"}
# Folder (or module) → the other folders it may use. Data flows one way: what reads tables knows nothing of what writes them.
MAY_USE: dict[str, set[str]] = {
    "operators": set(),
    "files": set(),
    "losses": {"operators"},
    "drawings": {"tables"},
    "datasets": {"tables", "files", "drawings"},
    "networks": {"losses", "drawings"},  # drawings: the published network, when it is made
    "tables": {"files"},
    "runs": {"losses", "networks", "datasets"},
    "store": {"files", "tables", "losses", "runs"},
    "cluster": {"tables"},
    "sets": {"tables", "files", "cluster"},  # cluster: where a client is given
    "calibration": {"tables", "cluster", "sets"},  # sets: a temperature for small ones
    "metrics": {"tables", "store", "sets", "calibration", "losses"},
    "figures": {*READING, "losses", "operators", "drawings"},  # losses: the figures of losses, when they are drawn
    "training": {
        *READING,
        "files",
        "cluster",
        "operators",
        "losses",
        "datasets",
        "networks",
        "runs",
    },
    "workers": {*READING, "files", "losses", "datasets", "networks", "runs", "training"},
    "claims": {*READING, "files", "operators", "losses", "datasets", "runs", "training", "figures"},
    "data_description": {"tables", "sets", "datasets", "figures"},
    "estimators": {"tables", "sets", "metrics"},
    "teaching": {*READING, "losses", "operators", "datasets", "drawings", "figures", "app_server"},
    "app_balancer": set(),
    "app_server": {*READING, "training", "app_balancer"},
    "cli": {
        *READING,
        "files",
        "losses",
        "datasets",
        "networks",
        "runs",
        "training",
        "workers",
        "figures",
        "app_server",
        "claims",
        "cluster",
        "teaching",
        "data_description",
    },
}
# What is used, stage after stage, in one process: after each stage only these folders, and none of these packages, are there.
FLOW = (
    ("tables", "table = wb.LogitTable(scores, scores.argmax(1)); val, test = table.split(); val.save(folder + '/val')"),
    ("sets", "sets = wb.AverageK(2).fit(val)(test); wb.LAC(0.9).fit(val)(test).sizes; wb.SetIndex(val).threshold(2)"),
    ("calibration", "wb.TemperatureScaling().fit(val)(test)"),
    ("metrics", "wb.report(test, [wb.TopK(1), wb.AverageK(2)], val=val); wb.comparison, wb.bayes, wb.crowd_labels"),
    (
        "figures",
        "wb.figures.set_sizes(sets).plot(); wb.figures.reliability(test).static(); wb.figures.explore(val, test)",
    ),
)
TITLED = {"losses", "networks"}  # display names read their declarations
HEAVY = {"torch", "sklearn", "streamlit", "jupyterlab"}


@functools.cache
def parts() -> dict[str, list[Path]]:
    """Folder or module right below `workbench` → its files."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        found.setdefault(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), []).append(path)
    return {name: files for name, files in found.items() if name not in {"__init__", "__main__", "demo", "app"}}


@functools.cache
def used(path: Path) -> set[str]:
    """The parts of the workbench that a file imports anywhere but for type checkers."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("workbench."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "workbench":
            inside = str(node.module).split(".")[1:]
            found.update(inside[:1] or [alias.name for alias in node.names])
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def loaded_after(stages: tuple[tuple[str, str], ...], folder: Path, path: str = "") -> dict[str, list[str]]:
    """Names of the modules that are there after each stage, in a process of its own."""
    code = ["import json, sys", "import numpy as np", "import workbench as wb"]
    code += [f"sys.path.insert(0, {path!r})"] if path else []
    code += ["scores = np.random.default_rng(0).normal(size=(80, 5))", f"folder = {str(folder)!r}", "loaded = {}"]
    for stage, line in stages:
        code += [line, f"loaded[{stage!r}] = sorted(sys.modules)"]
    code.append("print(json.dumps(loaded))")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", "\n".join(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("part", parts())
def test_a_folder_uses_only_what_the_table_says(part):
    if part in SHARED:
        allowed = SHARED | {"tables", "sets", "store", "losses", "networks"}  # cards and display names look things up
    else:
        assert part in MAY_USE, f"{part} is new: say in the table what it may use"
        allowed = SHARED | MAY_USE[part] | {part, "__version__"}
    for path in parts()[part]:
        assert used(path) <= allowed, path.relative_to(ROOT)


def test_no_folder_of_the_library_leads_back_to_itself():
    folders = {part: files for part, files in parts().items() if (PACKAGE / part).is_dir()}
    graph = {
        part: {name for path in files for name in used(path)} & folders.keys() - {part}
        for part, files in folders.items()
    }
    assert list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError and names the cycle


def test_the_reading_half_loads_no_network_no_training_and_no_dataset(tmp_path):
    seen: set[str] = set()
    for stage, names in loaded_after(FLOW, tmp_path).items():
        seen.add(stage)
        folders = {name.split(".")[1] for name in names if name.startswith("workbench.")} - SHARED
        assert folders <= seen | {"files", "store"} | TITLED, stage
        assert not {name.split(".")[0] for name in names} & HEAVY, stage


DECLARATIONS = (
    ("losses", "wb.losses.NoisedTopK(K=3).calibrated, wb.losses.LOSSES[0].knobs()"),
    ("networks", "from workbench.networks import BACKBONES; BACKBONES['cnn'].title"),
    (
        "runs",
        "run = wb.Run('letters', model='mlp', loss=wb.losses.ROLE(K=2.0)); run.to_json(), run.key, run.monitors",
    ),
    ("recipes", "wb.recipes.RECIPES['plantnet300k-resnet18'].run('letters', K=3)"),
    ("grid", "from workbench.runs import grid; grid.runs_in(run, grid.every_setting({'seed': range(2)}))"),
    (
        "commands",
        "import contextlib, io\n"
        "from workbench.cli.main import main\n"
        "for words in (['--version'], ['losses'], ['recipes'], ['train', '--help'], ['sweep', '--help']):\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main(words)",
    ),
)


def test_losses_backbones_recipes_runs_and_the_help_of_commands_need_no_torch(tmp_path):
    for stage, names in loaded_after(DECLARATIONS, tmp_path).items():
        assert not {name.split(".")[0] for name in names} & HEAVY, stage
        assert "workbench.training" not in names, stage
        assert "workbench.operators" not in names, stage


def test_the_app_loads_no_torch_and_no_training_for_any_view_of_sets():
    views = [path.stem for path in sorted((ROOT / "app" / "views").iterdir()) if not path.name.startswith("__")]
    stages = tuple((view, f"import views.{view}") for view in views)
    for view, names in loaded_after(stages, ROOT, str(ROOT / "app")).items():
        assert not {name.split(".")[0] for name in names} & (HEAVY - {"streamlit"}), view
        assert not {name.split(".")[1] for name in names if name.startswith("workbench.")} & {"training"}, view


def app_modules() -> dict[str, set[str]]:
    """Module of the app → the modules of the app that it imports anywhere, inside functions too."""
    app = ROOT / "app"
    names = {}
    for path in app.rglob("*.py"):
        names[".".join(path.relative_to(app).with_suffix("").parts).removesuffix(".__init__")] = path
    found: dict[str, set[str]] = {}
    for name, path in names.items():
        imported: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        found[name] = {other for other in imported if other in names and other != name}
    return found


def test_no_module_of_the_app_leads_back_to_itself():
    assert list(graphlib.TopologicalSorter(app_modules()).static_order())  # raises CycleError and names the cycle


# Folder of the app → the others it may use: what is chosen and kept, how it is chosen, what is drawn, whole pages.
APP_MAY_USE = {
    "streamlit_patches": set(),
    "session": {"streamlit_patches"},
    "live": {"session"},
    "controls": {"session", "live"},
    "drawing": {"session", "live", "controls"},
    "views": {"session", "live", "controls", "drawing"},
    "pages": {"session", "views"},
    "serve": {"session", "views", "streamlit_patches"},
    "main": {"session", "controls", "drawing", "pages"},
}


def test_a_folder_of_the_app_uses_only_what_the_table_says():
    for name, imported in app_modules().items():
        folder = name.split(".")[0]
        others = {other.split(".")[0] for other in imported} - {folder}
        assert others <= APP_MAY_USE[folder], name


# The whole app on the demo runs, each page as its address asks for it; no worker is started, and nothing is made ahead.
PAGES_DRAWN = """
import json, sys
sys.path.insert(0, {app!r})
{before}
from concurrent.futures import Future
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
manifest_scanner.scan_component_manifests = list  # it reads the metadata of all installed packages for every page
from workbench.workers.client import Worker
from session.serving import AHEAD
Worker.start = Worker.train = lambda *_, **__: None
AHEAD.submit = lambda *_, **__: Future()
for page, asked in {pages!r}:
    app = AppTest.from_file({app!r} + "/main.py", default_timeout=600)
    app._page_hash = calc_hash(page)
    app.query_params = asked
    app.run()
    kinds = {{kind: [str(each.value) for each in app.get(kind)] for kind in ("error", "info", "code", "select_slider")}}
    print(json.dumps({{**kinds, "exception": len(app.exception), "torch": bool(sys.modules.get("torch"))}}))
"""


def pages_drawn(home: Path, pages: list[tuple[str, dict[str, str]]], before: str = "") -> list[dict[str, list[str]]]:
    """What the pages say, drawn one after the other in a process of its own, and whether torch is loaded by then."""
    code = PAGES_DRAWN.format(app=str(ROOT / "app"), pages=pages, before=before)
    environment = {**os.environ, "WORKBENCH_HOME": str(home)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


NEW_RUN = ("train", {"train": "A new run"})
WEIGHTS, LEVELS = ("landscapes", {"part": "Weight space"}), ("landscapes", {"part": "Level sets"})


def test_training_is_asked_for_without_torch_and_only_drawing_a_landscape_loads_it(tmp_path):
    pages = [("train", {}), NEW_RUN, ("train", {"train": "Sweeps"}), WEIGHTS, ("lessons", {}), LEVELS]
    live, new, *others, landscape = pages_drawn(tmp_path, pages)
    assert live["select_slider"], "its knobs are there"
    assert new["select_slider"], "its settings are there"
    for page in (live, new, *others, landscape):
        assert not page["exception"]
        assert page["error"] == []
    assert not any(page["torch"] for page in (live, new, *others))
    assert landscape["torch"]


NOT_INSTALLED = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
missing = ("torch", "sklearn")
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in missing else find(name, *rest)
"""


def test_without_torch_the_pages_that_need_it_say_what_to_install_and_the_others_are_whole(tmp_path):
    needing = [("train", {}), NEW_RUN, ("landscapes", {}), ("lessons", {"lesson": "5"})]
    whole = [("", {}), ("classes", {}), ("train", {"train": "Sweeps"}), ("lessons", {"lesson": "4"})]
    drawn = pages_drawn(tmp_path, needing + whole, NOT_INSTALLED)
    for page in drawn:
        assert not page["exception"]
        assert page["error"] == []
    for page in drawn[: len(needing)]:
        assert "pip install 'set-workbench[train]'" in page["code"]
    for page in drawn[len(needing) : -1]:
        assert "pip install 'set-workbench[train]'" not in page["code"]


def test_importing_the_workbench_is_quick_because_it_loads_nothing_heavy():
    code = """
import sys, time
started = time.process_time()
import workbench
seconds = time.process_time() - started  # of this process alone: a busy machine does not slow it
print(seconds, *sorted({"torch", "sklearn", "pandas", "plotly", "streamlit"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, *heavy = done.stdout.split()
    assert heavy == []
    assert float(seconds) < 0.5


def test_each_name_of_the_reading_half_works_on_a_fresh_import_without_torch():
    code = """
import importlib, sys
for name in ("sets", "tables", "datasets", "store", "calibration", "Store", "transforms"):
    for known in [each for each in sys.modules if each.partition(".")[0] == "workbench"]:
        del sys.modules[known]
    getattr(importlib.import_module("workbench"), name)
    assert "torch" not in sys.modules, name
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_resolves_and_a_wrong_one_lists_what_there_is():
    for name in workbench.__all__:
        assert getattr(workbench, name) is not None
    with pytest.raises(AttributeError, match="LogitTable"):
        workbench.LogitTabel


def test_no_pickle_is_ever_loaded():
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "app").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in text, path
        tree = ast.parse(text)
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not names & {"pickle", "joblib", "dill", "cloudpickle"}, path
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only=True" in ast.unparse(node), path


def test_a_rule_that_joins_its_tuple_is_public_so_that_code_which_prints_it_runs(monkeypatch):
    from workbench import sets

    class Joined(sets.LAC):
        """A contributed rule."""

    monkeypatch.setattr(sets, "RULES", (*sets.RULES, Joined))
    assert workbench.Joined is Joined
