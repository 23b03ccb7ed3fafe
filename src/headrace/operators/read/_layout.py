"""The planned schema of a reader: which input column becomes which column of its rows.

Every schema starts with id, text, source, source_file, source_offset.  What differs between an input column and its
planned field is written into the field's metadata, so that a worker knows it from the schema alone:

    headrace.column   the input column's name, where the field's is another one (and for id, text, source always)
    headrace.form     "json": the field holds JSON text of the value; for id: "string", "integer" or "any"
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from headrace.errors import SpecError
from headrace.operators.shapes import VERDICT_COLUMN

COLUMN, FORM = b"headrace.column", b"headrace.form"
JSON, ANY_KEY, STRING, INTEGER = "json", "any", "string", "integer"
EXTRA = "extra"
SYSTEM = ("id", "text", "source", "source_file", "source_offset")
_RESERVED = {*SYSTEM, VERDICT_COLUMN, "_rowid", "_rowaddr", "_rowoffset"}


class Column(NamedTuple):
    """A column of the input: its type, and JSON (or ANY_KEY: strings mixed with integers) where no type holds it."""

    type: pa.DataType
    form: str = ""


@dataclass(frozen=True)
class Roles:
    """Which input columns the reader's parameters give a role."""

    id_column: str | None  # "auto": the input's `id` where it is a string or an integer
    text_column: str | None
    source: str | None
    origin: bool = False  # the input's own source_file and source_offset say where a row came from at first


def plan_schema(columns: Mapping[str, Column], roles: Roles, place: str, extra: bool = False) -> pa.Schema:
    """The schema of rows from these input columns, in their order.  Raises SpecError where a named column is no use."""
    id_column = _id_column(columns, roles.id_column, place)
    source = "source" if roles.source is None and _is_string(columns.get("source")) else None
    origin = roles.origin and _is_string(columns.get("source_file")) and _is_offset(columns.get("source_offset"))
    fields = [
        pa.field("id", pa.string(), nullable=False, metadata=_id_notes(columns, id_column)),
        pa.field("source", pa.string(), metadata=_notes("source") if source else None),
        pa.field("source_file", pa.string(), metadata=_notes("source_file") if origin else None),
        pa.field("source_offset", pa.int64(), metadata=_notes("source_offset") if origin else None),
    ]
    if roles.text_column is not None:
        _check_text(columns, roles.text_column, place)
        fields.insert(1, pa.field("text", pa.large_string(), metadata=_notes(roles.text_column)))
    taken = {*_RESERVED, *((EXTRA,) if extra else ())}
    if extra:
        fields.append(pa.field(EXTRA, pa.large_string(), metadata={FORM: JSON.encode()}))
    used = {id_column, roles.text_column, source, *(("source_file", "source_offset") if origin else ())}
    names = [name for name in columns if name not in used]
    free = {
        name for name in names if _plain(name) == name and name not in taken
    }  # keep their names, whatever comes first
    for name in names:
        column, field_name = columns[name], name
        if name not in free:
            field_name = _plain(name)
            while field_name in taken or field_name in free:
                field_name += "_"
        taken.add(field_name)
        notes = {} if field_name == name else _notes(name)
        if column.form:
            notes[FORM] = JSON.encode()
        fields.append(pa.field(field_name, pa.large_string() if column.form else column.type, metadata=notes or None))
    return pa.schema(fields)


def _plain(name: str) -> str:
    return name.replace(".", "_") or "_"  # Lance takes no dot in a top-level name


def _notes(column: str) -> dict[bytes, bytes]:
    return {COLUMN: column.encode()}


def _id_notes(columns: Mapping[str, Column], id_column: str | None) -> dict[bytes, bytes] | None:
    if id_column is None:
        return None
    column = columns[id_column]
    form = ANY_KEY if column.form else INTEGER if pa.types.is_integer(column.type) else STRING
    return {**_notes(id_column), FORM: form.encode()}


def _id_column(columns: Mapping[str, Column], wanted: str | None, place: str) -> str | None:
    name = "id" if wanted == "auto" else wanted
    if name is None or (wanted == "auto" and name not in columns):
        return None
    if name not in columns:
        raise SpecError(f"{place}.id_column", repr(name), _known(columns), "name one of them, or leave it out")
    column = columns[name]
    if column.form == ANY_KEY or _is_string(column) or (not column.form and pa.types.is_integer(column.type)):
        return name
    if wanted == "auto":
        return None
    told = "mixed types" if column.form else str(column.type)
    fix = "name another column, or leave it out: ids then come from file, offset and text"
    raise SpecError(f"{place}.id_column", f"{name!r} ({told})", "an id must be a string or an integer", fix)


def _check_text(columns: Mapping[str, Column], name: str, place: str) -> None:
    if name not in columns:
        raise SpecError(f"{place}.text_column", repr(name), _known(columns), "set text_column to the one with the text")
    if not _is_string(columns[name]):
        told = "mixed types" if columns[name].form else str(columns[name].type)
        fix = "set text_column to a column of strings"
        raise SpecError(f"{place}.text_column", f"{name!r} ({told})", "the text must be a string", fix)


def _known(columns: Collection[str]) -> str:
    names = sorted(columns)
    told = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"the input's columns are {told or '(none)'}"


def _is_string(column: Column | None) -> bool:
    return column is not None and not column.form and bool(pa.types.is_large_string(column.type))


def _is_offset(column: Column | None) -> bool:
    return column is not None and column.type == pa.int64()


class Other(NamedTuple):
    """A planned field that is none of ours: where its values come from."""

    column: str
    field: pa.Field
    is_json: bool


@dataclass(frozen=True)
class Layout:
    """The planned schema, read back."""

    schema: pa.Schema
    id_column: str | None
    id_form: str
    text_column: str | None
    source_column: str | None
    has_origin: bool
    others: tuple[Other, ...]
    has_extra: bool

    @classmethod
    def of(cls, schema: pa.Schema) -> Layout:
        """From the schema that the run planned."""
        return _layout_of(schema.serialize().to_pybytes())  # by bytes: schemas compare without their notes

    @classmethod
    def read(cls, schema: pa.Schema) -> Layout:
        """As `of`, without looking into the cache."""
        others, has_extra = [], False
        for field in schema:
            is_json = _note(field, FORM) == JSON
            if field.name in SYSTEM:
                continue
            column = _note(field, COLUMN)
            if field.name == EXTRA and is_json and column is None:
                has_extra = True
                continue
            others.append(Other(field.name if column is None else column, field, is_json))
        has_text = schema.get_field_index("text") >= 0
        return cls(
            schema,
            _note(schema.field("id"), COLUMN),
            _note(schema.field("id"), FORM) or STRING,
            _note(schema.field("text"), COLUMN) if has_text else None,
            _note(schema.field("source"), COLUMN),
            _note(schema.field("source_file"), COLUMN) is not None,
            tuple(others),
            has_extra,
        )


@lru_cache(maxsize=8)  # a run of small files has one part a file
def _layout_of(schema: bytes) -> Layout:
    return Layout.read(pa.ipc.read_schema(pa.py_buffer(schema)))


def _note(field: pa.Field, key: bytes) -> str | None:
    found = (field.metadata or {}).get(key)
    return None if found is None else found.decode()
