"""A worker: functions built once, units to records, isolation after three starts, and errors that name the unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import DataError, InputChanged
from headrace.operators.shapes import MapFunction
from headrace.pipelines.describe import describe_scratch, describe_unit
from headrace.pipelines.manifest import Manifest
from headrace.pipelines.plan import cut_units, schema_to_text
from headrace.pipelines.records import MAX_ATTEMPTS, UnitRecord, finished_units, load_records, start_attempt
from headrace.pipelines.segments import segments_of, steps_of
from headrace.pipelines.selection import make_selection
from headrace.pipelines.steps import StepCount
from headrace.pipelines.target import prepare_targets
from headrace.pipelines.task import SegmentTask
from headrace.pipelines.worker import Worker, worker_of
from headrace.storage.contract import DOCUMENT
from headrace.storage.lake import Lake
from tests.pipelines.plain import Dies, FirstOfText, Lines, Shout, Without, lines_pipeline, write_lines

builds: list[str] = []


class Noted(Shout):
    """Notes each build."""

    def build(self) -> MapFunction:
        builds.append(self.mark)
        return super().build()


def tasks_and_units(lake: Lake, folder: Path, *steps: Any, **reader: Any) -> tuple[list[SegmentTask], list[str]]:
    """The task of each segment, the targets made, and descriptions of the first segment's units."""
    spec = lines_pipeline(folder, *steps, reader=Lines(root=str(folder), **reader))
    manifest = Manifest.of(spec.reader)
    prepare_targets(lake, "out", DOCUMENT)
    schema = schema_to_text(DOCUMENT)
    tasks = [
        SegmentTask.of(
            segment,
            lake=lake.uri,
            run="r",
            work=f"work/{segment.index}",
            previous=f"work/{segment.index - 1}",
            input_schema=schema,
            output_schema=schema,
            output="out",
            rejects="text",
            search_path=(),
        )
        for segment in segments_of(steps_of(spec), "i")
    ]
    return tasks, [describe_unit(unit) for unit in cut_units(spec.reader, manifest, 1)]


def test_a_unit_becomes_a_record(lake: Lake, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["one", "drop", "?broken"], b=["two"])
    (task,), units = tasks_and_units(lake, folder, Without(word="drop"), Shout())
    assert len(units) == 2
    record = Worker(task).run_unit(units[0])
    assert record.rows == {"kept": 1, "rejects": 1, "quarantine": 1}
    assert (record.rows_read, record.read_errors) == (2, 1)
    assert {name: [f.rows for f in staged] for name, staged in record.staged.items()} == {
        "kept": [1],
        "rejects": [1],
        "quarantine": [1],
    }
    assert record.code == {0: task.source.digest, **{step.index: step.digest for step in task.stages[0]}}
    assert finished_units(lake.objects, "work/0") == {0: "work/0/units/0000000.0.json"}
    assert load_records(lake.objects, "work/0", 1) == [record]


def test_the_second_segment_starts_from_scratch_and_selection(lake: Lake, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["one", "two", "drop"], b=["one", "three"])
    (first, second), units = tasks_and_units(lake, folder, Without(word="drop"), FirstOfText(), Shout())
    records = [Worker(first).run_unit(unit) for unit in units]
    assert all(record.staged == {} and set(record.scratch) >= {"kept", "keys"} for record in records)
    make_selection(lake.objects, "work/0", 2, FirstOfText())
    worker, places = Worker(second), finished_units(lake.objects, "work/0")
    done = [worker.run_unit(describe_scratch(unit, places[unit])) for unit in (0, 1)]
    assert [record.rows for record in done] == [
        {"kept": 2, "rejects": 1, "quarantine": 0},
        {"kept": 1, "rejects": 1, "quarantine": 0},
    ]
    assert done[1].counts[2] == StepCount(2, 1, dropped=done[1].counts[2].dropped)
    assert done[1].counts[2].dropped == {"repeated": 1}
    assert set(done[0].counts) == {0, 1, 2, 3}


def test_functions_are_built_once_and_where_they_first_run(lake: Lake, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["one"], b=["two"], c=["three"])
    (task,), units = tasks_and_units(lake, folder, Noted(mark="?"))
    builds.clear()
    worker = Worker(task)
    assert builds == []
    for unit in units:
        worker.run_unit(unit)
    assert builds == ["?"]
    assert worker_of(task.to_json()) is worker_of(task.to_json())
    assert worker_of(task.to_json()).task == task


def test_after_three_starts_a_unit_runs_isolated(lake: Lake, tmp_path: Path) -> None:
    """Were it not isolated, this test's own process would end."""
    folder = write_lines(tmp_path / "in", a=["one", "die", "two"])
    (task,), (unit,) = tasks_and_units(lake, folder, Dies())
    for _ in range(MAX_ATTEMPTS):
        start_attempt(lake.objects, task.work, 0, 0)
    record = Worker(task).run_unit(unit)
    assert record.rows == {"kept": 2, "rejects": 0, "quarantine": 1}
    assert record.counts[1] == StepCount(3, 2, quarantined=1)


def test_each_start_is_noted_before_anything_runs(lake: Lake, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["oops"])
    (task,), (unit,) = tasks_and_units(lake, folder, Shout(), raises_on="oops")
    for number in range(1, MAX_ATTEMPTS + 1):
        with pytest.raises(DataError):
            Worker(task).run_unit(unit)
        assert len(lake.objects.list("work/0/attempts/0000000/0")) == number


def test_a_reader_that_raises_is_told_with_unit_and_files(lake: Lake, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["fine"], b=["oops"])
    (task,), units = tasks_and_units(lake, folder, Shout(), raises_on="oops")
    told = (
        r"unit 1 \(b\.txt\), tests\.pipelines\.plain:Lines: got RuntimeError: the reader has a bug; a reader gives bad"
    )
    with pytest.raises(DataError, match=told):
        Worker(task).run_unit(units[1])


def test_an_error_of_ours_is_not_wrapped(lake: Lake, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["fine"])
    (task,), (unit,) = tasks_and_units(lake, folder, Shout())
    unit = unit.replace('"mark": "', '"mark": "9')
    with pytest.raises(InputChanged, match=r"a\.txt"):
        Worker(task).run_unit(unit)


def test_two_attempts_of_a_unit_agree_on_one_record(lake: Lake, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["one"])
    (task,), (unit,) = tasks_and_units(lake, folder, Shout())
    first, second = Worker(task).run_unit(unit), Worker(task).run_unit(unit)
    assert isinstance(second, UnitRecord)
    assert second == first
