from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.operators.read._layout import Column, Roles, plan_schema
from headrace.operators.read._rows import BATCH_BYTES, BATCH_ROWS, Rows, bounded
from headrace.operators.shapes import RAW_LIMIT_BYTES, READ_ERRORS, InputFile

LARGE = pa.large_string()
FILE = InputFile("b/c.txt", "/data/books/", 1, "m")
SCHEMA = plan_schema(
    {"text": Column(LARGE), "source": Column(LARGE), "n": Column(pa.int64())}, Roles("auto", "text", None), "t"
)


def _texts(*texts: str) -> dict[str, pa.Array]:
    return {"text": pa.array(texts, LARGE)}


def test_rows_come_in_the_planned_schema() -> None:
    rows = Rows(FILE, SCHEMA, None)
    columns = {**_texts("x", "y"), "source": pa.array(["s", None], LARGE), "n": pa.array([1, None])}
    (batch,) = rows.batches(columns, np.array([5, 9]))
    assert batch.rows.schema.equals(SCHEMA, check_metadata=True)
    assert batch.rows.drop_columns("id").to_pylist() == [
        {"text": "x", "source": "s", "source_file": "b/c.txt", "source_offset": 5, "n": 1},
        {"text": "y", "source": "books", "source_file": "b/c.txt", "source_offset": 9, "n": None},
    ]
    assert batch.errors.schema == READ_ERRORS


def test_absent_columns_are_null_and_a_given_source_counts() -> None:
    (batch,) = Rows(FILE, SCHEMA, "mine").batches(_texts("x"), np.array([0]))
    assert batch.rows.select(["source", "n"]).to_pylist() == [{"source": "mine", "n": None}]


def test_errors_come_once_with_the_next_batch_or_at_the_end() -> None:
    rows = Rows(FILE, SCHEMA, None)
    rows.error(3, "odd", b"r" * (RAW_LIMIT_BYTES + 1), 2)
    (batch,) = rows.batches(_texts("x"), np.array([0]))
    (error,) = batch.errors.to_pylist()
    assert (error["source_file"], error["source_offset"], error["line"], error["error"]) == ("b/c.txt", 3, 2, "odd")
    assert error["raw"] == b"r" * RAW_LIMIT_BYTES
    assert len(error["id"]) == 32
    assert list(rows.rest()) == []
    rows.error(4, "odder")
    (last,) = rows.rest()
    assert (last.rows.num_rows, last.errors.num_rows) == (0, 1)
    rows.error(5, "oddest")
    (alone,) = rows.batches({}, np.array([], np.int64))
    assert (alone.rows.num_rows, alone.errors.num_rows) == (0, 1)


def test_slices_are_bounded_in_rows_and_bytes() -> None:
    table = pa.table({"text": pa.array([""] * (BATCH_ROWS * 2 + 1), LARGE)})
    assert [piece.num_rows for piece in bounded(table)] == [BATCH_ROWS, BATCH_ROWS, 1]
    half = "x" * (BATCH_BYTES // 2)
    table = pa.table({"text": pa.array([half, half, "y", half * 3, "", half], LARGE)})
    assert [piece.num_rows for piece in bounded(table)] == [2, 1, 1, 2]
    assert list(bounded(table.slice(0, 0))) == []
    assert pa.concat_tables(bounded(table)).equals(table)
