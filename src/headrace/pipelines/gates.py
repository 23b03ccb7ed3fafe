"""Gates on the whole result, checked before anything is published."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headrace.errors import GateFailed
from headrace.pipelines.funnel import Funnel
from headrace.pipelines.spec import Gates


@dataclass(frozen=True)
class GateResult:
    """What one gate measured."""

    gate: str
    value: float
    limit: float
    passed: bool

    def to_plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def check_gates(gates: Gates, funnel: Funnel) -> tuple[GateResult, ...]:
    """Measure every gate; the default limits pass whatever comes."""
    total = max(1, funnel.rows_in)
    dropped, quarantined = funnel.rows["rejects"] / total, funnel.rows["quarantine"] / total
    kept = funnel.rows["kept"]
    return (
        GateResult("min_rows", kept, gates.min_rows, kept >= gates.min_rows),
        GateResult("max_drop_frac", dropped, gates.max_drop_frac, dropped <= gates.max_drop_frac),
        GateResult(
            "max_quarantine_frac", quarantined, gates.max_quarantine_frac, quarantined <= gates.max_quarantine_frac
        ),
    )


def require_gates(results: tuple[GateResult, ...], output: str, run: str) -> None:
    """Raises GateFailed that names each failed gate with its value and limit."""
    failed = [r for r in results if not r.passed]
    if failed:
        told = ", ".join(f"{r.gate}: measured {r.value:g}, limit {r.limit:g}" for r in failed)
        fix = f"see headrace runs show {run}; change the gate or the pipeline, and run again"
        raise GateFailed(f"gates of {output}", told, "a failed gate publishes nothing", fix)
