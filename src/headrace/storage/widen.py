"""Give a dataset new columns, null in the rows that it has: the `evolve` of a contract."""

from __future__ import annotations

from collections.abc import Sequence

import lance
import pyarrow as pa

from headrace.errors import CommitConflict
from headrace.storage.commit import is_conflict
from headrace.storage.foreign import storage_calls
from headrace.storage.head import open_head
from headrace.storage.lake import Lake

_TRIES = 20


def add_null_columns(lake: Lake, name: str, columns: Sequence[pa.Field]) -> None:
    """Add nullable columns, metadata only; those that are there already are left alone."""
    for _ in range(_TRIES):
        head: lance.LanceDataset = open_head(lake, name)
        new = [column.with_nullable(True) for column in columns if column.name not in head.schema.names]
        if not new:
            return
        try:
            with storage_calls(head.uri):
                head.add_columns(new)
        except OSError as error:
            if not is_conflict(error.__cause__ or error):
                raise
            continue
        return
    raise CommitConflict(f"dataset {name}", f"{_TRIES} lost races", "another writer always came first", "run again")
