from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import Caller


def test_ls_shows_published_replaced_and_refused(call: Caller, project: Path) -> None:
    assert call("run", "notes.yaml").code == 0
    assert call("run", "notes.yaml", "--fresh", "again").code == 0
    assert call("run", "notes.yaml", "--set", "output=docs/other", "--set", "gates.min_rows=99").code == 5
    found = call("runs", "ls", "--json").answer["runs"]
    assert sorted((run["output"], run["status"], run["version"]) for run in found) == [
        ("docs/notes", "published", 3),
        ("docs/notes", "replaced", 2),
        ("docs/other", "refused", None),
    ]
    shown = call("runs", "ls").out
    assert all(run["run"] in shown for run in found)
    assert "docs/notes@3" in shown


def test_show_tells_the_report(call: Caller, project: Path) -> None:
    run = call("run", "notes.yaml", "--fresh", "because", "--json").answer["run"]
    told = call("runs", "show", run)
    assert told.code == 0
    assert f"run {run}: published" in told.out
    assert "fresh: because" in told.out
    assert "1 by min_chars" in told.out
    assert "1 of 1 units finished" in told.out
    answer = call("runs", "show", run, "--json").answer
    assert answer["spec"]["output"] == "docs/notes"
    assert answer["report"]["rows_in"] == 4


def test_show_of_an_unfinished_run_says_how_to_go_on(
    call: Caller, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_FAULT", "publish.before_kept=raise")
    assert call("run", "notes.yaml").code != 0
    (info,) = call("runs", "ls", "--json").answer["runs"]
    assert (info["status"], info["units"], info["finished"]) == ("unfinished", 1, 1)
    told = call("runs", "show", info["run"])
    assert f"continue with: headrace resume {info['run']}" in told.out
    assert "refused" not in told.out


def test_show_of_a_refused_run_names_the_gate(call: Caller, project: Path) -> None:
    assert call("run", "notes.yaml", "--set", "gates.min_rows=99").code == 5
    run = call("runs", "ls", "--json").answer["runs"][0]["run"]
    told = call("runs", "show", run)
    assert f"run {run}: refused" in told.out
    assert "refused by min_rows: measured 2, limit 99; nothing was published" in told.out
    assert "run the file again" in told.out
    assert "headrace resume" not in told.out


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_unknown_run(call: Caller, project: Path, verb: str) -> None:
    run = call("run", "notes.yaml", "--json").answer["run"]
    told = call("runs", verb, "nope")
    assert told.code == 4
    assert run in told.err  # which there are


def test_verify_counts_again(call: Caller, project: Path) -> None:
    run = call("run", "notes.yaml", "--json").answer["run"]
    told = call("runs", "verify", run)
    assert told.code == 0
    assert f"run {run}: verified" in told.out
    answer = call("runs", "verify", run, "--json").answer
    assert answer["ok"] is True
    assert {check["passed"] for check in answer["checks"]} == {True}


def test_verify_sees_a_wrong_count(call: Caller, project: Path) -> None:
    run = call("run", "notes.yaml", "--json").answer["run"]
    path = project / "lake" / "_headrace" / "runs" / run / "report.json"
    report = json.loads(path.read_text())
    report["rows"]["kept"] = 3
    path.write_text(json.dumps(report))
    told = call("runs", "verify", run)
    assert told.code == 3
    assert "DIFFERS  kept rows" in told.out
    assert "1 checks differ" in told.err
    answer = call("runs", "verify", run, "--json")
    assert (answer.code, answer.answer["ok"]) == (3, False)
