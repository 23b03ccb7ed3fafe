from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest

from headrace.operators.read._json_slow import BadLine, Decoded, decode_slow, parse_line
from headrace.operators.read._layout import JSON, Column, Layout, Roles, plan_schema
from headrace.operators.read._lines import find_lines

LARGE = pa.large_string()
STRUCT = pa.struct([("a", LARGE), ("in", pa.struct([("n", pa.int64())]))])
LAYOUT = Layout.of(
    plan_schema(
        {
            "id": Column(LARGE),
            "text": Column(LARGE),
            "i": Column(pa.int64()),
            "f": Column(pa.float64()),
            "b": Column(pa.bool_()),
            "s": Column(STRUCT),
            "l": Column(pa.list_(pa.struct([("n", pa.int64())]))),
            "j": Column(LARGE, JSON),
        },
        Roles("auto", "text", None),
        "t",
        extra=True,
    )
)


def _decode(*lines: bytes) -> Decoded:
    data = bytearray(b"\n".join(lines))
    return decode_slow(data, find_lines(data), LAYOUT)


def _one(**values: Any) -> tuple[dict[str, Any], Any]:
    decoded = _decode(json.dumps({"text": "t", **values}).encode())
    assert decoded.bad == []
    row = {name: column[0].as_py() for name, column in decoded.columns.items()}
    return {name: value for name, value in row.items() if value is not None and name != "text"}, decoded.extra[
        0
    ].as_py()


@pytest.mark.parametrize(
    ("given", "row", "extra"),
    [
        ({"i": 7, "f": 7, "b": True}, {"i": 7, "f": 7.0, "b": True}, None),
        ({"i": -(2**63)}, {"i": -(2**63)}, None),
        ({"i": 1e3}, {"i": 1000}, None),
        ({"id": 12}, {"id": "12"}, None),
        ({"j": {"ä": [1]}}, {"j": '{"ä": [1]}'}, None),
        ({"j": "t"}, {"j": '"t"'}, None),
        ({"new": 1, "none": None}, {}, '{"new": 1}'),
        ({"new": "\ud800"}, {}, '{"new": "\\ud800"}'),
        (
            {"s": {"a": "x", "more": [1], "in": {"n": 1, "m": 2, "null": None}}},
            {"s": {"a": "x", "in": {"n": 1}}},
            '{"s": {"in": {"m": 2}, "more": [1]}}',
        ),
        (
            {"l": [{"n": 1}, None, {"n": 2, "m": 3}]},
            {"l": [{"n": 1}, None, {"n": 2}]},
            '{"l": [{"n": 1}, null, {"n": 2, "m": 3}]}',
        ),
    ],
)
def test_values_find_their_columns_and_the_rest_goes_to_extra(
    given: dict[str, Any], row: dict[str, Any], extra: str | None
) -> None:
    assert _one(**given) == (row, extra)


def test_floats_that_are_no_numbers_pass() -> None:
    (value,) = _decode(b'{"text": "t", "f": NaN}').columns["f"].to_pylist()
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"text": "t", "i": 1.5}', "i: a number 1.5, planned was int64"),
        (b'{"text": "t", "i": 9223372036854775808}', "i: a number 9223372036854775808, planned was int64"),
        (b'{"text": "t", "i": true}', "i: a boolean true, planned was int64"),
        (b'{"text": "t", "f": "1"}', 'f: a string "1", planned was double'),
        (b'{"text": "t", "f": 1' + b"0" * 400 + b"}", "f: a number 1000"),
        (b'{"text": "t", "b": 0}', "b: a number 0, planned was bool"),
        (b'{"text": "t", "s": {"in": {"n": []}}}', "s.in.n: an array [], planned was int64"),
        (b'{"text": "t", "l": [{}, 3]}', "l[1]: a number 3, planned was struct"),
        (b'{"text": "t", "id": 1.5}', "id: a number 1.5, planned was large_string"),
        (b'{"text": 7}', "text: a number 7, planned was large_string"),
        (b'{"text": null}', "the text is missing or null"),
        (b"{}", "the text is missing or null"),
        (b'{"text": "\\ud800"}', "text: half a surrogate pair"),
        (b'{"text": "a", "text": "b"}', "the key 'text' is there twice"),
        (b'{"text": "a", "s": {"a": "1", "a": "2"}}', "the key 'a' is there twice"),
        (b'"text"', "a string instead of a JSON object"),
        (b"[1]", "an array instead of a JSON object"),
        (b"null", "null instead of a JSON object"),
        (b'{"text": "t"', "no JSON: Expecting"),
        (b'{"text": "t"} {"text": "u"}', "no JSON: Extra data"),
        (b'{"text": "t\x00"}', "no JSON: Invalid control character"),
        (b"\xef\xbb\xbf{}", "no JSON: "),
        (b'{"text": "\xff"}', "not UTF-8 at byte 10 of the line"),
        (b'{"text": "t", "i": ' + b"1" * 5000 + b"}", "no JSON: Exceeds the limit"),
        (b'{"text": "t", "x": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_row_says_why(line: bytes, told: str) -> None:
    decoded = _decode(b'{"text": "before"}', b" \t", line, b'{"text": "after"}')
    assert decoded.columns["text"].to_pylist() == ["before", "after"]
    assert decoded.lines.tolist() == [0, 3]
    ((place, error),) = decoded.bad
    assert place == 2
    assert told in error


def test_long_values_are_not_told_in_full() -> None:
    ((_, error),) = _decode(json.dumps({"text": "t", "i": "x" * 10_000}).encode()).bad
    assert len(error) < 200


def test_a_line_can_be_parsed_alone() -> None:
    assert parse_line(b' {"a": [1, null]}\r') == {"a": [1, None]}
    with pytest.raises(BadLine):
        parse_line(b"{")
