"""Lost scratch is found where it is needed, and only there."""

from __future__ import annotations

import pytest

from headrace.pipelines.lost import set_lost_scratch_aside
from headrace.pipelines.records import UnitRecord, finished_units, put_record
from headrace.pipelines.selection import selection_key
from headrace.storage.lake import Lake
from headrace.storage.objects import ObjectStore

WORKS = ["work/a", "work/b", "runs/r/segment-2"]


@pytest.fixture
def objects(lake: Lake) -> ObjectStore:
    """Two units; their scratch of the segments 0 and 1 is there, segment 1 has no selection yet."""
    objects = lake.objects
    for work in WORKS[:2]:
        for unit in (0, 1):
            scratch = {}
            for name in ("kept", "keys"):
                place = f"{work}/scratch/{unit}-{name}.arrow"
                objects.put(place, b"12345")
                scratch[name] = (place, 5)
            put_record(objects, work, UnitRecord(unit, 1, 0, 0, {}, {}, {}, scratch=scratch))
    objects.put(selection_key(WORKS[0]), b"")
    return objects


def test_nothing_is_lost(objects: ObjectStore) -> None:
    assert list(set_lost_scratch_aside(objects, WORKS, 2)) == []


def test_what_is_needed_is_set_aside_once(objects: ObjectStore) -> None:
    objects.delete("work/b/scratch/1-keys.arrow")
    objects.put("work/b/scratch/0-kept.arrow", b"1234")
    lost = list(set_lost_scratch_aside(objects, WORKS, 2))
    assert lost == [(1, 0, "work/b/scratch/0-kept.arrow"), (1, 1, "work/b/scratch/1-keys.arrow")]
    assert finished_units(objects, "work/b") == {}
    assert list(set_lost_scratch_aside(objects, WORKS, 2)) == []


def test_the_segment_before_is_needed_once_a_unit_is_done_again(objects: ObjectStore) -> None:
    objects.delete("work/a/scratch/1-kept.arrow")
    assert list(set_lost_scratch_aside(objects, WORKS, 2)) == []  # all units behind it are finished
    objects.delete("work/b/scratch/0-kept.arrow")
    assert [(at, unit) for at, unit, _ in set_lost_scratch_aside(objects, WORKS, 2)] == [(1, 0), (0, 1)]


def test_keys_are_not_needed_after_the_selection(objects: ObjectStore) -> None:
    objects.put(selection_key(WORKS[1]), b"")
    objects.delete("work/b/scratch/0-keys.arrow")
    assert list(set_lost_scratch_aside(objects, WORKS, 2)) == []
    objects.delete("work/b/scratch/0-kept.arrow")
    assert [unit for _, unit, _ in set_lost_scratch_aside(objects, WORKS, 2)] == [0]


def test_scratch_that_was_taken_over_lies_elsewhere(objects: ObjectStore) -> None:
    objects.put_once("runs/r/segment-1/units/0000000.0.json", objects.get("work/b/units/0000000.0.json"))
    own = ["work/a", "runs/r/segment-1", "runs/r/segment-2"]
    assert list(set_lost_scratch_aside(objects, own, 2)) == []
    objects.delete("work/b/scratch/0-kept.arrow")
    assert [(at, unit) for at, unit, _ in set_lost_scratch_aside(objects, own, 2)] == [(1, 0)]
