"""A map of the rows of a table: their features in the plane, the rows inside a lasso, and what those have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import numpy as np

from workbench.sets import PredictionSets
from workbench.store import Store, StoredRun, row_maps
from workbench.tables import LogitTable
from workbench.tables.groups import rows_by

SHARED = 0.9  # of the rows have a value that the description names
TSNE_ROWS = 20_000  # more are projected by PCA alone
NONE = ("", "none", "nan", "None", "not shown")  # values of an attribute that say nothing


def pca(table: LogitTable) -> np.ndarray:
    """(n, 2) positions in [0, 1]: the first two principal components of the features, or of the log-probabilities.

    Example:
        >>> table = LogitTable([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
        >>> pca(table)[:, 0].round(2).tolist() in ([0.0, 1.0, 0.5], [1.0, 0.0, 0.5])
        True
    """
    values = _features(table)
    centred = values - values.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    plane = directions[:, ::-1][:, :2]
    plane = plane if plane.shape[1] == 2 else np.hstack([plane, np.zeros_like(plane)])
    return _unit(centred @ plane)


def tsne(table: LogitTable, seed: int = 0) -> np.ndarray:
    """(n, 2) positions in [0, 1] by t-SNE (scikit-learn), begun at the principal components: the same for the same rows.

    Raises:
        ValueError: if the table has more than `TSNE_ROWS` rows.
    """
    if table.n > TSNE_ROWS:
        raise ValueError(f"{table.n} rows; t-SNE is computed for at most {TSNE_ROWS}, larger tables by pca")
    from sklearn.manifold import TSNE

    perplexity = min(30.0, max(1.0, (table.n - 1) / 3))
    fitted = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(_features(table))
    return _unit(fitted)


PROJECTIONS: dict[str, Callable[[LogitTable], np.ndarray]] = {"PCA": pca, "t-SNE": tsne}


def positions(run: StoredRun, projection: str, store: Store | None = None) -> np.ndarray:
    """(n, 2) positions in [0, 1] of the test rows of a run: read if they are kept, else computed, and kept if they can be."""
    if PROJECTIONS[projection] is pca:
        return pca(run.tables["test"])
    found = row_maps.known(run, projection, store)
    if found is None:
        found = PROJECTIONS[projection](run.tables["test"])
        with contextlib.suppress(OSError):  # a store that is only read
            row_maps.keep(run, projection, found, store)
    return found


def _features(table: LogitTable) -> np.ndarray:
    """The array to project: the features of the rows where a table has them, else their log-probabilities."""
    if table.features is not None:
        return np.asarray(table.features, np.float32).reshape(table.n, -1)
    return np.concatenate([np.log(table.probabilities(rows).clip(1e-6)) for rows in table.spans()])


def _unit(positions: np.ndarray) -> np.ndarray:
    """Positions scaled to the unit square, each axis for itself."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    scaled: np.ndarray = (positions - low) / np.where(high > low, high - low, 1)
    return scaled.astype(np.float32)


def inside(positions: np.ndarray, polygon: Sequence[tuple[float, float]]) -> np.ndarray:
    """(n,) bool: the positions inside a closed polygon, by the even-odd rule.

    Example:
        >>> inside(np.array([[0.5, 0.5], [2.0, 0.5]]), [(0, 0), (1, 0), (1, 1), (0, 1)]).tolist()
        [True, False]
    """
    x, y = np.asarray(positions, float).T
    found = np.zeros(len(x), bool)
    for (x1, y1), (x2, y2) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        crosses = (y1 > y) != (y2 > y)
        with np.errstate(divide="ignore", invalid="ignore"):
            found ^= crosses & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return found


def description(sets: PredictionSets, rows: np.ndarray) -> str:
    """Rows in one sentence: how many, of which classes, what nearly all share, and how often their sets are correct.

    Example:
        >>> from workbench.sets import TopK
        >>> organs = {"organ": ["leaf", "leaf", "bark"]}
        >>> table = LogitTable([[2.0, 0.0], [2.0, 1.0], [0.0, 1.0]], labels=[0, 1, 1], attributes=organs)
        >>> description(TopK(1).fit(table)(table), np.array([0, 1]))
        '2 rows, of 2 classes, all organ: leaf, 50 % correct'
    """
    table = sets.table
    words = [f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}".replace(",", "\N{NO-BREAK SPACE}")]
    if len(rows) == 0:
        return words[0]
    if table.labels is not None and not table.many_labels:
        labels = np.unique(table.checked_labels()[rows][sets.labelled[rows]])
        words.append(f"of {len(labels)} {'class' if len(labels) == 1 else 'classes'}{_groups(table, labels)}")
    words += filter(None, (_shared(table, name, rows) for name in table.attributes or {}))
    if sets.labelled[rows].any():
        words.append(f"{sets.hits[rows][sets.labelled[rows]].mean():.0%} correct".replace("%", " %"))
    return ", ".join(words)


def _groups(table: LogitTable, labels: np.ndarray) -> str:
    """The groups of these classes in words."""
    if table.groups is None:
        return ""
    groups = {table.groups[label] for label in labels.tolist()}
    return (
        f" of {len(groups)} {'group' if len(groups) == 1 else 'groups'}" if len(groups) > 1 else f" of {groups.pop()}"
    )


def _shared(table: LogitTable, name: str, rows: np.ndarray) -> str | None:
    """The value of an attribute that nearly all of these rows have, in words."""
    codes, names = rows_by(table, name)
    counts = np.bincount(codes[rows], minlength=len(names))
    value, share = names[int(counts.argmax())], counts.max() / len(rows)
    if share < SHARED or value in NONE or len(names) < 2:
        return None
    return f"{'all' if share == 1 else 'nearly all'} {name}: {value}"
