"""What a run tells while it works; the command line draws it, a notebook or a flow may do something else."""

from __future__ import annotations

from typing import Protocol

from headrace.pipelines.records import UnitRecord


class Progress(Protocol):
    """All methods are called from the driver's own thread."""

    def planned(self, run: str, segment: int, segments: int, units: int, finished: int, size_bytes: int) -> None:
        """A segment starts: so many units, of which some were finished before."""

    def unit_done(self, segment: int, record: UnitRecord) -> None:
        """One more unit has its record."""

    def phase(self, text: str) -> None:
        """A phase begins (planning, selection, publishing, ...)."""

    def warn(self, text: str) -> None:
        """Something a person should know."""


class Silent:
    """Tells nothing."""

    def planned(self, run: str, segment: int, segments: int, units: int, finished: int, size_bytes: int) -> None:
        """Ignore."""

    def unit_done(self, segment: int, record: UnitRecord) -> None:
        """Ignore."""

    def phase(self, text: str) -> None:
        """Ignore."""

    def warn(self, text: str) -> None:
        """Ignore."""
