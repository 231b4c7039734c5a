"""The code of a figure is put together from its parts: imports, set-up, call."""

from __future__ import annotations

import copy
import pickle

from workbench.figures import Code

DRAWN = Code("wb.figures.reliability(table, bins=10)", ["# table: with labels"], ["import numpy as np"])


def test_code_is_text_with_its_imports_first_and_the_picture_last():
    assert DRAWN.splitlines() == [
        "import workbench as wb",
        "import numpy as np",
        "",
        "# table: with labels",
        "figure = wb.figures.reliability(table, bins=10)",
        "figure.plot()",
    ]
    assert DRAWN.endswith("\n")


def test_code_knows_which_names_must_be_at_hand():
    assert DRAWN.needs == {"table"}
    lines = ["tables = {name: run.tables['test'] for name, run in sorted(runs.items())}"]
    assert Code("wb.figures.f1_against_threshold(tables)", lines).needs == {"runs"}


def test_code_after_other_code_needs_what_that_needs_and_imports_once():
    opened = Code(setup=["table = opened(path)"], imports=["import numpy as np", "from mine import opened"])
    both = DRAWN.after(opened)
    assert both.needs == {"path"}
    assert both.imports == ("import workbench as wb", "import numpy as np", "from mine import opened")
    assert both.setup == ("table = opened(path)", "# table: with labels")
    assert both.call == DRAWN.call
    assert DRAWN.needs == {"table"}  # it has not changed


def test_code_is_the_same_after_it_was_copied():
    for again in (copy.deepcopy(DRAWN), pickle.loads(pickle.dumps(DRAWN))):
        assert (again, again.call, again.setup, again.imports) == (DRAWN, DRAWN.call, DRAWN.setup, DRAWN.imports)
