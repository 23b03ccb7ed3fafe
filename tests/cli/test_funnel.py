from __future__ import annotations

import pytest

from headrace.cli.funnel import gates_line, show_funnel
from headrace.cli.output import Output

STEPS = [
    {"index": 0, "op": "read.jsonl", "rows_in": 1200, "kept": 1199, "dropped": {}, "quarantined": 1},
    {
        "index": 1,
        "op": "text.length",
        "rows_in": 1199,
        "kept": 1000,
        "dropped": {"max": 9, "min": 190},
        "quarantined": 0,
    },
]


def test_sums_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    show_funnel(Output(), STEPS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["0", "read.jsonl", "1,200", "1,199", "1"]
    assert lines[2] == ["1", "text.length", "1,199", "1,000", "9", "by", "max,", "190", "by", "min", "0"]
    assert lines[3] == ["all", "1,200", "1,000", "199", "1"]


def test_gates_that_failed_stand_out() -> None:
    gates = [
        {"gate": "min_rows", "value": 9.0, "limit": 10, "passed": False},
        {"gate": "max_drop_frac", "value": 0.25, "limit": 1.0, "passed": True},
    ]
    assert gates_line(gates) == "gates: min_rows 9 (limit 10) FAILED, max_drop_frac 0.25 (limit 1)"
