"""Write the tables of the guide: losses and rules from their declarations, gains from the results of the claims."""

from __future__ import annotations

from pathlib import Path

from workbench.claims import CLAIMS
from workbench.claims.claim import Found
from workbench.claims.page import anchor
from workbench.losses import summary as losses_summary
from workbench.sets import summary as rules_summary

GUIDE, RESULTS = (Path(__file__).parent / name for name in ("guide", "claims"))
IMAGES, GARDEN, LETTERS = "3 000 images of CIFAR-100", "1 500 photographs of the garden", "1 000 letters"
WRONG = "40 % wrong labels"
FEATURES = "5 000 images of CIFAR-100"
# Training rows → result file, beginning of its number there, the loss, what it is measured by
GAINS = (
    (IMAGES, "08-memorising-CIFAR-100", "average-5 points of two heads over tuned", "two heads", "average-5"),
    (f"{IMAGES}, {WRONG}", "05-memorising-CIFAR-100", "top-5 points of noised", "noised top-5", "top-5"),
    (f"{IMAGES}, {WRONG}", "05-memorising-CIFAR-100", "top-5 points of smooth", "smooth top-5", "top-5"),
    (f"{IMAGES}, long tail", "06-memorising-CIFAR-100", "few-shot", "uneven margins", "top-3, few-shot classes"),
    (IMAGES, "14-memorising-CIFAR-100", "top-5 points of (0.5", "half top-1, half top-5", "top-5"),
    (IMAGES, "07-memorising-CIFAR-100", "top-5 points of the top-5 hinge", "top-5 hinge without noise", "top-5"),
    (f"{GARDEN}, {WRONG}", "05-memorising-garden", "top-5 points of noised", "noised top-5", "top-5"),
    (f"{GARDEN}, {WRONG}", "05-memorising-garden", "top-5 points of smooth", "smooth top-5", "top-5"),
    (LETTERS, "08-memorising-letters", "average-5 points of two heads over tuned", "two heads", "average-5"),
    (f"{LETTERS}, {WRONG}", "05-memorising-letters", "top-5 points of noised", "noised top-5", "top-5"),
    (f"{LETTERS}, {WRONG}", "05-memorising-letters", "top-5 points of smooth", "smooth top-5", "top-5"),
    (f"{LETTERS}, long tail", "06-memorising-letters", "few-shot", "uneven margins", "top-3, few-shot classes"),
    (LETTERS, "07-memorising-letters", "top-5 points of the top-5 hinge", "top-5 hinge without noise", "top-5"),
    ("photographs of the garden", "08", "average-5 points of two heads", "two heads", "average-5"),
    (f"{FEATURES}, {WRONG}", "05", "top-5 points of noised", "noised top-5", "top-5"),
    (f"{FEATURES}, {WRONG}", "05", "top-5 points of smooth", "smooth top-5", "top-5"),
    (f"{FEATURES}, long tail", "06", "few-shot", "uneven margins", "top-3, few-shot classes"),
    ("letters, too hard for a linear model", "29", "top-5 points of smooth", "smooth top-5", "top-5"),
    ("letters, too hard for a linear model", "29", "top-1 points of smooth", "smooth top-5", "top-1"),
)


def gains() -> str:
    """The table of what losses gain over cross-entropy."""
    header = "| regime | training rows | loss | measured by | gain in points [95 % interval] | claim |"
    lines = [header, "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(_gain(*each))} |" for each in GAINS)]) + "\n"


def _gain(rows: str, file: str, begins: str, loss: str, measured_by: str) -> tuple[str, ...]:
    found = Found.from_json((RESULTS / f"{file}.json").read_text("utf-8"))
    each = next(each for each in found.expectations if each.what.startswith(begins))
    number = f"{each.value:+.1f} [{each.low:+.1f}, {each.high:+.1f}]".replace("-", "−")
    clear = each.low > 0 or each.high < 0
    claim = max(
        (claim for claim in CLAIMS if f"{file}-".startswith(f"{claim.name}-")), key=lambda claim: len(claim.name)
    )
    link = f"[{claim.number}](../claims.md#{anchor(claim)})"
    return claim.regime.name, rows, loss, measured_by, f"**{number}**" if clear else number, link


TABLES = {
    "losses.md": {"losses": losses_summary.markdown, "gains": gains},
    "rules.md": {"promises": rules_summary.promises, "rules": rules_summary.markdown},
}


def with_current_tables(page: str) -> str:
    """The text of a page with each of its tables written again."""
    text = (GUIDE / page).read_text(encoding="utf-8")
    for name, markdown in TABLES[page].items():
        start = f"<!-- table of {name}: written by docs/guide_tables.py -->\n"
        before, after = text.split(start)
        text = before + start + markdown() + after[after.index("<!-- end of table -->") :]
    return text


if __name__ == "__main__":
    for page in TABLES:
        (GUIDE / page).write_text(with_current_tables(page), encoding="utf-8")
