"""Unit records and attempts: small create-only objects that say what is finished and how often it was tried."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import InternalError
from headrace.pipelines.steps import StepCount
from headrace.storage.commit import StagedFragment
from headrace.storage.objects import ObjectStore

MAX_ATTEMPTS = 3
TABLES = ("kept", "rejects", "quarantine")


@dataclass(frozen=True)
class UnitRecord:
    """What one finished unit of a segment left behind.

    The last segment stages fragments of all three outputs; the others write scratch tables, among them the keys of the
    global step.  `rows_read` and `read_errors` are the reader's own count, carried on through later segments.
    """

    unit: int
    rows_read: int
    read_errors: int
    bytes_read: int
    counts: Mapping[int, StepCount]  # by step index
    code: Mapping[int, str]  # digest of each step as it ran
    rows: Mapping[str, int]  # of kept, rejects, quarantine
    staged: Mapping[str, tuple[StagedFragment, ...]] = field(default_factory=dict)
    scratch: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # table -> object key, bytes
    renamed: int = 0  # rows whose id repeated one that came before
    seconds: float = 0.0

    def to_json(self) -> bytes:
        """As JSON."""
        plain: dict[str, Any] = {
            "unit": self.unit,
            "rows_read": self.rows_read,
            "read_errors": self.read_errors,
            "bytes_read": self.bytes_read,
            "counts": {str(i): count.to_plain() for i, count in self.counts.items()},
            "code": {str(i): digest for i, digest in self.code.items()},
            "rows": dict(self.rows),
            "staged": {name: [f.to_dict() for f in fragments] for name, fragments in self.staged.items()},
            "scratch": {name: list(place) for name, place in self.scratch.items()},
            "renamed": self.renamed,
            "seconds": self.seconds,
        }
        return json.dumps(plain).encode()

    @classmethod
    def from_json(cls, body: bytes) -> UnitRecord:
        """The inverse of `to_json`."""
        plain = json.loads(body)
        plain["counts"] = {int(i): StepCount.from_plain(count) for i, count in plain["counts"].items()}
        plain["code"] = {int(i): digest for i, digest in plain["code"].items()}
        plain["staged"] = {
            name: tuple(StagedFragment.from_dict(f) for f in fragments) for name, fragments in plain["staged"].items()
        }
        plain["scratch"] = {name: (place[0], place[1]) for name, place in plain["scratch"].items()}
        return cls(**plain)


def record_key(work: str, unit: int, version: int = 0) -> str:
    """Object key of a unit's record; a record whose staged files were lost is followed by the next version."""
    return f"{work}/units/{unit:07d}.{version}.json"


def put_record(objects: ObjectStore, work: str, record: UnitRecord) -> UnitRecord:
    """Store a unit's record, or return the one that was first."""
    key = record_key(work, record.unit, next_version(objects, work, record.unit))
    if objects.put_once(key, record.to_json()):
        return record
    return UnitRecord.from_json(objects.get(key))


def next_version(objects: ObjectStore, work: str, unit: int) -> int:
    """Number of this unit's records that were found to be broken."""
    return len(objects.list(f"{work}/broken/{unit:07d}"))


def mark_broken(objects: ObjectStore, work: str, unit: int, why: str, judged: UnitRecord | None = None) -> None:
    """Set a unit's record aside because what it names is lost; the unit will be done again.

    `judged` is the record that was found wanting.  Another coordinator may have set it aside and published its
    successor meanwhile; that one stays, since whoever replaces its rows finds them by it.
    """
    version = next_version(objects, work, unit)
    if judged is not None and objects.get_or_none(record_key(work, unit, version)) != judged.to_json():
        return
    objects.put_once(f"{work}/broken/{unit:07d}/{version}.json", json.dumps({"why": why}).encode())


def finished_units(objects: ObjectStore, work: str) -> dict[int, str]:
    """Unit number -> object key of its valid record, from two listings."""
    broken: dict[int, int] = {}
    for info in objects.list(f"{work}/broken/"):
        unit = int(info.key.split("/")[-2])
        broken[unit] = broken.get(unit, 0) + 1
    found: dict[int, str] = {}
    for info in objects.list(f"{work}/units/"):
        number, version, _ = info.key.rsplit("/", 1)[1].split(".")
        if int(version) == broken.get(int(number), 0):
            found[int(number)] = info.key
    return found


def load_records(objects: ObjectStore, work: str, num_units: int) -> list[UnitRecord]:
    """All records of a segment in unit order.  Raises InternalError where they do not tile the plan."""
    found = finished_units(objects, work)
    if sorted(found) != list(range(num_units)):
        missing = sorted(set(range(num_units)) - set(found))[:5]
        surplus = sorted(set(found) - set(range(num_units)))[:5]
        got = f"{len(found)} records for {num_units} units (missing {missing}, unplanned {surplus})"
        raise InternalError(work, got, "unit records must tile the stored plan", "report this, keep the lake as it is")
    return [UnitRecord.from_json(objects.get(found[number])) for number in range(num_units)]


def attempts(objects: ObjectStore, work: str, unit: int, stage: int) -> int:
    """How often a worker started this stage of this unit."""
    return len(objects.list(f"{work}/attempts/{unit:07d}/{stage}"))


def start_attempt(objects: ObjectStore, work: str, unit: int, stage: int) -> int:
    """Note that a worker starts this stage of this unit; the number of starts so far, this one included."""
    place = f"{work}/attempts/{unit:07d}/{stage}"
    number = attempts(objects, work, unit, stage) + 1
    while not objects.put_once(f"{place}/{number}", b"{}"):
        number += 1
    return number
