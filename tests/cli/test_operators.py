from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from headrace.operators.resolve import names
from tests.cli.support import Caller


def test_lists_every_operator_with_a_sentence(call: Caller) -> None:
    listed = call("operators", "--json").answer["operators"]
    assert [entry["name"] for entry in listed] == names()
    assert [entry["name"] for entry in listed if not entry["summary"].endswith((".", "."))] == []
    shown = call("operators").out
    assert "\ntext\n" in shown
    assert "  text.length" in shown
    assert "too short or too long" in shown


def test_listing_imports_no_operator() -> None:
    code = (
        "import sys, json\nfrom headrace.cli.main import main\nassert main(['operators']) == 0\n"
        "heavy = ('lance', 'ray', 'numba', 'polars', 'headrace.operators.text.length')\n"
        "print(json.dumps([name for name in heavy if name in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout.splitlines()[-1]) == []


def test_one_operator(call: Caller) -> None:
    told = call("operators", "text.length")
    assert told.code == 0
    assert "text.length (map)" in told.out
    assert "Columns\n    reads" in told.out
    line = next(line for line in told.out.splitlines() if line.startswith("min_chars"))
    assert line.split() == ["min_chars", "int", "or", "null,", ">=", "0", "null", "fewest", "code", "points"]


def test_one_operator_for_programs(call: Caller) -> None:
    answer = call("operators", "read.jsonl", "--json").answer
    assert answer["shape"] == "reader"
    assert answer["schema"]["properties"]["root"]["type"] == "string"
    assert answer["schema"]["additionalProperties"] is False
    by_name = {parameter["name"]: parameter for parameter in answer["parameters"]}
    assert by_name["root"]["required"] is True
    assert by_name["exclude"]["default"] == []
    assert all(parameter["description"] for parameter in by_name.values())


def test_every_operator_can_be_told(call: Caller) -> None:
    assert [name for name in names() if call("operators", name, "--json").code != 0] == []


def test_unknown_operator_names_the_nearest(call: Caller) -> None:
    told = call("operators", "text.lenght")
    assert told.code == 2
    assert "'text.length'" in told.err


def test_own_operator_of_the_working_directory(call: Caller, project: Path) -> None:
    told = call("operators", "own:Wait")
    assert told.code == 0
    assert "own:Wait (map)" in told.out
    assert "required" in told.out
