"""One run in a process of its own, started by pipeline.py, which may kill it."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import headrace.pipelines.run as running
from headrace.pipelines.progress import Silent


def one_run(spec: str, lake: str, report: str, engine: Any, cpus: str) -> None:
    """Run, and write to `report` when what happened."""
    marks: dict[str, float] = {}

    class Clock(Silent):
        def planned(self, run: str, segment: int, segments: int, units: int, finished: int, size_bytes: int) -> None:
            mark(f"segment {segment}")

        def unit_done(self, segment: int, record: Any) -> None:
            mark("first unit")
            marks[f"segment {segment} done"] = time.monotonic() - clock

        def phase(self, text: str) -> None:
            mark(text)

    def mark(name: str) -> None:
        marks.setdefault(name, time.monotonic() - clock)

    session = running.ray_session

    @contextmanager
    def timed_session(*where: Any) -> Any:
        with session(*where):
            mark("Ray is up")
            yield
        mark("Ray is down")

    running.ray_session = timed_session
    clock = time.monotonic()
    result = running.run(spec, lake=lake, engine=engine, cpus=int(cpus), progress=Clock())
    seconds = time.monotonic() - clock
    told = {
        "run": result.run,
        "seconds": seconds,
        "marks": marks,
        "units": result.report["units"],
        "rows_in": result.report["rows_in"],
        "rows": result.report["rows"],
        "funnel": [
            {key: step[key] for key in ("op", "rows_in", "kept", "dropped", "quarantined")}
            for step in result.report["steps"]
        ],
        "versions": result.report["packages"],
    }
    Path(report).write_text(json.dumps(told), "utf-8")


if __name__ == "__main__":
    one_run(*sys.argv[1:])
