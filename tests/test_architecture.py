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

# Module → what of the workbench it may import. Data flows one way; the two halves meet only at `tables`.
ROOTS = {"knobs", "counts"}
READING = ROOTS | {
    "tables",
    "files",
    "index",
    "sets",
    "calibration",
    "bayes",
    "metrics",
    "comparison",
    "votes",
    "store",
}
MAY_IMPORT = {
    "knobs": set(),
    "counts": set(),
    "operators": set(),
    "losses": {"knobs", "operators"},
    "datasets": ROOTS | {"store"},
    "models": {"knobs", "losses"},
    "learning": READING | {"losses", "models", "datasets"},
    "training": READING | {"losses", "models", "datasets", "learning"},
    "store": {"tables"},
    "tables": ROOTS,
    "files": {"tables"},
    "index": ROOTS | {"tables", "sets"},
    "sets": ROOTS | {"tables"},
    "calibration": ROOTS | {"tables"},
    "bayes": ROOTS | {"tables", "sets", "index"},
    "metrics": READING - {"store", "files", "comparison"},
    "comparison": READING - {"store", "files"},
    "figures": READING - {"store", "files"},
    "launching": set(),
}
# Drawing a loss needs the loss: the one place where a figure reaches into the training half.
MAY_IMPORT_BESIDES = {"figures.landscapes": {"losses"}}
NO_TORCH = READING | {"datasets", "figures", "launching"}


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
def test_a_module_imports_only_what_the_table_allows(module):
    part = module.split(".")[0]
    assert part in MAY_IMPORT, f"{module} is new: say in MAY_IMPORT what it may import"
    allowed = MAY_IMPORT[part] | MAY_IMPORT_BESIDES.get(module, set()) | {part}
    assert parts_of_the_workbench(imports(modules()[module])) <= allowed


@pytest.mark.parametrize("module", [name for name in modules() if name.split(".")[0] in NO_TORCH])
def test_the_reading_half_and_the_datasets_load_no_torch(module):
    loaded = {name.split(".")[0] for name in imports(modules()[module], top_level_only=True)}
    assert not loaded & {"torch", "lightning"}


def test_the_app_knows_no_torch_and_no_training():
    for path in (ROOT / "app").rglob("*.py"):
        names = imports(path)
        assert not {name.split(".")[0] for name in names} & {"torch", "lightning"}, path
        assert not parts_of_the_workbench(names) & {"training", "models", "learning", "operators"}, path


def test_importing_the_workbench_is_quick_because_it_loads_nothing_heavy():
    code = "import sys, workbench; print(*sorted({'torch', 'lightning', 'sklearn', 'pandas', 'plotly'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


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
