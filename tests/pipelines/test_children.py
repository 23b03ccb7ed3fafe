"""Children: results up to a death, errors that come through, and a server that outlives them."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import DataError, InternalError
from headrace.operators.shapes import Map, MapFunction
from headrace.pipelines.chain import UnitState
from headrace.pipelines.children import children_of
from tests.pipelines.plain import Dies, Lawless, Shout, documents, segment_task


class Exits(Map):
    """Leaves Python where there are rows, or already while it is built."""

    early: bool = False

    def build(self) -> MapFunction:
        def exits(table: pa.Table) -> pa.Table:
            print("on stdout, which carries the server's answers")  # noqa: T201
            if table.num_rows:
                sys.exit(5)
            return table

        if self.early:
            os._exit(5)
        return exits


def sizes(found: list[UnitState | None]) -> list[int | None]:
    return [None if state is None else state.kept.num_rows for state in found]


def test_results_up_to_the_death_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    task = segment_task(Dies())
    with children_of(task) as children:
        found, how = children.run(task.stages[0], [documents("a"), documents("die"), documents("b")])
        assert (sizes(found), how) == ([1, None, None], "exit code 7")
        found, how = children.run(task.stages[0], [documents("b", "c")])
        assert (sizes(found), how) == ([2], "exit code 0")
    assert os.listdir(tmp_path) == []


def test_a_fork_without_open_datasets_is_no_warning(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "always")
    task = segment_task(Shout())
    with children_of(task) as children:
        (found,), _ = children.run(task.stages[0], [documents("a")])
    assert found is not None
    assert "fork-safe" not in capfd.readouterr().err


def test_only_the_named_steps_run() -> None:
    task = segment_task(Dies(), Shout())
    with children_of(task) as children:
        (found,), _ = children.run(task.stages[0][1:], [documents("die")])
    assert found is not None
    assert found.kept["text"].to_pylist() == ["DIE!"]
    assert list(found.counts) == [2]


def test_an_error_of_ours_comes_through_in_its_parts() -> None:
    task = segment_task(Lawless(how="raises DataError"))
    with children_of(task) as children, pytest.raises(DataError) as told:
        children.run(task.stages[0], [documents("a")])
    assert (told.value.place, told.value.got, told.value.rule) == ("column 'text'", "int64", "must be text")


def test_leaving_python_costs_its_row_and_prints_are_no_answers() -> None:
    task = segment_task(Exits())
    with children_of(task) as children:
        for _ in range(2):
            found, how = children.run(task.stages[0], [documents("a")])
            assert (sizes(found), how) == ([0], "exit code 0")
            assert found[0] is not None
            assert found[0].quarantine.num_rows == 1


def test_a_child_that_dies_before_its_first_row_blames_no_row() -> None:
    task = segment_task(Exits(early=True))
    rule = r"exit code 5; a child must come to its first row: imports and build\(\) are no row's fault"
    with children_of(task) as children, pytest.raises(InternalError, match=rule):
        children.run(task.stages[0], [documents("a")])


def test_a_server_that_cannot_live_blames_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    task = segment_task(Shout())
    with children_of(task) as children, pytest.raises(InternalError, match="exit code 1; the server of children must"):
        children.run(task.stages[0], [documents("a")])
