from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from headrace.cli.output import Output, cell_text, count, duration, plain, printable, shorten, size


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("weir", "weir"),
        ("Wehr ü 漢字 🌊", "Wehr ü 漢字 🌊"),
        ("a\x1b[2Jb", "a\ufffd[2Jb"),
        ("a\x9bb", "a\ufffdb"),  # an escape sequence's start in one character
        ("a\u202eb", "a\ufffdb"),  # right to left from here on
        ("a\ud800b", "a\ufffdb"),  # half of a pair
        ("a\rb\nc", "a\ufffdb\ufffdc"),
    ],
)
def test_printable(text: str, wanted: str) -> None:
    assert printable(text) == wanted


def test_printable_keeps_what_it_is_told_to() -> None:
    assert printable("a\nb\tc", keep="\n") == "a\nb\ufffdc"


def test_cell_is_one_line() -> None:
    assert cell_text("a\n\n b\t\u00a0c\x00") == "a b c\ufffd"


@pytest.mark.parametrize(
    ("value", "chars", "wanted"),
    [
        (None, 5, ""),
        ("12345", 5, "12345"),
        ("123456", 5, "12345…"),
        ("1     2     3     4     5", 3, "1 2…"),
        (" " * 100, 5, "…"),
        (b"123", 5, "3 bytes"),
        (12.5, 9, "12.5"),
    ],
)
def test_shorten(value: object, chars: int, wanted: str) -> None:
    assert shorten(value, chars) == wanted


def test_numbers_for_people() -> None:
    assert count(1234567) == "1,234,567"
    assert [size(n) for n in (0, 999, 1000, 1_500_000, 2_000_000_000, 3.2e12, 4e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.5 MB",
        "2.0 GB",
        "3.2 TB",
        "4000.0 TB",
    ]
    assert [duration(s) for s in (0, 9.994, 59.94, 60, 119.6, 3600, 7505)] == [
        "0.00 s",
        "9.99 s",
        "59.9 s",
        "1 min 00 s",
        "2 min 00 s",
        "1 h 00 min",
        "2 h 05 min",
    ]


def test_plain_values_are_json() -> None:
    values = {"when": datetime(2026, 12, 1, tzinfo=UTC), "raw": b"\x00", "nan": float("nan"), 1: (True, {2})}
    assert plain(values) == {"when": "2026-12-01T00:00:00+00:00", "raw": "AA==", "nan": None, "1": [True, [2]]}


def test_json_mode_prints_the_result_alone(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(is_json=True)
    output.lake("/lake")
    output.line("line")
    output.note("note")
    output.table(("a",), [["b"]])
    output.result({"text": "é\x9b\u2028"})
    out, err = capsys.readouterr()
    assert err == ""
    assert out.isascii()
    assert out.count("\n") == 1
    assert json.loads(out) == {"text": "é\x9b\u2028"}


def test_people_get_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    output.lake("/lake")
    output.line("line")
    output.result({"a": 1})
    out, err = capsys.readouterr()
    assert (out, err) == ("line\n", "lake: /lake\n")


def test_table_in_a_pipe_is_aligned_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    Output().table(("name", "rows"), [["a", "1"], [long, "12,345"]], right=("rows",))
    header, first, second = capsys.readouterr().out.splitlines()
    assert header == f"name{' ' * 296}    rows"
    assert first == f"a{' ' * 299}       1"
    assert second == f"{long}  12,345"


def test_table_without_rows_has_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(("name", "rows"), [])
    assert capsys.readouterr().out == "name  rows\n"


def test_cells_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(("name",), [["a\x1b[2J\nb"]])
    assert capsys.readouterr().out == "name\na\ufffd[2J b\n"
