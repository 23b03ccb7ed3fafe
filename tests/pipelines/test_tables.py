"""Tables as bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.pipelines.tables import table_from_bytes, table_to_bytes
from headrace.storage.contract import QUARANTINE, REJECTS
from tests.pipelines.plain import documents

TABLES = [
    documents("a", "b" * 10_000),
    documents(),
    REJECTS.empty_table(),
    QUARANTINE.empty_table(),
    pa.table({"key": pa.array([b"12345678", None], pa.binary(8)), "l": pa.array([[1], None], pa.list_(pa.int8()))}),
    pa.concat_tables([documents("a"), documents("b")]).slice(1),
]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_survives_bytes_with_its_schema(table: pa.Table) -> None:
    body = table_to_bytes(table)
    for found in (table_from_bytes(body), table_from_bytes(pa.py_buffer(body))):
        assert found.equals(table)
        assert found.schema.equals(table.schema, check_metadata=True)


def test_a_slice_takes_only_its_own_bytes() -> None:
    table = documents(*(str(n) * 100 for n in range(2000)))
    assert len(table_to_bytes(table.slice(5, 1))) < 3000
