"""Write what ships of the published network for drawn symbols: its weights in half precision, and a picture of each symbol.

`python docs/symbols.py symbols_mlp.npz` reads the weights W0 b0 W1 b1 W2 b2 and the LaTeX names of the outputs. Outlines are
those of the fonts that come with matplotlib (STIX, Computer Modern, DejaVu).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib._mathtext_data import tex2uni
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

DRAWINGS = Path(__file__).parents[1] / "workbench" / "drawings"
WEIGHTS = ("W0", "b0", "W1", "b1", "W2", "b2")
SIZE = 100  # of a letter, in the units of an outline: they are whole numbers

# LaTeX name → the character that stands for it, where matplotlib does not know the name.
CHARACTERS = {
    r"\pounds": "£", r"\&": "&", r"\mathsection": "§", r"\parr": "⅋", r"\with": "&", r"\fint": "⨍", r"\varoiint": "∯",
    r"\varsubsetneq": "⊊", r"\shortrightarrow": "→", r"\lightning": "↯", r"\llbracket": "⟦", r"\rrbracket": "⟧",
    r"\sqrt{}": "√", r"\square": "□", r"\lozenge": "◊", r"\iddots": "⋰", r"\celsius": "℃", r"\ohm": "Ω", r"\venus": "♀",
    r"\mars": "♂", r"\astrosun": "☉", r"\fullmoon": "○", r"\leftmoon": "☾", r"\female": "♀", r"\male": "♂",
    r"\checked": "✓", r"\diameter": "⌀", r"\sun": "☼", r"\Bowtie": "⋈", r"\Smiley": "☺", r"\MVAt": "@",
    r"\frac{}{}": "a/b", r"\pentagram": "☆", r"\epsilon": "ϵ", r"\not\equiv": "≢",
    "::MULTISYMBOL::": "several", r"\{": "{", r"\}": "}",
    r"\$": "$", r"\#": "#", r"\%": "%", r"\|": "‖",
}  # fmt: skip
# Names that matplotlib draws under another name.
DRAWN_AS = {
    r"\frac{}{}": r"\frac{a}{b}", r"\sqrt{}": r"\sqrt{\ }", "::MULTISYMBOL::": r"\cdots", r"\epsilon": "ϵ", r"\not\equiv": "≢"
}  # fmt: skip
STYLES = {"mathcal": 0x1D49C, "mathscr": 0x1D49C, "mathfrak": 0x1D504, "mathbb": 0x1D538, "mathds": 0x1D538}
EARLIER = {
    0x1D49D: "ℬ", 0x1D4A0: "ℰ", 0x1D4A1: "ℱ", 0x1D4A3: "ℋ", 0x1D4A7: "ℒ", 0x1D4A8: "ℳ", 0x1D4AD: "ℛ",
    0x1D53A: "ℂ", 0x1D53F: "ℍ", 0x1D545: "ℕ", 0x1D547: "ℙ", 0x1D548: "ℚ", 0x1D549: "ℝ", 0x1D551: "ℤ",
}  # fmt: skip  # letters that Unicode had before their alphabet


def character(latex: str) -> str:
    """The Unicode text of a symbol."""
    if latex in CHARACTERS or not latex.startswith("\\"):
        return CHARACTERS.get(latex, latex)
    if styled := re.fullmatch(r"\\(\w+)\{(.)\}", latex):
        style, letter = styled.groups()
        code = 0x1D7D9 if letter == "1" else STYLES[style] + ord(letter) - ord("A")
        return EARLIER.get(code, chr(code))
    return chr(tex2uni[latex[1:]])


def outline(latex: str) -> dict[str, object]:
    """The symbol as an SVG path, and the box around it: x, y, width, height."""
    tex = DRAWN_AS.get(latex, latex.replace("mathds", "mathbb"))
    with matplotlib.rc_context({"mathtext.fontset": "cm" if "mathcal" in tex else "stix"}):
        try:
            path = TextPath((0, 0), f"${tex}$", size=SIZE)
        except ValueError:
            path = TextPath(
                (0, 0), character(latex).replace("$", r"\$"), size=SIZE, prop=FontProperties(family="DejaVu Sans")
            )
    box = path.get_extents()
    x, y, right, low = np.floor([box.x0, -box.y1, 0, 0])[:2].tolist() + np.ceil([box.x1, -box.y0]).tolist()
    return {"path": _svg(path), "box": [int(x), int(y), int(right - x), int(low - y)]}


def _svg(path: TextPath) -> str:
    letters = {1: "M", 2: "L", 3: "Q", 4: "C"}
    parts = []
    for points, code in path.iter_segments(curves=True, simplify=False):
        if code == 79:
            parts.append("Z")
        else:
            flipped = np.round(points.reshape(-1, 2) * [1, -1]).astype(int).ravel()
            parts.append(letters[int(code)] + " ".join(map(str, flipped)).replace(" -", "-"))
    return "".join(parts)


def main(source: str) -> None:
    """Write the files of `workbench/drawings`."""
    with np.load(source, allow_pickle=False) as arrays:
        weights = np.concatenate([arrays[name].ravel() for name in WEIGHTS]).astype("<f2")
        names = arrays["latex"].tolist()
    weights.tofile(DRAWINGS / "weights.f16")
    symbols = [{"latex": name, "character": character(name), **outline(name)} for name in names]
    lines = ",\n".join(json.dumps(symbol, ensure_ascii=False, separators=(",", ":")) for symbol in symbols)
    (DRAWINGS / "symbols.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(symbols)} symbols, {weights.nbytes / 1e6:.2f} MB of weights, {len(lines) / 1e3:.0f} kB of outlines")


if __name__ == "__main__":
    main(sys.argv[1])
