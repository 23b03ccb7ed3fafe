"""Fit batches of typed columns to the planned types: what does not fit costs its row, not the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import DataError
from headrace.operators.read._json_slow import NO_TEXT
from headrace.operators.read._layout import Column, Layout
from headrace.operators.read._types import large_type


class Fitted(NamedTuple):
    """Rows by input column, in the planned types; and the rows that do not fit."""

    columns: dict[str, pa.Array]
    rows: npt.NDArray[np.int64]  # the row's place in the batch
    bad: list[tuple[int, str]]


def fit(batch: pa.Table, layout: Layout) -> Fitted:
    """Cast, check UTF-8, and set apart the rows that have no text or do not fit."""
    wanted = wanted_types(layout, batch.schema)
    if layout.text_column is not None and layout.text_column not in wanted:
        return Fitted({}, np.zeros(0, np.int64), [(row, NO_TEXT) for row in range(batch.num_rows)])
    good, bad = [], []
    for at, outcome in _pieces(batch.select(list(wanted)), wanted, 0):
        if isinstance(outcome, str):
            bad.append((at, outcome))
        else:
            good.append((at, outcome))
    spans = [np.arange(at, at + piece.num_rows, dtype=np.int64) for at, piece in good]
    rows = np.concatenate(spans) if spans else np.zeros(0, np.int64)
    schema = pa.schema(wanted)
    table = pa.concat_tables([piece for _, piece in good]) if good else schema.empty_table()
    columns = {name: one_chunk(table.column(name)) for name in wanted}
    text = columns[layout.text_column] if layout.text_column is not None else None
    if text is not None and text.null_count:
        keep = text.is_valid()
        is_kept = keep.to_numpy(zero_copy_only=False)
        bad = sorted([*bad, *((row, NO_TEXT) for row in rows[~is_kept].tolist())])
        rows, columns = rows[is_kept], {name: column.filter(keep) for name, column in columns.items()}
    return Fitted(columns, rows, bad)


def wanted_types(layout: Layout, found: pa.Schema) -> dict[str, pa.DataType]:
    """The planned type of each input column that this file has and the plan knows."""
    named = (layout.id_column, layout.text_column, layout.source_column)
    types = {name: pa.large_string() for name in named if name is not None}
    if layout.has_origin:
        types.update({"source_file": pa.large_string(), "source_offset": pa.int64()})
    types.update({other.column: other.field.type for other in layout.others})
    return {name: type_ for name, type_ in types.items() if found.get_field_index(name) >= 0}


def _pieces(table: pa.Table, wanted: dict[str, pa.DataType], at: int) -> Iterator[tuple[int, pa.Table | str]]:
    """Runs of rows that fit, and what is wrong with single rows that don't; halves find them."""
    if table.num_rows == 0:
        return
    try:
        arrays = [_cast(table.column(name), type_) for name, type_ in wanted.items()]
        whole = pa.Table.from_arrays(arrays, schema=pa.schema(wanted))
        whole.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
        if table.num_rows == 1:
            yield at, " ".join(str(error).split())
            return
        half = table.num_rows // 2
        yield from _pieces(table.slice(0, half), wanted, at)
        yield from _pieces(table.slice(half), wanted, at + half)
        return
    yield at, whole


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if column.type == wanted:
        return column
    # integers beyond 2^53 lose digits where another file has floats: the promotion that the plan chose
    return pc.cast(column, wanted, safe=not (pa.types.is_integer(column.type) and pa.types.is_floating(wanted)))


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array; copies only where there is more than one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def unify(known: dict[str, Column], schema: pa.Schema, place: str) -> None:
    """Add one file's columns.  Raises DataError where a name is there twice or its types have no common one."""
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise DataError(place, f"two columns {twice[0]!r}", "names must be unique", "leave the file out, or rename one")
    for field in schema:
        type_ = large_type(field.type, null=pa.null())
        if field.name in known and known[field.name].type != type_:
            type_ = _common(known[field.name].type, type_, f"{place}, column {field.name!r}", field.type)
        known[field.name] = Column(type_)


def settle(columns: dict[str, Column]) -> dict[str, Column]:
    """What no file has more than nulls for becomes a string."""
    return {name: Column(large_type(column.type), column.form) for name, column in columns.items()}


def _common(before: pa.DataType, now: pa.DataType, place: str, told: pa.DataType) -> pa.DataType:
    try:
        pair = [pa.schema([("x", before)]), pa.schema([("x", now)])]
        return pa.unify_schemas(pair, promote_options="permissive").field("x").type
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        fix = "give the file's column that type, or leave the file out with exclude"
        raise DataError(place, str(told), f"files before it have {before}", fix) from error
