"""The fast path may give up; where it does not, it must agree with the slow one on everything."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.operators.read._json_fast import decode_fast
from headrace.operators.read._json_slow import Decoded, decode_slow
from headrace.operators.read._layout import ANY_KEY, JSON, Column, Layout, Roles, plan_schema
from headrace.operators.read._lines import find_lines

LARGE = pa.large_string()
COLUMNS = {
    "id": Column(pa.int64()),
    "text": Column(LARGE),
    "source": Column(LARGE),
    "i": Column(pa.int64()),
    "f": Column(pa.float64()),
    "b": Column(pa.bool_()),
    "s": Column(LARGE),
    "l": Column(pa.list_(pa.int64())),
    "m": Column(pa.struct([("a", LARGE), ("n", pa.struct([("q", pa.int64())]))])),
    "j": Column(LARGE, JSON),
    "ls": Column(pa.list_(pa.struct([("q", pa.int64())]))),
}


def _layout(id_column: Column, source: str | None = None) -> Layout:
    return Layout.of(plan_schema(COLUMNS | {"id": id_column}, Roles("auto", "text", source), "t", extra=True))


LAYOUTS = [_layout(Column(pa.int64())), _layout(Column(LARGE)), _layout(Column(LARGE, ANY_KEY), "given")]


def _same(one: pa.Array, other: pa.Array) -> bool:
    return one.type == other.type and (one.equals(other) or str(one.to_pylist()) == str(other.to_pylist()))  # NaN


def _assert_agree(fast: Decoded, slow: Decoded) -> None:
    assert fast.lines.tolist() == slow.lines.tolist()
    assert fast.bad == slow.bad
    assert fast.columns.keys() == slow.columns.keys()
    for name in fast.columns:
        assert _same(fast.columns[name], slow.columns[name]), name
    assert _same(fast.extra, slow.extra)


def _both(data: bytes, layout: Layout = LAYOUTS[0]) -> tuple[Decoded | None, Decoded]:
    lines = find_lines(bytearray(data))
    return decode_fast(bytearray(data), lines, layout), decode_slow(bytearray(data), lines, layout)


LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.integers(-5, 5)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["2020-01-01", "\ud800", "\x00", ""])
)
KEYS = st.sampled_from(["a", "n", "q", "z", "text"])
VALUE = st.recursive(LEAF, lambda c: st.lists(c, max_size=3) | st.dictionaries(KEYS, c, max_size=3), max_leaves=6)
INNER = st.fixed_dictionaries({}, optional={"q": st.integers(0, 5), "z": st.none()})
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(0, 9),
    "source": st.text(max_size=3),
    "i": st.integers(-9, 9),
    "f": st.floats() | st.integers(-9, 9),
    "b": st.booleans(),
    "s": st.text(max_size=4),
    "l": st.lists(st.integers(0, 5), max_size=3),
    "m": st.fixed_dictionaries({}, optional={"a": st.text(max_size=3), "n": INNER, "z": st.none()}),
    "j": VALUE,
    "ls": st.lists(INNER, max_size=2),
    "undeclared": VALUE,
}
GOOD = st.fixed_dictionaries(
    {"text": st.text(max_size=8) | st.none()}, optional={name: value | st.none() for name, value in FITTING.items()}
)
ANY = st.dictionaries(st.sampled_from([*COLUMNS, "undeclared"]), VALUE, max_size=5)
OBJECTS = st.lists(st.one_of(GOOD, GOOD, GOOD, ANY), min_size=1, max_size=4)
FLIPS: st.SearchStrategy[list[tuple[int, int]]] = st.just([]) | st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=1
)

OUTCOMES: Counter[bool] = Counter()


@settings(max_examples=250, deadline=None)
@given(OBJECTS, st.sampled_from(LAYOUTS), st.booleans(), FLIPS, st.sampled_from(["\n", "\r\n"]))
def test_both_paths_agree(
    objects: list[dict[str, Any]], layout: Layout, ascii_only: bool, flips: list[tuple[int, int]], end: str
) -> None:
    data = bytearray()
    for value in objects:
        line = json.dumps(value, ensure_ascii=ascii_only) + end
        data += line.encode() if line.isascii() or "\ud800" not in line else (json.dumps(value) + end).encode()
    for at, byte in flips:
        data[at % len(data)] = byte
    fast, slow = _both(bytes(data), layout)
    OUTCOMES[fast is not None] += 1
    if fast is not None:
        _assert_agree(fast, slow)


def test_both_paths_were_compared() -> None:
    """Runs after the test above: else it may have compared nothing."""
    assert not OUTCOMES or OUTCOMES[True] > 25


@pytest.mark.parametrize(
    "line",
    [
        b'{"text": "a\xffb"}',
        b'{"text": "a", "\xff": 1}',
        b'\xef\xbb\xbf{"text": "a"}',
        b'{"text": "a"}{"text": "b"}',
        b'{"text": "a"} {"text": "b"}\n{"text":\n"c"}',
        b'{"text": "a\x00b"}',
        b'{"text": "a", "text": "b"}',
        b'{"text": "a", "x": 1, "x": 2}',
        b'{"text": "a\\ud800"}',
        b' {"text": "a"}',
        b'{"text": "a"}\n \t\n{"text": "b"}',
        b'{"text": "a", "i": 1.0}',
        b'{"text": "a", "ls": [{"new": 1}]}',
        b'{"text": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"text": "a", "x": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b'{"text": "a", "x": ' + b'["]",' * 100_000 + b"1" + b"]" * 100_000 + b"}",
        b'{"text": "' + b"[" * 5000 + b'", "x": ' + b"[" * 100_000 + b"}",
    ],
)
def test_what_arrow_would_misread_is_left_to_the_slow_path(line: bytes) -> None:
    assert _both(b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n')[0] is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"text": "a\\u0000b"}',
        b'{"text": null}',
        b"{}",
        b'{"text": "a", "f": NaN}',
        b'{"text": "a", "m": {"a": "x", "new": null}}',
        b'{"text": "a", "m": null, "l": null}',
        b'{"text": "a", "j": [1, 2], "new": "2020-01-01"}',
        b'{"text": "a", "m": {"a": "x", "new": 1, "n": {"q": 1, "new": [2]}}, "i": 1}',
        b'{"text": "a", "id": 77}',
        b'{"text": "' + b"[{" * 50_000 + b'"}',
        b'{"text": "a", "l": [' + b"1," * 5000 + b"1]}",
        b'{"text": "a", "x": [' + b"[1]," * 5000 + b"[1]]}",
    ],
)
def test_what_arrow_reads_right_stays_fast(line: bytes) -> None:
    fast, slow = _both(b'{"text": "before"}\r\n\n' + line + b'\r\n\r\n{"text": "after"}')
    assert fast is not None
    _assert_agree(fast, slow)
