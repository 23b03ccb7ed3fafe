"""From a chunk to what the trainer gets: NumPy arrays, torch tensors or an Arrow record batch.

| Arrow type                               | numpy                | torch             |
|------------------------------------------|----------------------|-------------------|
| integer, float, bool                     | array                | tensor            |
| timestamp, date, duration                | datetime64 array     | the same          |
| fixed-size list of numbers               | array [batch, size]  | tensor            |
| list of numbers                          | list of arrays       | list of tensors   |
| string, binary                           | object array         | list              |
| anything else                            | list of Python values| the same          |

A null is NaN in floats, NaT in times and None in lists and objects; an integer or a bool has no place for it, and
the dtype of a batch must not depend on its rows: that is a DataError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headrace.errors import DataError
from headrace.loaders.assemble import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

Shape = Literal["flat", "fixed", "lists", "objects", "values"]


class Columns:
    """A chunk, column by column, ready to be sliced."""

    def __init__(self, chunk: Chunk, schema: pa.Schema, reference: str, is_torch: bool) -> None:
        """Gather every column now."""
        self._is_torch = is_torch
        self._num_rows = chunk.stop - chunk.start
        shapes = {field.name: shape_of(field.type) for field in schema}
        others = [name for name, shape in shapes.items() if shape not in ("flat", "fixed")]
        rest = gather(chunk, others) if others else None
        self._columns: dict[str, Any] = {}
        for name, shape in shapes.items():
            place = f"column {name!r} of {reference}"
            if rest is None or shape in ("flat", "fixed"):
                self._columns[name] = self._numbers(chunk, name, place)
            elif shape == "lists":
                self._columns[name] = _lists(rest.column(name), place)
            elif shape == "objects":
                self._columns[name] = rest.column(name).to_numpy(zero_copy_only=False)
            else:
                self._columns[name] = rest.column(name).to_pylist()

    def batch(self, start: int, stop: int) -> dict[str, Any]:
        """Rows [start, stop) of the chunk."""
        cut = {name: column[start:stop] for name, column in self._columns.items()}
        return {name: _to_torch(column) for name, column in cut.items()} if self._is_torch else cut

    def _numbers(self, chunk: Chunk, name: str, place: str) -> Any:
        gathered = None
        for part in chunk.parts:
            stored = numbers(part.group.rows.column(name), place)
            if gathered is None:
                gathered = np.empty((self._num_rows, *stored.shape[1:]), dtype=stored.dtype)
            gathered[part.target] = stored[part.source]
        return gathered


def shape_of(kind: pa.DataType) -> Shape:
    """How a column of this type is handed over; see the table above."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if _is_number(kind) or types.is_timestamp(kind) or types.is_date(kind) or types.is_duration(kind):
        return "flat"
    if types.is_fixed_size_list(kind) and _is_number(kind.value_type):
        return "fixed"
    if (types.is_list(kind) or types.is_large_list(kind)) and _is_number(kind.value_type):
        return "lists"
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    is_bytes = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return "objects" if is_text or is_bytes else "values"


def numbers(array: Any, place: str) -> Any:
    """An Arrow array of numbers or of fixed-size lists of them as NumPy array [rows] or [rows, size]."""
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_fixed_size_list(array.type):
        size = array.type.list_size
        if array.null_count:
            raise _no_null(place, array.type)
        return numbers(array.flatten(), place).reshape(len(array), size)
    if array.null_count and (types.is_integer(array.type) or types.is_boolean(array.type)):
        raise _no_null(place, array.type)
    return array.to_numpy(zero_copy_only=False)


def gather(chunk: Chunk, columns: list[str]) -> pa.RecordBatch:
    """These columns of the chunk as one Arrow record batch, rows in the order of the stream."""
    import pyarrow as pa

    taken = [part.group.rows.select(columns).take(pa.array(part.source)) for part in chunk.parts]
    targets = np.concatenate([part.target for part in chunk.parts])
    if (targets[1:] > targets[:-1]).all():
        return pa.concat_batches(taken)
    back = np.empty_like(targets)
    back[targets] = np.arange(len(targets))
    return pa.concat_batches(taken).take(pa.array(back))


def _is_number(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _lists(array: Any, place: str) -> list[Any]:
    values = np.array(numbers(array.values, place))  # a copy of our own, which the trainer may write to
    ends = array.offsets.to_numpy().tolist()
    is_null = array.is_null().to_numpy(zero_copy_only=False).tolist()
    return [None if is_null[i] else values[ends[i] : ends[i + 1]] for i in range(len(array))]


def _to_torch(column: Any) -> Any:
    import torch

    if isinstance(column, list):
        return [torch.from_numpy(one) if isinstance(one, np.ndarray) else one for one in column]
    if column.dtype.kind in "biuf":
        return torch.from_numpy(column)
    return column.tolist() if column.dtype.kind == "O" else column


def _no_null(place: str, kind: pa.DataType) -> DataError:
    rule = "a batch of numbers has no place for a null"
    return DataError(place, f"null in {kind}", rule, "leave it out with columns=[...], or ask for output='arrow'")
