"""Sets written to a file: `.csv`, `.json` or `.parquet`; what `predict` and `sets` share."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.sets import PredictionSets

BETWEEN = ";"  # the classes of a set in a line of a CSV file
Writer = Callable[["PredictionSets", dict[str, str]], bytes]


def _csv(sets: PredictionSets, _: dict[str, str]) -> bytes:
    if with_mark := [name for name in sets.table.named_classes() if BETWEEN in name]:
        raise ValueError(
            f"the class {with_mark[0]!r} has a {BETWEEN!r} in its name, which stands between the classes of a set; write "
            "--output FILE.json"
        )
    frame = sets.to_frame()
    for column in ("classes", "probabilities"):
        frame[column] = [
            BETWEEN.join(f"{each:.6g}" if isinstance(each, float) else each for each in row) for row in frame[column]
        ]
    return frame.to_csv(index=False).encode()


def _json(sets: PredictionSets, facts: dict[str, str]) -> bytes:
    rows = json.loads(sets.to_frame().to_json(orient="records", double_precision=15))
    text = json.dumps({**facts, "rule": repr(sets.rule), "rows": rows}, indent=1, ensure_ascii=False)
    return f"{text}\n".encode()


def _parquet(sets: PredictionSets, _: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    sets.to_frame().to_parquet(buffer, index=False)
    return buffer.getvalue()


WRITERS: dict[str, Writer] = {".csv": _csv, ".json": _json, ".parquet": _parquet}


def writer_for(out: Path | None) -> Writer:
    """The writer that the name of the file asks for; an error before anything is computed if there is none."""
    if out is None:
        return _csv
    if out.suffix.lower() not in WRITERS:
        raise ValueError(f"--output {out}: sets are written as {' or '.join(WRITERS)}")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"--output {out}: there is no folder {out.parent}")
    return WRITERS[out.suffix.lower()]


def write_sets(sets: PredictionSets, facts: dict[str, str], write: Writer, out: Path | None) -> None:
    """Write the sets to a file, whole or not at all, or print them."""
    from workbench.files.atomic import whole_file

    content = write(sets, facts)
    if out is None:
        print(content.decode(), end="")
        return
    with whole_file(out, len(content)) as aside:
        aside.write_bytes(content)
    print(f"{len(sets)} sets of {sets.sizes.mean():.3g} classes on average written to {out}", file=sys.stderr)
