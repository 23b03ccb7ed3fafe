from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from headrace.operators.read._json_shape import COLUMNS_LIMIT, FIELDS_LIMIT, columns_of, is_name
from headrace.operators.read._layout import ANY_KEY, JSON, Column

LARGE = pa.large_string()
AS_JSON = Column(LARGE, JSON)


def _column(*values: Any) -> Column | None:
    return columns_of([{"x": value} for value in values]).get("x")


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([True, None], Column(pa.bool_())),
        ([None, 3], Column(pa.int64())),
        ([3, 4.5], Column(pa.float64())),
        ([4.5], Column(pa.float64())),
        (["a", None], Column(LARGE)),
        ([[], [1], None], Column(pa.list_(pa.int64()))),
        ([[1], [None, 2.5]], Column(pa.list_(pa.float64()))),
        ([{"a": None}, {"b": [{"c": "d"}]}], Column(pa.struct([("b", pa.list_(pa.struct([("c", LARGE)])))]))),
        ([{"a": 1}, {"a": 2.5, "b": ""}], Column(pa.struct([("a", pa.float64()), ("b", LARGE)]))),
        ([None], None),
        ([[]], None),
        ([[None], [[]]], None),
        ([{}], None),
        ([{"a": None}], None),
        ([1, True], AS_JSON),
        (["a", 2.5], AS_JSON),
        (["a", ["b"]], AS_JSON),
        ([{"a": 1}, [1]], AS_JSON),
        ([[1], ["a"]], AS_JSON),
        ([{"a": 1}, {"a": "b"}], AS_JSON),
        ([2**63, 2.5], AS_JSON),
        ([{"a": 2**64}], AS_JSON),
        (["a", 7], Column(LARGE, ANY_KEY)),
        ([2**63], Column(LARGE, ANY_KEY)),
        ([{str(number): 1 for number in range(FIELDS_LIMIT + 1)}], AS_JSON),
        ([{"\0": 1}], AS_JSON),
        ([json.loads("[" * 40 + "1" + "]" * 40)], AS_JSON),
    ],
)
def test_values_promote_to_one_column(values: list[Any], column: Column | None) -> None:
    assert _column(*values) == column
    if column is None or not pa.types.is_struct(column.type):
        assert _column(*reversed(values)) == column, "order does not matter"


def test_columns_come_in_the_order_of_their_keys() -> None:
    columns = columns_of([{"b": 1, "n": None}, {"a": 1, "b": 2.5}, {"n": "late"}])
    assert list(columns.items()) == [("b", Column(pa.float64())), ("n", Column(LARGE)), ("a", Column(pa.int64()))]


def test_keys_that_name_no_column_are_left_to_extra() -> None:
    assert list(columns_of([{"\ud800": 1, "\0": 1, "x" * 2000: 1, "good": 1}])) == ["good"]
    assert len(columns_of([{str(number): 1 for number in range(COLUMNS_LIMIT + 9)}])) == COLUMNS_LIMIT
    assert is_name("")


def test_a_text_that_is_no_string_costs_its_row_only() -> None:
    assert columns_of([{"text": 1}, {"text": "a"}])["text"] == Column(LARGE)
    assert columns_of([{"text": 1}, {"text": "a"}], "body")["text"] == Column(LARGE, ANY_KEY)
    assert columns_of([{"text": 1}])["text"] == Column(pa.int64())
