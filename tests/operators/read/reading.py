"""Run a reader the way a run does: list, plan, cut, read; and find the corpus."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from headrace.operators.shapes import READ_ERRORS, Reader


class Read(NamedTuple):
    rows: pa.Table
    errors: pa.Table

    def column(self, name: str) -> list[Any]:
        return list(self.rows.column(name).to_pylist())

    def told(self, *names: str) -> list[tuple[Any, ...]]:
        """Errors as tuples of these columns."""
        return [tuple(row[name] for name in names) for row in self.errors.to_pylist()]


def read_all(reader: Reader, part_bytes: int = 1 << 20, schema: pa.Schema | None = None) -> Read:
    files = reader.files()
    planned = schema if schema is not None else reader.schema(files)
    read = reader.build()
    rows, errors = [planned.empty_table()], [READ_ERRORS.empty_table()]
    for file in files:
        parts = reader.parts(file, part_bytes)
        assert parts[0].start == 0
        assert all(before.stop == after.start for before, after in pairwise(parts)), "parts tile the file"
        for part in parts:
            for batch in read(part, planned):
                assert batch.rows.schema.equals(planned, check_metadata=True)
                assert batch.errors.schema.equals(READ_ERRORS)
                batch.rows.validate(full=True)
                assert batch.rows.num_rows <= 8192
                rows.append(batch.rows)
                errors.append(batch.errors)
    return Read(pa.concat_tables(rows).combine_chunks(), pa.concat_tables(errors).combine_chunks())


def corpus() -> Path:
    """The folder of real documents; skips the test where there is none."""
    beside = Path(__file__).resolve().parents[4] / "shared" / "corpus"
    folder = Path(os.environ.get("HEADRACE_CORPUS", beside))
    if not folder.is_dir():
        pytest.skip("needs the corpus: set HEADRACE_CORPUS")
    return folder
