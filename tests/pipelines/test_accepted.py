"""Accepted changes of code: noted once, and kept away from other runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from headrace.pipelines.accepted import accept_changes, accepted_changes, first_own_segment, take_over
from headrace.pipelines.prepare import Prepared, prepare
from headrace.pipelines.records import UnitRecord, load_records, mark_broken, put_record
from headrace.pipelines.segments import segments_of, steps_of
from headrace.pipelines.selection import selection_key
from headrace.storage.lake import Lake
from tests.pipelines.plain import FirstOfText, Shout, Without, lines_pipeline, write_lines


def test_a_change_is_noted_once(lake: Lake, tmp_path: Path) -> None:
    prepared = prepare(lines_pipeline(write_lines(tmp_path / "in", a=["x"]), Without(word="a")), lake)
    assert isinstance(prepared, Prepared)
    objects, plan = lake.objects, prepared.plan
    for digest in ("after", "after", "later"):
        accept_changes(objects, plan, [dataclasses.replace(prepared.steps[1], digest=digest)])
    place = {"step": 1, "op": "tests.pipelines.plain:Without", "before": plan.step_digests[1]}
    assert accepted_changes(objects, plan.run) == [{**place, "after": "after"}, {**place, "after": "later"}]
    assert accepted_changes(objects, "other") == []


def test_a_run_is_on_its_own_from_the_first_changed_segment_on() -> None:
    steps = steps_of(lines_pipeline(Path("in"), Shout(), FirstOfText(), Shout(), FirstOfText(), Shout()))
    segments = segments_of(steps, "i")
    found = [first_own_segment(segments, [{"step": step}]) for step in range(6)]
    assert found == [0, 0, 0, 1, 1, 2]
    assert first_own_segment(segments, [{"step": 5}, {"step": 3}]) == 1


def test_finished_units_and_the_selection_are_taken_over(lake: Lake) -> None:
    objects = lake.objects
    for unit in (0, 1, 2):
        put_record(objects, "work/k", UnitRecord(unit, 1, 0, 0, {}, {1: "old"}, {}))
    mark_broken(objects, "work/k", 2, "lost")
    objects.put(selection_key("work/k"), b"selected")
    own = UnitRecord(1, 1, 0, 0, {}, {1: "new"}, {})
    put_record(objects, "runs/r/segment-0", own)
    for _ in range(2):  # a coordinator that was killed half way does it again
        take_over(objects, "work/k", "runs/r/segment-0")
    found = load_records(objects, "runs/r/segment-0", 2)
    assert [record.code for record in found] == [{1: "old"}, {1: "new"}]
    assert objects.get(selection_key("runs/r/segment-0")) == b"selected"
    take_over(objects, "work/none", "runs/r/segment-1")
    assert objects.list("runs/r/segment-1") == []
