"""The contract of a dataset: its declared columns, checked where rows are staged.

Lance commits a fragment of another type without complaint and reads it back as garbage, so nothing reaches a commit
that was not checked against the contract first.  The contract lives in the dataset itself, as field metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

import pyarrow as pa

from headrace.errors import DataError, SpecError
from headrace.storage.head import open_head
from headrace.storage.lake import Lake

Mode = Literal["frozen", "evolve", "quarantine"]

_PRIMARY_KEY = b"lance-schema:unenforced-primary-key"  # without it, concurrent upserts of one key give copies
_MODE = b"headrace.mode"


@dataclass(frozen=True)
class Contract:
    """Columns, what may happen to each (`frozen` unless said), and the column that names a row.

    Types are kept as declared: declare long text `large_string`, since a `string` column of one table ends at 2 GiB.
    `key=None` is for tables whose ids repeat, such as rejects.
    """

    schema: pa.Schema
    modes: Mapping[str, Mode] = field(default_factory=dict)
    key: str | None = "id"

    def __post_init__(self) -> None:
        """Refuse a contract that could not be stored."""
        names = self.schema.names
        for name in names:
            if names.count(name) > 1 or "." in name or name.startswith("_row") or not name:
                rule = "a column's name is not empty, not double, has no '.' and does not start with _row"
                raise SpecError("contract", repr(name), rule, "rename the column")
        for name, mode in self.modes.items():
            if name not in names or mode not in get_args(Mode):
                rule = f"a mode is one of {', '.join(get_args(Mode))}, for a declared column"
                raise SpecError("contract modes", f"{name}: {mode}", rule, f"columns are {', '.join(names)}")
        if self.key is not None and self.key not in names:
            raise SpecError("contract key", repr(self.key), "must be a declared column", f"one of {', '.join(names)}")

    def mode(self, column: str) -> Mode:
        """What may happen to this column."""
        return self.modes.get(column, "frozen")

    def arrow_schema(self) -> pa.Schema:
        """The schema to create the dataset with: the key not null and marked, the modes in the fields' metadata."""
        return pa.schema([self._stored(declared) for declared in self.schema])

    def check(self, given: pa.Table | pa.Schema, place: str = "rows") -> None:
        """Raise DataError that names the first column which breaks the contract.  The order of columns is free."""
        schema = given if isinstance(given, pa.Schema) else given.schema
        for declared in self.arrow_schema():
            indices = schema.get_all_field_indices(declared.name)
            where = f"{place}, column {declared.name!r}"
            if len(indices) != 1:
                got = "no such column" if not indices else f"{len(indices)} columns of this name"
                raise DataError(where, got, f"the contract has it as {declared.type}", "add it, null where unknown")
            if not schema.field(indices[0]).type.equals(declared.type):
                raise DataError(
                    where, f"{schema.field(indices[0]).type}", f"the contract has {declared.type}", "cast it"
                )
            if not declared.nullable and isinstance(given, pa.Table) and given.column(indices[0]).null_count:
                raise DataError(where, f"{given.column(indices[0]).null_count} nulls", "must not be null", "fill it")
        for name in schema.names:
            if name not in self.schema.names:
                rule = f"the contract has {', '.join(self.schema.names)}"
                raise DataError(
                    f"{place}, column {name!r}", "a column that is not declared", rule, "drop or declare it"
                )

    def conform(self, table: pa.Table, place: str = "rows") -> pa.Table:
        """The checked table with the contract's order of columns and its nullability; copies no values."""
        self.check(table, place)
        schema = pa.schema([declared.remove_metadata() for declared in self.arrow_schema()])
        columns = [table.column(declared.name) for declared in schema]
        columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=schema)

    def _stored(self, declared: pa.Field) -> pa.Field:
        metadata = {key: value for key, value in (declared.metadata or {}).items() if key not in (_PRIMARY_KEY, _MODE)}
        metadata[_MODE] = self.mode(declared.name).encode()
        if declared.name == self.key:
            return declared.with_nullable(False).with_metadata({**metadata, _PRIMARY_KEY: b"true"})
        return declared.with_metadata(metadata)


def contract_of(lake: Lake, name: str) -> Contract:
    """The contract that the dataset was created with; DatasetNotFound where there is none."""
    return stored_contract(open_head(lake, name).schema)


def stored_contract(schema: pa.Schema) -> Contract:
    """Read a contract back from a dataset's schema; columns without our metadata are frozen."""
    modes: dict[str, Mode] = {}
    key, fields = None, []
    for stored in schema:
        metadata = dict(stored.metadata or {})
        if metadata.pop(_PRIMARY_KEY, b"") == b"true":
            key = stored.name
        mode = metadata.pop(_MODE, b"frozen").decode()
        if mode != "frozen" and mode in get_args(Mode):
            modes[stored.name] = cast(Mode, mode)
        fields.append(stored.with_metadata(metadata or None))
    return Contract(pa.schema(fields), modes, key)


def first_difference(old: Contract, new: Contract) -> tuple[str, str, str] | None:
    """(column, in `old`, in `new`) where two contracts differ, or None; the order of columns does not count."""
    told_old, told_new = _told(old), _told(new)
    for column in [*told_old, *told_new]:
        one, other = told_old.get(column, "no such column"), told_new.get(column, "no such column")
        if one != other:
            return column, one, other
    return None


def _told(contract: Contract) -> dict[str, str]:
    told = {}
    for stored in contract.arrow_schema():
        marks = [str(stored.type), "null" if stored.nullable else "not null", contract.mode(stored.name)]
        told[stored.name] = ", ".join([*marks, "key"] if stored.name == contract.key else marks)
    return told


DOCUMENT = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.large_string()),
        pa.field("source", pa.string()),
        pa.field("source_file", pa.string()),
        pa.field("source_offset", pa.int64()),
    ]
)
"""The least that a document has; a dataset of documents may declare more columns."""

REJECTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("run", pa.string()),
        pa.field("step", pa.int32()),
        pa.field("op", pa.string()),
        pa.field("rule", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("threshold", pa.float64()),
        pa.field("note", pa.string()),
        pa.field("partner", pa.string()),  # id of the row that this one lost to
        pa.field("source_file", pa.string()),
        pa.field("source_offset", pa.int64()),
        pa.field("text", pa.large_string()),
    ]
)
"""Rows that a rule dropped, in the dataset `<name>.rejects`; an id occurs once a run."""

QUARANTINE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("run", pa.string()),
        pa.field("step", pa.int32()),
        pa.field("op", pa.string()),
        pa.field("error", pa.string()),
        pa.field("source_file", pa.string()),
        pa.field("source_offset", pa.int64()),
        pa.field("line", pa.int64()),
        pa.field("text", pa.large_string()),
        pa.field("raw", pa.large_binary()),
    ]
)
"""Rows that broke a step or could not be read, in the dataset `<name>.quarantine`."""
