"""JSON lines one by one: the exact meaning of a line, which the fast path must agree with.

A line is a row where it is UTF-8, one JSON object with no key twice, with a text that is a string, and with values
that fit their columns.  Keys without a column go to `extra`, as do parts of an object that its column has no field for.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.operators.read._layout import Layout
from headrace.operators.read._lines import Lines

NO_TEXT = "the text is missing or null"
_WHITE = b" \t\r\n"
_INT64 = range(-(1 << 63), 1 << 63)


class Decoded(NamedTuple):
    """The rows of a chunk by input column, and the lines that are none."""

    columns: dict[str, pa.Array]
    extra: pa.Array
    lines: npt.NDArray[np.int64]  # the row's place among the chunk's lines
    bad: list[tuple[int, str]]  # the line's place, and what is wrong with it


class BadLine(Exception):
    """Why a line is no row; never leaves the reader."""


def parse_line(raw: bytes) -> dict[str, Any]:
    """One line as an object.  Raises BadLine."""
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise BadLine(f"not UTF-8 at byte {error.start} of the line") from error
    except json.JSONDecodeError as error:
        raise BadLine(f"no JSON: {error}") from error
    except RecursionError as error:
        raise BadLine("the JSON is nested too deeply") from error
    except ValueError as error:  # an integer of too many digits
        raise BadLine(f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadLine(f"{_kind(found)} instead of a JSON object")
    return found


def decode_slow(data: bytearray | memoryview, lines: Lines, layout: Layout) -> Decoded:
    """All lines of a chunk, one by one."""
    names = [name for name in (layout.id_column, layout.text_column, layout.source_column) if name is not None]
    values: dict[str, list[Any]] = {name: [] for name in [*names, *(other.column for other in layout.others)]}
    extras: list[str | None] = []
    good: list[int] = []
    bad: list[tuple[int, str]] = []
    view = memoryview(data)
    for place, (start, end) in enumerate(zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)):
        raw = bytes(view[start:end])
        if not raw.strip(_WHITE):
            continue
        try:
            row, extra = fit_row(parse_line(raw), layout)
        except BadLine as error:
            bad.append((place, str(error)))
            continue
        for name, column in values.items():
            column.append(row.get(name))
        extras.append(json_text(extra) if extra else None)
        good.append(place)
    arrays = {name: pa.array(values[name], pa.large_string()) for name in names}
    arrays.update({other.column: pa.array(values[other.column], other.field.type) for other in layout.others})
    return Decoded(arrays, pa.array(extras, pa.large_string()), np.array(good, np.int64), bad)


def json_text(value: Any) -> str:
    """The value as JSON; letters stay as they are unless they are half a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False)
    return text if _is_text(text) else json.dumps(value)


def fit_row(value: dict[str, Any], layout: Layout) -> tuple[dict[str, Any], dict[str, Any]]:
    """The object's values by column, and what no column takes.  Raises BadLine."""
    row: dict[str, Any] = {}
    left = dict(value)
    for name in (layout.id_column, layout.text_column, layout.source_column):
        if name is None:
            continue
        found = left.pop(name, None)
        if name == layout.text_column and found is None:
            raise BadLine(NO_TEXT)
        if name == layout.id_column and type(found) is int:
            found = str(found)
        row[name] = _fit(name, found, pa.large_string())[0]
    for other in layout.others:
        found = left.pop(other.column, None)
        if found is None:
            continue
        if other.is_json:
            row[other.column] = json_text(found)
        else:
            row[other.column], rest = _fit(other.column, found, other.field.type)
            if rest is not None:
                left[other.column] = rest
    return row, {name: found for name, found in left.items() if found is not None}


def _fit(place: str, value: Any, wanted: pa.DataType) -> tuple[Any, Any]:
    """The value as its column takes it, and what the column has no field for.  Raises BadLine."""
    if value is None:
        return None, None
    if pa.types.is_large_string(wanted):
        if isinstance(value, str):
            if not _is_text(value):
                raise BadLine(f"{place}: half a surrogate pair, which is no letter")
            return value, None
    elif pa.types.is_boolean(wanted):
        if isinstance(value, bool):
            return value, None
    elif pa.types.is_int64(wanted):
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and value in _INT64:
            return value, None
    elif pa.types.is_float64(wanted):
        if type(value) in (int, float):
            try:
                return float(value), None
            except OverflowError:
                pass
    elif pa.types.is_list(wanted) and isinstance(value, list):
        pairs = [_fit(f"{place}[{at}]", inner, wanted.value_type) for at, inner in enumerate(value)]
        return [pair[0] for pair in pairs], value if any(pair[1] is not None for pair in pairs) else None
    elif pa.types.is_struct(wanted) and isinstance(value, dict):
        return _fit_struct(place, value, wanted)
    shown = json_text(value)
    raise BadLine(f"{place}: {_kind(value)} {shown[:80]}{'…' if len(shown) > 80 else ''}, planned was {wanted}")


def _fit_struct(place: str, value: dict[str, Any], wanted: pa.DataType) -> tuple[Any, Any]:
    row, rest, left = {}, {}, dict(value)
    for field in wanted:
        row[field.name], over = _fit(f"{place}.{field.name}", left.pop(field.name, None), field.type)
        if over is not None:
            rest[field.name] = over
    rest.update({name: found for name, found in left.items() if found is not None})
    return row, rest or None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadLine(f"the key {twice!r} is there twice")
    return found


def _is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
    return "an object"
