"""What travels to a worker: plain values, from which the functions are built there."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import SpecError
from headrace.pipelines.segments import Segment, segments_of, steps_of
from headrace.pipelines.task import (
    SegmentTask,
    StepTask,
    build_keys,
    build_reader,
    build_steps,
    check_code,
    extend_search_path,
)
from tests.pipelines.plain import FirstOfText, Shout, ShoutOnGpu, Without, documents, lines_pipeline

PLACES = {
    "lake": "/lake",
    "run": "r",
    "work": "work/k",
    "previous": "",
    "input_schema": "a",
    "output_schema": "b",
    "output": "out",
    "rejects": "text",
    "search_path": ("/one", "/two"),
}


def segments() -> tuple[Segment, ...]:
    return segments_of(
        steps_of(lines_pipeline(Path("in"), Shout(mark="?"), ShoutOnGpu(), FirstOfText(), Without(word="a"))), "i"
    )


@pytest.mark.parametrize("index", [0, 1])
def test_a_task_survives_json_with_every_parameter(index: int) -> None:
    task = SegmentTask.of(segments()[index], **PLACES)
    again = SegmentTask.from_json(task.to_json())
    assert again == task
    assert again.to_json() == task.to_json()
    assert task.is_last == (index == 1)
    assert [[step.index for step in stage] for stage in again.stages] == ([[1], [2]] if index == 0 else [[4]])
    assert again.stages[0][0].operator() == (Shout(mark="?") if index == 0 else Without(word="a"))
    assert (again.source.index, again.barrier and again.barrier.index) == ((0, 3) if index == 0 else (3, None))


def test_functions_are_built_from_plain_values() -> None:
    task = SegmentTask.from_json(SegmentTask.of(segments()[0], **PLACES).to_json())
    (shout,) = build_steps(task.stages[0])
    assert shout.task == StepTask(1, "tests.pipelines.plain:Shout", shout.task.digest, {"mark": "?"})
    assert shout.function(documents("a"))["text"].to_pylist() == ["A?"]
    assert task.barrier is not None
    assert build_keys(task.barrier)(documents("a", "b")).column_names == ["key"]
    assert callable(build_reader(task.source))


def test_a_step_of_another_shape_is_not_built() -> None:
    source, stage_step = StepTask.of(segments()[0].source), StepTask.of(segments()[1].maps[0])
    for build, wrong in (
        (build_reader, stage_step),
        (build_keys, stage_step),
        (lambda step: build_steps((step,)), source),
    ):
        with pytest.raises(AssertionError):
            build(wrong)


@pytest.mark.parametrize("place", ["source", "stages", "barrier"])
def test_other_code_than_planned_is_refused(place: str) -> None:
    task = SegmentTask.of(segments()[0], **PLACES)
    check_code(task)
    assert task.barrier is not None
    changed: dict[str, tuple[Any, str]] = {
        "source": (dataclasses.replace(task.source, digest="other"), r"steps\[0\]"),
        "stages": ((task.stages[0], (dataclasses.replace(task.stages[1][0], digest="other"),)), r"steps\[2\]"),
        "barrier": (dataclasses.replace(task.barrier, digest="other"), r"steps\[3\]"),
    }
    other, told = changed[place]
    with pytest.raises(SpecError, match=f"{told} .*: got other code than planned; workers must find the code"):
        check_code(dataclasses.replace(task, **{place: other}))


def test_folders_of_outside_operators_come_first_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/lib", "/two"])
    extend_search_path(("/one", "/two", "/three"))
    assert sys.path == ["/one", "/three", "/lib", "/two"]
    extend_search_path(("/one", "/two", "/three"))
    assert sys.path == ["/one", "/three", "/lib", "/two"]
