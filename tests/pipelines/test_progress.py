"""What a run tells while it works."""

from __future__ import annotations

import threading
from pathlib import Path

from headrace.pipelines.progress import Progress, Silent
from headrace.pipelines.records import UnitRecord
from headrace.pipelines.run import run
from headrace.storage.lake import Lake
from tests.pipelines.plain import FirstOfText, Shout, lines_pipeline, write_lines


class Heard:
    """Notes everything, and from which thread."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.threads: set[int] = set()

    def _note(self, text: str) -> None:
        self.told.append(text)
        self.threads.add(threading.get_ident())

    def planned(self, run: str, segment: int, segments: int, units: int, finished: int, size_bytes: int) -> None:
        self._note(f"segment {segment}/{segments}: {units} units, {finished} finished, {size_bytes} bytes")

    def unit_done(self, segment: int, record: UnitRecord) -> None:
        self._note(f"unit {segment}.{record.unit}")

    def phase(self, text: str) -> None:
        self._note(text)

    def warn(self, text: str) -> None:
        self._note(f"warning: {text}")


def test_a_run_tells_its_phases_and_units_in_order(lake: Lake, tmp_path: Path) -> None:
    spec = lines_pipeline(write_lines(tmp_path / "in", a=["x" * 1000], b=["y" * 1000]), FirstOfText(), Shout())
    heard = Heard()
    listener: Progress = heard
    run(spec, lake=lake, engine="local", cpus=1, progress=listener)
    assert heard.told == [
        "planning",
        "segment 0/2: 2 units, 0 finished, 2002 bytes",
        "unit 0.0",
        "unit 0.1",
        "selecting (tests.pipelines.plain:FirstOfText)",
        "segment 1/2: 2 units, 0 finished, 2002 bytes",
        "unit 1.0",
        "unit 1.1",
        "publishing",
    ]
    assert heard.threads == {threading.get_ident()}


def test_silence_is_a_progress() -> None:
    silent: Progress = Silent()
    silent.planned("r", 0, 1, 2, 0, 3)
    silent.unit_done(0, UnitRecord(0, 0, 0, 0, {}, {}, {}))
    silent.phase("x")
    silent.warn("x")
