"""A preview answers in seconds, from the first rows, and touches nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import yaml

from headrace.errors import SpecError
from headrace.pipelines.preview import preview
from headrace.pipelines.steps import StepCount
from tests.pipelines.plain import FirstOfText, Raises, Shout, Without, lines_pipeline, write_lines


def test_the_first_rows_go_through_all_steps(tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["one", "drop", "?broken", "bad"], b=["one", "two"], c=["three"])
    spec = lines_pipeline(folder, Without(word="drop"), Raises(), FirstOfText(), Shout())
    found = preview(spec, 6)
    assert found.kept["text"].to_pylist() == ["ONE!", "TWO!"]
    assert found.rejects.select(["id", "rule", "partner"]).to_pylist() == [
        {"id": "a-1", "rule": "without", "partner": None},
        {"id": "b-0", "rule": "repeated", "partner": "a-0"},
    ]
    assert found.quarantine["id"].to_pylist() == ["a-2", "a-3"]
    assert [(step.index, step.count.rows_in, step.count.kept) for step in found.steps] == [
        (0, 6, 5),
        (1, 5, 4),
        (2, 4, 3),
        (3, 3, 2),
        (4, 2, 2),
    ]
    assert all(step.count.is_conserved for step in found.steps)


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 100])
def test_the_limit_counts_rows_and_read_errors_over_files(limit: int, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["1", "?broken", "2"], b=["3", "?broken"])
    found = preview(lines_pipeline(folder), limit)
    assert found.steps[0].count.rows_in == min(limit, 5)
    assert found.kept.num_rows + found.quarantine.num_rows == min(limit, 5)


def test_nothing_is_written_anywhere(workdir: Path, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["one", "two"])
    file = workdir / "p.yaml"
    file.write_text(yaml.safe_dump(lines_pipeline(folder, FirstOfText(), Shout()).to_mapping()), "utf-8")
    before = sorted(tmp_path.rglob("*"))
    found = preview(file, 20, ["steps[2].mark='?'"])
    assert found.kept["text"].to_pylist() == ["ONE?", "TWO?"]
    assert sorted(tmp_path.rglob("*")) == before
    assert sorted(os.listdir(workdir)) == ["p.yaml"]


def test_it_takes_a_glance_at_a_large_input(tmp_path: Path) -> None:
    line = '{"id": "%d", "text": "the same words again and again, and a number %d"}\n'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("".join(line % (n, n) for n in range(300_000)), "utf-8")
    file = tmp_path / "p.yaml"
    steps = [{"op": "read.jsonl", "root": str(tmp_path / "in")}, {"op": "text.length", "min_chars": 3}]
    file.write_text(yaml.safe_dump({"pipeline": "p", "output": "o", "steps": steps}), "utf-8")
    started = time.monotonic()
    assert preview(file, 20).kept.num_rows == 20
    assert time.monotonic() - started < 5


def test_no_rows_are_no_error(tmp_path: Path) -> None:
    found = preview(lines_pipeline(write_lines(tmp_path / "in", a=[]), Without(word="x"), FirstOfText(), Shout()))
    assert found.kept.num_rows == 0
    assert [step.count for step in found.steps] == [StepCount()] * 4


def test_a_broken_file_is_told_as_in_a_run(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="No such file"):
        preview(tmp_path / "none.yaml")
