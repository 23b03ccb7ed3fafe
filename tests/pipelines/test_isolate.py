"""Isolation in children gives what the chain gives, and blames exactly the rows that kill."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import DataError
from headrace.operators.shapes import MapFunction
from headrace.pipelines import isolate
from headrace.pipelines.chain import UnitState, keys_of, numbered, read_unit, run_stage
from headrace.pipelines.children import Children
from headrace.pipelines.isolate import isolated_keys, isolated_read, isolated_stage
from headrace.pipelines.manifest import Manifest
from headrace.pipelines.plan import Unit, cut_units
from headrace.pipelines.records import TABLES
from headrace.pipelines.steps import StepCount
from headrace.pipelines.task import StepTask, build_reader, build_steps
from headrace.storage.contract import DOCUMENT
from tests.pipelines.plain import (
    Dies,
    FirstOfText,
    Lawless,
    Lines,
    Raises,
    Shout,
    Without,
    built,
    documents,
    segment_task,
    step_of,
    write_lines,
)


def state_of(*texts: str) -> UnitState:
    return UnitState(3, documents(*texts), counts={0: StepCount(len(texts), len(texts))}, rows_read=len(texts))


def assert_same(one: UnitState, other: UnitState) -> None:
    for name in TABLES:
        assert getattr(one, name).equals(getattr(other, name)), name
    for index in {*one.counts, *other.counts}:
        assert one.counts[index] == other.counts[index], index
    for name in ("unit", "rows_read", "read_errors"):
        assert getattr(one, name) == getattr(other, name)


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each child ended."""
    ends: list[str] = []
    fork = Children._fork

    def told(self: Children, folder: Path) -> str:
        ends.append(fork(self, folder))
        return ends[-1]

    monkeypatch.setattr(Children, "_fork", told)
    return ends


def test_where_nothing_dies_the_result_is_that_of_the_chain(children: list[str]) -> None:
    task = segment_task(Raises(), Without(word="drop"), Shout())
    texts = ["a", "bad", "drop", "b"] * 10
    isolated = isolated_stage(task, 0, state_of(*texts))
    assert_same(isolated, run_stage(state_of(*texts), build_steps(task.stages[0]), "r"))
    assert isolated.kept.num_rows == 20
    assert children == ["exit code 0"]


def test_the_rows_that_kill_are_quarantined_and_no_others(children: list[str]) -> None:
    task = segment_task(Shout(mark=""), Dies(word="DIE"), Without(word="DROP"))
    texts = ["a"] * 20 + ["die"] + ["drop"] + ["b"] * 10 + ["die"]
    found = isolated_stage(task, 0, state_of(*texts))
    assert found.kept["id"].to_pylist() == [f"r{n}" for n in range(32) if n not in (20, 21)]
    assert found.rejects["id"].to_pylist() == ["r21"]
    assert found.quarantine.select(["id", "step", "op", "text"]).to_pylist() == [
        {"id": id, "step": 2, "op": "tests.pipelines.plain:Dies", "text": "DIE"} for id in ("r20", "r32")
    ]
    assert "exit code 7" in found.quarantine["error"][0].as_py()
    assert {index: count.rows_in for index, count in found.counts.items()} == {0: 33, 1: 33, 2: 33, 3: 31}
    assert all(count.is_conserved for count in found.counts.values())
    assert set(children) == {"exit code 0", "exit code 7"}
    assert len(children) <= 14  # two deaths in 33 rows: a few halvings each, not a child for every row


def test_all_rows_killing_leaves_an_empty_table_with_the_right_columns(children: list[str]) -> None:
    found = isolated_stage(segment_task(Dies()), 0, state_of("die", "die"))
    assert found.kept.schema.equals(DOCUMENT)
    assert (found.kept.num_rows, found.quarantine.num_rows) == (0, 2)
    assert found.counts[1] == StepCount(2, 0, quarantined=2)


def test_a_stage_without_steps_or_rows_starts_no_child(children: list[str]) -> None:
    assert isolated_stage(segment_task(), 0, state_of("a")).kept.num_rows == 1
    none = isolated_stage(segment_task(Shout()), 0, state_of())
    assert (none.kept.num_rows, none.counts[1]) == (0, StepCount())
    assert children == []


class DeadlyKeys(FirstOfText):
    """Keys that are deadly to make of `die`."""

    def build(self) -> MapFunction:
        dies, keys = Dies().build(), super().build()
        return lambda table: keys(dies(table))


def test_keys_in_children_are_the_keys(children: list[str]) -> None:
    barrier = StepTask.of(step_of(DeadlyKeys(), 2))
    task = dataclasses.replace(segment_task(Shout()), barrier=barrier)
    fine, one = documents("a", "b", "c"), documents("a", "die", "c")
    whole = keys_of(numbered(fine), built(DeadlyKeys(), 2), "r")
    assert isolated_keys(task, barrier, fine).kept.equals(whole.kept)
    assert children == ["exit code 0"]
    found = isolated_keys(task, barrier, one)
    assert found.kept.equals(whole.kept.take([0, 2]))
    assert found.quarantine.select(["id", "step"]).to_pylist() == [{"id": "r1", "step": 2}]
    assert found.counts == {2: StepCount(3, 2, quarantined=1)}
    none = isolated_keys(task, barrier, documents("die"))
    assert (none.kept.schema.equals(whole.kept.schema), none.kept.num_rows, none.quarantine.num_rows) == (True, 0, 1)
    assert isolated_keys(task, barrier, documents()).kept.schema.equals(whole.kept.schema)


def test_what_came_before_is_kept() -> None:
    task = segment_task(Without(word="drop"), Shout())
    before = run_stage(state_of("a", "drop"), build_steps(task.stages[0][:1]), "r")
    task = segment_task(Dies())
    found = isolated_stage(task, 0, before)
    assert found.rejects["id"].to_pylist() == ["r1"]
    assert (found.unit, found.rows_read, found.started) == (3, 2, before.started)


def test_an_error_of_ours_comes_through_unchanged() -> None:
    with pytest.raises(DataError, match=r"steps\[1\] .*got 0 rows for 1") as told:
        isolated_stage(segment_task(Lawless(how="fewer rows")), 0, state_of("a", "b"))
    assert told.value.rule == "a map returns as many rows as it gets, in the same order"


def unit_in(folder: Path, reader: Lines) -> Unit:
    return cut_units(reader, Manifest.of(reader), 1 << 20)[0]


def test_reading_in_a_child_is_reading(tmp_path: Path) -> None:
    reader = Lines(root=str(write_lines(tmp_path, a=["one", "?broken"], b=["two"])))
    unit = unit_in(tmp_path, reader)
    assert len(unit.parts) == 2
    task = segment_task(Shout(), reader=reader)
    assert_same(isolated_read(task, unit), read_unit(task, build_reader(task.source), unit))


def test_a_part_that_kills_its_reader_is_one_row_of_the_quarantine(tmp_path: Path) -> None:
    folder = write_lines(tmp_path, a=["one"], b=["two", "die"], c=["three"])
    reader = Lines(root=str(folder), dies_on="die")
    found = isolated_read(segment_task(Shout(), reader=reader), unit_in(tmp_path, reader))
    assert found.kept["id"].to_pylist() == ["a-0", "c-0"]
    (row,) = found.quarantine.to_pylist()
    assert (row["id"], row["source_file"], row["source_offset"], row["step"]) == ("b.txt:0", "b.txt", 0, 0)
    assert "killed the worker (exit code 9)" in row["error"]
    assert found.counts[0] == StepCount(3, 2, quarantined=1)
    assert (found.rows_read, found.read_errors) == (2, 1)


def test_slices_tile_the_table() -> None:
    for num in (0, 1, 15, 16, 17, 100):
        table = documents(*(str(n) for n in range(num)))
        slices = isolate._slices(table)
        assert len(slices) <= isolate.SLICES
        assert pa.concat_tables([table.slice(0, 0), *slices]).equals(table)
