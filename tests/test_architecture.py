"""The house as a table: which module may import which, and what `import workbench` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import workbench

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workbench"

# The two halves, each in floors: a module may import from its own floor and from those above it in this list. Data flows
# one way, and the halves meet only at `tables`: the reading half never reaches into the training half.
READING_HALF = (
    {
        "knobs",
        "counts",
        "decimals",
        "gradients",
        "links",
        "ordering",
        "cards",
        "glossary",
        "lookup",
        "progress",
        "atomic",
    },
    {"tables", "table_checks", "table_directories"},
    {"selection", "groups", "ranks"},
    {"prediction_sets", "sets", "conformal", "index", "formats", "files", "stored_runs", "store"},
    {"calibration", "bayes", "metrics", "rows", "votes"},
    {"reporting", "comparison", "imports", "shelf", "seeds", "stored_sweeps"},
    {"figures", "lessons"},
)
TRAINING_HALF = (
    {"operators"},
    {"losses"},
    {"datasets"},
    {"backbones", "pretrained", "models", "parallel", "batches", "scoring", "hardware", "processes"},
    {"features"},
    {"runs", "run_checks"},
    {"learning", "fitting", "loggers"},
    {"training", "weight_planes"},
    {"recipes", "sweeps"},
    {"demo_runs", "training_features", "worker", "training_commands"},
)
# Nobody in the library starts a process; the starters find tables and runs in the store, or on the shelf beside it.
APART = {"launching", "live_runs", "planes", "similar"}
# Drawing a loss needs the loss: the only figures that reach into the training half.
EXCEPTIONS = {("figures.landscapes", "losses"), ("figures.evaluation", "losses"), ("figures.smoothing", "operators")}
EXCEPTIONS |= {("training_features", "similar"), ("weight_planes", "planes")}  # the two ends of one process
EXCEPTIONS |= {("lessons", "losses")}  # where the noise of a loss becomes too large
NO_TORCH = set.union(*READING_HALF) | {"datasets"} | APART


def may_import(part: str) -> set[str]:
    """The parts of the workbench that a part may import."""
    if part in APART:
        return {part, "store", "stored_runs", "shelf", "imports", "tables", "lookup"}
    for half in (READING_HALF, TRAINING_HALF):
        for floor, names in enumerate(half):
            if part in names:
                own_half = set.union(*half[: floor + 1])
                if half is READING_HALF:
                    return own_half
                # Formulas know only knobs; what trains with them may read tables, sets and metrics, but draws nothing.
                return own_half | set.union(
                    *(READING_HALF[:1] if part in {"operators", "losses"} else READING_HALF[:-1])
                )
    raise AssertionError(f"{part} is new: put it on a floor of one of the halves")


def modules() -> dict[str, Path]:
    paths = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        paths[".".join(part for part in parts if part != "__init__")] = path
    return paths


def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
    """Dotted names a file imports. Those under `if TYPE_CHECKING:` run never, so they do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if top_level_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "workbench":
                found.update(f"workbench.{alias.name}" for alias in node.names)
            else:
                found.add(node.module)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def parts_of_the_workbench(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("workbench.")}


@pytest.mark.parametrize(
    "module", [name for name in modules() if name and not name.startswith(("__main__", "demo", "app"))]
)
def test_a_module_imports_only_from_its_own_floor_and_those_above(module):
    part = module.split(".")[0]
    foreign = parts_of_the_workbench(imports(modules()[module])) - may_import(part)
    assert not {name for name in foreign if (module, name) not in EXCEPTIONS}


@pytest.mark.parametrize("module", [name for name in modules() if name.split(".")[0] in NO_TORCH])
def test_the_reading_half_and_the_datasets_load_no_torch(module):
    loaded = {name.split(".")[0] for name in imports(modules()[module], top_level_only=True)}
    assert not loaded & {"torch", "lightning"}


def test_the_app_knows_no_torch_and_no_training():
    for path in (ROOT / "app").rglob("*.py"):
        names = imports(path)
        assert not {name.split(".")[0] for name in names} & {"torch", "lightning"}, path
        assert not parts_of_the_workbench(names) & (set.union(*TRAINING_HALF) - {"datasets"}), path


def test_importing_the_workbench_is_quick_because_it_loads_nothing_but_itself_and_parts_of_python():
    code = """
import sys
before = set(sys.modules)
import workbench
print(*{name.split(".")[0] for name in sys.modules.keys() - before} - sys.stdlib_module_names)
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["workbench"]


def test_every_public_name_resolves_and_a_wrong_one_lists_what_there_is():
    for name in workbench.__all__:
        assert getattr(workbench, name) is not None
    with pytest.raises(AttributeError, match="LogitTable"):
        workbench.LogitTabel


def test_no_pickle_is_ever_loaded():
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "app").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in text, path
        assert not imports(path) & {"pickle", "joblib", "dill", "cloudpickle"}, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only=True" in ast.unparse(node), path
