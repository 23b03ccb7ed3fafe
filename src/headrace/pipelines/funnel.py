"""The funnel of a run: what each step got, kept, dropped by rule and quarantined, and the law that nothing vanishes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import InternalError
from headrace.pipelines.records import TABLES, UnitRecord
from headrace.pipelines.steps import StepCount


@dataclass(frozen=True)
class FunnelStep:
    """One step's line."""

    index: int
    op: str
    count: StepCount

    def to_plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"index": self.index, "op": self.op, **self.count.to_plain()}


@dataclass(frozen=True)
class Funnel:
    """All steps; `rows` are those of the three outputs, counted from staged fragments."""

    steps: tuple[FunnelStep, ...]
    rows_in: int
    rows: dict[str, int]

    def to_plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"rows_in": self.rows_in, "rows": self.rows, "steps": [step.to_plain() for step in self.steps]}


def funnel_of(ops: Sequence[str], records: Sequence[UnitRecord]) -> Funnel:
    """Sum the records of the last segment.  Raises InternalError where rows are not conserved, by unit and step."""
    totals = {index: StepCount() for index in range(len(ops))}
    rows = dict.fromkeys(TABLES, 0)
    for record in records:
        _check(ops, record)
        for index, count in record.counts.items():
            totals[index].add(count)
        for name in TABLES:
            rows[name] += sum(fragment.rows for fragment in record.staged[name])
    rows_in = sum(record.rows_read + record.read_errors for record in records)
    if rows_in != sum(rows.values()):
        _mismatch("run", f"{rows_in} rows in, {rows} out")
    return Funnel(tuple(FunnelStep(i, op, totals[i]) for i, op in enumerate(ops)), rows_in, rows)


def _check(ops: Sequence[str], record: UnitRecord) -> None:
    """Reader's count -> each step's count -> rows of the staged fragments: three places that must agree."""
    place = f"unit {record.unit}"
    flowing = record.rows_read + record.read_errors
    dropped = quarantined = 0
    for index, op in enumerate(ops):
        count = record.counts.get(index, StepCount())
        if count.rows_in != flowing or not count.is_conserved:
            _mismatch(f"{place}, steps[{index}] ({op})", f"{flowing} rows arrive, counted {count.to_plain()}")
        flowing = count.kept
        dropped += count.dropped.total()
        quarantined += count.quarantined
    counted = {"kept": flowing, "rejects": dropped, "quarantine": quarantined}
    staged = {name: sum(fragment.rows for fragment in record.staged[name]) for name in TABLES}
    if staged != counted:
        _mismatch(place, f"counted {counted}, staged {staged}")


def _mismatch(place: str, got: str) -> None:
    raise InternalError(place, got, "rows in = kept + dropped + quarantined", "nothing was published; report this")
