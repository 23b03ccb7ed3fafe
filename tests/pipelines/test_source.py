"""What a run replaces: the cases of `headrace.pipelines.source`, by what is read back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import SpecError
from headrace.operators.read.jsonl import Jsonl
from headrace.operators.text.length import Length
from headrace.pipelines.run import RunResult, run
from headrace.pipelines.spec import Pipeline
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.open import open_version


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for name in "abc":
        write(tmp_path / "in", name)
    return tmp_path / "in"


def write(folder: Path, name: str, text: str = "text") -> None:
    (folder / f"{name}.jsonl").write_text(json.dumps({"id": name, "text": text}) + "\n", "utf-8")


def go(lake: Lake, root: Path | str, include: str = "*.jsonl", min_chars: int = 1, **given: Any) -> RunResult:
    steps = (Jsonl(root=str(root), include=[include]), Length(min_chars=min_chars))
    return run(Pipeline(**{"pipeline": "p", "output": "out", **given}, steps=steps), lake=lake, engine="local", cpus=1)


def ids(lake: Lake) -> list[str]:
    return sorted(open_version(lake, "out").to_table()["id"].to_pylist())


def test_the_same_folder_takes_its_own_place(lake: Lake, folder: Path) -> None:
    go(lake, folder)
    go(lake, folder, min_chars=2)
    assert ids(lake) == ["a", "b", "c"]
    write(folder, "d")
    (folder / "a.jsonl").unlink()  # the folder as it is now: what left the folder leaves the dataset
    go(lake, folder)
    assert ids(lake) == ["b", "c", "d"]


def test_another_spelling_of_the_same_folder_doubles_nothing(
    lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(lake, folder)
    monkeypatch.chdir(folder.parent)
    assert go(lake, "in", min_chars=2).version == 3
    assert go(lake, f"in{os.sep}", "**/*.jsonl", min_chars=3).version == 4
    assert ids(lake) == ["a", "b", "c"]


def test_other_files_are_added(lake: Lake, folder: Path, tmp_path: Path) -> None:
    go(lake, folder, "a.jsonl")
    go(lake, folder, "[bc].jsonl")  # of the same folder, too: a day's files after the day before's
    (tmp_path / "more").mkdir()
    write(tmp_path / "more", "z")
    go(lake, tmp_path / "more")
    assert ids(lake) == ["a", "b", "c", "z"]
    go(lake, folder)  # reads all that two of them read
    assert ids(lake) == ["a", "b", "c", "z"]


def test_a_part_of_what_was_read_is_refused_before_any_work(lake: Lake, folder: Path) -> None:
    first = go(lake, folder)
    told = f"2 files that run {first.run} read too, without 1 others"
    with pytest.raises(SpecError, match=told):
        go(lake, folder, "[ab].jsonl")
    assert int(open_head(lake, "out").version) == first.version
    assert len(lake.objects.folders("runs")) == 1
    go(lake, folder, "[ab].jsonl", write="append")
    assert ids(lake) == ["a", "a", "b", "b", "c"]
    go(lake, folder, "[ab].jsonl", write="replace")
    assert ids(lake) == ["a", "b"]


def test_another_pipeline_stays(lake: Lake, folder: Path) -> None:
    go(lake, folder)
    go(lake, folder, pipeline="q")
    assert ids(lake) == ["a", "a", "b", "b", "c", "c"]
    go(lake, folder, pipeline="q", min_chars=2)
    assert ids(lake) == ["a", "a", "b", "b", "c", "c"]
