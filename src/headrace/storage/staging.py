"""Staging: data files written for a dataset but not yet part of it.

A worker stages, writes down what it staged in a unit record, and is done; only the coordinator commits.  Lance
commits a missing file, a cut one or the same one twice without complaint, so all that is checked here before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lance import FragmentMetadata
from lance.fragment import write_fragments

from headrace.errors import DataError
from headrace.storage.contract import stored_contract
from headrace.storage.foreign import storage_calls
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.objects import ObjectStore


@dataclass(frozen=True)
class StagedFile:
    """One data file; `path` is relative to the dataset's data folder, as in Lance."""

    path: str
    size_bytes: int


@dataclass(frozen=True)
class StagedFragment:
    """One fragment that is not committed yet; a unit record keeps it as JSON."""

    fragment: str  # Lance's own description, as JSON text
    files: tuple[StagedFile, ...]
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        files = [{"path": file.path, "size_bytes": file.size_bytes} for file in self.files]
        return {"fragment": self.fragment, "files": files, "rows": self.rows}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> StagedFragment:
        """The inverse of `to_dict`."""
        files = tuple(StagedFile(str(file["path"]), int(file["size_bytes"])) for file in values["files"])
        return cls(str(values["fragment"]), files, int(values["rows"]))

    def metadata(self) -> FragmentMetadata:
        """For Lance.  The fragment id stays 0: Lance gives the id, a hand-made one may re-use a deleted one."""
        return FragmentMetadata.from_json(self.fragment)


def stage(lake: Lake, name: str, table: pa.Table) -> list[StagedFragment]:
    """Write the table's data files without committing them; nothing for an empty table.

    DataError where a column is not as the contract has it.
    """
    target = open_head(lake, name)
    table = stored_contract(target.schema).conform(table, f"rows for {name}")
    if not table.num_rows:
        return []
    table = _unsliced(table)
    with storage_calls(lake.dataset_uri(name)):
        written = write_fragments(table, target, mode="append", storage_options=lake.storage_options())
    data = _data_files(lake, name)
    return [_staged(fragment, data) for fragment in written]


def _unsliced(table: pa.Table) -> pa.Table:
    """The table in one chunk, its nested columns in arrays of their own: Lance 14 panics on slices of nested structs.

    An array may be a slice inside, with no offset to see, and another column's chunks cut it again; so all is copied.
    """
    if not any(pa.types.is_nested(column.type) for column in table.columns):
        return table
    rows = pa.array(range(table.num_rows), pa.int64())
    columns = [c.take(rows) if pa.types.is_nested(c.type) else c for c in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema).combine_chunks()


def check_staged(lake: Lake, name: str, staged: Sequence[StagedFragment]) -> None:
    """Raise DataError naming the file that is missing, has another size than was staged, or is named twice."""
    place, fix = f"staged files of {name}", "stage the unit again"
    files = _files(staged)
    for path, count in Counter(file.path for file in files).items():
        if count > 1:
            raise DataError(place, f"{path} named {count} times", "a data file belongs to one fragment", fix)
    data = _data_files(lake, name)
    for file in files:
        size_bytes = data.size_bytes(file.path)
        if size_bytes is None:
            raise DataError(place, f"{path_in(lake, name, file.path)} missing", "every staged file must be there", fix)
        if size_bytes != file.size_bytes:
            got = f"{path_in(lake, name, file.path)} with {size_bytes} bytes"
            raise DataError(place, got, f"it was staged with {file.size_bytes} bytes", fix)


def missing_files(lake: Lake, name: str, staged: Sequence[StagedFragment]) -> list[str]:
    """Paths of staged files that are gone or have another size than was staged, in the order given."""
    data = _data_files(lake, name)
    return [file.path for file in _files(staged) if data.size_bytes(file.path) != file.size_bytes]


def path_in(lake: Lake, name: str, path: str) -> str:
    """Where a data file of the dataset lies."""
    return f"{lake.dataset_uri(name)}/data/{path}"


def _files(staged: Iterable[StagedFragment]) -> list[StagedFile]:
    return [file for fragment in staged for file in fragment.files]


def _data_files(lake: Lake, name: str) -> ObjectStore:
    return ObjectStore(f"{lake.dataset_uri(name)}/data")


def _staged(fragment: FragmentMetadata, data: ObjectStore) -> StagedFragment:
    files = []
    for file in fragment.files:
        size_bytes = file.file_size_bytes or data.size_bytes(file.path)
        if not size_bytes:
            raise DataError("staging", f"{file.path} missing or empty", "a written file must be there", "try again")
        files.append(StagedFile(file.path, size_bytes))
    return StagedFragment(json.dumps(fragment.to_json()), tuple(files), fragment.physical_rows)
