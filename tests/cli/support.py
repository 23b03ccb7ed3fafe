"""Runs the command, in a process of its own or in this one, and makes small inputs for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.main import main

LIMIT_SECONDS = 60.0
"""A command that takes longer hangs; it is killed and fails its test."""

OPERATORS = '''
import time
from pathlib import Path

from headrace.operators.shapes import Map


class Wait(Map):
    """Stands still at texts that say so, until a file is there."""

    gate: str

    def build(self):
        def wait(table):
            if any("slow" in text for text in table["text"].to_pylist()):
                Path(self.gate + ".reached").touch()
                while not Path(self.gate).exists():
                    time.sleep(0.02)
            return table

        return wait


class Refuse(Map):
    """Raises on texts that hold a word."""

    word: str = "refuse"

    def build(self):
        def refuse(table):
            for text in table["text"].to_pylist():
                if self.word in text:
                    raise ValueError("refused\\x1b[31m")
            return table

        return refuse
'''

TEXTS = ["a long text about weirs", "short", "refuse this one, please", "a text with \x1b[31mred\x1b[0m in it"]

PIPELINE = """
pipeline: notes
output: docs/notes
channel: prod
steps:
  - op: read.jsonl
    root: in
  - op: own:Refuse
  - op: text.length
    min_chars: 10
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def write_rows(folder: Path, texts: list[str], name: str = "a.jsonl") -> None:
    """Rows `<stem>0`, `<stem>1`, ... as JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = name.partition(".")[0]
    lines = [json.dumps({"id": f"{stem}{n}", "text": text}) + "\n" for n, text in enumerate(texts)]
    (folder / name).write_text("".join(lines), "utf-8")


def write_project(folder: Path, pipeline: str = PIPELINE, texts: list[str] | None = None) -> Path:
    """Input, a user's operators and a pipeline file; returns the file."""
    write_rows(folder / "in", TEXTS if texts is None else texts)
    (folder / "own.py").write_text(OPERATORS, "utf-8")
    (folder / "notes.yaml").write_text(pipeline, "utf-8")
    return folder / "notes.yaml"


def started(*arguments: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "import sys; from headrace.cli.main import main; sys.exit(main())", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for it."""
    try:
        out, err = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        process.kill()
    return Ended(process.returncode, out, err)


def command(*arguments: str, cwd: Path, **environment: str) -> Ended:
    """Run the command in a process of its own."""
    return ended(started(*arguments, cwd=cwd, **environment))


def cpu_seconds(code: str) -> float:
    """What a Python process for this code costs: unlike its time on the wall, not what else the machine does."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def best_cpu_seconds(code: str, enough: float, tries: int = 10) -> float:
    """The best of some tries, no more of them than it takes: a busy core costs CPU time as well."""
    best = cpu_seconds(code)
    for _ in range(tries - 1):
        if best < enough:
            break
        time.sleep(0.2)
        best = min(best, cpu_seconds(code))
    return best


@dataclass(frozen=True)
class Caller:
    """Runs commands in this process; much faster than a process each."""

    capture: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Ended:
        self.capture.readouterr()
        code = main(list(arguments))
        out, err = self.capture.readouterr()
        return Ended(code, out, err)
