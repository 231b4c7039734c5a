"""Set-valued classification: train classifiers that answer with a set of classes, choose thresholds, evaluate and plot.

Names are imported on first use, so `import workbench` is quick and does not load torch. The public names are those that
the stub `__init__.pyi` imports; type checkers read the same file.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _public_names() -> dict[str, str]:
    """Return the module that each public name is imported from, as the stub says."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_MODULES = _public_names()
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES and (listed := _registered_class(name)) is not None:
        return listed
    if name not in _MODULES:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}; it has {', '.join(__all__)}")
    try:
        value = _import(_MODULES[name], name)
    except ModuleNotFoundError as error:
        from workbench.optional_dependencies import with_install_command

        raise with_install_command(error) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _import(module_name: str, name: str) -> Any:
    """Return `name` of a module, or its submodule of that name: `from module import name`."""
    if module_name != __name__ and hasattr(module := importlib.import_module(module_name), name):
        return getattr(module, name)
    return importlib.import_module(f"{module_name}.{name}")


def _registered_class(name: str) -> Any:
    """Return the rule or recalibrator of that name: whatever is in RULES or RECALIBRATORS is public."""
    if not name[:1].isupper():
        return None
    from workbench.calibration import RECALIBRATORS
    from workbench.sets import RULES

    return next((kind for kind in (*RULES, *RECALIBRATORS) if kind.__name__ == name), None)
