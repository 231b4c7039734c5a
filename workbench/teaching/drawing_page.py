"""The pad to draw symbols on, inside a page that needs no server and no network."""

from __future__ import annotations

import base64

from workbench.drawings import pad
from workbench.figures.style import CSS_FONTS, DARK, LIGHT, Theme

TITLE = "Draw a symbol, see its set"
CREDIT = "Network: M. Thoma, hwrt 0.2.1, MIT licence. What you draw stays in this browser."


def page() -> str:
    """A page with the pad, its network and its symbols in it; what is drawn stays in the browser that shows it."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{TITLE}</title>
<style>
:root {{ color-scheme: light dark; {_colours(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_colours(DARK)} }} }}
body {{ margin: 0 auto; padding: 1.5rem; max-width: 76rem; font-family: var(--st-font); }}
body {{ background: var(--st-background-color); color: var(--st-text-color); }}
</style>
</head>
<body>
<h1>{TITLE}</h1>
{_pad()}
</body>
</html>
"""


def pad_section(theme: Theme) -> str:
    """The pad as a part of another page, in the colours of a theme."""
    return f"<style>:root {{ {_colours(theme)} }}</style>\n<h2>{TITLE}</h2>\n{_pad()}"


def _pad() -> str:
    weights = base64.b64encode(pad.WEIGHTS.read_bytes()).decode()
    shown = pad.script().replace("export default function", "function show", 1).replace("export function", "function")
    return f"""<style>{pad.style()}</style>
<div id="pad"></div>
<p><small>{CREDIT}</small></p>
<script type="module">
{shown}
const symbols = {pad.SYMBOLS.read_text(encoding="utf-8")};
show({{ data: {{ weights: {{ base64: "{weights}" }}, symbols }}, parentElement: document.getElementById("pad") }});
</script>"""


def _colours(theme: Theme) -> str:
    """The names that Streamlit gives the colours of its theme."""
    colours = {
        "text-color": theme.ink,
        "background-color": theme.paper,
        "secondary-background-color": theme.panel,
        "border-color": theme.muted,
        "primary-color": theme.accent,
        "font": CSS_FONTS,
    }
    return " ".join(f"--st-{name}: {value};" for name, value in colours.items())
