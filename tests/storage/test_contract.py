from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.errors import DataError, DatasetNotFound, SpecError
from headrace.storage.commit import create_target
from headrace.storage.contract import DOCUMENT, QUARANTINE, REJECTS, Contract, contract_of, first_difference
from headrace.storage.lake import Lake
from tests.storage.support import documents

NESTED = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("turns", pa.list_(pa.struct([pa.field("role", pa.string()), pa.field("text", pa.large_string())]))),
        pa.field("scores", pa.list_(pa.float32(), 3), metadata={"unit": "logprob"}),
    ]
)


def test_key_is_marked_and_modes_are_stored() -> None:
    stored = Contract(DOCUMENT, {"source": "evolve"}).arrow_schema()
    assert stored.field("id").metadata == {
        b"headrace.mode": b"frozen",
        b"lance-schema:unenforced-primary-key": b"true",
    }
    assert not stored.field("id").nullable
    assert stored.field("source").metadata == {b"headrace.mode": b"evolve"}
    assert stored.types == DOCUMENT.types


@pytest.mark.parametrize(
    "contract",
    [
        Contract(DOCUMENT, {"text": "quarantine", "source": "evolve"}),
        Contract(NESTED),
        Contract(REJECTS, key=None),
        Contract(QUARANTINE, key=None),
    ],
)
def test_a_dataset_gives_back_its_contract(contract: Contract, lake: Lake) -> None:
    create_target(lake, "docs", contract)
    read = contract_of(lake, "docs")
    assert first_difference(read, contract) is None
    assert (read.modes, read.key) == (contract.modes, contract.key)
    assert read.schema.names == contract.schema.names
    metadata = [(column.metadata or {}) for column in read.schema]
    assert metadata == [(column.metadata or {}) for column in contract.schema]


def test_no_dataset_has_no_contract(lake: Lake) -> None:
    with pytest.raises(DatasetNotFound):
        contract_of(lake, "docs")


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("text", pa.array(["x"], pa.string()), r"'text': got string; the contract has large_string"),
        ("source_offset", pa.array([1], pa.int32()), r"'source_offset': got int32; the contract has int64"),
        ("source_offset", pa.array([1.0], pa.float64()), r"'source_offset': got double; the contract has int64"),
        ("id", pa.array([None], pa.string()), r"'id': got 1 nulls; must not be null"),
    ],
)
def test_a_drifted_column_is_named(column: str, values: pa.Array, told: str) -> None:
    table = documents(["a"])
    index = table.schema.get_field_index(column)
    with pytest.raises(DataError, match=told):
        Contract(DOCUMENT).check(table.set_column(index, column, values), "rows")


def test_missing_undeclared_and_double_columns_are_named() -> None:
    table = documents(["a"])
    with pytest.raises(DataError, match=r"'source': got no such column"):
        Contract(DOCUMENT).check(table.drop_columns(["source"]))
    with pytest.raises(DataError, match=r"'extra': got a column that is not declared"):
        Contract(DOCUMENT).check(table.append_column("extra", pa.array([1])))
    with pytest.raises(DataError, match=r"'text': got 2 columns of this name"):
        Contract(DOCUMENT).check(table.append_column("text", table["text"]).schema)


def test_conform_puts_columns_in_order_and_keeps_values() -> None:
    table = documents(["a", "b"])
    shuffled = table.select(["text", "source_offset", "id", "source_file", "source"])
    shuffled = shuffled.cast(pa.schema([field.with_nullable(True) for field in shuffled.schema]))
    assert Contract(DOCUMENT).conform(shuffled).equals(table)


@pytest.mark.parametrize("name", ["", "a.b", "_rowid", "_rowaddr", "text"])
def test_columns_that_lance_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(SpecError, match="contract"):
        Contract(DOCUMENT.append(pa.field(name, pa.string())))


def test_modes_and_key_must_be_of_the_schema() -> None:
    with pytest.raises(SpecError, match="nope: frozen"):
        Contract(DOCUMENT, {"nope": "frozen"})
    with pytest.raises(SpecError, match="text: open"):
        Contract(DOCUMENT, {"text": "open"})  # type: ignore[dict-item]  # what is tested
    with pytest.raises(SpecError, match="key"):
        Contract(DOCUMENT, key="uuid")


def test_differences_name_the_column_and_ignore_the_order() -> None:
    base = Contract(DOCUMENT)
    assert first_difference(base, Contract(pa.schema(list(reversed(DOCUMENT))))) is None
    assert first_difference(base, Contract(DOCUMENT.remove(1))) == (
        "text",
        "large_string, null, frozen",
        "no such column",
    )
    more = Contract(DOCUMENT.append(pa.field("url", pa.string())))
    assert first_difference(base, more) == ("url", "no such column", "string, null, frozen")
    other = first_difference(base, Contract(DOCUMENT, {"text": "evolve"}))
    assert other == ("text", "large_string, null, frozen", "large_string, null, evolve")
    assert first_difference(base, Contract(DOCUMENT, key=None)) is not None
