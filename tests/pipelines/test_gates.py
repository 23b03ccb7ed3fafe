"""Gates: limits are inclusive, and a failed one is told with its measure."""

from __future__ import annotations

import pytest

from headrace.errors import GateFailed
from headrace.pipelines.funnel import Funnel
from headrace.pipelines.gates import check_gates, require_gates
from headrace.pipelines.spec import Gates

FUNNEL = Funnel((), 100, {"kept": 50, "rejects": 40, "quarantine": 10})


@pytest.mark.parametrize(
    ("gates", "failed"),
    [
        (Gates(), []),
        (Gates(min_rows=50, max_drop_frac=0.4, max_quarantine_frac=0.1), []),
        (Gates(min_rows=51), ["min_rows"]),
        (Gates(max_drop_frac=0.39), ["max_drop_frac"]),
        (Gates(max_quarantine_frac=0.09), ["max_quarantine_frac"]),
        (
            Gates(min_rows=51, max_drop_frac=0, max_quarantine_frac=0),
            ["min_rows", "max_drop_frac", "max_quarantine_frac"],
        ),
    ],
)
def test_limits_are_inclusive(gates: Gates, failed: list[str]) -> None:
    results = check_gates(gates, FUNNEL)
    assert [result.gate for result in results] == ["min_rows", "max_drop_frac", "max_quarantine_frac"]
    assert [result.value for result in results] == [50, 0.4, 0.1]
    assert [result.gate for result in results if not result.passed] == failed
    if failed:
        with pytest.raises(GateFailed) as told:
            require_gates(results, "web", "r1")
        assert all(name in str(told.value) for name in failed)
    else:
        require_gates(results, "web", "r1")


def test_an_empty_input_divides_by_nothing() -> None:
    empty = Funnel((), 0, {"kept": 0, "rejects": 0, "quarantine": 0})
    assert all(result.passed for result in check_gates(Gates(max_drop_frac=0, max_quarantine_frac=0), empty))
    assert not check_gates(Gates(min_rows=1), empty)[0].passed
    one = Funnel((), 1, {"kept": 0, "rejects": 1, "quarantine": 0})
    assert check_gates(Gates(), one)[1].value == 1


def test_a_failed_gate_is_told_with_measure_and_limit() -> None:
    told = r"gates of web: got max_drop_frac: measured 0\.4, limit 0\.25; a failed gate publishes nothing"
    with pytest.raises(GateFailed, match=told):
        require_gates(check_gates(Gates(max_drop_frac=0.25), FUNNEL), "web", "r1")


def test_results_are_plain() -> None:
    assert check_gates(Gates(min_rows=51), FUNNEL)[0].to_plain() == {
        "gate": "min_rows",
        "value": 50,
        "limit": 51,
        "passed": False,
    }
