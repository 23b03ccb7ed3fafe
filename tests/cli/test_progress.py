from __future__ import annotations

import io
import sys

import pytest

from headrace.cli.invocation import Invocation
from headrace.cli.progress import Bars, Lines, progress
from headrace.pipelines.progress import Progress
from headrace.pipelines.records import UnitRecord


class Terminal(io.StringIO):
    """Says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def _record(unit: int) -> UnitRecord:
    return UnitRecord(unit, 10, 0, 100, {}, {}, {})


def _work(tell: Progress) -> None:
    tell.phase("planning")
    tell.planned("r1", 0, 2, 3, 1, 2_500_000)
    tell.unit_done(0, _record(1))
    tell.unit_done(0, _record(2))
    tell.planned("r1", 1, 2, 3, 0, 2_500_000)
    tell.unit_done(1, _record(0))
    tell.warn("odd\x1b[2J")


def test_lines_tell_the_run_and_count_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    call = Invocation()
    with progress(call) as tell:
        _work(tell)
    out, err = capsys.readouterr()
    assert out == ""
    assert call.run == "r1"
    assert type(tell) is Lines
    assert (tell.rows_read, tell.bytes_read) == (20, 200)  # of the first segment only
    lines = [line.partition("] ")[2] for line in err.splitlines()]
    assert lines == [
        "planning",
        "run r1: segment 1 of 2, 3 units, 2.5 MB of input, 1 of them finished before",
        "segment 1 of 2, 3 of 3 units, 20 rows",
        "run r1: segment 2 of 2, 3 units, 2.5 MB of input",
        "warning: odd\ufffd[2J",
    ]


def test_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    call = Invocation()
    with progress(call) as tell:
        _work(tell)
    assert type(tell) is Bars
    assert call.run == "r1"
    shown = screen.getvalue()
    assert "3/3" in shown
    assert "1/3" in shown
    assert "20 rows" in shown
    assert "odd\ufffd[2J" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back


def test_bars_end_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")

    def fail() -> None:
        with progress(Invocation()) as tell:
            tell.planned("r1", 0, 1, 3, 0, 10)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert screen.getvalue().rindex("\x1b[?25h") > screen.getvalue().rindex("\x1b[?25l")
