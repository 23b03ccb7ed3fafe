"""JSON lines by Arrow's parser, many at once; where its reading and ours could differ, nothing is returned.

Arrow takes bytes that are no UTF-8, a byte order mark before any chunk, several objects in a line, and falls over on
deep nesting: each is looked for first.  Keys that no column has are read again, from their lines, as JSON text.
"""

from __future__ import annotations

import json
import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as arrow_json

from headrace.operators.read._json_slow import NO_TEXT, BadLine, Decoded, fit_row, json_text
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
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError, RecursionError, _Differs, BadLine):
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
    odd: npt.NDArray[np.bool_] = np.zeros(table.num_rows, np.bool_)  # rows whose line must be read again
    columns = {}
    for name, type_ in wanted.items():
        columns[name], is_whole = _narrowed(_one(table, name), type_)
        if not is_whole:
            odd |= _is_valid(columns[name])
    if layout.id_column is not None:
        key = _any_key(table, layout.id_column) if layout.id_form == ANY_KEY else columns[layout.id_column]
        columns[layout.id_column] = key.cast(pa.large_string())
    for name in table.column_names:
        if name not in wanted and name != layout.id_column:  # undeclared, or declared as JSON text
            odd |= _is_valid(_one(table, name))
    extra = _read_again(np.flatnonzero(odd).tolist(), data, lines, layout, columns)
    places, bad = np.arange(table.num_rows), []
    if layout.text_column is not None and (empty := columns[layout.text_column]).null_count:
        keep = empty.is_valid()
        bad = [(place, NO_TEXT) for place in np.flatnonzero(~keep.to_numpy(zero_copy_only=False)).tolist()]
        places = places[keep.to_numpy(zero_copy_only=False)]
        columns = {name: column.filter(keep) for name, column in columns.items()}
        extra = extra.filter(keep)
    return Decoded(columns, extra, places, bad)


def _read_again(
    odd: list[int], data: bytearray | memoryview, lines: Lines, layout: Layout, columns: dict[str, pa.Array]
) -> pa.Array:
    """Read these lines for `extra`, and for the columns of JSON text, which are set."""
    count, view = len(lines.starts), memoryview(data)
    texts: dict[str, list[str | None]] = {other.column: [None] * count for other in layout.others if other.is_json}
    extras: list[str | None] = [None] * count
    for place in odd:
        # Arrow has found no key twice and no wrong byte: the plain parser does, at twice the speed of parse_line
        row, left = fit_row(json.loads(bytes(view[lines.starts[place] : lines.ends[place]])), layout)
        for name, values in texts.items():
            values[place] = row.get(name)
        extras[place] = json_text(left) if left else None
    columns.update({name: pa.array(values, pa.large_string()) for name, values in texts.items()})
    return pa.array(extras, pa.large_string())


def _is_valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _one(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _any_key(table: pa.Table, name: str) -> pa.Array:
    if name not in table.column_names:
        return pa.nulls(table.num_rows, pa.large_string())
    column = _one(table, name)
    if not (pa.types.is_int64(column.type) or pa.types.is_string(column.type) or pa.types.is_null(column.type)):
        raise _Differs
    return column


def _narrowed(array: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, bool]:
    """Without the fields that the plan does not know, and whether these were all null."""
    if array.type == wanted:
        return array, True
    if not (pa.types.is_struct(array.type) and pa.types.is_struct(wanted)):
        raise _Differs
    known = {field.name for field in wanted}
    is_whole = all(field.name in known or pa.types.is_null(field.type) for field in array.type)
    children = []
    for field in wanted:
        child, is_child_whole = _narrowed(array.field(field.name), field.type)
        children.append(child)
        is_whole = is_whole and is_child_whole
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask), is_whole
