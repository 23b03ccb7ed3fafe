"""A dataset of the lake as the input of the next pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.operators.read.jsonl import Jsonl
from headrace.operators.read.lance import Lance
from headrace.operators.text.length import Length
from headrace.pipelines.preview import preview
from headrace.pipelines.run import run
from headrace.pipelines.spec import Pipeline
from headrace.pipelines.verify import verify_run
from headrace.storage.dataset import Dataset
from headrace.storage.lake import Lake


def _write(folder: Path, lengths: list[int]) -> None:
    rows = [json.dumps({"id": f"d{n}", "text": "x" * n, "n": n}) for n in lengths]
    (folder / "in.jsonl").write_text("\n".join(rows), encoding="utf-8")


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_run_reads_from_its_own_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    lake = Lake(str(tmp_path / "lake"))
    monkeypatch.setenv("HEADRACE_LAKE", lake.uri if how == "environment" else str(tmp_path / "another"))
    given = None if how == "environment" else lake
    _write(tmp_path, [1, 5, 9])
    raw = Pipeline(pipeline="raw", output="docs/raw", steps=(Jsonl(root=str(tmp_path)),))
    run(raw, lake=given, engine="local")
    long = Pipeline(pipeline="long", output="docs/long", steps=(Lance(dataset="docs/raw"), Length(min_chars=4)))
    first = run(long, lake=given, engine="local")
    found = Dataset.open("docs/long", lake).to_arrow()
    assert (found["id"].to_pylist(), found["n"].to_pylist()) == (["d5", "d9"], [5, 9])
    assert verify_run(lake, first.run).ok
    assert run(long, lake=given, engine="local").status == "already published"
    _write(tmp_path, [2, 6, 7, 8])  # a new version of the input is other work, and takes the place of the old
    run(raw, lake=given, engine="local")
    assert run(long, lake=given, engine="local").status == "published"
    assert Dataset.open("docs/long", lake).to_arrow()["id"].to_pylist() == ["d6", "d7", "d8"]
    with lake.as_default():
        assert preview(long).kept["id"].to_pylist() == ["d6", "d7", "d8"]
    assert not (tmp_path / "another").exists()
