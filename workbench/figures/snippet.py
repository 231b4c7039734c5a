"""The code that makes a picture again: put together from its parts, never edited as text."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

WORKBENCH = "import workbench as wb"


class Code(str):
    """Python that makes a figure: imports, the lines that prepare, and one call. It is the text itself and knows its parts.

    `call` is the expression that gives the figure; without one it is the beginning of other code, to which `after` adds it.
    `setup` are the lines that prepare, and `imports` those that the call needs besides; `import workbench as wb` comes first
    in all of it.

    >>> drawn = Code("wb.figures.reliability(table)")
    >>> drawn.needs
    frozenset({'table'})
    >>> opened = Code(setup=["table = wb.import_table('mine.npz')", ""])
    >>> print(drawn.after(opened), end="")
    import workbench as wb
    <BLANKLINE>
    table = wb.import_table('mine.npz')
    <BLANKLINE>
    figure = wb.figures.reliability(table)
    figure.plot()
    """

    call: str
    setup: tuple[str, ...]
    imports: tuple[str, ...]

    def __new__(cls, call: str = "", setup: Iterable[str] = (), imports: Iterable[str] = ()) -> Code:
        setup, imports = tuple(setup), tuple(dict.fromkeys((WORKBENCH, *imports)))
        drawn = (f"figure = {call}", "figure.plot()") if call else ()
        code = super().__new__(cls, "\n".join([*imports, "", *setup, *drawn]) + "\n")
        code.call, code.setup, code.imports = call, setup, imports
        return code

    def __reduce__(self) -> tuple[type[Code], tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Return the arguments that rebuild it when it is copied."""
        return Code, (self.call, self.setup, self.imports)

    @property
    def needs(self) -> frozenset[str]:
        """The names that it reads and does not give itself: what a reader must have at hand."""
        nodes = list(ast.walk(ast.parse(self)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        given = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        imported = {
            alias.asname or alias.name.split(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        return frozenset({name.id for name in names} - given - imported - set(dir(builtins)))

    def after(self, before: Code) -> Code:
        """The same code after the lines of another, which give what it needs."""
        return Code(self.call, (*before.setup, *self.setup), (*before.imports, *self.imports))
