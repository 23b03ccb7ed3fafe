"""The text column of a table, as checked contiguous UTF-8, and its buffers as numpy arrays for a kernel."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import DataError

T = TypeVar("T", bound=np.generic)


class TextBuffers(NamedTuple):
    """One string column as a kernel sees it; row k is `bytes[offsets[k]:offsets[k + 1]]`, and a null row is empty."""

    bytes: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]


def text_chunks(table: pa.Table, column: str, place: str) -> list[pa.LargeStringArray]:
    """The chunks of `column` as large_string, nulls kept.

    Raises DataError where the column is missing, is no string, or holds bytes that are no UTF-8: kernels rely on it.
    """
    if table.schema.get_field_index(column) < 0:  # also where two columns have that name
        raise DataError(
            place,
            f"the columns {', '.join(table.schema.names) or '(none)'}",
            f"needs exactly one string column {column!r}",
            "set `column` to the column that holds the text",
        )
    chunked = table.column(column)
    if not (pa.types.is_string(chunked.type) or pa.types.is_large_string(chunked.type)):
        raise DataError(
            place, f"{column}: {chunked.type}", "the column must be string or large_string", f"cast {column!r} first"
        )
    chunks = []
    row = 0
    for chunk in chunked.chunks:
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(
                place,
                f"{column}, rows {row} to {row + len(chunk) - 1}: {error}",
                "text must be UTF-8",
                "decode it while reading",
            ) from error
        row += len(chunk)
        chunks.append(chunk.cast(pa.large_string()))
    return chunks


def text_column(table: pa.Table, column: str, place: str) -> pa.LargeStringArray:
    """`text_chunks` as one array; copies only where there is more than one chunk."""
    chunks = text_chunks(table, column, place)
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_string())


def text_buffers(texts: pa.LargeStringArray) -> TextBuffers:
    """The array's own memory, read-only; copies only where nulls must be emptied."""
    if texts.null_count:
        texts = pc.fill_null(texts, "")  # a null row may lie over any bytes
    _, offsets, values = texts.buffers()
    if offsets is None or offsets.size == 0:  # an empty array may come without
        return TextBuffers(_read_only(np.zeros(0, np.uint8)), _read_only(np.zeros(1, np.int64)))
    window = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
    content = np.frombuffer(values, np.uint8) if values is not None and values.size else np.zeros(0, np.uint8)
    return TextBuffers(_read_only(content), _read_only(window))


def _read_only(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """One kind of array for the compiler, whether or not the buffer may be written to."""
    view = array.view() if array.flags.aligned else array.copy()
    view.flags.writeable = False
    return view
