"""Write the current table of losses into the README, between its two marks."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.losses import catalogue

README = Path(__file__).resolve().parents[1] / "README.md"

if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    current = re.sub(
        r"(<!-- losses:.*?-->\n).*?(<!-- /losses -->)",
        lambda marks: marks.group(1) + catalogue.markdown() + marks.group(2),
        text,
        flags=re.DOTALL,
    )
    README.write_text(current, encoding="utf-8")
