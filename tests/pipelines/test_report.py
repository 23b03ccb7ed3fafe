"""The run report: what went in, what every step did, under which code, and what was accepted."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from headrace.pipelines.environment import package_versions
from headrace.pipelines.funnel import funnel_of
from headrace.pipelines.gates import check_gates
from headrace.pipelines.prepare import Prepared, prepare
from headrace.pipelines.publish import report_key
from headrace.pipelines.records import UnitRecord, finished_units, load_records
from headrace.pipelines.report import make_report
from headrace.pipelines.run import RunResult, run
from headrace.storage.lake import Lake
from tests.pipelines.plain import FirstOfText, Raises, Shout, Without, lines_pipeline, write_lines


@pytest.fixture
def prepared(lake: Lake, tmp_path: Path) -> Prepared:
    folder = write_lines(tmp_path / "in", a=["one", "drop", "bad", "?broken"], b=["one"])
    spec = lines_pipeline(folder, Without(word="drop"), Raises(), FirstOfText(), Shout(mark="?"), channel="prod")
    found = prepare(spec, lake)
    assert isinstance(found, Prepared)
    return found


@pytest.fixture
def result(prepared: Prepared) -> RunResult:
    return run(prepared.pipeline, lake=prepared.lake, engine="local", cpus=1)


def test_it_says_what_went_in_and_what_came_of_it(prepared: Prepared, result: RunResult) -> None:
    report = result.report
    assert report["run"] == result.run == prepared.plan.run
    assert (report["pipeline"], report["output"], report["channel"]) == ("lines", "out", "prod")
    assert report["input"] == {"files": 2, "size_bytes": 25, "digest": prepared.plan.input_digest}
    assert report["units"] == 1
    assert report["rows_in"] == 5
    assert report["rows"] == {"kept": 1, "rejects": 2, "quarantine": 2}
    assert report["renamed_ids"] == 0
    assert (report["engine"], report["cpus"], report["fresh"], report["accepted"]) == ("local", 1, "", [])
    assert report["packages"] == package_versions()
    assert {gate["gate"]: gate["passed"] for gate in report["gates"]} == {
        "min_rows": True,
        "max_drop_frac": True,
        "max_quarantine_frac": True,
    }
    assert report["seconds"] >= 0
    assert report["started_at"]


def test_every_step_has_its_line_with_parameters_and_digest(prepared: Prepared, result: RunResult) -> None:
    lines = [
        (step["index"], step["rows_in"], step["kept"], step["dropped"], step["quarantined"])
        for step in result.report["steps"]
    ]
    assert lines == [
        (0, 5, 4, {}, 1),
        (1, 4, 3, {"without": 1}, 0),
        (2, 3, 2, {}, 1),
        (3, 2, 1, {"repeated": 1}, 0),
        (4, 1, 1, {}, 0),
    ]
    assert [step["params"] for step in result.report["steps"]][1:] == [
        {"word": "drop"},
        {"word": "bad"},
        {"min_length": 0},
        {"mark": "?"},
    ]
    assert [step["digests"] for step in result.report["steps"]] == [[step.digest] for step in prepared.steps]


def test_it_is_stored_before_the_commit_that_it_explains(prepared: Prepared, result: RunResult) -> None:
    assert json.loads(prepared.lake.objects.get(report_key(result.run))) == result.report


def test_units_that_ran_with_other_code_show_both_digests(prepared: Prepared, result: RunResult) -> None:
    work = f"runs/{result.run}/segment-1"
    (record,) = load_records(prepared.lake.objects, work, 1)
    other = dataclasses.replace(record, unit=1, code={**record.code, 4: "changed"})
    records: list[UnitRecord] = [record, other]
    funnel = funnel_of([step.op for step in prepared.steps], records)
    report = make_report(prepared, funnel, check_gates(prepared.pipeline.gates, funnel), records, {})
    assert report["steps"][4]["digests"] == [prepared.steps[4].digest, "changed"]
    assert report["steps"][1]["digests"] == [prepared.steps[1].digest]
    (key,) = finished_units(prepared.lake.objects, f"work/{prepared.plan.segment_keys[0]}").values()
    earlier = UnitRecord.from_json(prepared.lake.objects.get(key))
    prepared.lake.objects.put(key, dataclasses.replace(earlier, code={**earlier.code, 1: "changed too"}).to_json())
    report = make_report(prepared, funnel, check_gates(prepared.pipeline.gates, funnel), records, {})
    assert "changed too" in report["steps"][1]["digests"]
