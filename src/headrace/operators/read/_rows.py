"""From decoded input columns to tables of rows in the planned schema, and to the rows that could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_128_hexdigest

from headrace.operators.read._files import last_folder
from headrace.operators.read._identity import Identity
from headrace.operators.read._layout import EXTRA, Layout
from headrace.operators.shapes import RAW_LIMIT_BYTES, READ_ERRORS, InputFile, ReadBatch

BATCH_ROWS = 8192
BATCH_BYTES = 8 << 20

Offsets = npt.NDArray[np.int64]

_NO_ERRORS = READ_ERRORS.empty_table()


class Rows:
    """What one part has given so far: ids are unique within it, and its errors wait for the next batch."""

    def __init__(self, file: InputFile, schema: pa.Schema, source: str | None) -> None:
        self.layout = Layout.of(schema)
        self._file = file
        self._source = source if source is not None else last_folder(file)
        self._identity = Identity(file.path)
        self._errors: list[tuple[int, int | None, str, bytes]] = []

    def error(
        self, offset: int, error: str, raw: bytes | bytearray | memoryview = b"", line: int | None = None
    ) -> None:
        """Note something that is no row."""
        self._errors.append((offset, line, error, bytes(raw[:RAW_LIMIT_BYTES])))

    def batches(
        self, columns: Mapping[str, pa.Array], offsets: Offsets, extra: pa.Array | None = None
    ) -> Iterator[ReadBatch]:
        """Rows of these input columns (of the planned types, text without nulls), and the errors noted so far."""
        if len(offsets):
            first = self._take_errors()
            for table in bounded(self._table(columns, offsets, extra)):
                yield ReadBatch(table, first, self._identity.take_renamed())
                first = _NO_ERRORS
        yield from self.rest()

    def rest(self) -> Iterator[ReadBatch]:
        """The errors noted since the last batch."""
        if self._errors:
            yield ReadBatch(self.layout.schema.empty_table(), self._take_errors())

    def _table(self, columns: Mapping[str, pa.Array], offsets: Offsets, extra: pa.Array | None) -> pa.Table:
        layout, count = self.layout, len(offsets)
        texts = columns[layout.text_column] if layout.text_column is not None else None
        own = columns.get(layout.id_column) if layout.id_column is not None else None
        if own is None:
            ids = self._identity.of_coordinates(offsets, texts)
        else:
            ids = self._identity.of_keys(own.cast(pa.string()), offsets, texts)
        source = columns.get(layout.source_column) if layout.source_column is not None else None
        places = pa.array(offsets, pa.int64())
        made = {
            "id": ids,
            "text": texts,
            "source": _filled(source, self._source, count),
            "source_file": _filled(columns.get("source_file") if layout.has_origin else None, self._file.path, count),
            "source_offset": places,
        }
        if layout.has_origin:
            made["source_offset"] = pc.coalesce(columns["source_offset"], places)
        if layout.has_extra:
            made[EXTRA] = extra if extra is not None else pa.nulls(count, pa.large_string())
        for other in layout.others:
            array = columns.get(other.column)
            made[other.field.name] = array if array is not None else pa.nulls(count, other.field.type)
        return pa.Table.from_arrays([made[name] for name in layout.schema.names], schema=layout.schema)

    def _take_errors(self) -> pa.Table:
        if not self._errors:
            return _NO_ERRORS
        path = self._file.path
        rows, self._errors = self._errors, []
        columns = [
            [_error_id(path, *row) for row in rows],
            [path] * len(rows),
            [row[0] for row in rows],
            [row[1] for row in rows],
            [row[2] for row in rows],
            [row[3] for row in rows],
        ]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, READ_ERRORS, strict=True)]
        return pa.Table.from_arrays(arrays, schema=READ_ERRORS)


def _filled(array: pa.Array | None, value: str, count: int) -> pa.Array:
    if array is None:
        return pa.repeat(pa.scalar(value, pa.string()), count)
    return pc.fill_null(array.cast(pa.string()), value)


def _error_id(path: str, offset: int, line: int | None, error: str, raw: bytes) -> str:
    return xxh3_128_hexdigest(b"\0".join([path.encode(), str(offset).encode(), error.encode(), raw]))


def bounded(table: pa.Table) -> Iterator[pa.Table]:
    """Slices of at most BATCH_ROWS rows and, but for a single long row, about BATCH_BYTES of text; none of no rows."""
    at, index = 0, table.schema.get_field_index("text")
    ends = None
    if index >= 0 and table.column(index).num_chunks == 1:
        ends = np.cumsum(pc.binary_length(table.column(index)).to_numpy())
    while at < table.num_rows:
        stop = min(at + BATCH_ROWS, table.num_rows)
        if ends is not None:
            before = int(ends[at - 1]) if at else 0
            stop = min(stop, max(at + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))))
        yield table.slice(at, stop - at)
        at = stop
