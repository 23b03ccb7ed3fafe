from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.errors import DataError
from headrace.operators.read._layout import Column, Layout, Roles, plan_schema
from headrace.operators.read._tabular import fit, settle, unify

LARGE = pa.large_string()


def _layout(**columns: pa.DataType) -> Layout:
    named = {name: Column(type_) for name, type_ in ({"text": LARGE} | columns).items()}
    return Layout.of(plan_schema(named, Roles("auto", "text", None), "t"))


def _bad_utf8(*values: bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(values), pa.array(values, pa.binary()).buffers()).view(pa.string())


def test_types_are_cast_to_the_planned_ones() -> None:
    layout = _layout(id=pa.int64(), n=pa.float64(), s=pa.struct([("a", LARGE), ("b", pa.int64())]), l=pa.list_(LARGE))
    batch = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "text": pa.array(["a", "b"]).dictionary_encode(),
            "n": pa.array([2**53 + 1, None]),
            "s": pa.array([{"a": "x"}, None], pa.struct([("a", pa.string())])),
            "l": pa.array([["x"], []]),
            "unplanned": [1, 2],
        }
    )
    fitted = fit(batch, layout)
    assert fitted.rows.tolist() == [0, 1]
    assert fitted.bad == []
    assert {name: column.to_pylist() for name, column in fitted.columns.items()} == {
        "id": ["1", "2"],
        "text": ["a", "b"],
        "n": [float(2**53), None],
        "s": [{"a": "x", "b": None}, None],
        "l": [["x"], []],
    }
    assert all(fitted.columns[other.column].type == other.field.type for other in layout.others)


def test_rows_that_do_not_fit_are_set_apart() -> None:
    texts = _bad_utf8(b"a", b"b\xff", b"c", b"d", b"e")
    numbers = pa.array(["1", "2", "three", "4", None])
    fitted = fit(pa.table({"text": texts, "n": numbers}), _layout(n=pa.int64()))
    assert fitted.columns["text"].to_pylist() == ["a", "d", "e"]
    assert fitted.columns["n"].to_pylist() == [1, 4, None]
    assert fitted.rows.tolist() == [0, 3, 4]
    assert [place for place, _ in fitted.bad] == [1, 2]
    assert "UTF8" in fitted.bad[0][1]
    assert "three" in fitted.bad[1][1]


def test_nested_strings_are_checked_too() -> None:
    inner = pa.ListArray.from_arrays(pa.array([0, 1, 2]), _bad_utf8(b"\xff", b"ok"))
    fitted = fit(pa.table({"text": ["a", "b"], "l": inner}), _layout(l=pa.list_(LARGE)))
    assert fitted.rows.tolist() == [1]


def test_rows_without_text_are_set_apart_in_order() -> None:
    fitted = fit(pa.table({"text": ["a", None, "c", None], "n": ["1", "x", "x", "4"]}), _layout(n=pa.int64()))
    assert fitted.rows.tolist() == [0]
    assert [place for place, _ in fitted.bad] == [1, 2, 3]
    assert fitted.bad[2][1] == "the text is missing or null"
    assert fit(pa.table({"other": [1, 2]}), _layout()).bad == [
        (0, "the text is missing or null"),
        (1, "the text is missing or null"),
    ]


def test_extensions_are_read_as_stored() -> None:
    keys = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16)))
    fitted = fit(pa.table({"text": ["a"], "key": keys}), _layout(key=pa.binary(16)))
    assert fitted.columns["key"].to_pylist() == [b"0123456789abcdef"]


def test_files_are_unified_column_by_column() -> None:
    columns: dict[str, Column] = {}
    unify(columns, pa.schema([("n", pa.null()), ("l", pa.list_(pa.null()))]), "0")
    unify(columns, pa.schema([("text", pa.string()), ("n", pa.int32()), ("s", pa.struct([("a", pa.string())]))]), "a")
    unify(
        columns,
        pa.schema([("n", pa.float64()), ("s", pa.struct([("b", pa.int8())])), ("new", pa.null()), ("text", pa.null())]),
        "b",
    )
    assert settle(columns) == {
        "n": Column(pa.float64()),
        "l": Column(pa.list_(LARGE)),
        "text": Column(LARGE),
        "s": Column(pa.struct([("a", LARGE), ("b", pa.int8())])),
        "new": Column(LARGE),
    }


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (pa.schema([("n", pa.string())]), r"b.parquet, column 'n': got string; files before it have int32"),
        (pa.schema([("x", pa.int8()), ("x", pa.int8())]), "b.parquet: got two columns 'x'"),
    ],
)
def test_conflicts_name_file_and_column(schema: pa.Schema, told: str) -> None:
    columns = {"n": Column(pa.int32())}
    with pytest.raises(DataError, match=told):
        unify(columns, schema, "b.parquet")
