"""Unit records: first wins, a broken one is followed by the next version, and all of them tile the plan."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from headrace.errors import InternalError
from headrace.pipelines.records import (
    UnitRecord,
    finished_units,
    load_records,
    mark_broken,
    next_version,
    put_record,
    record_key,
    start_attempt,
)
from headrace.pipelines.steps import StepCount
from headrace.storage.commit import StagedFile, StagedFragment
from headrace.storage.lake import Lake

WORK = "work/k"


def record(unit: int = 0, **given: object) -> UnitRecord:
    fragment = StagedFragment('{"id": 0}', (StagedFile("a.lance", 12),), 3)
    whole = UnitRecord(
        unit=unit,
        rows_read=4,
        read_errors=1,
        bytes_read=100,
        counts={0: StepCount(5, 4, quarantined=1), 1: StepCount(4, 3, Counter(short=1))},
        code={0: "d0", 1: "d1"},
        rows={"kept": 3, "rejects": 1, "quarantine": 1},
        staged={"kept": (fragment,), "rejects": (), "quarantine": ()},
        scratch={"ids": ("work/k/scratch/x", 24)},
        renamed=2,
        seconds=1.25,
    )
    return dataclasses.replace(whole, **given)  # type: ignore[arg-type]


def test_a_record_survives_json() -> None:
    assert UnitRecord.from_json(record().to_json()) == record()


def test_the_first_record_wins_and_both_writers_learn_it(lake: Lake) -> None:
    first, second = record(rows_read=4), record(rows_read=5)
    assert put_record(lake.objects, WORK, first) == first
    assert put_record(lake.objects, WORK, second) == first
    assert load_records(lake.objects, WORK, 1) == [first]


def test_a_broken_record_is_set_aside_and_followed_by_the_next(lake: Lake) -> None:
    put_record(lake.objects, WORK, record(0))
    put_record(lake.objects, WORK, record(1))
    mark_broken(lake.objects, WORK, 1, "its file is lost")
    assert next_version(lake.objects, WORK, 1) == 1
    assert finished_units(lake.objects, WORK) == {0: record_key(WORK, 0)}
    with pytest.raises(InternalError, match=r"1 records for 2 units \(missing \[1\], unplanned \[\]\)"):
        load_records(lake.objects, WORK, 2)
    again = record(1, rows_read=7)
    assert put_record(lake.objects, WORK, again) == again
    assert load_records(lake.objects, WORK, 2) == [record(0), again]
    mark_broken(lake.objects, WORK, 1, "lost again")
    third = record(1, rows_read=8)
    assert put_record(lake.objects, WORK, third) == third
    assert load_records(lake.objects, WORK, 2)[1] == third
    assert lake.objects.get_or_none(record_key(WORK, 1, 0)) is not None  # what was set aside can still be looked at


def test_records_that_do_not_tile_the_plan_stop_the_run(lake: Lake) -> None:
    for unit in (0, 2, 3):
        put_record(lake.objects, WORK, record(unit))
    with pytest.raises(InternalError, match=r"3 records for 3 units \(missing \[1\], unplanned \[3\]\)"):
        load_records(lake.objects, WORK, 3)


def test_records_come_in_unit_order(lake: Lake) -> None:
    for unit in (11, 2, 0, 1, *range(3, 11)):
        put_record(lake.objects, WORK, record(unit))
    assert [r.unit for r in load_records(lake.objects, WORK, 12)] == list(range(12))


def test_segments_do_not_see_each_others_records(lake: Lake) -> None:
    put_record(lake.objects, "work/k", record(0))
    put_record(lake.objects, "work/k2", record(1))
    assert list(finished_units(lake.objects, "work/k")) == [0]
    assert finished_units(lake.objects, "work/none") == {}


def test_every_start_of_a_stage_is_counted(lake: Lake) -> None:
    objects = lake.objects
    assert [start_attempt(objects, WORK, 3, 0) for _ in range(3)] == [1, 2, 3]
    assert start_attempt(objects, WORK, 3, 1) == 1
    assert start_attempt(objects, WORK, 4, 0) == 1
    # Two workers that listed at once: the second finds its number taken.
    objects.put_once(f"{WORK}/attempts/{5:07d}/0/2", b"{}")
    assert [start_attempt(objects, WORK, 5, 0) for _ in range(2)] == [3, 4]
