"""Rows of a pinned dataset version by row number: the only place of the loader that reads.

Row numbers count live rows, fragment by fragment: a deleted row has no number.  `LanceFragment.take` counts the same
way, wants strictly increasing offsets, and is fast where they come in runs (3 us a row at runs of 64, 15-25 us where
each row lies alone).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.errors import DataError, SpecError, StorageUnavailable
from headrace.loaders.order import Piece
from headrace.loaders.permutation import Places

if TYPE_CHECKING:
    import pyarrow as pa

_READ_ROWS, _FIRST_READ_ROWS = 2_048, 256
_READ_BYTES = 8 * 2**20  # longer reads cost more a row again: page faults


class Group(NamedTuple):
    """Pieces that were read together, and for each the places of its rows in `rows`, in the order of delivery."""

    pieces: Sequence[Piece]
    places: Sequence[Places]
    rows: pa.RecordBatch


class Source:
    """Some columns of a dataset at one version."""

    def __init__(self, dataset: Any, reference: str, columns: Sequence[str] | None = None) -> None:
        """`dataset` is a `lance.LanceDataset` opened at its version; SpecError for a column that it lacks."""
        self.reference = reference
        self._uri = str(dataset.uri)
        self.columns = (
            list(dataset.schema.names) if columns is None else _checked(columns, dataset.schema.names, reference)
        )
        self.schema: pa.Schema = _selected(dataset.schema, self.columns)
        self._fragments = list(dataset.get_fragments())
        counts = np.array([fragment.count_rows() for fragment in self._fragments], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self.num_rows = int(self._starts[-1])
        self.row_bytes = 0.0  # the largest mean of a read so far; 0 before the first

    def rows_a_read(self) -> int:
        """How many rows to read at once: few at first, then as many as the bytes allow."""
        if not self.row_bytes:
            return _FIRST_READ_ROWS
        return max(1, min(_READ_ROWS, int(_READ_BYTES / self.row_bytes)))

    def read(self, pieces: Sequence[Piece]) -> Group:
        """Read these pieces in one pass over the fragments that hold them; safe from many threads."""
        import pyarrow as pa

        stored = sorted(range(len(pieces)), key=lambda number: pieces[number].first_row)
        rows = np.concatenate([np.arange(p.first_row, p.first_row + p.num_rows) for p in (pieces[i] for i in stored)])
        tables = []
        begin = 0
        while begin < len(rows):
            number = int(np.searchsorted(self._starts, rows[begin], side="right")) - 1
            end = int(np.searchsorted(rows, self._starts[number + 1]))
            tables.append(self._take(number, rows[begin:end] - self._starts[number]))
            begin = end
        table = pa.concat_tables(tables)
        batch = pa.RecordBatch.from_arrays([_one_array(column) for column in table.columns], schema=self.schema)
        self.row_bytes = max(self.row_bytes, batch.nbytes / len(rows))
        places: list[Places] = [np.empty(0, dtype=np.int64)] * len(pieces)
        base = 0
        for index in stored:
            places[index] = base + pieces[index].offsets()
            base += pieces[index].num_rows
        return Group(pieces, places, batch)

    def _take(self, number: int, offsets: Places) -> pa.Table:
        place = f"{self.reference}, fragment {self._fragments[number].fragment_id}"
        try:
            table = self._fragments[number].take(offsets.tolist(), columns=self.columns)
        except (OSError, ValueError, RuntimeError) as error:  # Lance raises any of them for what storage does
            rule = "the files of a version that is being read must stay and must answer"
            fix = "check the storage; keep the version by a tag or channel so that no clean-up removes it"
            raise StorageUnavailable(place, _first_line(error), rule, fix) from error
        if table.num_rows != len(offsets):
            raise DataError(place, f"{table.num_rows} rows for {len(offsets)}", "a read gives each row once")
        return table.select(self.columns)


def _one_array(column: Any) -> Any:
    import pyarrow as pa

    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _selected(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([schema.field(name) for name in columns])


def _checked(columns: Sequence[str], names: Sequence[str], reference: str) -> list[str]:
    if isinstance(columns, str) or not columns:
        raise SpecError("columns", repr(columns), "must be a list of at least one column's name", "or leave it out")
    for place, name in enumerate(columns):
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]!r}?" if near else "take one of these"
            raise SpecError("columns", repr(name), f"{reference} has {', '.join(names)}", fix)
        if name in columns[:place]:
            raise SpecError("columns", f"{name!r} twice", "each column is read once", "leave one of them out")
    return list(columns)


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].split(", /home/", 1)[0] or type(error).__name__
