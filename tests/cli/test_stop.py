"""Signals to real processes; a gate file keeps the run where the test wants it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headrace
from headrace.cli.invocation import Invocation
from headrace.cli.stop import finish, stoppable
from tests.cli.support import LIMIT_SECONDS, Ended, command, ended, started, write_project, write_rows

PIPELINE = """
pipeline: slow
output: docs/slow
unit_bytes: 1024
steps:
  - op: read.jsonl
    root: in
  - op: own:Wait
    gate: gate
  - op: text.length
    min_chars: 10
"""


@pytest.fixture
def slow(workdir: Path) -> Path:
    """A project of many units; one of the first stands still until the file `gate` is there."""
    write_project(workdir, PIPELINE, texts=[])
    (workdir / "in" / "a.jsonl").unlink()
    for n in range(8):
        write_rows(workdir / "in", [f"text {n} {m} {'slow' if n == 2 else 'quick'}" for m in range(20)], f"f{n}-.jsonl")
    return workdir


def _reached(folder: Path) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while not (folder / "gate.reached").exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def _rows(lake: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = headrace.open("docs/slow", str(lake)).to_arrow().sort_by("id").to_pylist()
    return rows


def _stopped(folder: Path, signum: signal.Signals, opens: bool = False, arguments: tuple[str, ...] = ()) -> Ended:
    process = started("run", "notes.yaml", "--engine", "local", "--cpus", "1", *arguments, cwd=folder)
    try:
        _reached(folder)
        process.send_signal(signum)
        if opens:
            (folder / "gate").touch()
        return ended(process)
    finally:
        process.kill()


def _told_run(told: Ended) -> str:
    (line,) = [line for line in told.err.splitlines() if line.startswith("stopped")]
    assert line.startswith("stopped; continue with: headrace resume ")
    return line.rpartition(" ")[2]


def test_interrupted_run_resumes_to_the_same_rows(slow: Path) -> None:
    told = _stopped(slow, signal.SIGINT, opens=True)
    assert told.code == 130
    assert "Traceback" not in told.err
    run = _told_run(told)
    shown = command("runs", "show", run, "--json", cwd=slow).answer
    assert shown["status"] == "unfinished"
    assert 0 < shown["finished"] < 8
    resumed = command("resume", run, "--json", cwd=slow)
    assert resumed.code == 0, resumed.err
    assert resumed.answer["status"] == "published"
    assert resumed.answer["report"]["rows"]["kept"] == 160
    assert 0 < resumed.answer["rows_read"] < 160  # finished units were not read again
    assert command("run", "notes.yaml", "--lake", "other", cwd=slow).code == 0
    assert _rows(slow / "lake") == _rows(slow / "other")


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_unit_that_does_not_end_is_not_waited_for(slow: Path, signum: signal.Signals, code: int) -> None:
    told = _stopped(slow, signum)  # the gate stays shut: waiting for the unit would never end
    assert told.code == code
    run = _told_run(told)
    (slow / "gate").touch()
    assert command("resume", run, cwd=slow).code == 0
    assert len(_rows(slow / "lake")) == 160


HANGS = """
import sys, threading, time
from headrace.cli import stop
from headrace.cli.invocation import Invocation

stop.GRACE_SECONDS = float(sys.argv[1])
call = Invocation(is_json=True, run="r1")
with stop.stoppable(call):
    try:
        print("ready", file=sys.stderr, flush=True)
        time.sleep(60)
    finally:
        print("unwinding", file=sys.stderr, flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("grace", "signals"), [("0.2", 1), ("600", 2)], ids=["grace is over", "second signal"])
def test_unwinding_that_hangs_is_left(signum: signal.Signals, grace: str, signals: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGS, grace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line, number in (("ready\n", 1), ("unwinding\n", 2)):
        assert process.stderr.readline() == line
        if number <= signals:
            process.send_signal(signum)
    told = ended(process)
    assert told.code == 128 + signum
    assert told.err == "\nstopped; continue with: headrace resume r1\n"
    error = told.answer["error"]
    assert (error["kind"], error["signal"], error["exit_code"]) == ("Stopped", signum.name, 128 + signum)
    assert error["resume"] == "headrace resume r1"


def test_stopped_before_a_run_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert finish(Invocation(signum=signal.SIGINT)) == 130
    assert capsys.readouterr().err == "stopped; nothing was published\n"


def test_signals_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stoppable(Invocation()):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_lake_of_the_command_is_in_the_line_to_paste(slow: Path) -> None:
    told = _stopped(slow, signal.SIGTERM, opens=True, arguments=("--lake", "my pool"))
    assert told.code == 143
    assert " --lake 'my pool'" in told.err


def test_stopped_program_gets_one_object(slow: Path) -> None:
    told = _stopped(slow, signal.SIGTERM, opens=True, arguments=("--json",))
    assert told.code == 143
    assert told.answer["error"]["signal"] == "SIGTERM"
    assert told.answer["error"]["run"]
