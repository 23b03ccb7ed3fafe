from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.read import _csv_records
from headrace.operators.read._csv_records import Record, read_records
from headrace.operators.read._streams import BrokenStream


def _read(content: bytes, size: int = 7, delimiter: str = ",") -> list[Record]:
    return list(read_records((content[at : at + size] for at in range(0, len(content), size)), delimiter))


def _short(content: bytes) -> list[tuple[int, int, list[str], bytes]]:
    return [(record.offset, record.line, record.fields, record.raw) for record in _read(content)]


def test_records_have_places() -> None:
    content = b'\xef\xbb\xbfa,b\r\n"1\n\n2",\xc3\xa9\r\n\r\n3,""""\n4,5'
    assert _short(content) == [
        (0, 1, ["a", "b"], b""),
        (8, 2, ["1\n\n2", "é"], b""),
        (21, 6, ["3", '"'], b""),
        (28, 7, ["4", "5"], b""),
    ]


FIELDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@given(
    st.lists(st.lists(FIELDS, min_size=2, max_size=2), min_size=1, max_size=8),
    st.integers(1, 20),
    st.sampled_from(",\t;"),
)
def test_what_was_written_comes_back(rows: list[list[str]], size: int, delimiter: str) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
    content = b"\xef\xbb\xbf" + out.getvalue().encode()
    records = _read(content, size, delimiter)
    assert [record.fields for record in records] == rows
    assert all(not record.error for record in records)
    assert [record.offset for record in records] == sorted({record.offset for record in records})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"1", "1 fields, the header has 2"),
        (b"1,2,3", "3 fields, the header has 2"),
        (b'"1\n2"', "1 fields, the header has 2"),
        (b'"1"x,2', "no CSV: ',' expected after '\"'"),
        (b'"never closed,2', "no CSV: "),
        (b"1,\xff", "not UTF-8 at byte 2 of line 3"),
        (b'1,"\n\xff"', "not UTF-8 at byte 0 of line 4"),
        (b"1,2\r3", "no CSV: new-line character seen in unquoted field"),
    ],
)
def test_a_bad_record_does_not_cost_the_others(line: bytes, told: str) -> None:
    records = _read(b"a,b\n0,0\n" + line + b"\n4,4\n5,5\n")
    assert [record.fields for record in records if not record.error] == [["a", "b"], ["0", "0"], ["4", "4"], ["5", "5"]]
    (bad,) = [record for record in records if record.error]
    assert (bad.offset, bad.line) == (8, 3)
    assert bad.raw == line + b"\n"
    assert bad.error.startswith(told)


def test_a_field_beyond_the_limit_costs_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    before = csv.field_size_limit(100)
    try:
        monkeypatch.setattr(_csv_records, "FIELD_LIMIT", 100)
        records = _read(b'a,b\n"open,1\n' + b"2,2\n" * 50)
    finally:
        csv.field_size_limit(before)
    assert [record.line for record in records if record.error] == [2]
    assert len([record for record in records if record.fields == ["2", "2"]]) == 50


def test_long_fields_are_read() -> None:
    assert _read(b'a\n"' + b"x" * 1_000_000 + b'"\n', 4096)[1].fields == ["x" * 1_000_000]


def test_a_broken_stream_ends_with_an_error() -> None:
    def blocks() -> object:
        yield b"a,b\n1,2\n3,"
        raise BrokenStream("cut off")

    records = list(read_records(blocks(), ","))  # type: ignore[arg-type]  # a generator of bytes
    assert [record.fields for record in records] == [["a", "b"], ["1", "2"], []]
    assert (records[-1].error, records[-1].offset, records[-1].line) == ("cut off", 8, 3)


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv_records, "LINE_LIMIT_BYTES", 50)
    records = _read(b"a,b\n1,2\n" + b"x" * 200)
    assert records[-1].error.startswith("a line is longer than 50 bytes")
    assert len(records) == 3
