"""What runs a lake holds: published, replaced, refused, unfinished."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import DatasetNotFound, GateFailed
from headrace.pipelines.plan import own_work
from headrace.pipelines.records import mark_broken
from headrace.pipelines.run import run
from headrace.pipelines.runs import failed_gates, list_runs, show_run
from headrace.pipelines.spec import Gates
from headrace.storage.faults import InjectedFault
from headrace.storage.lake import Lake
from tests.pipelines.plain import FirstOfText, Shout, lines_pipeline, write_lines


def test_a_lake_that_is_not_there_has_no_runs_and_is_not_made(lake: Lake) -> None:
    assert list_runs(lake) == []
    assert not Path(lake.uri).exists()
    with pytest.raises(DatasetNotFound, match="no such run in this lake; runs here: none yet"):
        show_run(lake, "abc")


def test_runs_are_told_by_what_became_of_them(lake: Lake, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "in", a=["x" * 1000], b=["y" * 1000])
    first = run(lines_pipeline(folder, FirstOfText(), Shout()), lake=lake, engine="local")
    second = run(lines_pipeline(folder, FirstOfText(), Shout(mark="?")), lake=lake, engine="local")
    with pytest.raises(GateFailed):
        run(lines_pipeline(folder, output="strict", gates=Gates(min_rows=3)), lake=lake, engine="local")
    found = {info.run: info for info in list_runs(lake)}
    assert len(found) == 3
    assert [info.created_at for info in list_runs(lake)] == sorted(info.created_at for info in found.values())
    assert (found[first.run].status, found[first.run].version) == ("replaced", first.version)
    assert (found[second.run].status, found[second.run].version) == ("published", second.version)
    (strict,) = (info for info in found.values() if info.output == "strict")
    assert (strict.status, strict.version, strict.pipeline) == ("refused", None, "lines")
    assert (strict.units, strict.finished) == (2, 2)
    assert all((info.units, info.finished) == (4, 4) for info in (found[first.run], found[second.run]))  # two segments


def test_a_run_is_shown_with_segments_spec_and_report(lake: Lake, tmp_path: Path) -> None:
    spec = lines_pipeline(write_lines(tmp_path / "in", a=["one"]), FirstOfText(), Shout())
    done = run(spec, lake=lake, engine="local")
    for name in (done.run, done.run[:6]):
        shown = show_run(lake, name)
        assert shown["run"] == done.run
        assert shown["segments"] == [
            {"segment": 0, "units": 1, "finished": 1},
            {"segment": 1, "units": 1, "finished": 1},
        ]
        assert shown["spec"] == spec.to_mapping()
        assert shown["report"] == done.report
        assert shown["status"] == "published"


def test_an_unfinished_run_has_no_report(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = lines_pipeline(write_lines(tmp_path / "in", a=["x" * 1000], b=["y" * 1000]), FirstOfText())
    monkeypatch.setenv("HEADRACE_FAULT", "driver.after_unit=raise")
    with pytest.raises(InjectedFault):
        run(spec, lake=lake, engine="local", cpus=1)
    (info,) = list_runs(lake)
    assert (info.status, info.version, info.units) == ("unfinished", None, 4)
    assert 1 <= info.finished <= 2  # of the first segment; the second has not begun
    shown = show_run(lake, info.run)
    assert (shown["report"], shown["version"], shown["status"]) == (None, None, "unfinished")
    assert shown["segments"][1] == {"segment": 1, "units": 2, "finished": 0}
    assert shown["segments"][0]["finished"] >= 1


def test_a_closed_gate_leaves_a_report_to_look_at(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(GateFailed):
        run(lines_pipeline(write_lines(tmp_path / "in", a=["one"]), gates=Gates(min_rows=3)), lake=lake, engine="local")
    (info,) = list_runs(lake)
    shown = show_run(lake, info.run)
    assert (shown["version"], shown["status"]) == (None, "refused")
    assert [gate["gate"] for gate in failed_gates(shown["report"])] == ["min_rows"]


def test_a_refused_run_with_a_unit_to_redo_is_unfinished(lake: Lake, tmp_path: Path) -> None:
    spec = lines_pipeline(write_lines(tmp_path / "in", a=["one"]), gates=Gates(min_rows=3))
    with pytest.raises(GateFailed):
        run(spec, lake=lake, engine="local")
    (info,) = list_runs(lake)
    mark_broken(lake.objects, own_work(info.run, 0), 0, "its staged file is lost")
    (info,) = list_runs(lake)
    assert (info.status, info.units, info.finished) == ("unfinished", 1, 0)


def test_other_objects_under_runs_are_no_runs(lake: Lake, tmp_path: Path) -> None:
    run(lines_pipeline(write_lines(tmp_path / "in", a=["one"])), lake=lake, engine="local")
    lake.objects.put("runs/half/source.json", b"{}")  # a process that was killed before the plan was stored
    assert len(list_runs(lake)) == 1
