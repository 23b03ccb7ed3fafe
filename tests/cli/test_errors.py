from __future__ import annotations

import json

import pytest

from headrace.cli.errors import report
from headrace.cli.invocation import Invocation
from headrace.errors import CommitConflict, DataError, SpecError


def test_parts_of_an_error_reach_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(DataError("a.txt", "x", "must be y", "write y"), Invocation(is_json=True)) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["error"] == {
        "kind": "DataError",
        "place": "a.txt",
        "got": "x",
        "rule": "must be y",
        "fix": "write y",
        "retryable": False,
        "message": "a.txt: got x; must be y; write y",
        "exit_code": 3,
    }
    assert err == "error: a.txt: got x; must be y; write y\n"


def test_a_spec_error_lists_its_problems(capsys: pytest.CaptureFixture[str]) -> None:
    one, several = SpecError("a.yaml:1 x", "1", "no such key"), SpecError("a.yaml: 2 problems\n  one\n  other")
    several.problems = ("one", "other")
    for error, problems in ((one, ["a.yaml:1 x: got 1; no such key"]), (several, ["one", "other"])):
        assert report(error, Invocation(is_json=True)) == 2
        assert json.loads(capsys.readouterr().out)["error"]["problems"] == problems


def test_retryable_error_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(CommitConflict("docs"), Invocation(run="r1")) == 6
    assert "headrace resume r1" in capsys.readouterr().err
    assert report(DataError("docs"), Invocation(run="r1")) == 3
    assert "resume" not in capsys.readouterr().err


def test_text_in_an_error_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report(DataError("a\x1b[2J\nb"), Invocation())
    assert capsys.readouterr().err == "error: a\N{REPLACEMENT CHARACTER}[2J\nb\n"
