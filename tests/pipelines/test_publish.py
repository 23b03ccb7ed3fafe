"""From finished units to a version: what leaves the dataset, what is named by what, and what can be repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import GateFailed
from headrace.pipelines.plan import load_run_plan
from headrace.pipelines.progress import Silent
from headrace.pipelines.publish import finish_publication, kept_files
from headrace.pipelines.records import UnitRecord
from headrace.pipelines.run import RunResult, run
from headrace.pipelines.spec import Gates, Pipeline
from headrace.storage.channels import channel_history, channel_version
from headrace.storage.faults import InjectedFault
from headrace.storage.head import transaction_properties
from headrace.storage.lake import Lake
from headrace.storage.lineage import lineage_of, live_runs
from headrace.storage.open import open_version
from tests.pipelines.plain import Shout, Without, lines_pipeline, write_lines


def go(lake: Lake, spec: Pipeline) -> RunResult:
    return run(spec, lake=lake, engine="local", cpus=1)


def texts(lake: Lake, name: str = "out") -> list[str]:
    return sorted(open_version(lake, name).to_table()["text"].to_pylist())


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return write_lines(tmp_path / "x", a=["one", "drop"]), write_lines(tmp_path / "y", a=["two"])


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        ("source", ["ONE?", "TWO!"]),  # x again took the place of x; y stays
        ("append", ["ONE!", "ONE?", "TWO!"]),
        ("replace", ["ONE?"]),
    ],
)
def test_what_a_second_run_takes_the_place_of(
    lake: Lake, folders: tuple[Path, Path], write: str, expected: list[str]
) -> None:
    x, y = folders
    given: dict[str, Any] = {"write": "append" if write == "append" else "source"}
    first = go(lake, lines_pipeline(x, Without(word="drop"), Shout(), **given))
    other = go(lake, lines_pipeline(y, Shout(), **given))
    last = go(lake, lines_pipeline(x, Without(word="drop"), Shout(mark="?"), write=write))
    assert texts(lake) == expected
    standing = {"source": {other.run, last.run}, "append": {first.run, other.run, last.run}, "replace": {last.run}}
    assert live_runs(lake, "out", last.version) == standing[write]
    assert texts(lake, f"out@{first.version}") == ["ONE!"]  # older versions stay as they were
    rejects = open_version(lake, "out.rejects").to_table()
    assert rejects["run"].to_pylist() == [first.run, last.run]  # each run's own, told apart by the run


def test_the_kept_commit_names_run_and_versions_of_the_others(lake: Lake, folders: tuple[Path, Path]) -> None:
    done = go(lake, lines_pipeline(folders[0], Without(word="drop"), channel="prod"))
    properties = transaction_properties(open_version(lake, "out"), done.version)
    assert properties["headrace.run"] == done.run
    assert properties["headrace.pipeline"] == "lines"
    rejects = open_version(lake, f"out.rejects@{properties['headrace.rejects_version']}")
    assert rejects.to_table()["run"].to_pylist() == [done.run]
    quarantine = open_version(lake, f"out.quarantine@{properties['headrace.quarantine_version']}")
    assert quarantine.count_rows() == 0
    (row,) = lineage_of(lake, "out")
    assert (row.run, row.version, row.report) == (done.run, done.version, done.report)
    assert channel_version(lake, "out", "prod") == done.version


def test_what_follows_from_a_commit_can_be_repeated_and_made_up_for(
    lake: Lake, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = lines_pipeline(folders[0], Shout(), channel="prod")
    monkeypatch.setenv("HEADRACE_FAULT", "publish.after_kept=raise")
    with pytest.raises(InjectedFault):
        go(lake, spec)
    monkeypatch.delenv("HEADRACE_FAULT")
    assert lineage_of(lake, "out") == []
    assert channel_version(lake, "out", "prod") is None
    done = go(lake, spec)
    assert done.status == "already published"
    plan = load_run_plan(lake.objects, done.run)
    for _ in range(2):
        finish_publication(lake, spec, plan, done.version)
    assert [row.run for row in lineage_of(lake, "out")] == [done.run]
    assert [move.to for move in channel_history(lake, "out", "prod")] == [done.version]
    assert open_version(lake, "out").version == done.version


def test_a_failed_gate_leaves_no_version_and_needs_no_work_again(lake: Lake, folders: tuple[Path, Path]) -> None:
    strict = lines_pipeline(folders[0], Without(word="drop"), gates=Gates(max_drop_frac=0.1), channel="prod")
    with pytest.raises(GateFailed, match=r"max_drop_frac: measured 0\.5, limit 0\.1"):
        go(lake, strict)
    for name in ("out", "out.rejects", "out.quarantine"):
        assert open_version(lake, name).version == 1
    assert channel_version(lake, "out", "prod") is None
    calm = strict.model_copy(update={"gates": Gates(max_drop_frac=0.5)})

    class Idle(Silent):
        def unit_done(self, segment: int, record: UnitRecord) -> None:
            raise AssertionError("the units are finished")

    done = run(calm, lake=lake, engine="local", progress=Idle())
    assert texts(lake) == ["one"]
    assert channel_version(lake, "out", "prod") == done.version


def test_everything_dropped_is_a_result_too(lake: Lake, folders: tuple[Path, Path]) -> None:
    done = go(lake, lines_pipeline(folders[0], Without(word="o")))
    assert texts(lake) == []
    assert done.report["rows"] == {"kept": 0, "rejects": 2, "quarantine": 0}
    assert kept_files(lake.objects, done.run) == []


def test_gates_hold_for_what_is_published_already(lake: Lake, folders: tuple[Path, Path]) -> None:
    spec = lines_pipeline(folders[0], Shout())
    first = go(lake, spec)
    with pytest.raises(GateFailed, match=rf"gates of out@{first.version}, published before: got min_rows: measured 2"):
        go(lake, spec.model_copy(update={"gates": Gates(min_rows=3)}))
    assert go(lake, spec.model_copy(update={"gates": Gates(min_rows=2)})).status == "already published"


def test_keys_that_repeat_in_a_file_and_over_files_are_renamed_and_counted(lake: Lake, tmp_path: Path) -> None:
    from headrace.operators.dedup.exact import Exact
    from headrace.operators.read.jsonl import Jsonl

    (tmp_path / "a.jsonl").write_text('{"id": "k", "text": "one"}\n{"id": "k", "text": "two"}\n', "utf-8")
    (tmp_path / "b.jsonl").write_text('{"id": "k", "text": "three"}\n{"id": "j", "text": "four"}\n', "utf-8")
    spec = Pipeline(pipeline="p", output="out", unit_bytes=1024, steps=(Jsonl(root=str(tmp_path)), Exact()))
    done = go(lake, spec)
    ids = open_version(lake, "out").to_table()["id"].to_pylist()
    assert sorted(id.partition("~")[0] for id in ids) == ["j", "k", "k", "k"]
    assert len(set(ids)) == 4
    assert {"j", "k"} < set(ids)
    assert done.report["renamed_ids"] == 2
