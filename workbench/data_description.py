"""Description of data before a model is trained: classes, groups, counts, attributes and examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench.class_counts import gini
from workbench.datasets import DATASETS, Dataset, load_dataset
from workbench.datasets.files.sound_folders import HEADERS, Header, SoundFolder
from workbench.sets.imports import import_any
from workbench.sets.prediction_sets import PredictionSets
from workbench.tables.partial import PartialTable
from workbench.tables.table import LogitTable

if TYPE_CHECKING:
    from workbench.figures.data.inequality import Lorenz

UNITS = {"train": "training row", "rows": "row", "votes": "vote"}  # column of counts → what it counts
SHOWN = 5  # values, classes and examples that are printed


@dataclass(frozen=True, eq=False, repr=False)
class DataDescription:
    """Facts about data, its classes, its attributes and some examples; `print` shows all of it.

    Args:
        kind: The kind of data, in words.
        facts: {what: in words}.
        classes: One line a class: `class`, `group` where there are groups, and a column of counts for each split.
        attributes: One line an attribute of rows: `attribute`, `values` (how many there are) and `most` (the commonest).
        examples: Some rows, in words.
    """

    kind: str
    facts: Mapping[str, str]
    classes: pd.DataFrame
    attributes: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["attribute", "values", "most"]))
    examples: tuple[str, ...] = ()

    @property
    def counts(self) -> np.ndarray | None:
        """(L,) rows of each class: those of training where there are some; None without labels."""
        counts = None if self._counted is None else self.classes[self._counted].to_numpy(int)
        return counts if counts is not None and counts.sum() else None

    @property
    def _counted(self) -> str | None:
        """The column of the counts."""
        return next((name for name in UNITS if name in self.classes), None)

    @property
    def lorenz(self) -> Lorenz | None:
        """The Lorenz curve of the class counts; None without labels."""
        from workbench.figures.data.inequality import lorenz

        counts = None if self.counts is None else self.counts[self.counts > 0]
        return None if counts is None or self._counted is None else lorenz(counts, UNITS[self._counted])

    def __repr__(self) -> str:
        lines = [self.kind, *(f"  {name}: {fact}" for name, fact in self.facts.items())]
        if self.counts is not None:
            lines += ["  classes by count:", *_indented(self._commonest_and_rarest().to_string(index=False))]
        if len(self.attributes):
            lines += ["  row attributes:", *_indented(self.attributes.to_string(index=False))]
        if self.examples:
            lines += ["  examples:", *(f"    {example}" for example in self.examples)]
        return "\n".join(lines)

    def _commonest_and_rarest(self) -> pd.DataFrame:
        falling = self.classes.iloc[np.argsort(-np.asarray(self.counts), kind="stable")]
        return falling if len(falling) <= 2 * SHOWN else pd.concat([falling.head(SHOWN), falling.tail(SHOWN)])

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON takes it."""
        return {
            "kind": self.kind,
            "facts": dict(self.facts),
            "classes": self.classes.to_dict("records"),
            "attributes": self.attributes.to_dict("records"),
            "examples": list(self.examples),
        }


def describe(data: Any, **options: Any) -> DataDescription:
    """Describe data before a model is trained on it, or judged by it.

    Args:
        data: A dataset, its name or its path (images, CIFAR, COCO, …); a table, or a file or folder of scores, of listed
            classes, of sets or of votes; a folder of `.wav` files.
        options: For a file of scores: `scores`, `labels`, `link`, `link_constant`, `cut`, `n_classes`.

    Example:
        >>> import workbench as wb
        >>> about = wb.describe(wb.LogitTable([[2.0, 0.0], [0.0, 1.0]], [0, 1], class_names=["oak", "elm"]))
        >>> about.classes.to_dict("list")
        {'class': ['oak', 'elm'], 'rows': [1, 1]}
    """
    if isinstance(data, (str, Path)):
        data = _opened(data, options)
    match data:
        case Dataset():
            return _of_dataset(data)
        case LogitTable():
            return _of_table(data)
        case PartialTable():
            return _of_partial(data)
        case PredictionSets():
            return _of_sets(data)
        case SoundFolder():
            return _of_sounds(data)
        case pd.DataFrame() if {"item", "user", "label"} <= set(data.columns):
            return _of_votes(data)
    raise TypeError(f"{type(data).__name__} cannot be described; give a path, a Dataset, a LogitTable, sets or votes")


def _opened(path: str | Path, options: Mapping[str, Any]) -> Any:
    """The dataset of this name, or what lies at a path: a dataset, or else a file that real systems give."""
    if str(path) in DATASETS:
        return load_dataset(path)
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no dataset {path} and no such path; there are {', '.join(DATASETS)}")
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return import_any(path, **given)
    except (ValueError, FileNotFoundError) as error:
        try:
            return load_dataset(path)
        except (ValueError, OSError) as why:
            if (sounds := SoundFolder.at(path)) is not None:
                return sounds
            raise ValueError(f"{error}\n{why}") from None


def _of_dataset(data: Dataset) -> DataDescription:
    splits = {"train": data.train, "val": data.val, "test": data.test}
    counts = {name: _per_class(split.labels, len(data.class_names)) for name, split in splits.items()}
    facts = {
        "rows": ", ".join(f"{len(split.labels)} {name}" for name, split in splits.items()),
        "row": " × ".join(map(str, data.input_shape)),
        **_of_classes(data.class_names, data.groups, counts["train"]),
    }
    if data.test.posterior is not None:
        facts["P(label | row)"] = "known"
    classes = _frame(data.class_names, data.groups, counts)
    examples = _examples(data.test.labels, data.class_names, data.test.texts)
    return DataDescription(f"dataset {data.name}", facts, classes, _attributes(data.train.attributes), examples)


def _of_table(table: LogitTable) -> DataDescription:
    names = table.named_classes()
    counts: dict[str, np.ndarray] = {}
    if table.class_counts is not None:
        counts["train"] = table.class_counts
    if table.labels is not None:
        counts["rows"] = _per_class(table.labels, table.n_classes)
    facts = {
        "rows": f"{table.n}, {int(table.labelled.sum())} with a label",
        "scores": f"{table.scores.dtype}, {table.link}",
        **_of_classes(names, table.groups, next(iter(counts.values()), None)),
        "also": ", ".join(
            name for name in ("posterior", "votes", "features", "images") if getattr(table, name) is not None
        ),
        "read as": table.note,
    }
    labels = np.full(table.n, -1) if table.labels is None else table.labels
    examples = _examples(labels, names, table.texts, table.ids)
    shown = {name: fact for name, fact in facts.items() if fact}
    return DataDescription(
        "scores of all classes", shown, _frame(names, table.groups, counts), _attributes(table.attributes), examples
    )


def _of_partial(table: PartialTable) -> DataDescription:
    names = table.named_classes()
    counts = {"listed": np.bincount(table.classes, minlength=len(names))}
    if table.labels is not None:
        counts["rows"] = _per_class(table.labels, len(names))
    listed = table.label_probabilities[table.labelled]
    facts = {
        "rows": f"{table.n}, {int(table.labelled.sum())} with a label",
        "classes listed in a row": f"{table.n_listed.min()} to {table.n_listed.max()}, {table.n_listed.mean():.3g} on average",
        "classes": f"{len(names)} seen, of {'an unknown number' if table.n_classes is None else table.n_classes}",
        "label is listed": f"{np.mean(~np.isnan(listed)):.1%}" if len(listed) else "no labels",
        "exact": f"sets at thresholds above {table.ceilings.max():.3g}; below, sizes and coverage are bounds",
    }
    labels = np.full(table.n, -1) if table.labels is None else table.labels
    examples = _examples(labels, names, None, table.ids)
    return DataDescription(
        "scores of some classes", facts, _frame(names, None, counts), _attributes(table.attributes), examples
    )


def _of_sets(sets: PredictionSets) -> DataDescription:
    about = _of_table(sets.table)
    members = np.bincount(sets.classes, minlength=sets.table.n_classes)
    facts = {
        "sets": f"{len(sets)}, {sets.sizes.mean():.3g} classes on average, {int((sets.sizes == 0).sum())} empty",
        "contain the label": f"{sets.hits[sets.labelled].mean():.1%}" if sets.labelled.any() else "no labels",
        "classes": f"{sets.table.n_classes}",
    }
    return DataDescription(
        f"sets of {sets.source}", facts, about.classes.assign(sets=members), about.attributes, about.examples
    )


def _of_sounds(sounds: SoundFolder) -> DataDescription:
    headers = list(sounds.headers())
    read = [each for each in headers if isinstance(each, Header)]
    facts = {"sounds": f"{len(sounds.files)} .wav files"}
    if read:
        seconds, rates = [each.seconds for each in read], sorted({each.rate for each in read})
        of = f" (of the first {HEADERS})" if len(sounds.files) > HEADERS else ""
        facts["length"] = f"{min(seconds):.3g} to {max(seconds):.3g} s, {sum(seconds):.3g} s in all{of}"
        facts["sampling rate"] = ", ".join(f"{rate} Hz" for rate in rates[:SHOWN])
    if wrong := [each for each in headers if isinstance(each, str)]:
        facts["cannot be read"] = f"{len(wrong)}: {'; '.join(wrong[:SHOWN])}"
    frame = pd.DataFrame({"class": sounds.classes, "split": sounds.splits})
    of_classes = frame[frame["class"] != ""]
    classes = pd.DataFrame(columns=["class"])
    if len(of_classes):
        table = pd.crosstab(of_classes["class"], of_classes["split"])
        names = [split for split in ("train", "val", "test", "rows") if split in table]
        facts |= _of_classes(list(table.index), None, table[names[0]].to_numpy())
        classes = table[names].reset_index().rename_axis(columns=None)
    if n_beside := len(frame) - len(of_classes):
        facts["without a class"] = (
            f"{n_beside}, beside the folders of classes" if len(of_classes) else f"all {n_beside}"
        )
    facts["use"] = (
        "LogitTable(scores, labels, sounds=paths) shows them beside sets; networks of the workbench do not train on sounds"
    )
    examples = tuple(
        f"{file}: {name or 'no class'}" for file, name in list(zip(sounds.files, sounds.classes, strict=True))[:SHOWN]
    )
    return DataDescription(f"folder of sounds {sounds.path.name}", facts, classes, examples=examples)


def _of_votes(votes: pd.DataFrame) -> DataDescription:
    per_item = votes.groupby("item").size()
    first = votes.groupby("item")["label"].agg(lambda labels: labels.value_counts().iloc[0])
    facts = {
        "votes": f"{len(votes)} by {votes['user'].nunique()} people on {len(per_item)} items",
        "votes on an item": f"{per_item.min()} to {per_item.max()}, {per_item.mean():.3g} on average",
        "agreement": f"{(first / per_item).mean():.1%} of the votes on an item are for its commonest label",
        "items with several labels": f"{(first < per_item).mean():.1%}",
    }
    counts = votes["label"].value_counts()
    classes = pd.DataFrame({"class": counts.index.astype(str), "votes": counts.to_numpy()})
    examples = tuple(
        f"{item}: {', '.join(f'{user} says {label}' for user, label in zip(part['user'], part['label'], strict=True))}"
        for item, part in list(votes.groupby("item", sort=False))[:SHOWN]
    )
    return DataDescription("votes of annotators", facts, classes, examples=examples)


def _per_class(labels: np.ndarray, n_classes: int) -> np.ndarray:
    if labels.ndim == 2:
        return np.asarray(labels.sum(axis=0), dtype=np.int64)
    return np.bincount(labels[labels >= 0], minlength=n_classes)


def _of_classes(names: Any, groups: Any, counts: np.ndarray | None) -> dict[str, str]:
    facts = {"classes": f"{len(names)}"}
    if groups is not None:
        facts["groups"] = f"{len(set(groups))} ({', '.join(sorted(set(groups))[:SHOWN])}, …)"
    if counts is not None and (some := counts[counts > 0]).size:
        facts["rows of a class"] = (
            f"{counts.min()} to {counts.max()}, median {np.median(counts):g}; Gini {gini(some):.2f}"
        )
    return facts


def _frame(names: Any, groups: Any, counts: Mapping[str, np.ndarray]) -> pd.DataFrame:
    frame = pd.DataFrame({"class": list(names)})
    return (frame if groups is None else frame.assign(group=list(groups))).assign(**counts)


def _attributes(attributes: Mapping[str, np.ndarray] | None) -> pd.DataFrame:
    lines = []
    for name, values in (attributes or {}).items():
        counts = pd.Series(np.asarray(values)).value_counts()
        lines.append((name, len(counts), ", ".join(f"{value} ({n})" for value, n in counts.head(3).items())))
    return pd.DataFrame(lines, columns=["attribute", "values", "most"])


def _examples(labels: np.ndarray, names: Any, texts: Any = None, ids: Any = None) -> tuple[str, ...]:
    lines = []
    for row in range(min(SHOWN, len(labels))):
        called = f"row {row}" if ids is None else f"{ids[row]}"
        shown = "" if texts is None else f" {str(texts[row])[:60]!r}"
        lines.append(f"{called}{shown}: {_label(labels[row], names)}")
    return tuple(lines)


def _label(label: Any, names: Any) -> str:
    if np.ndim(label):
        return ", ".join(names[j] for j in np.flatnonzero(label)) or "none of the classes"
    return names[label] if label >= 0 else "no label"


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]
