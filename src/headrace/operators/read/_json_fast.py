"""JSON lines by Arrow's parser, many at once; where its reading and ours could differ, nothing is returned.

Arrow takes bytes that are no UTF-8, a byte order mark before any chunk, several objects in a line, and falls over on
deep nesting: each is looked for first.  Keys that no column has are read again, from their lines, as JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as arrow_json

from headrace.operators.read._json_slow import NO_TEXT, BadLine, Decoded, json_text, parse_line
from headrace.operators.read._layout import ANY_KEY, INTEGER, Layout
from headrace.operators.read._lines import Lines

_OPEN, _CLOSE = ord("{"), ord("}")
_DEPTH_LIMIT = 2048  # nesting that is safe on a thread's stack
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')


class _Differs(Exception):
    """The slow path must decide."""


def decode_fast(data: bytearray | memoryview, lines: Lines, layout: Layout) -> Decoded | None:
    """All lines of a chunk at once; None where they need the slow path."""
    if not _is_plain(data, lines) or _is_deep(data, lines):
        return None
    wanted = _parse_types(layout)
    try:
        table = arrow_json.read_json(
            pa.BufferReader(data),
            arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            arrow_json.ParseOptions(explicit_schema=pa.schema(wanted), unexpected_field_behavior="infer"),
        )
        if table.num_rows != len(lines.starts):
            return None
        return _decoded(table, data, lines, layout, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError, _Differs, BadLine):
        return None


def _parse_types(layout: Layout) -> dict[str, pa.DataType]:
    types = {other.column: other.field.type for other in layout.others if not other.is_json}
    types.update({name: pa.large_string() for name in (layout.text_column, layout.source_column) if name is not None})
    if layout.id_column is not None and layout.id_form != ANY_KEY:
        types[layout.id_column] = pa.int64() if layout.id_form == INTEGER else pa.large_string()
    return types


def _is_plain(data: bytearray | memoryview, lines: Lines) -> bool:
    """Every line is one object as far as its ends tell, and all is UTF-8."""
    array = np.frombuffer(data, np.uint8)
    if not ((array[lines.starts] == _OPEN).all() and (array[lines.ends - 1] == _CLOSE).all()):
        return False
    bounds = pa.py_buffer(np.array([0, len(data)], np.int64))
    whole = pa.Array.from_buffers(pa.large_string(), 1, [None, bounds, pa.py_buffer(data)])
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_deep(data: bytearray | memoryview, lines: Lines) -> bool:
    """Whether a line may be nested deeper than the parser's stack bears; strings are looked into only where it may."""
    long = np.flatnonzero(lines.ends - lines.starts >= _DEPTH_LIMIT)
    if len(long) == 0:
        return False
    array, view = np.frombuffer(data, np.uint8), memoryview(data)
    for start, end in zip(lines.starts[long].tolist(), lines.ends[long].tolist(), strict=True):
        opens = (array[start:end] | 0x20) == _OPEN  # both kinds: [ differs from { in that bit alone
        if np.count_nonzero(opens) >= _DEPTH_LIMIT:
            bare = np.frombuffer(_STRING.sub(b"", view[start:end]), np.uint8) | 0x20
            depth = np.cumsum((bare == _OPEN).astype(np.int32) - (bare == _CLOSE))
            if len(depth) and depth.max() >= _DEPTH_LIMIT:
                return True
    return False


def _decoded(
    table: pa.Table, data: bytearray | memoryview, lines: Lines, layout: Layout, wanted: dict[str, pa.DataType]
) -> Decoded:
    columns = {name: _narrowed(_one(table, name), type_) for name, type_ in wanted.items()}
    if layout.id_column is not None and layout.id_form == ANY_KEY:
        columns[layout.id_column] = _any_key(table, layout.id_column)
    elif layout.id_column is not None:
        columns[layout.id_column] = columns[layout.id_column].cast(pa.large_string())
    json_columns = [other.column for other in layout.others if other.is_json]
    others = [name for name in table.column_names if name not in columns and name not in json_columns]
    extra = _json_texts(table, others, json_columns, data, lines, columns)
    places, bad = np.arange(table.num_rows), []
    if layout.text_column is not None and (empty := columns[layout.text_column]).null_count:
        keep = empty.is_valid()
        bad = [(place, NO_TEXT) for place in np.flatnonzero(~keep.to_numpy(zero_copy_only=False)).tolist()]
        places = places[keep.to_numpy(zero_copy_only=False)]
        columns = {name: column.filter(keep) for name, column in columns.items()}
        extra = extra.filter(keep)
    return Decoded(columns, extra, places, bad)


def _json_texts(
    table: pa.Table,
    others: Iterable[str],
    json_columns: list[str],
    data: bytearray | memoryview,
    lines: Lines,
    columns: dict[str, pa.Array],
) -> pa.Array:
    """Read the lines again that have something in columns of JSON text, which are set, or in undeclared ones."""
    others = [name for name in others if not pa.types.is_null(table.schema.field(name).type)]
    texts: dict[str, list[str | None]] = {name: [None] * table.num_rows for name in json_columns}
    extras: list[str | None] = [None] * table.num_rows
    has: npt.NDArray[np.bool_] = np.zeros(table.num_rows, np.bool_)
    for name in [*others, *(name for name in json_columns if name in table.column_names)]:
        has |= _one(table, name).is_valid().to_numpy(zero_copy_only=False)
    view = memoryview(data)
    for row in np.flatnonzero(has).tolist():
        value = parse_line(bytes(view[lines.starts[row] : lines.ends[row]]))
        for name in json_columns:
            if value.get(name) is not None:
                texts[name][row] = json_text(value[name])
        # in the line's own order, as the slow path has it
        if left := {name: found for name, found in value.items() if name in others and found is not None}:
            extras[row] = json_text(left)
    columns.update({name: pa.array(values, pa.large_string()) for name, values in texts.items()})
    return pa.array(extras, pa.large_string())


def _one(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _any_key(table: pa.Table, name: str) -> pa.Array:
    if name not in table.column_names:
        return pa.nulls(table.num_rows, pa.large_string())
    column = _one(table, name)
    if not (pa.types.is_int64(column.type) or pa.types.is_string(column.type) or pa.types.is_null(column.type)):
        raise _Differs
    return column.cast(pa.large_string())


def _narrowed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Without fields that the plan does not know, where these are null; undeclared content needs the slow path."""
    if array.type == wanted:
        return array
    if not (pa.types.is_struct(array.type) and pa.types.is_struct(wanted)):
        raise _Differs
    known = {field.name for field in wanted}
    if any(field.name not in known and not pa.types.is_null(field.type) for field in array.type):
        raise _Differs
    children = [_narrowed(array.field(field.name), field.type) for field in wanted]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
