"""Columns from Arrow and from pandas: numbers, whole numbers, texts and lists, as NumPy holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.tables.formats.base import Column, Contents


def contents_of_frame(frame: Any) -> Contents:
    """The columns of a pandas DataFrame; its index is left out."""
    import pyarrow as pa

    columns = []
    for name, series in frame.items():
        try:
            values = pa.array(series, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # words among numbers
            values = pa.array([None if entry is None or entry != entry else str(entry) for entry in series])
        columns.append(column_of(str(name), values))
    return Contents(columns=columns)


def column_of(name: str, values: Any) -> Column:
    """A column from an Arrow array, by its type."""
    import pyarrow as pa

    values = pa.chunked_array([values]) if isinstance(values, pa.Array) else values
    kind = values.type
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if pa.types.is_nested(kind) and not listed:
        return Column(name, np.full(len(values), None, dtype=object), "empty")
    if values.null_count == len(values):
        return Column(name, np.full(len(values), None, dtype=object), "empty")
    if pa.types.is_decimal(kind):
        return Column(name, values.cast(pa.float64()).to_numpy(), "numbers")
    if pa.types.is_floating(kind):
        return Column(name, values.to_numpy(), "numbers")
    if pa.types.is_integer(kind) or (pa.types.is_boolean(kind) and not values.null_count):
        return Column(name, values.to_numpy(), "whole")
    if listed:
        return _lists(name, values)
    if not pa.types.is_dictionary(kind):
        values = values.cast(pa.string()).dictionary_encode()
    return Column(name, np.concatenate([_words(chunk) for chunk in values.chunks]), "text")


def _lists(name: str, values: Any) -> Column:
    """Lists of numbers, all of one length, are a matrix; others stay lists."""
    import pyarrow as pa
    import pyarrow.compute as pc

    inner = values.type.value_type
    lengths = pc.unique(pc.list_value_length(values)).to_pylist()
    if len(lengths) == 1 and lengths[0] and (pa.types.is_integer(inner) or pa.types.is_floating(inner)):
        flat = pc.list_flatten(values).to_numpy()
        return Column(name, flat.reshape(len(values), lengths[0]), "matrix")
    entries = np.empty(len(values), dtype=object)
    entries[:] = values.to_pylist()
    return Column(name, entries, "lists")


def _words(chunk: Any) -> np.ndarray:
    """The texts of a dictionary-encoded array, each distinct one made once; None where there is none."""
    distinct = [None if word is None else str(word) for word in chunk.dictionary.to_pylist()]
    words = np.array([*distinct, None], dtype=object)
    decoded: np.ndarray = words[chunk.indices.fill_null(len(distinct)).to_numpy()]
    return decoded
