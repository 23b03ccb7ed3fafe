"""What a run tells while it works: bars on a terminal, now and then a plain line elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.cli.invocation import Invocation
from headrace.cli.output import count, duration, size, write

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from headrace.pipelines.records import UnitRecord

LINE_SECONDS = 5.0


class Lines:
    """Plain lines, at most one in LINE_SECONDS while units finish; also counts what was done in this call."""

    def __init__(self, call: Invocation) -> None:
        """Nothing is known yet."""
        self.call = call
        self.rows_read = self.bytes_read = 0  # by the first segment, in this call
        self.started = time.monotonic()
        self._segments, self._units, self._finished, self._rows = 1, 0, 0, 0
        self._next_line = 0.0

    @property
    def seconds(self) -> float:
        """Since the start of this call."""
        return time.monotonic() - self.started

    def planned(self, run: str, segment: int, segments: int, units: int, finished: int, size_bytes: int) -> None:
        """Say what the segment has to do."""
        self.call.run = run
        self._segments, self._units, self._finished, self._rows = segments, units, finished, 0
        self._next_line = time.monotonic() + LINE_SECONDS
        before = f", {count(finished)} of them finished before" if finished else ""
        self._say(f"run {run}: {self._segment(segment)}{count(units)} units, {size(size_bytes)} of input{before}")

    def unit_done(self, segment: int, record: UnitRecord) -> None:
        """Count it; tell the last, and now and then one."""
        self._finished += 1
        self._rows += record.rows_read
        if segment == 0:
            self.rows_read += record.rows_read
            self.bytes_read += record.bytes_read
        self._show_units(segment)

    def phase(self, text: str) -> None:
        """Say it."""
        self._say(text)

    def warn(self, text: str) -> None:
        """Say it."""
        self._say(f"warning: {text}")

    def close(self) -> None:
        """Leave the terminal as it was."""

    def _segment(self, segment: int) -> str:
        return f"segment {segment + 1} of {self._segments}, " if self._segments > 1 else ""

    def _show_units(self, segment: int) -> None:
        now = time.monotonic()
        if now >= self._next_line or self._finished == self._units:
            self._next_line = now + LINE_SECONDS
            done = f"{count(self._finished)} of {count(self._units)} units, {count(self._rows)} rows"
            self._say(f"{self._segment(segment)}{done}")

    def _say(self, text: str) -> None:
        write(sys.stderr, f"[{duration(self.seconds)}] {text}")


class Bars(Lines):
    """One bar a segment, drawn by rich."""

    def __init__(self, call: Invocation) -> None:
        """Draw nothing before something is planned."""
        super().__init__(call)
        self._bars: RichProgress | None = None
        self._task: TaskID | None = None

    def planned(self, run: str, segment: int, segments: int, units: int, finished: int, size_bytes: int) -> None:
        """Begin the segment's bar."""
        super().planned(run, segment, segments, units, finished, size_bytes)
        name = f"segment {segment + 1}/{segments}" if segments > 1 else "units"
        self._task = self._drawn().add_task(name, total=units, completed=finished, rows="")

    def close(self) -> None:
        """Stop drawing; the bars stay as they are."""
        if self._bars is not None:
            self._bars.stop()

    def _show_units(self, segment: int) -> None:
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=self._finished, rows=f"{count(self._rows)} rows")

    def _say(self, text: str) -> None:
        if self._bars is None:
            super()._say(text)
        else:
            from rich.text import Text

            from headrace.cli.output import printable

            self._bars.console.print(Text(printable(f"[{duration(self.seconds)}] {text}")), soft_wrap=True)

    def _drawn(self) -> RichProgress:
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rows]}"),
            )
            console = Console(file=sys.stderr, highlight=False)
            self._bars = Progress(*columns, TimeRemainingColumn(), console=console, redirect_stdout=False)
            self._bars.start()
        return self._bars


@contextmanager
def progress(call: Invocation) -> Iterator[Lines]:
    """The right one for where stderr leads to."""
    tell: Lines = Bars(call) if sys.stderr.isatty() else Lines(call)
    try:
        yield tell
    finally:
        tell.close()
