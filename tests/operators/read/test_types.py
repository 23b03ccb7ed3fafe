from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.operators.read._layout import JSON, Column
from headrace.operators.read._types import declared_type, large_type

LARGE = pa.large_string()


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("string", Column(LARGE)),
        ("int64", Column(pa.int64())),
        ("float64", Column(pa.float64())),
        ("bool", Column(pa.bool_())),
        ("json", Column(LARGE, JSON)),
        ("list<list<string>>", Column(pa.list_(pa.list_(LARGE)))),
    ],
)
def test_types_have_names(name: str, column: Column) -> None:
    assert declared_type(name) == column


@pytest.mark.parametrize("name", ["text", "list<json>", "list<string", "int32", ""])
def test_other_names_are_told(name: str) -> None:
    with pytest.raises(ValueError, match="is no type here; there are string, int64"):
        declared_type(name)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (pa.string(), LARGE),
        (pa.string_view(), LARGE),
        (pa.binary(), pa.large_binary()),
        (pa.binary_view(), pa.large_binary()),
        (pa.null(), LARGE),
        (pa.dictionary(pa.int8(), pa.string()), LARGE),
        (pa.list_(pa.string()), pa.list_(LARGE)),
        (pa.large_list(pa.binary()), pa.large_list(pa.large_binary())),
        (
            pa.struct([pa.field("a", pa.list_(pa.string()), nullable=False)]),
            pa.struct([pa.field("a", pa.list_(LARGE), False)]),
        ),
        (pa.map_(pa.string(), pa.string()), pa.map_(LARGE, LARGE)),
        (pa.uuid(), pa.binary(16)),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
        (pa.int8(), pa.int8()),
    ],
)
def test_strings_become_large_and_the_rest_stays(given: pa.DataType, kept: pa.DataType) -> None:
    assert large_type(given) == kept
